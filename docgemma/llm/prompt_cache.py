"""The key values of the last prompts: the beginning that a new prompt shares with one of them is not computed again."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from transformers import DynamicCache

PREFIX_BYTES = 2**30  # key values kept between calls: about 4,000 tokens of a 4B Gemma 3 in float32
GPU_SHARE = 0.2  # of the memory free after loading, if that is less


@dataclass(eq=False)
class Kept:
    """One prompt, and its key values: (1, heads, tokens, head_dim) for each layer."""

    tokens: list[int]
    layers: list[tuple[torch.Tensor, torch.Tensor]]


class PromptCache:
    """Not thread-safe: its owner generates one text at a time.

    Its caches keep every position in every layer, also where the model attends to a window of the last ones only (the
    attention mask sees to that): so a prompt can be cut at any length.

    Args:
        limit_bytes: of key values; the prompts used longest ago go first.
    """

    def __init__(self, limit_bytes: int):
        self.limit_bytes = limit_bytes
        self._kept: list[Kept] = []  # the last used at the end

    def find(self, prompt: Sequence[int]) -> tuple[int, DynamicCache]:
        """How many of the first tokens are known, and a cache of one's own that holds them."""
        best = max(self._kept, key=lambda kept: common_length(kept.tokens, prompt), default=Kept([], []))
        length, cache = common_length(best.tokens, prompt), DynamicCache()
        if length:
            self._kept.remove(best)
            self._kept.append(best)
            for number, (keys, values) in enumerate(best.layers):
                cache.update(keys[:, :, :length], values[:, :, :length], number)
        return length, cache

    def add(self, prompt: Sequence[int], cache: Any) -> None:
        """Keep a prompt, with which `cache` begins, in place of those that share at least half of their tokens with it.

        Nothing is copied: a `DynamicCache` that grows makes new tensors and leaves its old ones as they were.
        """
        size = len(prompt)
        layers = [(layer.keys[:, :, :size], layer.values[:, :, :size]) for layer in cache.layers]
        self._kept = [kept for kept in self._kept if 2 * common_length(kept.tokens, prompt) < len(kept.tokens)]
        self._kept.append(Kept(list(prompt), layers))
        while self.nbytes > self.limit_bytes:
            del self._kept[0]

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for kept in self._kept for pair in kept.layers for tensor in pair)


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences share from their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def affordable_bytes(device: torch.device) -> int:
    """How many bytes of key values to keep between calls."""
    if device.type != "cuda":
        return PREFIX_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return min(PREFIX_BYTES, int(free * GPU_SHARE))
