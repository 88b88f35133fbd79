"""Compare texts by meaning: one unit vector a text, of an early layer of the reader's encoder. No index here."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from docgemma.paths import data_file
from docgemma.reading.encoder import Array
from docgemma.reading.reader import load_reader

WIDTH = 384
LAYER = 1  # of 6: of 20 pairs (data/rcm/policies/README.md) 14 are nearest to each other there, 11 to 13 elsewhere


def embed(texts: Sequence[str]) -> Array:
    """The unit vectors of some texts, (texts, 384) float32: the mean of their word pieces. An empty text is zeros.

    Of each text the first 250 word pieces count. Vectors of 2,000 texts are kept.
    """
    return np.array([_embed(text) for text in texts], dtype=np.float32).reshape(len(texts), WIDTH)


@lru_cache(maxsize=2_000)
def _embed(text: str) -> Array:
    states = load_reader(data_file("edge", "reader.npz")).encoder.states(text, LAYER)[1:-1]
    if not len(states):
        return np.zeros(WIDTH, dtype=np.float32)
    mean: Array = states.mean(0)
    return mean / np.linalg.norm(mean)
