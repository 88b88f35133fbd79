"""Decoding that pays for decisions only, on any causal transformers model whose layers keep key values.

Two savings against plain `generate`. Tokens that the grammar forces are appended without being decoded and pushed
through together with the next decision, in one pass. And the key values of a prompt's beginning are taken from
earlier prompts. Greedy answers are those of plain Outlines token for token, but for numerical ties: a prompt computed
in two parts rounds differently, so two candidates within about 1e-4 of one another (float32) may change places.

Between CPU and device, an answer synchronises once a decision, to learn the token that the grammar needs.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from docgemma.llm.constraint import Constraint, MaskApplier
from docgemma.llm.kv_cache import KVCache, UnsupportedError, layer_windows
from docgemma.llm.prefix_cache import PrefixCache
from docgemma.llm.sampling import Sampler, require_plain

PREFIX_BYTES = 2**30  # key values kept between calls: about 4,000 tokens of a 4B Gemma 3 in float32
GPU_SHARE = 0.2  # of the memory free after loading, if that is less

OnTokens = Callable[[list[int]], Any]


@dataclass(frozen=True)
class Request:
    """One answer to generate. `grammar` None is free text; `limit` counts new tokens, the end included.

    `images`: what a processor made besides the token ids ("pixel_values", "token_type_ids"). Image tokens are alike
    whatever the image, so such a prompt is computed anew and not kept.
    """

    prompt: Sequence[int]
    limit: int
    grammar: str | None = None
    temperature: float = 0.0
    seed: int | None = None
    images: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Decoded:
    """One answer and what it cost.

    Attributes:
        ids: its tokens, without the one that ends it.
        ended: it came to its end within its limit.
        forced: new tokens that the grammar left no choice about, the end included where it was forced.
        cached: prompt tokens whose key values were there already.
        computed: tokens that went through the model.
        passes: forward passes.
    """

    ids: list[int]
    ended: bool = False
    forced: int = 0
    cached: int = 0
    computed: int = 0
    passes: int = 0

    @property
    def completion_tokens(self) -> int:
        """As plain decoding counts them: with the token that ends the answer."""
        return len(self.ids) + self.ended


class FastDecoder:
    """One model's fast path. One generation at a time.

    Args:
        model: a causal language model of transformers, in evaluation mode.
        grammar_tokenizer: makes or returns llguidance's tokenizer, whose eos tokens are `stop_ids`; asked when needed.
        stop_ids: every token that ends an answer.
        prefix_bytes: bound of the kept key values.

    Raises:
        UnsupportedError: this model needs plain decoding; the message says what for.
    """

    def __init__(
        self,
        model: Any,
        grammar_tokenizer: Callable[[], Any],
        stop_ids: Sequence[int],
        *,
        prefix_bytes: int | None = None,
    ):
        require_plain(model.generation_config)
        if "logits_to_keep" not in inspect.signature(model.forward).parameters:
            raise UnsupportedError("a model that computes logits for the whole prompt")
        self.windows = layer_windows(model.config)
        self.model, self.grammar_tokenizer, self.stop_ids = model, grammar_tokenizer, frozenset(stop_ids)
        self.prefixes = PrefixCache(affordable_bytes(model.device) if prefix_bytes is None else prefix_bytes)
        self.apply_mask = MaskApplier(model.device)

    @torch.inference_mode()
    def generate(self, request: Request, on_tokens: OnTokens | None = None) -> Decoded:
        """Generate one answer.

        Args:
            request: prompt and constraint.
            on_tokens: gets new tokens as they are made, forced ones together; what it raises ends the generation.

        Raises:
            UnsupportedError: before the first token, where llguidance refuses the grammar.
            ModelError: the answer left its grammar.
        """
        answer = Answer(self, request)
        cache = KVCache(self.windows, len(request.prompt) + request.limit)
        waiting = self._known(cache, request, answer.decoded)
        while True:
            new = answer.take_forced()
            if new and on_tokens:
                on_tokens(new)
            if answer.over:
                return answer.decoded
            if not cache.length and request.images:
                logits, waiting = self.forward(cache, waiting, answer.decoded, **request.images), []
            if tokens := waiting + new:
                logits = self.forward(cache, tokens, answer.decoded)
            if answer.decoded.passes == 1 and not request.images:
                self.prefixes.add(request.prompt, cache.copy)
            waiting = [int(answer.pick(logits))]
            if answer.take(waiting[0]) and on_tokens:
                on_tokens(waiting)

    def generate_batch(self, requests: Sequence[Request], *, size: int = 8) -> list[Decoded]:
        """Independent answers, `size` at a time, each as `generate` would give it (but for numerical ties)."""
        from docgemma.llm.fast_batch import can_batch, generate_batch

        if not can_batch(self) or any(request.images for request in requests):
            return [self.generate(request) for request in requests]
        groups = [requests[start : start + size] for start in range(0, len(requests), size)]
        return [decoded for group in groups for decoded in generate_batch(self, group)]

    def describe(self) -> dict[str, Any]:
        return {"prefix_cache": self.prefixes.describe()}

    def close(self) -> None:
        self.prefixes.clear()

    def _known(self, cache: KVCache, request: Request, decoded: Decoded) -> list[int]:
        """Take what is known of a prompt; returns the rest. The last token is always computed, for its logits."""
        if not request.images:
            decoded.cached, pieces = self.prefixes.find(request.prompt[:-1])
            cache.load(pieces)
        return list(request.prompt[decoded.cached :])

    def forward(self, cache: KVCache, tokens: list[int], decoded: Decoded, **images: Any) -> torch.Tensor:
        """One pass; returns the logits after the last token, (vocabulary,)."""
        decoded.passes, decoded.computed = decoded.passes + 1, decoded.computed + len(tokens)
        ids = torch.tensor([tokens], device=self.model.device)
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1, **images)
        return out.logits[0, -1]


class Answer:
    """One answer on its way: what the grammar wants, what has been taken, whether it is over."""

    def __init__(self, decoder: FastDecoder, request: Request):
        self.decoder, self.limit = decoder, request.limit
        self.constraint = Constraint(decoder.grammar_tokenizer(), request.grammar) if request.grammar else None
        config, device = decoder.model.generation_config, decoder.model.device
        self.sampler = Sampler(config, request.temperature, request.seed, device)
        self.decoded = Decoded([])
        self.over = request.limit <= 0

    def take_forced(self) -> list[int]:
        """What the grammar forces now, the end included."""
        if self.constraint is None or self.over:
            return []
        new = self.constraint.take_forced(self._room)
        self.decoded.ids += new
        self.decoded.forced += len(new)
        if self.constraint.complete and self._room:
            self.decoded.ended = self.over = True
            self.decoded.forced += 1
        self.over = self.over or not self._room
        return new

    def pick(self, logits: torch.Tensor) -> torch.Tensor:
        """The next token, on the device. `logits`: (vocabulary,); the mask is made while the device computes them."""
        logits = logits.to(torch.float32, copy=True)
        if self.constraint:
            logits = self.decoder.apply_mask(logits, self.constraint.mask())
        return self.sampler(logits)

    def take(self, token: int) -> bool:
        """Add a chosen token; False where it is one that ends the answer."""
        if token in self.decoder.stop_ids:
            self.decoded.ended = self.over = True
            return False
        if self.constraint:
            self.constraint.take(token)
        self.decoded.ids.append(token)
        self.over = not self._room
        return True

    @property
    def _room(self) -> int:
        return self.limit - len(self.decoded.ids)


def affordable_bytes(device: torch.device) -> int:
    """How many bytes of key values to keep between calls."""
    if device.type != "cuda":
        return PREFIX_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return min(PREFIX_BYTES, int(free * GPU_SHARE))
