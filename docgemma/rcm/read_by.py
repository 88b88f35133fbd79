"""What shows a criterion in words that no list holds: a policy's `read_by` pattern held against passages. Pure.

The evidence reader says what a passage shows; code reads the number, the side and the date. The pattern's keys are told
in data/rcm/policies/README.md. Silence is never met, and never not met.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from docgemma.rcm.measures import Holds, counted, dates
from docgemma.rcm.passages import Passage
from docgemma.rcm.shown import (
    PARTS,
    Asked,
    Finding,
    Places,
    decided,
    joined,
    judge_pattern,
    leaves,
    newest,
    of_a_relative,
    recent,
    right_side,
    title,
)
from docgemma.text.births import read_births

SURE = 0.9  # chosen on four sealed rounds after their first runs: at 0.8 two verdicts more are right, two wrongly MET


def judge_read(pattern: Mapping[str, Any], passages: Sequence[Passage], asked: Asked) -> Finding:
    """Hold a pattern against passages. Shown here and the opposite stated there gives no verdict."""
    for key in PARTS & set(pattern):
        parts = [judge_read(part, passages, asked) for part in leaves(pattern)]
        undecided = [one for one in parts if one.verdict == "NOT DOCUMENTED"]
        if key == "either" and undecided and not any(one.verdict == "MET" for one in parts):
            return undecided[0]  # "echo 2019" denies that none was made, and may be long enough ago
        return joined(key, parts)
    if "born_before" in pattern:
        return _aged(int(pattern["born_before"]), asked)
    if "item" not in pattern:
        return judge_pattern(pattern, asked)
    return decided(*_found(pattern, passages, asked))


def _aged(years: int, asked: Asked) -> Finding:
    """Whether the labelled birth date, of a header line first, makes the patient so many years old."""
    for one in [*asked.heads, *asked.sentences]:
        for birth in read_births(one.text, asked.today):
            days = {day for day in birth.days if len(day) == len("2026-11-23")}
            if birth.kind == "stated" and days and not of_a_relative(one):
                limit = asked.today.replace(year=asked.today.year - years, day=min(asked.today.day, 28)).isoformat()
                old = {day <= limit for day in days}
                if len(old) == 1:
                    return Finding("MET" if old.pop() else "NOT MET", "by the birth date", (one,))
    return Finding("NOT DOCUMENTED", "no birth date is stated")


def _found(pattern: Mapping[str, Any], passages: Sequence[Passage], asked: Asked) -> tuple[Places, Places]:
    """The places that show a pattern, the surest first, and those that state the opposite."""
    item, measure = str(pattern["item"]), pattern.get("measure")
    sure = [one for one in passages if max(one.shows[item], one.opposes[item]) >= SURE]
    mine = [one for one in sure if _fits(one, pattern, asked)]
    mine.sort(key=lambda one: (len(one.sentences), -one.shows[item]))
    shown = [one for one in mine if one.shows[item] >= one.opposes[item]]
    answers = [_number(one, measure, asked) if measure else "yes" for one in shown]
    if measure and measure.get("optional"):
        answers = ["yes" if answer == "unknown" else answer for answer in answers]
    shows = [
        tuple(said for said in one.sentences if not title(said)) or one.sentences
        for one, answer in zip(shown, answers, strict=True)
        if answer == "yes" and _recent(one, pattern, asked)
    ]
    few = [one.sentences for one, answer in zip(shown, answers, strict=True) if answer == "no"]
    few = [one for one in few if newest(one, measure, asked)] if shows and measure else few
    opposed = [one for one in mine if one.opposes[item] > one.shows[item]]
    return shows, [*(one.sentences for one in opposed), *few]


def _recent(passage: Passage, pattern: Mapping[str, Any], asked: Asked) -> bool:
    """Whether it is new enough: by the dates in its sentences, else by that of the visit."""
    dated = [one for one in passage.sentences if dates(one, asked.today)]
    return all(recent(one, pattern, asked) for one in dated or passage.sentences)


def _fits(passage: Passage, pattern: Mapping[str, Any], asked: Asked) -> bool:
    """Whether it is of the criterion's part and side, and no mere request where only what was done counts."""
    parts = passage.sentences
    if any(one not in asked.known for one in parts) or not all(right_side(one, pattern, asked, False) for one in parts):
        return False
    asks = not pattern.get("planned") and any(one in asked.requests for one in parts)
    if not pattern.get("family") and any(of_a_relative(one) for one in parts):
        return False
    return not asks and any(right_side(one, pattern, asked) for one in parts)


def _number(passage: Passage, measure: Mapping[str, Any], asked: Asked) -> Holds:
    """Whether the number that it gives holds: one near its name, else any one of that unit."""
    for anywhere in (False, True):
        said = {asked.holds(one, measure, anywhere) for one in passage.sentences} - {"unknown"}
        if said:
            several = "yes" if "yes" in said and counted(measure["unit"]) else "unknown"
            return said.pop() if len(said) == 1 else several  # type: ignore[return-value]
    return "unknown"
