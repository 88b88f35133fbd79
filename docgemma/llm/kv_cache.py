"""The key values of one generation, in buffers allocated once. Not kept between generations: `prefix_cache.py` is.

transformers' own cache copies all it holds for every token, and forgets what has left a sliding window. Here a pass
writes its own tokens and nothing else, and every layer keeps every position while a sliding layer shows only its
window: so a prefix can be taken out at any length, and put back, in Gemma 3 too.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
)

from docgemma.errors import ModelError

KeyValues = list[tuple[torch.Tensor, torch.Tensor]]  # a layer each; (1, heads, tokens, head_dim)


class UnsupportedError(ModelError):
    """The fast path cannot serve this; plain decoding can."""


def layer_windows(config: Any) -> list[int | None]:
    """Each layer's attention window in tokens, None where it sees everything.

    Raises:
        UnsupportedError: a layer keeps something else than key values of its tokens (a state space, chunks).
    """
    windows: list[int | None] = []
    for layer in DynamicCache(config=config).layers:
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer):
            raise UnsupportedError(f"a layer of kind {type(layer).__name__}")
        windows.append(layer.sliding_window if isinstance(layer, DynamicSlidingWindowLayer) else None)
    if not windows:
        raise UnsupportedError("a model whose layers cannot be told from its configuration")
    return windows


class BufferLayer(CacheLayerMixin):
    """One layer's key values: `keys` and `values` are (1, heads, capacity, head_dim), of which `length` are set."""

    def __init__(self, capacity: int, window: int | None):
        super().__init__()
        self.capacity, self.window, self.length = capacity, window, 0
        self.is_sliding = window is not None

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = self._buffer(key_states), self._buffer(value_states)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one pass's key values behind the earlier ones; returns all that this pass may look at."""
        first = self._first_visible()
        self.write(key_states, value_states)
        return self.keys[:, :, first : self.length], self.values[:, :, first : self.length]

    def write(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        stop = self.length + key_states.shape[-2]
        self.keys[:, :, self.length : stop] = key_states
        self.values[:, :, self.length : stop] = value_states
        self.length = stop

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        first = self._first_visible()
        return self.length + query_length - first, first

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return self.window or -1

    def _first_visible(self) -> int:
        """The first position that the next token may look at."""
        return max(self.length - self.window + 1, 0) if self.window else 0

    def _buffer(self, like: torch.Tensor) -> torch.Tensor:
        return like.new_empty(*like.shape[:2], self.capacity, like.shape[-1])


class KVCache(Cache):
    """All layers of one generation of at most `capacity` tokens, prompt included."""

    def __init__(self, windows: Sequence[int | None], capacity: int):
        super().__init__(layers=[BufferLayer(capacity, window) for window in windows])

    @property
    def length(self) -> int:
        return self.layers[0].length

    def load(self, pieces: Sequence[KeyValues]) -> None:
        """Begin with key values computed earlier, in order. They are copied: the pieces stay as they are."""
        for piece in pieces:
            for layer, (keys, values) in zip(self.layers, piece, strict=True):
                layer.write(keys, values)

    def copy(self, start: int, stop: int) -> KeyValues:
        """The key values of the tokens from `start` up to `stop`, in memory of their own."""
        return [(layer.keys[:, :, start:stop].clone(), layer.values[:, :, start:stop].clone()) for layer in self.layers]
