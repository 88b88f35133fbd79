"""Several independent answers in one pass each step, for experiments: a weight read once serves them all.

Rows move at their own pace: one may push six forced tokens through while another pushes one. So a row's tokens are
padded on the left within a pass, and their key values are written to the row's own positions: no gap is ever stored,
and a sliding window counts tokens, not padding.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import Cache

from docgemma.llm.kv_cache import BufferLayer, KeyValues, KVCache
from docgemma.llm.prefix_cache import common_length

if TYPE_CHECKING:
    from docgemma.llm.fast import Decoded, FastDecoder, Request

WORTH_SHARING = 16  # tokens of a common beginning from which it is computed once, before the batch
PADDING = -1  # the position of a padding token


class RaggedLayer(BufferLayer):
    """One layer of a batch: (rows, heads, 1 + capacity, head_dim). Position p is in slot p + 1, padding in slot 0."""

    def __init__(self, capacity: int, window: int | None, rows: int):
        super().__init__(capacity + 1, window)
        self.rows = rows
        self.positions = torch.empty(0)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        shape = (self.rows, key_states.shape[1], self.capacity, key_states.shape[-1])
        # zeros, not whatever was there: padding is masked by a weight of 0, and 0 times NaN is NaN
        self.keys, self.values = key_states.new_zeros(shape), value_states.new_zeros(shape)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        rows, slots = torch.arange(self.rows, device=key_states.device).unsqueeze(1), self.positions + 1
        self.keys[rows, :, slots] = key_states.transpose(1, 2)
        self.values[rows, :, slots] = value_states.transpose(1, 2)
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def load(self, row: int, start: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        slots = slice(start + 1, start + 1 + keys.shape[-2])
        self.keys[row, :, slots], self.values[row, :, slots] = keys[0], values[0]

    def keep(self, rows: list[int]) -> None:
        self.rows = len(rows)
        if self.is_initialized:
            self.keys, self.values = self.keys[rows], self.values[rows]


class RaggedCache(Cache):
    def __init__(self, windows: Sequence[int | None], capacity: int, rows: int):
        super().__init__(layers=[RaggedLayer(capacity, window, rows) for window in windows])

    def load(self, row: int, pieces: Sequence[KeyValues]) -> None:
        start = 0
        for piece in pieces:
            for layer, (keys, values) in zip(self.layers, piece, strict=True):
                layer.load(row, start, keys, values)
            start += piece[0][0].shape[-2]

    def place(self, positions: torch.Tensor, length: int) -> None:
        """Where the next pass writes: (rows, tokens). `length`: tokens of the longest row after it."""
        for layer in self.layers:
            layer.positions, layer.length = positions, length + 1

    def keep(self, rows: list[int]) -> None:
        for layer in self.layers:
            layer.keep(rows)


class Row:
    """One answer of the batch: what has been stored of it, and what waits for the next pass."""

    def __init__(self, decoder: "FastDecoder", request: "Request"):
        from docgemma.llm.fast import Answer

        self.answer, self.prompt = Answer(decoder, request), list(request.prompt)
        self.stored = 0
        self.waiting: list[int] = []


def attention(decoder: "FastDecoder") -> str:
    return decoder.model.config.get_text_config()._attn_implementation


def can_batch(decoder: "FastDecoder") -> bool:
    """Whether this model takes the masks that a batch needs: one window size, and attention with free masks."""
    return len(set(decoder.windows) - {None}) <= 1 and attention(decoder) in ("sdpa", "eager")


@torch.inference_mode()
def generate_batch(decoder: "FastDecoder", requests: Sequence["Request"]) -> "list[Decoded]":
    """See `FastDecoder.generate_batch`. Memory grows with the number of requests times the longest of them."""
    rows = [Row(decoder, request) for request in requests]
    _compute_shared(decoder, rows)
    capacity = max((len(request.prompt) + request.limit for request in requests), default=0)
    cache = RaggedCache(decoder.windows, capacity, len(rows))
    for index, row in enumerate(rows):
        row.stored, pieces = decoder.prefixes.find(row.prompt[:-1])
        row.answer.decoded.cached, row.waiting = row.stored, row.prompt[row.stored :]
        cache.load(index, pieces)
    open_ = rows
    while open_ := _still_open(cache, open_):
        _step(decoder, cache, open_)
    return [row.answer.decoded for row in rows]


def _compute_shared(decoder: "FastDecoder", rows: list[Row]) -> None:
    """Compute the batch's common beginning once, if it is not stored yet."""
    if len(rows) < 2:
        return
    first = rows[0].prompt
    shared = first[: min(common_length(first, row.prompt) for row in rows[1:])]
    known, pieces = decoder.prefixes.find(shared)
    if len(shared) - known < WORTH_SHARING:
        return
    cache = KVCache(decoder.windows, len(shared))
    cache.load(pieces)
    decoder.forward(cache, shared[known:], rows[0].answer.decoded)
    decoder.prefixes.add(shared, cache.copy)


def _still_open(cache: RaggedCache, rows: list[Row]) -> list[Row]:
    """Take what the grammars force; the rows that then need a decision. The others leave the cache."""
    for row in rows:
        row.waiting += row.answer.take_forced()
    kept = [index for index, row in enumerate(rows) if not row.answer.over]
    if kept and len(kept) < len(rows):
        cache.keep(kept)
    return [rows[index] for index in kept]


def _step(decoder: "FastDecoder", cache: RaggedCache, rows: list[Row]) -> None:
    """One pass for all rows, then one decision each, read back together."""
    width = max(len(row.waiting) for row in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    positions = torch.full((len(rows), width), PADDING)
    for index, row in enumerate(rows):
        count = len(row.waiting)
        ids[index, width - count :] = torch.tensor(row.waiting)
        positions[index, width - count :] = torch.arange(row.stored, row.stored + count)
        row.stored += count
        row.answer.decoded.passes += 1
        row.answer.decoded.computed += count
    device, length = decoder.model.device, max(row.stored for row in rows)
    ids, positions = ids.to(device), positions.to(device)
    cache.place(positions, length)
    logits = decoder.model(
        input_ids=ids,
        attention_mask=_masks(decoder, positions, length),
        position_ids=positions.clamp(min=0),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    ).logits[:, -1]
    tokens = torch.stack([row.answer.pick(logits[index]) for index, row in enumerate(rows)]).tolist()
    for row, token in zip(rows, tokens, strict=True):
        row.answer.take(token)
        row.waiting = [token]


def _masks(decoder: "FastDecoder", positions: torch.Tensor, length: int) -> Any:
    """What each token may look at, (rows, 1, tokens, 1 + length): one mask a kind of layer, as the model takes them."""
    dtype = None if attention(decoder) == "sdpa" else decoder.model.dtype
    masks = {window: _mask(positions, length, window, dtype) for window in set(decoder.windows)}
    if len(masks) == 1:
        return masks.popitem()[1]
    return {"full_attention" if window is None else "sliding_attention": mask for window, mask in masks.items()}


def _mask(positions: torch.Tensor, length: int, window: int | None, dtype: torch.dtype | None) -> torch.Tensor:
    """True where a token may look; padding looks at slot 0 alone, so that no row of weights is empty. With a dtype,
    0 and that type's minimum instead, to be added."""
    query = positions[:, None, :, None]
    key = torch.arange(-1, length, device=positions.device)
    seen = (key <= query) & ((key >= 0) | (query == PADDING))
    if window:
        seen &= key > query - window
    return seen if dtype is None else torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
