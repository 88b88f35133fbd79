"""Audit claims: the quote stands in its place, says what is claimed, of this patient and this side. Pure, no model.

Also the confidence and the escalation that follow.
"""

import re
from collections.abc import Sequence
from typing import Any

from docgemma.rcm.assertion import status
from docgemma.rcm.header import identities_of, same_name
from docgemma.rcm.records import CONFIDENT, LEADS, REVIEW, Claim, Contradiction, Document, Identity, Judged, Page
from docgemma.rcm.sentences import Word, lists, section_at, spans, words_of
from docgemma.rcm.sides import sides
from docgemma.text.numbers import quantities

LETTERS = 3  # of a word that is compared between a claim and its quote
# 50, 30 and 20 % by the specification; without a self-assessment the other two keep their proportion
WEIGHTS = {"audit_pass_rate": 0.625, "citation_density": 0.375, "self_assessment": 0.0}
MARKS = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-"}
)


def verify(claim: Claim, documents: Sequence[Document], *, asked: Identity | None = None) -> Claim:
    """The claim with `verified` set: True where `faults` finds nothing."""
    return {**claim, "verified": not faults(claim, documents, asked=asked)}


def faults(claim: Claim, documents: Sequence[Document], *, asked: Identity | None = None) -> list[str]:
    """Why a claim cannot pass, in plain words without its text; [] where it can.

    Args:
        asked: whom the question is about; a page that names another patient supports nothing about this one.
    """
    if not (claim["quote"].strip() and claim["document"] and claim["page"] is not None and claim["section"]):
        return ["no quote, document, page or section"]
    found = [document for document in documents if document["name"] == claim["document"]]
    page = next((one for document in found for one in document["pages"] if one["number"] == claim["page"]), None)
    if page is None or page["failed"]:
        return ["no such document or page, or it could not be read"]
    places = places_of(claim["quote"], page["text"])
    if not places:
        return ["the quote does not stand there"]
    places = [(start, end) for start, end in places if section_at(found[0], page, start) == claim["section"]]
    if not places:
        return ["the quote stands in another section"]
    wrong = ["the page names another patient"] if asked and _another(found[0], page, asked) else []
    around = [_around(page["text"], start, end) for start, end in places]
    if not any(_agrees(claim["claim"], claim["quote"], text, claim["section"]) for text in around):
        wrong.append("the quote is denied, only considered, planned or a relative's")
    measured, given = ({(one.value, one.unit) for one in quantities(text)} for text in (claim["claim"], around[0]))
    if {one for one in measured if one[1]} - given:
        wrong.append("a number of the claim is not in the quote")
    wanted = sides(claim["claim"])
    said = sides(claim["quote"]) or sides(around[0])
    if wanted and said and not wanted <= said:
        wrong.append("the quote is of the other side")
    return wrong


def confidence(audited: Sequence[Claim], judged: Sequence[Judged]) -> dict[str, Any]:
    """How sure the answer is, 0 to 1, and its parts.

    Args:
        audited: every claim that was made, those that failed too.
        judged: the checklist; a criterion that is not documented is a statement without a quote.

    Returns:
        `score`, `parts`: audit_pass_rate (share of claims that verify; 0 without any), citation_density (share of the
        checklist with a quote; 1 without one where a claim verifies), self_assessment (None: no model is asked for it,
        and nothing is invented in its place), and `weights` as they were used.
    """
    verified = sum(claim["verified"] for claim in audited)
    quoted = sum(item["verdict"] != "NOT DOCUMENTED" and bool(item["quote"]) for item in judged)
    passed = round(verified / len(audited), 4) if audited else 0.0
    density = round(quoted / len(judged), 4) if judged else float(verified > 0)
    score = WEIGHTS["audit_pass_rate"] * passed + WEIGHTS["citation_density"] * density
    parts = {"audit_pass_rate": passed, "citation_density": density, "self_assessment": None}
    return {"score": round(score, 4), "parts": parts, "weights": WEIGHTS}


def escalation(
    judged: Sequence[Judged], contradictions: Sequence[Contradiction], grave: bool, confidence: float, partial: bool
) -> list[str]:
    """Why a person must look at it, one line each; [] where nobody must.

    Args:
        grave: the safety gate found something of severity HIGH or CONTRAINDICATED.
        confidence: 0 to 1.
        partial: not everything could be read or checked.
    """
    why = [f"{REVIEW}: a grave safety finding stops this request."] if grave else []
    why += [f"Contradiction: {one['what']}. Both quotes are given; a person decides." for one in contradictions]
    why += [f"Not met: {one['id']}: {one['text']} A denial is a person's to make."
            for one in judged if one["verdict"] == "NOT MET"]  # fmt: skip
    why += insufficient(judged)
    why += [f"Confidence is {confidence:.0%}, below {CONFIDENT:.0%}."] if confidence < CONFIDENT else []
    return why + (["The result is partial: not everything could be read or checked."] if partial else [])


def insufficient(judged: Sequence[Judged]) -> list[str]:
    """One line for each criterion that nothing documents."""
    open_ = [one for one in judged if one["verdict"] == "NOT DOCUMENTED"]
    return [f"Insufficient Documentation: {one['id']}: {one['text']}" for one in open_]


def places_of(quote: str, text: str) -> list[tuple[int, int]]:
    """Where a quote stands in a page's text, in whole words and numbers: "able" is not in "unable", nor "2 weeks" in
    "1.2 weeks". Blanks and typographic marks are folded; a hyphen at a line's end may be a part of the word or not."""
    said, page = quote.translate(MARKS), text.translate(MARKS)
    broken = "(?:\u00ad\\s*|-[^\\S\n]*\n\\s*)?"  # a word goes on in the next line, or may
    words = [broken.join(re.escape(char) if char != "-" else "[-\u00ad]\\s*" for char in word) for word in said.split()]
    begins = "(?<!\\w)(?<!\\w[.,'/])(?<![-\u00ad]\n)" if said.strip()[:1].isalnum() else ""
    ends = "(?!\\w|[.,'/]\\w|[-\u00ad]\n)" if said.strip()[-1:].isalnum() else ""
    whole = begins + "\\s+".join(words) + ends
    return [found.span() for found in re.finditer(whole, page)] if words else []


def _around(text: str, start: int, end: int) -> str:
    """The whole sentences that a quote is taken from: a quote must not leave out its "no"."""
    whole = [(one, two) for one, two in spans(text) if one < end and start < two]
    return text[min(one for one, _ in whole) : max(two for _, two in whole)] if whole else text[start:end]


def _agrees(claim: str, quote: str, around: str, section: str) -> bool:
    """Whether the words that a claim shares with its quote stand in the document as they are claimed.

    Where nothing that is affirmed is shared, a quote that is denied or planned bears out no plain statement.
    """
    mine, theirs, quoted = words_of(claim), words_of(around), {word.text for word in words_of(quote)}
    told = claim.startswith(LEADS)  # that it is denied or planned is what is claimed
    claimed, stands = _kinds(mine, section if told else ""), _kinds(theirs, section)
    small = {term for kind in ("negators", "outcomes") for term in lists("negation")["denied_outcome"][kind]}
    shared = {text for text in claimed if len(text) >= LETTERS and text in quoted and text in stands}
    compared = shared - small - set(lists("negation")["small_words"])
    if any(not claimed[text] & stands[text] for text in compared):
        return False
    plain = all(kinds == {"affirmed"} for kinds in claimed.values())
    other = any(kinds != {"affirmed"} for text, kinds in stands.items() if text in quoted)
    return not (plain and other) or any("affirmed" in stands[text] for text in compared)


def _kinds(words: Sequence[Word], section: str = "") -> dict[str, set[str]]:
    """Each word with how it stands, in all its places."""
    found: dict[str, set[str]] = {}
    for at, word in enumerate(words):
        found.setdefault(word.text, set()).add(status(words, at, at + 1, section))
    return found


def _another(document: Document, page: Page, asked: Identity) -> bool:
    """Whether a page, or else the last page before it that names anybody, names somebody else."""
    before = [one for one in document["pages"] if one["number"] <= page["number"]]
    for one in sorted(before, key=lambda one: -one["number"]):
        first, *others = identities_of({**document, "pages": [one]})
        if first["name"] or first["birth_date"]:
            return bool(others) or not _same_person(first, asked)
    return False


def _same_person(one: Identity, other: Identity) -> bool:
    if one["birth_date"] and other["birth_date"] and one["birth_date"] != other["birth_date"]:
        return False
    return not one["name"] or not other["name"] or same_name(one["name"], other["name"])
