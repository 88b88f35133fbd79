"""Contradictions between documents: sides, the course of a problem, a drug and an allergy, evidence for and against."""

from collections.abc import Sequence
from datetime import date
from itertools import combinations

from docgemma.rcm.assertion import hits, says
from docgemma.rcm.records import AGAINST, Claim, Contradiction, Document
from docgemma.rcm.sentences import Sentence, lists, sentences_of, words_of
from docgemma.rcm.sides import parts, same_part, sides
from docgemma.text.drugs import DrugNames

VISITS_APART = 14  # days
ALLERGY = ["allergy", "allergies", "allergic", "anaphylaxis", "hypersensitivity"]


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


def claim_of(sentence: Sentence, claim: str, criterion: str = "") -> Claim:
    """A sentence as a claim that quotes it, not verified yet."""
    made = Claim(
        claim=claim, quote=sentence.text, document=sentence.document, page=sentence.page, section=sentence.section,
        verified=False, kind="document",
    )  # fmt: skip
    return {**made, "criterion": criterion} if criterion else made


def _sides_apart(said: Sequence[Sentence], question: str) -> list[Contradiction]:
    """A request for one side where every complaint that is documented of that part is of the other."""
    data, found = lists("opposites"), list[Contradiction]()
    sided = [one for one in said if sides(one.text) and parts(one.text)]
    requests = [one for one in sided if hits(data["asked"], one.words) or hits(data["asked"], words_of(one.section))]
    complaints = [one for one in sided if one not in requests and says(one, data["complaints"])]
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
        for one in (item for item in dated if says(item, left)):
            for other in (item for item in dated if says(item, right)):
                apart = abs((date.fromisoformat(one.day) - date.fromisoformat(other.day)).days)
                if 0 < apart <= VISITS_APART and _one_problem(one, other, {*left, *right, *data["generic"]}):
                    first, second = sorted((one, other), key=lambda item: item.day)
                    what = f"the course of one problem differs between visits {apart} days apart"
                    found.append(_pair(what, first, second))
    return list({(item["one"]["quote"], item["other"]["quote"]): item for item in found}.values())


def _one_problem(one: Sentence, other: Sentence, generic: set[str]) -> bool:
    known = {part for term in generic for part in term.split()}
    mine, theirs = (
        {word.text.removesuffix("s") for word in item.words if word.text not in known and word.text.isalpha()}
        for item in (one, other)
    )
    opposed = sides(one.text) and sides(other.text) and not sides(one.text) & sides(other.text)
    return not opposed and bool(mine & theirs)


def _allergies(said: Sequence[Sentence], drug: str, drugs: DrugNames | None) -> list[Contradiction]:
    """The drug that is requested, and an allergy to it or its class that is stated."""
    from docgemma.rules.drug_classes import allergy_conflict

    found, called = [], [drug.casefold()]
    for one in said if drug else ():
        listed = "allerg" in one.section.casefold() and not hits(ALLERGY, one.words)
        stands = listed or says(one, ALLERGY, ("affirmed", "hypothetical", "planned"))
        conflict = allergy_conflict(drug, one.text, drugs) if stands else None
        if conflict and not says(one, called, ("negated",)):
            asked = next((other for other in said if other != one and hits(called, other.words)), _asked(drug))
            found.append(_pair(f"the requested drug and a stated allergy: {conflict}", asked, one))
    return found


def _pair(what: str, one: Sentence, other: Sentence) -> Contradiction:
    return Contradiction(what=what, one=claim_of(one, one.text), other=claim_of(other, other.text))
