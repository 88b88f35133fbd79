"""What shows a criterion in words that no list holds: a policy's `read_by` pattern held against passages. No torch.

The trained evidence reader says which items a passage shows, one pass each; code reads the number, the side and the
date. The items, what each means, and the lines that the reader was trained on: `data/rcm/evidence`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from docgemma.paths import data_file
from docgemma.rcm.dates import dates
from docgemma.rcm.measures import Holds, counted
from docgemma.rcm.patterns import (
    PARTS,
    Asked,
    Finding,
    Pattern,
    Places,
    decided,
    joined,
    judge_pattern,
    leaves,
    of_a_relative,
    title,
)
from docgemma.rcm.sentences import Sentence
from docgemma.reading.encoder import Encoder
from docgemma.reading.reader import load_reader
from docgemma.text.births import read_births

LONGEST = 70  # words of a passage of two sentences
HINT = 0.1  # of an item, from which a sentence is read with its neighbours as well
SURE = 0.9  # chosen on four sealed rounds after their first runs: at 0.8 two verdicts more are right, two wrongly MET


@dataclass(frozen=True)
class Passage:
    """One sentence, or two neighbours of a section. By item: how surely it is shown, and the opposite is stated."""

    sentences: tuple[Sentence, ...]
    shows: dict[str, float]
    opposes: dict[str, float]


@lru_cache(maxsize=8)
def passages(sentences: tuple[Sentence, ...]) -> tuple[Passage, ...]:
    """Each sentence, then each two neighbours of one section of which one hints at an item, read."""
    alone = _read([(one,) for one in sentences])
    hinted = [max(*one.shows.values(), *one.opposes.values()) >= HINT for one in alone]
    pairs = [
        (one, two)
        for (one, first), (two, second) in pairwise(zip(sentences, hinted, strict=True))
        if (one.document, one.page, one.section) == (two.document, two.page, two.section)
        and (first or second)
        and len(one.words) + len(two.words) <= LONGEST
    ]
    return (*alone, *_read(pairs))


def _read(groups: Sequence[tuple[Sentence, ...]]) -> list[Passage]:
    names = _encoder().labels[0]
    found = _encoder().scores("shows", [" ".join(one.text for one in group) for group in groups])
    chances = [np.reciprocal(1 + np.exp(-scores.reshape(-1, 2))) for scores in found]  # (items, 2)
    return [
        Passage(group, *(dict(zip(names, chance[:, side].tolist(), strict=True)) for side in (0, 1)))
        for group, chance in zip(groups, chances, strict=True)
    ]


@lru_cache(maxsize=1)
def _encoder() -> Encoder:
    return Encoder(data_file("rcm", "evidence", "reader.npz"), load_reader(data_file("edge", "reader.npz")).encoder)


def judge_read(pattern: Pattern, passages: Sequence[Passage], asked: Asked) -> Finding:
    """Hold a pattern against passages. Shown here and the opposite stated there gives no verdict."""
    for key in PARTS & set(pattern):  # "echo 2019" denies that none was made, and may be long enough ago
        return joined(key, [judge_read(part, passages, asked) for part in leaves(pattern)], every=True)
    if "born_before" in pattern:
        return _aged(int(pattern["born_before"]), asked)
    if "item" not in pattern:
        return judge_pattern(pattern, asked)
    return decided(*_found(pattern, passages, asked), stands=pattern.get("stands", 0))


def _aged(years: int, asked: Asked) -> Finding:
    """Whether the labelled birth date, of a header line first, makes the patient so many years old."""
    limit = asked.today.replace(year=asked.today.year - years, day=min(asked.today.day, 28)).isoformat()
    for one in [*asked.heads, *asked.sentences]:
        for birth in read_births(one.text, asked.today):
            old = {day <= limit for day in birth.days if len(day) == len(limit)}
            if birth.kind == "stated" and len(old) == 1 and not of_a_relative(one):
                return Finding("MET" if old.pop() else "NOT MET", "by the birth date", (one,))
    return Finding("NOT DOCUMENTED", "no birth date is stated")


def _found(pattern: Pattern, passages: Sequence[Passage], asked: Asked) -> tuple[Places, Places]:
    """The places that show a pattern, the surest first, and those that state the opposite."""
    item, measure, known = str(pattern["item"]), pattern.get("measure"), set(asked.considered(pattern))
    sure = [one for one in passages if max(one.shows[item], one.opposes[item]) >= SURE]
    mine = [one for one in sure if known.issuperset(one.sentences) and _fits(one.sentences, pattern, asked)]
    mine.sort(key=lambda one: (len(one.sentences), -one.shows[item]))
    shows, few, opposed = list[Sequence[Sentence]](), list[Sequence[Sentence]](), list[Sequence[Sentence]]()
    for one in mine:
        if one.opposes[item] > one.shows[item]:
            opposed.append(one.sentences)
            continue
        answer = _number(one.sentences, measure, asked) if measure else "yes"
        if answer == "no":
            few.append(one.sentences)
        elif answer == "yes" or (measure and measure.get("optional")):
            dated = [said for said in one.sentences if dates(said, asked.today)] or one.sentences
            if all(asked.recent(said, pattern) for said in dated):
                shows.append(tuple(said for said in one.sentences if not title(said)) or one.sentences)
    few = [place for place in few if asked.newest(place, measure)] if shows and measure else few
    return shows, [*opposed, *few]


def _fits(said: Sequence[Sentence], pattern: Pattern, asked: Asked) -> bool:
    """Whether sentences are of the patient and the criterion's side: none of the other, and one that names it."""
    if not pattern.get("family") and any(of_a_relative(one) for one in said):
        return False
    free = all(asked.right_side(one, pattern, named=False) for one in said)
    return free and any(asked.right_side(one, pattern) for one in said)


def _number(said: Sequence[Sentence], measure: Pattern, asked: Asked) -> Holds:
    """Whether the number that they give holds: one near its name, else any one of that unit."""
    for anywhere in (False, True):
        answers = {asked.holds(one, measure, anywhere) for one in said} - {"unknown"}
        if answers:
            several: Holds = "yes" if "yes" in answers and counted(measure["unit"]) else "unknown"
            return answers.pop() if len(answers) == 1 else several
    return "unknown"
