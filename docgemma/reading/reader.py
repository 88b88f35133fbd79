"""Read a request: what is asked, how it is meant, and the spans of its arguments. One pass of the encoder; no rules."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docgemma.reading.encoder import Array, Encoder, Pieces
from docgemma.reading.labels import ASKS, CHANNELS, POLARITY
from docgemma.text.clauses import unmarked

ONE_RUN = frozenset({"note.text", "query"})  # one span, whatever stands between its words
JOINED = frozenset({"rx.dose", "rx.freq", "rx.notes", "alg.react"})  # neighbours are one value: "nausea and vomiting"
EDGE_WORDS = frozenset("with w to for and a an the of at pt or is was".split())  # no end of such a value
INSIDE, WEAK = 0.4, 0.15  # a word belongs to a span; a word between two parts may belong to it
FREQUENT = 10_000  # pieces of the vocabulary that are everyday words
Words = list[tuple[int, int, int, int]]  # (first piece, behind the last, start, end)
EDGES = " \t\n\"'“”‘’.,;:!?-–—()"


@dataclass(frozen=True)
class Span:
    """text[start:end] of a request, and how sure the reader is of it (0 to 1)."""

    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Reading:
    """`asks` and `polarity`: a probability each. `spans`: by channel, in order of appearance."""

    asks: dict[str, float]
    polarity: dict[str, float]
    spans: dict[str, list[Span]] = field(default_factory=dict)

    def asked(self, threshold: float = 0.5) -> list[str]:
        return [ask for ask in ASKS if self.asks[ask] > threshold]


class Reader:
    """Safe to use from several threads."""

    def __init__(self, path: Path):
        self.encoder = Encoder(path)
        self._lock = threading.Lock()

    def common(self, word: str, rank: int = FREQUENT) -> bool:
        """Whether a lower-case word is frequent in English: the vocabulary is ordered by frequency."""
        return self.encoder.pieces.ids.get(word, rank) < rank

    def read(self, text: str, *, before: str = "", patient: str = "") -> Reading:
        """Read one message."""
        second = "; ".join(part for part in (f"patient {patient}" if patient else "", " ".join(before.split())) if part)
        with self._lock:  # threads would only take the cores from one another
            sentence, tags, pieces = self.encoder(text.replace("\n", "/"), second)  # a line's end, as in training
        asks = 1 / (1 + np.exp(-sentence[: len(ASKS)]))
        polarity = _softmax(sentence[len(ASKS) :])
        return Reading(
            dict(zip(ASKS, map(float, asks), strict=True)),
            dict(zip(POLARITY, map(float, polarity), strict=True)),
            _spans(text, _softmax(tags), pieces),
        )


@lru_cache(maxsize=2)
def load_reader(path: Path) -> Reader:
    return Reader(path)


def _softmax(scores: Array) -> Array:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    shares: Array = grown / grown.sum(-1, keepdims=True)
    return shares


def _spans(text: str, tags: Array, pieces: Pieces) -> dict[str, list[Span]]:
    """Spans of whole words by channel."""
    words = _whole_words(text, pieces.places)
    if not words:
        return {}
    heads = np.array([tags[first:last].mean(0) for first, last, _, _ in words])  # (words, channels, 3)
    found: dict[str, list[Span]] = {}
    for column, channel in enumerate(CHANNELS):
        inside, begins = 1 - heads[:, column, 0], heads[:, column, 1] > heads[:, column, 2]
        if inside.max() < INSIDE:
            continue
        starts = begins & (channel not in JOINED)
        runs = [_best_run(inside)] if channel in ONE_RUN else _runs(inside, starts, text, words)
        for first, last in runs:
            bare = EDGE_WORDS if channel in JOINED else frozenset()
            span = _trimmed(text, words[first][2], words[last][3], float(inside[first : last + 1].mean()), bare)
            if span:
                found.setdefault(channel, []).append(span)
    return found


def _whole_words(text: str, places: Sequence[tuple[int, int]]) -> Words:
    """(first piece, behind the last, start, end) of each word: pieces of one word are read together, and so is what
    a hyphen or an apostrophe joins, but not a possessive s."""
    words: list[list[int]] = []
    for at, (start, end) in enumerate(places):
        if words and words[-1][3] == start and _joined(text, start):
            words[-1][1], words[-1][3] = at + 1, end
        else:
            words.append([at, at + 1, start, end])
    return [(first, last, start, end) for first, last, start, end in words]


def _joined(text: str, at: int) -> bool:
    """Whether no word ends at this place, with no blank there."""
    earlier, before, after, following = [*f" {text} "[at - 1 : at + 3]]
    if "." in (before, after):  # "2.5", " .5"
        return (before + following).isdigit() if after == "." else after.isdigit() and not earlier.isalpha()
    if after in "-‑":
        return before.isalnum() and following.isalnum()
    return after.isalnum() and (before.isalnum() or before in "-‑")


def _runs(inside: Array, begins: NDArray[np.bool_], text: str, words: Words) -> list[tuple[int, int]]:
    runs: list[list[int]] = []
    for at in map(int, np.flatnonzero(inside > INSIDE)):
        if runs and not (begins[at] and inside[at] > 0.5) and _bridged(runs[-1][1], at, inside, text, words):
            runs[-1][1] = at
        else:
            runs.append([at, at])
    return [(first, last) for first, last in runs]


def _bridged(last: int, at: int, inside: Array, text: str, words: Words) -> bool:
    between = text[words[last][3] : words[at][2]]
    return at == last + 1 or (at == last + 2 and inside[at - 1] > WEAK and "," not in between)


def _best_run(inside: Array) -> tuple[int, int]:
    """The run of words with the greatest sum of log odds."""
    odds = np.clip(np.log((inside + 1e-6) / (1 - inside + 1e-6)), -3, 3)
    best, place, total, start = -np.inf, (int(inside.argmax()), int(inside.argmax())), 0.0, 0
    for at, value in enumerate(odds):
        if total <= 0:
            total, start = 0.0, at
        total += value
        if total > best:
            best, place = total, (start, at)
    return place


def _trimmed(text: str, start: int, end: int, score: float, bare: frozenset[str]) -> Span | None:
    """Without marks and blanks at its edges, and without these words; "at first" may begin a value."""
    while True:
        kept = unmarked(text[start:end], EDGES)
        start += text[start:end].find(kept)
        end = start + len(kept)
        if "(" in kept and ")" not in kept and text[end : end + 1] == ")":  # "clexane (enoxaparin)"
            return Span(text[start : end + 1], start, end + 1, round(score, 3))
        words = kept.split()
        if len(words) > 1 and words[0].casefold() in bare - {"at"}:
            start += len(words[0])
        else:
            return Span(kept, start, end, round(score, 3)) if kept else None
