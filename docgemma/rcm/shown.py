"""What shows a criterion by the terms of its policy: a `shown_by` pattern held against sentences. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from docgemma.rcm.assertion import Status, denied_outcomes, hits, says, status
from docgemma.rcm.patterns import (
    PARTS,
    Asked,
    Finding,
    Pattern,
    accepted,
    decided,
    joined,
    leaves,
    title,
)
from docgemma.rcm.records import Verdict
from docgemma.rcm.sentences import Sentence

FAMILY: tuple[Status, ...] = ("family",)


def judge_pattern(pattern: Pattern, asked: Asked) -> Finding:
    """Hold a pattern against sentences. Affirmed here and denied there at the same time gives no verdict."""
    for key in PARTS & set(pattern):
        return joined(key, [judge_pattern(part, asked) for part in leaves(pattern)], every=False)
    shows, refutes = _shown(pattern, asked), _refuted(pattern, asked)
    if pattern.get("absent"):
        shows = [[one] for one in _stated(pattern, asked, "negated")]
        refutes = [*refutes, *_stated(pattern, asked, "affirmed", *FAMILY[: bool(pattern.get("family"))])]
    why = "stated absence" if pattern.get("absent") else "stated"
    return decided(shows, [[one] for one in refutes], why, pattern.get("stands", 0))


def bears_out(verdict: Verdict, sentence: Sentence, pattern: Pattern, asked: Asked) -> bool:
    """Whether a sentence that a language model chose may decide so: of the right side; for MET affirmed, recent and
    with the number, for NOT MET with a denial, a refuting term or a number on the wrong side."""
    if PARTS & set(pattern):
        return any(bears_out(verdict, sentence, part, asked) for part in leaves(pattern))
    words, beside = sentence.words, denied_outcomes(sentence.words) if verdict == "MET" else []
    kinds = {status(words, at, at + 1, sentence.section, beside) for at in range(len(words))}
    if not asked.right_side(sentence, pattern) or kinds - {"affirmed", "negated", *accepted(pattern)}:
        return False
    number = asked.holds(sentence, pattern["measure"], anywhere=True) if "measure" in pattern else ""
    denied = ("negated" in kinds) != bool(pattern.get("absent"))
    if verdict == "NOT MET":
        return denied or number == "no" or says(sentence, pattern.get("refuted_by", ()))
    return not denied and number in ("", "yes") and asked.recent(sentence, pattern)


def _shown(pattern: Pattern, asked: Asked) -> list[list[Sentence]]:
    """The places that show a pattern, each as its sentences: of each group a term that stands, and the number."""
    there = _here(pattern, asked)
    good = [{one for one in there if _stands(one, group, pattern)} for group in pattern.get("any", [])]
    if measure := pattern.get("measure"):
        named = [one for one in there if _stands(one, measure["name"], pattern)]
        good.append({one for one in named if asked.holds(one, measure) == "yes"})
    found = []
    for place in _places(pattern.get("within", "sentence"), there) if good and all(good) else ():
        wanted = [[one for one in place if one in group] for group in good]
        if all(wanted):
            chosen = sorted({sentences[0] for sentences in wanted}, key=lambda one: (title(one), place.index(one)))
            if not all(map(title, chosen)):
                found.append(chosen)
    return found


def _here(pattern: Pattern, asked: Asked) -> list[Sentence]:
    there = asked.considered(pattern)
    return [one for one in there if asked.right_side(one, pattern) and asked.recent(one, pattern)]


def _refuted(pattern: Pattern, asked: Asked) -> list[Sentence]:
    """The sentences that state the opposite: a refuting term, a number on the wrong side, or every mention denied."""
    there = [one for one in asked.considered(pattern) if asked.right_side(one, pattern, named=False)]
    # under a plan too: a heading may run on over the next page, "smokes half a pack a day"
    found = [one for one in there if says(one, pattern.get("refuted_by", ()), ("affirmed", "planned"))]
    measure, first = pattern.get("measure"), (pattern.get("any") or [[]])[0]
    if measure:
        near = [one for one in _here(pattern, asked) if _stands(one, measure["name"], pattern)]
        said = {one: asked.holds(one, measure) for one in near}
        few = [one for one, answer in said.items() if answer == "no"]
        found += asked.newest(few, measure) if "yes" in said.values() else few
    if first and not pattern.get("absent") and not any(_stands(one, first, pattern) for one in there):
        found += [one for one in there if _stands(one, first, pattern, ("negated",))]
    return found


def _stated(pattern: Pattern, asked: Asked, *kinds: Status) -> list[Sentence]:
    """The sentences that say it so; where relatives count, a heading "Family history" makes no difference."""
    there = [one for one in _here(pattern, asked) if not hits(pattern.get("unless", ()), one.words)]
    plain = [(one, replace(one, section="") if pattern.get("family") else one) for one in there]
    return [one for one, said in plain if all(says(said, group, kinds) for group in pattern.get("any", [[]]))]


def _stands(sentence: Sentence, group: Iterable[Any], pattern: Pattern, kinds: tuple[Status, ...] = ()) -> bool:
    if not hits(group, sentence.words):
        return False
    beside = [spot for other in pattern.get("any", []) for spot in hits(other, sentence.words)]
    return says(sentence, group, kinds or accepted(pattern), beside)


def _places(within: str, here: Sequence[Sentence]) -> list[list[Sentence]]:
    """The sentences one by one, then by section, page or document."""
    places, size = [[one] for one in here], {"section": 3, "page": 2, "document": 1}.get(within, 0)
    key = lambda one: (one.document, one.page, one.section)[:size]  # noqa: E731
    return places + [list(group) for _, group in groupby(here, key=key)] if size else places
