"""Judge the criteria of a policy: MET, NOT MET or NOT DOCUMENTED, each with the sentence that decides.

Code finds the policy's terms (`shown_by`), the trained evidence reader what is said in other words (`read_by`). A
language model may find more; what it picks passes checks for denial, side and number, so that it can make no denied
sentence into "met".
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal, cast

import numpy as np
from pydantic import create_model

from docgemma.llm.base import LLM, GenConfig, Prompt
from docgemma.rcm.assertion import hits, in_plan
from docgemma.rcm.audit import verify
from docgemma.rcm.contradictions import claim_of
from docgemma.rcm.meaning import embed
from docgemma.rcm.patterns import Asked, Finding, bears_out, judge_pattern, leaves
from docgemma.rcm.read_by import judge_read, passages
from docgemma.rcm.records import AGAINST, PLANNED, Claim, Criterion, Document, Identity, Judged, Policy, Verdict
from docgemma.rcm.sentences import Sentence, lists, sentences_of, words_of
from docgemma.rcm.sides import parts, same_part, sides
from docgemma.rcm.statements import statements
from docgemma.schemas import Schema

CANDIDATES = 12  # sentences that a language model chooses among
GENERATION = GenConfig(temperature=0.0, max_tokens=48)
NEAR = 0.75  # cosine from which a sentence is about a criterion: 1 in 150 sentences about something else is above it
APART = "judged differently; a person decides"
LETTERS = 4  # of a word that tells what a criterion is about
RANK_CONSTANT = 60  # of reciprocal rank fusion, as it was published


def judge(
    policy: Policy, documents: Sequence[Document], llm: LLM | None, *, side: str = "", today: date,
    asked: Identity | None = None,
) -> tuple[list[Judged], list[Claim]]:  # fmt: skip
    """Judge each criterion, in the policy's order; the verdict does not depend on the order of the pages.

    Args:
        llm: None, or the edge model, is asked nothing.
        side: requested, "left", "right", "bilateral" or "".
        today: the day of the request.
        asked: whom the request is for; a page that names another patient shows nothing.

    Returns:
        The checklist, and its claims, audited; `criterion` says of which criterion each is. A claim that begins with
        "Against " speaks against it. A MET or NOT MET whose quotes do not verify becomes NOT DOCUMENTED.

    Raises:
        ModelError: the language model failed.
    """
    said = sorted(sentences_of(documents, today), key=lambda one: (one.document, one.page, one.start))
    stated, requests = statements(said)
    heads = [one for one in said if one not in set(stated)]
    days = [date.fromisoformat(one.day) for one in said if one.day and one.day <= today.isoformat()]
    whole = Asked(stated, side, today, _only_sides(said), requests, max(days, default=None), heads)
    read = passages(tuple(stated))
    judged, claims = list[Judged](), list[Claim]()
    for criterion in policy["criteria"]:
        held = replace(whole, sentences=[one for one in stated if not _elsewhere(one.text, criterion["text"])])
        finding = judge_pattern(criterion["shown_by"], held)
        if "read_by" in criterion:
            finding = _either(finding, judge_read(criterion["read_by"], read, held))
        if llm is not None and llm.profile != "edge" and said:
            finding = _with_model(criterion, finding, held, llm)
        made = [_audited(claim, documents, asked) for claim in _claims(criterion, finding)]
        claims += made
        if finding.verdict != "NOT DOCUMENTED" and not all(claim["verified"] for claim in made):
            finding = Finding("NOT DOCUMENTED", "its quote did not pass the audit")
        quote = finding.quotes[0] if finding.quotes and finding.verdict != "NOT DOCUMENTED" else None
        judged.append(Judged(
            id=criterion["id"], text=criterion["text"], verdict=finding.verdict, quote=quote.text if quote else "",
            document=quote.document if quote else "", page=quote.page if quote else None,
            section=quote.section if quote else "", why=finding.why,
        ))  # fmt: skip
    return judged, claims


def _claims(criterion: Criterion, finding: Finding) -> list[Claim]:
    """A finding's quotes as claims, those against the criterion, and those of a plan, told as such."""
    intended = any(part.get("planned") for part in leaves(criterion["shown_by"]))
    found = list[Claim]()
    for quotes, denied in ((finding.quotes, finding.verdict == "NOT MET"), (finding.against, True)):
        for quote in quotes:
            lead = f"{AGAINST}it: " if denied else PLANNED if intended and in_plan(quote) else ""
            found.append(claim_of(quote, f"{lead}{quote.text}", criterion["id"]))
    return found


def _audited(claim: Claim, documents: Sequence[Document], asked: Identity | None) -> Claim:
    """A claim, audited: one of a plan that is told as done ("6 weeks after the first night") as it stands there."""
    told, plain = verify(claim, documents, asked=asked), claim["claim"].removeprefix(PLANNED)
    return told if told["verified"] else verify({**claim, "claim": plain}, documents, asked=asked)


def _either(listed: Finding, read: Finding) -> Finding:
    """What the policy's terms show, else what the reader reads. A person decides where one denies what the other shows,
    and where the terms find it stated here and denied there."""
    if {listed.verdict, read.verdict} == {"MET", "NOT MET"}:
        shown, denied = (listed, read) if listed.verdict == "MET" else (read, listed)
        return Finding("NOT DOCUMENTED", APART, shown.quotes, denied.quotes)
    if listed.verdict == "MET" or listed.against or (listed.verdict, read.verdict) == ("NOT MET", "NOT DOCUMENTED"):
        return listed
    return read


def _elsewhere(said: str, asked: str) -> bool:
    """Whether a sentence names parts of the body, and none of them is of a criterion that names some."""
    return bool(parts(said) and parts(asked)) and not same_part(said, asked)


def _with_model(criterion: Criterion, finding: Finding, held: Asked, llm: LLM) -> Finding:
    """What the language model adds: evidence in other words. Where it says the opposite of code, a person decides."""
    nearest = candidates(criterion["text"], held.considered(criterion["shown_by"]))
    numbers: Any = Literal[tuple([*(str(number) for number in range(1, len(nearest) + 1)), "none"])]
    verdict: Any = Literal["met", "not_met", "unknown"]
    schema = create_model("Verdict", __base__=Schema, verdict=(verdict, ...), sentence=(numbers, ...))
    numbered = "\n".join(f"{number}. {one.text}" for number, one in enumerate(nearest, 1))
    side = f" (requested side: {held.side})" if held.side else ""
    prompt = Prompt(
        system=lists("prompts")["judge"], user=f"Sentences:\n{numbered}\n\nCriterion{side}: {criterion['text']}"
    )
    value: Any = llm.structured(prompt, schema, GENERATION, node="judge").value if nearest else None
    if value is None or value.verdict == "unknown" or value.sentence == "none":
        return finding
    chosen, said = nearest[int(value.sentence) - 1], cast(Verdict, value.verdict.upper().replace("_", " "))
    if finding.verdict == said or not bears_out(said, chosen, criterion["shown_by"], held):
        return finding
    if not _concerns(chosen, criterion):
        return finding
    if finding.verdict == "NOT DOCUMENTED" and not finding.against:
        return Finding(said, "stated, as the language model reads it", (chosen,))
    return Finding("NOT DOCUMENTED", APART, finding.quotes, finding.against or (chosen,))


def _concerns(sentence: Sentence, criterion: Criterion) -> bool:
    """Whether a sentence is about a criterion: by a word of its text, a term that shows it, or the meaning."""
    small = {*lists("negation")["small_words"], *lists("opposites")["generic"]}
    asked = {word.text.removesuffix("s") for word in words_of(criterion["text"]) if len(word.text) >= LETTERS} - small
    if asked & {word.text.removesuffix("s") for word in sentence.words}:
        return True
    for part in leaves(criterion["shown_by"]):
        terms = [*part.get("measure", {}).get("name", ()), *part.get("any", [[]])[0], *part.get("refuted_by", ())]
        if hits(terms, sentence.words):
            return True
    one, other = embed([sentence.text, criterion["text"]])
    return bool(one @ other >= NEAR)


def candidates(text: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """The sentences nearest to a criterion by shared words and meaning (reciprocal rank), in the documents' order."""
    if len(sentences) <= CANDIDATES:
        return list(sentences)
    wanted, vectors = {word.text for word in words_of(text)}, embed([text, *(one.text for one in sentences)])
    words = np.array([len(wanted & {word.text for word in one.words}) for one in sentences])
    scores = np.zeros(len(sentences))
    for values in (words, vectors[1:] @ vectors[0]):
        scores[np.argsort(-values, kind="stable")] += 1 / (RANK_CONSTANT + np.arange(len(sentences)))
    best = np.argsort(-scores, kind="stable")[:CANDIDATES]
    return [sentences[at] for at in sorted(best)]


def _only_sides(said: Sequence[Sentence]) -> dict[tuple[str, int, str], frozenset[str]]:
    """The side that a section names where it names only one, else that of its page."""
    sections, pages = defaultdict[Any, frozenset[str]](frozenset), defaultdict[Any, frozenset[str]](frozenset)
    for one in said:
        sections[one.document, one.page, one.section] |= sides(one.text)
        pages[one.document, one.page] |= sides(one.text)
    found = {key: named or pages[key[:2]] for key, named in sections.items()}
    return {key: named for key, named in found.items() if len(named) == 1}
