"""Key values of prompts seen before, shared by their common beginnings, bounded in bytes.

A tree of token sequences: each node holds one stretch of tokens with their key values, and branches where prompts
went apart. What two prompts share is found token by token, so nobody has to say where a prompt's fixed part ends.
The least recently used leaves go first; the beginnings that many prompts share go last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Any

from docgemma.llm.kv_cache import KeyValues


@dataclass(eq=False)
class Stretch:
    """Tokens with their key values, and what came after them: children by first token."""

    tokens: list[int]
    layers: KeyValues
    parent: "Stretch | None"
    children: dict[int, "Stretch"] = field(default_factory=dict)
    used: int = 0

    @property
    def nbytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for pair in self.layers for tensor in pair)

    def part(self, start: int, stop: int) -> KeyValues:
        return [(keys[:, :, start:stop], values[:, :, start:stop]) for keys, values in self.layers]


class PrefixCache:
    """Not thread-safe: its owner generates one text at a time.

    Args:
        limit_bytes: of key values, the tree's only large part.
    """

    def __init__(self, limit_bytes: int):
        self.limit_bytes, self.nbytes = limit_bytes, 0
        self._root = Stretch([], [], None)
        self._clock = count(1)

    def find(self, tokens: Sequence[int]) -> tuple[int, list[KeyValues]]:
        """How many of the first tokens are stored, and their key values piece by piece (not to be written to)."""
        path = self._walk(tokens)
        return sum(shared for _, shared in path), [stretch.part(0, shared) for stretch, shared in path]

    def add(self, tokens: Sequence[int], copy: Callable[[int, int], KeyValues]) -> None:
        """Store a prompt. `copy(start, stop)` gives the key values of what is not stored yet, to keep."""
        path = self._walk(tokens)
        stretch, shared = path[-1] if path else (self._root, 0)
        if shared < len(stretch.tokens):
            self._split(stretch, shared)
        done = sum(shared for _, shared in path)
        if done < len(tokens):
            self._attach(stretch, list(tokens[done:]), copy(done, len(tokens)))
        self._shrink()

    def describe(self) -> dict[str, Any]:
        return {
            "bytes": self.nbytes,
            "limit_bytes": self.limit_bytes,
            "tokens": sum(len(stretch.tokens) for stretch in self._all()),
        }

    def clear(self) -> None:
        self._root.children.clear()
        self.nbytes = 0

    def _walk(self, tokens: Sequence[int]) -> list[tuple[Stretch, int]]:
        """The stretches that the tokens run along, each with how many of its tokens they share (at least one)."""
        path, stretch, done, now = [], self._root, 0, next(self._clock)
        while done < len(tokens) and (child := stretch.children.get(tokens[done])):
            shared = common_length(child.tokens, tokens[done : done + len(child.tokens)])
            child.used = now
            path.append((child, shared))
            if shared < len(child.tokens):
                break
            stretch, done = child, done + shared
        return path

    def _split(self, stretch: Stretch, at: int) -> None:
        """Cut a stretch in two. Both halves are copied: a view would keep the whole alive."""
        tail = Stretch(stretch.tokens[at:], _own(stretch.part(at, len(stretch.tokens))), stretch, used=stretch.used)
        tail.children = stretch.children
        for child in tail.children.values():
            child.parent = tail
        stretch.layers = _own(stretch.part(0, at))
        stretch.tokens, stretch.children = stretch.tokens[:at], {tail.tokens[0]: tail}

    def _attach(self, parent: Stretch, tokens: list[int], layers: KeyValues) -> None:
        child = Stretch(tokens, layers, parent, used=next(self._clock))
        parent.children[tokens[0]] = child
        self.nbytes += child.nbytes

    def _shrink(self) -> None:
        while self.nbytes > self.limit_bytes:
            oldest = min((stretch for stretch in self._all() if not stretch.children), key=lambda leaf: leaf.used)
            del oldest.parent.children[oldest.tokens[0]]
            self.nbytes -= oldest.nbytes

    def _all(self) -> list[Stretch]:
        found, open_ = [], list(self._root.children.values())
        while open_:
            found.append(open_.pop())
            open_ += found[-1].children.values()
        return found


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences share from their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _own(layers: KeyValues) -> KeyValues:
    return [(keys.clone(), values.clone()) for keys, values in layers]
