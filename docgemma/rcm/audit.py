"""Audit claims: the quote stands in its place, says what is claimed, of this patient and this side. Pure, no model.

Also the contradictions between documents, and the confidence that follows.
"""

from collections.abc import Sequence
from datetime import date
from itertools import combinations
from typing import Any

from docgemma.rcm.assertion import hits, status
from docgemma.rcm.records import CONFIDENT, REVIEW, Claim, Contradiction, Document, Identity, Judged, Page
from docgemma.rcm.sentences import Sentence, Word, lists, section_at, sentences_of, spans, words_of
from docgemma.rcm.sides import parts, same_part, sides
from docgemma.text.characters import fold
from docgemma.text.drugs import DrugNames

LETTERS = 3  # of a word that is compared between a claim and its quote
VISITS_APART = 14  # days
WEIGHTS = {"audit_pass_rate": 0.5, "citation_density": 0.3, "self_assessment": 0.2}
MARKS = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-"}
)
HYPHEN = "\u00ad"  # stands for a hyphen at a line's end, which may be a part of the word or not


def verify(claim: Claim, documents: Sequence[Document], *, asked: Identity | None = None, side: str = "") -> Claim:
    """The claim with `verified` set: True where `faults` finds nothing."""
    return {**claim, "verified": not faults(claim, documents, asked=asked, side=side)}


def faults(claim: Claim, documents: Sequence[Document], *, asked: Identity | None = None, side: str = "") -> list[str]:
    """Why a claim cannot pass, in plain words without its text; [] where it can.

    Args:
        asked: whom the question is about; a page that names another patient supports nothing about this one.
        side: "left", "right", "bilateral" or "" where none is asked.
    """
    if not (claim["quote"].strip() and claim["document"] and claim["page"] is not None and claim["section"]):
        return ["no quote, document, page or section"]
    found = [document for document in documents if document["name"] == claim["document"]]
    page = next((one for document in found for one in document["pages"] if one["number"] == claim["page"]), None)
    if page is None or page["failed"]:
        return ["no such document or page, or it could not be read"]
    places = [place for place in _places(claim["quote"], page["text"])]
    if not places:
        return ["the quote does not stand there"]
    places = [(start, end) for start, end in places if section_at(found[0], page, start) == claim["section"]]
    if not places:
        return ["the quote stands in another section"]
    wrong = ["the page names another patient"] if asked and _another(found[0], page, asked) else []
    around = [_around(page["text"], start, end) for start, end in places]
    if not any(_agrees(claim["claim"], claim["quote"], text, claim["section"]) for text in around):
        wrong.append("the quote is denied, only considered, planned or a relative's")
    wanted = sides(claim["claim"]) or ({"left", "right"} if side == "bilateral" else {side} - {""})
    said = sides(claim["quote"]) or sides(around[0])
    if wanted and said and not wanted <= said:
        wrong.append("the quote is of the other side")
    return wrong


def contradictions(
    documents: Sequence[Document], *, question: str = "", drug: str = "", drugs: DrugNames | None = None,
    claims: Sequence[Claim] = (), today: date | None = None,
) -> list[Contradiction]:  # fmt: skip
    """What cannot both be right, each with both quotes.

    Args:
        question: what was asked; its side is held against the documents.
        drug: that is requested; held against the allergies that are stated.
        drugs: the drug dictionary, with which classes are compared.
        claims: of criteria, those that `judge` returns; one that supports a criterion and one against it are a pair.
        today: dates behind it are not read as visits.
    """
    said = sentences_of(documents, today)
    found = [*_sides_apart(said, question), *_courses(said), *_allergies(said, drug, drugs)]
    for one, other in combinations([claim for claim in claims if claim.get("criterion")], 2):
        against = one["claim"].startswith(AGAINST) != other["claim"].startswith(AGAINST)
        if one.get("criterion") == other.get("criterion") and against:
            found.append(Contradiction(what=f"stated and denied: {one.get('criterion')}", one=one, other=other))
    return found


AGAINST = "Against "  # begins a claim that speaks against its criterion


def confidence(
    audited: Sequence[Claim], judged: Sequence[Judged], self_assessment: float | None, sentences: int
) -> dict[str, Any]:
    """How sure the answer is, 0 to 1, and its parts.

    Args:
        audited: every claim that was made, those that failed too.
        judged: the checklist; a criterion that is not documented is a statement without a quote.
        self_assessment: of the language model, 0 to 1. None on the edge model, which writes nothing: then the other two
            weigh 62.5 and 37.5 %, in the same proportion, and the part is None. Nothing is invented in its place.
        sentences: of the answer that state a fact.

    Returns:
        `score`, `parts`: audit_pass_rate (share of claims that verify; 0 without any), citation_density (verified
        claims a statement, at most 1), self_assessment, and `weights` as they were used.
    """
    verified = sum(claim["verified"] for claim in audited)
    quoted = sum(item["verdict"] != "NOT DOCUMENTED" and bool(item["quote"]) for item in judged)
    cited, stated = (quoted, len(judged)) if judged else (verified, sentences)
    values = {
        "audit_pass_rate": round(verified / len(audited), 4) if audited else 0.0,
        "citation_density": round(min(cited / stated, 1.0), 4) if stated else 0.0,
        "self_assessment": None if self_assessment is None else min(max(self_assessment, 0.0), 1.0),
    }
    total = sum(weight for name, weight in WEIGHTS.items() if values[name] is not None)
    weights = {name: round(weight / total, 4) if values[name] is not None else 0.0 for name, weight in WEIGHTS.items()}
    score = sum(weights[name] * (value or 0.0) for name, value in values.items())
    return {"score": round(score, 4), "parts": values, "weights": weights}


def escalation(
    judged: Sequence[Judged], contradictions: Sequence[Contradiction], gate_ranks: Sequence[str], confidence: float,
    partial: bool,
) -> list[str]:  # fmt: skip
    """Why a person must look at it, one line each; [] where nobody must.

    Args:
        gate_ranks: of the safety gate's findings in words, as `ranked` of docgemma/rules/override.py gives them.
        confidence: 0 to 1.
        partial: not everything could be read or checked.
    """
    grave = {"contraindicated", "major", "high"} & {rank.casefold() for rank in gate_ranks}
    why = [f"{REVIEW}: a grave safety finding stops this request."] if grave else []
    why += [f"Contradiction: {one['what']}. Both quotes are given; a person decides." for one in contradictions]
    why += insufficient(judged)
    why += [f"Confidence is {confidence:.0%}, below {CONFIDENT:.0%}."] if confidence < CONFIDENT else []
    return why + (["The result is partial: not everything could be read or checked."] if partial else [])


def insufficient(judged: Sequence[Judged]) -> list[str]:
    """One line for each criterion that nothing documents."""
    return [
        f"Insufficient Documentation: {one['id']}: {one['text']}"
        for one in judged
        if one["verdict"] == "NOT DOCUMENTED"
    ]


def claim_of(sentence: Sentence, claim: str, criterion: str = "") -> Claim:
    """A sentence as a claim that quotes it, not verified yet."""
    made = Claim(
        claim=claim, quote=sentence.text, document=sentence.document, page=sentence.page, section=sentence.section,
        verified=False, kind="document",
    )  # fmt: skip
    return {**made, "criterion": criterion} if criterion else made


def _folded(text: str) -> tuple[str, list[int]]:
    """Blanks folded, typographic marks plain, line-end hyphens marked; with the place of each character."""
    out, at, text = list[str](), list[int](), text.translate(MARKS)
    for place, char in enumerate(text):
        if char == HYPHEN and not text[place + 1 : place + 2].isspace():
            continue
        if char.isspace():
            if out and out[-1] == "-" and "\n" in text[place : place + 2] and len(out) > 1 and out[-2].isalnum():
                out[-1] = HYPHEN
            elif out and out[-1] not in (" ", HYPHEN):
                out.append(" ")
                at.append(place)
            continue
        out.append(char)
        at.append(place)
    return "".join(out), at


def _places(quote: str, text: str) -> list[tuple[int, int]]:
    """Where the quote stands in a page's text, in whole words and numbers."""
    (words, _), (page, at) = _folded(quote.strip()), _folded(text)
    wanted, found = words.strip(), []
    for start in range(len(page)):
        if page[start] != wanted[0] or not _border(page, start):
            continue
        one, here = 0, start
        while one < len(wanted) and here < len(page):
            if page[here] == HYPHEN and wanted[one] not in ("-", HYPHEN):
                here += 1
            elif wanted[one] == page[here] or (page[here] == HYPHEN and wanted[one] in ("-", HYPHEN)):
                one, here = one + 1, here + 1
            else:
                break
        if one == len(wanted) and _border(page, here):
            found.append((at[start], at[here - 1] + 1))
    return found


def _border(text: str, at: int) -> bool:
    """Whether no word or number goes on here: "able" is not in "unable", nor "2 weeks" in "12 weeks" or "1.2 weeks"."""
    before, after = text[at - 1 : at], text[at : at + 1]
    if before in ("", " ") or after in ("", " "):
        return True
    inner = (before in ".,'/" and after.isalnum() and text[at - 2 : at - 1].isalnum()) or (
        after in ".,'/" and before.isalnum() and text[at + 1 : at + 2].isalnum()
    )
    return not (before.isalnum() and after.isalnum()) and not inner and HYPHEN not in (before, after)


def _around(text: str, start: int, end: int) -> str:
    """The whole sentences that a quote is taken from: a quote must not leave out its "no"."""
    whole = [(one, two) for one, two in spans(text) if one < end and start < two]
    return text[min(one for one, _ in whole) : max(two for _, two in whole)] if whole else text[start:end]


def _agrees(claim: str, quote: str, around: str, section: str) -> bool:
    """Whether the words that a claim shares with its quote stand in the document as they are claimed.

    Where nothing that is affirmed is shared, a quote that is denied or planned bears out no plain statement.
    """
    mine, theirs, quoted = words_of(claim), words_of(around), {word.text for word in words_of(quote)}
    claimed, stands = _kinds(mine), _kinds(theirs, section)
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
    from docgemma.rcm.header import identity_of

    for one in sorted(
        (one for one in document["pages"] if one["number"] <= page["number"]), key=lambda one: -one["number"]
    ):
        told: Any = identity_of({**document, "pages": [one]})
        if told["name"] or told["birth_date"]:
            return bool(told.get("others")) or not _same_person(told, asked)
    return False


def _same_person(one: Identity, other: Identity) -> bool:
    if one["birth_date"] and other["birth_date"] and one["birth_date"] != other["birth_date"]:
        return False
    mine, theirs = (
        [part for part in fold(name).replace(",", " ").replace(".", " ").split()]
        for name in (one["name"], other["name"])
    )
    small, large = sorted((mine, theirs), key=len)
    return all(
        any(part == two or (1 in (len(part), len(two)) and part[0] == two[0]) for two in large) for part in small
    )


def _sides_apart(said: Sequence[Sentence], question: str) -> list[Contradiction]:
    """A request for one side where every complaint that is documented of that part is of the other."""
    data, found = lists("opposites"), list[Contradiction]()
    sided = [one for one in said if sides(one.text) and parts(one.text)]
    requests = [one for one in sided if hits(data["asked"], one.words) or hits(data["asked"], words_of(one.section))]
    complaints = [one for one in sided if one not in requests and _affirms(one, data["complaints"])]
    for one in [*([_asked(question)] if sides(question) and parts(question) else []), *requests]:
        of_part = [other for other in complaints if same_part(one.text, other.text)]
        if of_part and not any(sides(other.text) & sides(one.text) for other in of_part):
            found.append(_pair("the side that is asked for is not the side that is documented", one, of_part[0]))
        other_request = next((two for two in requests if same_part(one.text, two.text)), one)
        if not sides(other_request.text) & sides(one.text):
            found.append(_pair("two requests are of different sides", one, other_request))
    return found[:1]


def _asked(text: str) -> Sentence:
    """What was asked, as a sentence that can be cited."""
    return Sentence(text, "the question", 1, "asked", 0, len(text), "", words_of(text))


def _courses(said: Sequence[Sentence]) -> list[Contradiction]:
    """ "Stable" and "worsening" of one problem at visits within 14 days."""
    data, found = lists("opposites"), list[Contradiction]()
    dated = [one for one in said if one.day]
    for left, right in data["pairs"]:
        for one in (item for item in dated if _affirms(item, left)):
            for other in (item for item in dated if _affirms(item, right)):
                apart = abs((date.fromisoformat(one.day) - date.fromisoformat(other.day)).days)
                if 0 < apart <= VISITS_APART and _one_problem(one, other, {*left, *right, *data["generic"]}):
                    first, second = sorted((one, other), key=lambda item: item.day)
                    found.append(
                        _pair(f"the course of one problem differs between visits {apart} days apart", first, second)
                    )
    return list({(item["one"]["quote"], item["other"]["quote"]): item for item in found}.values())


def _one_problem(one: Sentence, other: Sentence, generic: set[str]) -> bool:
    known = {part for term in generic for part in term.split()}
    mine, theirs = (
        {word.text.removesuffix("s") for word in item.words if word.text not in known and word.text.isalpha()}
        for item in (one, other)
    )
    opposed = sides(one.text) and sides(other.text) and not sides(one.text) & sides(other.text)
    return not opposed and (bool(mine & theirs) or not mine or not theirs)


def _allergies(said: Sequence[Sentence], drug: str, drugs: DrugNames | None) -> list[Contradiction]:
    """The drug that is requested, and an allergy to it or its class that is stated."""
    from docgemma.rules.drug_classes import allergy_conflict

    found = []
    for one in said if drug else ():
        spots = hits(["allergy", "allergies", "allergic", "anaphylaxis", "hypersensitivity"], one.words)
        listed = "allerg" in one.section.casefold()
        stands = any(status(one.words, start, end, one.section) == "affirmed" for start, end in spots) or (
            listed and not spots
        )
        conflict = allergy_conflict(drug, one.text, drugs) if stands else None
        if conflict and not any(
            status(one.words, *spot, one.section) == "negated" for spot in hits([drug.casefold()], one.words)
        ):
            asked = next((other for other in said if other != one and hits([drug.casefold()], other.words)), None)
            asked = asked or _asked(drug)
            found.append(_pair(f"the requested drug and a stated allergy: {conflict}", asked, one))
    return found


def _affirms(sentence: Sentence, terms: Sequence[str]) -> bool:
    spots = hits(terms, sentence.words)
    return any(status(sentence.words, start, end, sentence.section) == "affirmed" for start, end in spots)


def _pair(what: str, one: Sentence, other: Sentence) -> Contradiction:
    return Contradiction(what=what, one=claim_of(one, one.text), other=claim_of(other, other.text))
