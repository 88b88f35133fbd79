"""Which items of the policies a passage of a note shows: one pass of the trained evidence reader a passage. No torch.

The items, what each means, and the lines that the reader was trained on: `data/rcm/evidence`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from docgemma.paths import data_file
from docgemma.rcm.sentences import Sentence
from docgemma.reading.encoder import Encoder
from docgemma.reading.reader import load_reader

LONGEST = 70  # words of a passage of two sentences
HINT = 0.1  # of an item, from which a sentence is read with its neighbours as well


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
