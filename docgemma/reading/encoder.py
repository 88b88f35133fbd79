"""The reader's encoder in numpy: WordPiece, six layers of BERT (MiniLM-L6), two heads. No torch."""

import json
import unicodedata
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docgemma.errors import ConfigError

Array = NDArray[np.float32]
HEADS, LAYERS = 12, 6
MAX_PIECES = 250  # of a text; what is longer is cut
TOGETHER = 32  # texts that are computed at a time
UNKNOWN, START, SEPARATOR = 100, 101, 102


@dataclass(frozen=True)
class Pieces:
    """A text as token ids, each with its place (start, end) in the text."""

    ids: list[int]
    places: list[tuple[int, int]]


class WordPiece:
    """Lower case, accents off, words split into the longest known pieces: the base model's own tokenizer."""

    def __init__(self, vocabulary: list[str]):
        self.ids = {piece: at for at, piece in enumerate(vocabulary)}

    def __call__(self, text: str) -> Pieces:
        found: list[tuple[int, tuple[int, int]]] = []
        word: list[tuple[str, int]] = []  # its characters, each with its place
        for place, char in enumerate(text):
            category = unicodedata.category(char)
            alone = not char.isalnum() and category not in ("Mn", "Mc")  # a blank, or a mark that is its own word
            if alone:
                found += self._pieces(word, place)
                word = []
            if not alone or not (char.isspace() or category[0] == "C"):
                letters = unicodedata.normalize("NFD", char.lower())
                word += [(letter, place) for letter in letters if unicodedata.category(letter) != "Mn"]
            if alone:
                found += self._pieces(word, place + 1)
                word = []
        found += self._pieces(word, len(text))
        return Pieces([piece for piece, _ in found[:MAX_PIECES]], [span for _, span in found[:MAX_PIECES]])

    def _pieces(self, word: list[tuple[str, int]], end: int) -> list[tuple[int, tuple[int, int]]]:
        """The longest known pieces of a word that ends there, each with its place; else one unknown piece."""
        letters, found, done = "".join(letter for letter, _ in word), [], 0
        while done < len(letters):
            stop = len(letters)
            while stop > done and (("##" if done else "") + letters[done:stop]) not in self.ids:
                stop -= 1
            if stop == done:
                return [(UNKNOWN, (word[0][1], end))]
            found.append(
                (self.ids[("##" if done else "") + letters[done:stop]], (word[done][1], word[stop - 1][1] + 1))
            )
            done = stop
        return found


class Encoder:
    """The trained weights, loaded once.

    Args:
        path: the `.npz` that the training kit writes.
        base: an encoder with the vocabulary, the word table and the layers that this file does not hold.

    Raises:
        ConfigError: it is missing or damaged.
    """

    def __init__(self, path: Path, base: "Encoder | None" = None):
        try:
            with path.open("rb") as file, np.load(file) as stored:
                own = {name: _dense(stored, name) for name in stored.files if not name.endswith(("|scale", "labels"))}
                self.labels: list[list[str]] = json.loads(stored["labels"].tobytes())
            vocabulary = b"" if base else own.pop("vocabulary").tobytes()
            self.weights: dict[str, Any] = {**base.weights, **own} if base else own
            self.pieces: WordPiece = base.pieces if base else WordPiece(vocabulary.decode().splitlines())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ConfigError(f"The reader's weights at {path} cannot be read.", hint="Reinstall docgemma.") from error

    def __call__(self, text: str, second: str = "") -> tuple[Array, Array, Pieces]:
        """Scores of the sentence head (labels,), of the token head (pieces, channels, 3), and the pieces of `text`."""
        first, after = self.pieces(text), self.pieces(second).ids[:80] if second else []
        ids = [START, *first.ids, SEPARATOR, *after, *([SEPARATOR] if after else [])]
        segments = [0] * (len(first.ids) + 2) + [1] * (len(ids) - len(first.ids) - 2)
        states = self._states(np.array(ids), np.array(segments))
        tags = self._linear("tags", states[1 : len(first.ids) + 1])
        return self.head("sentence", states), tags.reshape(len(first.ids), tags.shape[-1] // 3, 3), first

    def scores(self, head: str, texts: Sequence[str]) -> list[Array]:
        """Scores of a head for each text."""
        return [self.head(head, states) for states in self.states_of(texts)]

    def states(self, text: str, layers: int = LAYERS) -> Array:
        """A text's states after so many layers: (pieces + 2, 384), with the marks of its start and end."""
        return self.states_of([text], layers)[0]

    def states_of(self, texts: Sequence[str], layers: int = LAYERS) -> list[Array]:
        """The states of several texts, computed together: the weights are read from memory once for all of them."""
        found = list[Array]()
        for at in range(0, len(texts), TOGETHER):
            coded = [[START, *self.pieces(text).ids, SEPARATOR] for text in texts[at : at + TOGETHER]]
            ids, lengths = np.concatenate(coded), [len(one) for one in coded]
            states = self._states(ids, np.zeros(len(ids), dtype=int), layers, lengths)
            found += np.split(states, np.cumsum(lengths)[:-1])
        return found

    def head(self, name: str, states: Array) -> Array:
        pooled = np.concatenate([states[0], states.mean(0), states.max(0)])
        return self._linear(name, _gelu(self._linear("hidden", pooled)))

    def _states(self, ids: Array, segments: Array, layers: int = LAYERS, lengths: Sequence[int] | None = None) -> Array:
        """The states of texts that stand one behind the other, `lengths` tokens each; none sees another."""
        weights, count = self.weights, len(ids)
        ends = np.cumsum(lengths or [count])
        places = np.concatenate([np.arange(length) for length in lengths or [count]])
        table, scale = weights["embeddings.word_embeddings.weight"]
        states = table[ids].astype(np.float32) * scale[ids]
        states = states + weights["embeddings.position_embeddings.weight"][places]
        states = self._norm(
            "embeddings.LayerNorm", states + weights["embeddings.token_type_embeddings.weight"][segments]
        )
        for layer in range(layers):
            name = f"layer.{layer}."
            query, key, value = (
                self._linear(f"{name}attention.self.{part}", states).reshape(count, HEADS, -1).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            mixed = np.concatenate(
                [
                    _attention(query[:, start:end], key[:, start:end], value[:, start:end])
                    for start, end in zip([0, *ends[:-1]], ends, strict=True)
                ]
            )
            states = self._norm(
                f"{name}attention.output.LayerNorm", states + self._linear(f"{name}attention.output.dense", mixed)
            )
            inner = _gelu(self._linear(f"{name}intermediate.dense", states))
            states = self._norm(f"{name}output.LayerNorm", states + self._linear(f"{name}output.dense", inner))
        return states

    def _linear(self, name: str, values: Array) -> Array:
        product: Array = values @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return product

    def _norm(self, name: str, values: Array) -> Array:
        centred = values - values.mean(-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-12)
        scaled: Array = centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return scaled


def _attention(query: Array, key: Array, value: Array) -> Array:
    """Softmax attention of one text, (heads, tokens, size) each; (tokens, heads * size)."""
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed: Array = (scores / scores.sum(-1, keepdims=True) @ value).transpose(1, 0, 2)
    return mixed.reshape(query.shape[1], -1)


def _dense(stored: Any, name: str) -> Any:
    """A weight as it is used: transposed for products; the word table stays int8, beside its scale."""
    values = stored[name]
    if values.dtype == np.uint8:
        return values
    if "word_embeddings" in name:
        return values, stored[f"{name}|scale"]
    if f"{name}|scale" in stored.files:
        values = values.astype(np.float32) * stored[f"{name}|scale"]
    return np.ascontiguousarray(values.T) if values.ndim == 2 and "embeddings" not in name else values


def _gelu(values: Array) -> Array:
    """The tanh form; off by less than 0.001."""
    inner: Array = np.tanh(0.7978845608 * values * (values * values * 0.044715 + 1))
    return 0.5 * values * (1 + inner)
