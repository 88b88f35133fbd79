"""Decode an answer in fewer passes than `generate` alone, on a transformers model whose layers keep key values.

Two savings. Tokens that the grammar forces are appended without being decoded, and pushed through together with the
next decision in one pass. And the beginning of a prompt that was computed before is not computed again. It is the loop
of transformers' own `generate` (`custom_generate`), so everything else, sampling included, is transformers'. Greedy
answers are those of plain `generate` but for numerical ties: a prompt computed in two parts rounds differently, so two
candidates within about 1e-4 of one another (float32) may change places.
"""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from llguidance import LLMatcher
from transformers import DynamicCache, LogitsProcessor, TextStreamer
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from docgemma.errors import ModelError
from docgemma.llm.base import OnToken
from docgemma.llm.prompt_cache import PromptCache


class GrammarMask(LogitsProcessor):
    """Forbids what the grammar does not allow next, and knows what it forces.

    Args:
        tokenizer: llguidance's, made with the tokens that end an answer as its eos tokens.
        grammar: a Lark grammar.

    Raises:
        ModelError: llguidance refuses the grammar.
    """

    def __init__(self, tokenizer: Any, grammar: str):
        self.matcher = LLMatcher(tokenizer, grammar, log_level=0)
        if self.matcher.is_error():
            raise ModelError(f"llguidance refuses the grammar ({self.matcher.get_error()[:120]}).")
        words = (tokenizer.vocab_size + 31) // 32
        self.bits = torch.zeros(words, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        # not llguidance.torch: it imports torch's compiler, which takes seconds
        self.matcher.unsafe_compute_mask_ptr(self.bits.data_ptr(), self.bits.numel() * 4)
        words = self.bits.to(scores.device, non_blocking=True).unsqueeze(1)
        places = torch.arange(32, dtype=torch.int32, device=scores.device)
        allowed = ((words >> places) & 1).reshape(-1)[: scores.shape[-1]]
        scores[:, : len(allowed)].masked_fill_(allowed == 0, float("-inf"))
        scores[:, len(allowed) :] = float("-inf")  # a model's vocabulary may be padded past its tokenizer's
        return scores

    @property
    def complete(self) -> bool:
        """Nothing may follow but the end."""
        return bool(self.matcher.is_stopped())

    def take_forced(self, limit: int) -> list[int]:
        """The next tokens that the grammar leaves no choice about, at most `limit`, taken.

        Each is asked for anew after the one before it, exactly as plain decoding would meet it.
        """
        taken: list[int] = []
        while len(taken) < limit and not self.complete and (forced := self.matcher.compute_ff_tokens()):
            self.take(forced[0])
            taken.append(forced[0])
        return taken

    def take(self, token: int) -> None:
        """
        Raises:
            ModelError: the grammar became too complex, or the token was not allowed.
        """
        if not self.matcher.consume_token(token):
            raise ModelError(f"The answer left its grammar ({self.matcher.get_error()[:120]}).", hint="Try again.")


class Decoding:
    """One answer, as `generate` takes it for `custom_generate`.

    Args:
        prompts: what is known of earlier prompts.
        stop_ids: every token that ends an answer.
        limit: of new tokens, the end included.
        mask: also given to `generate` as its logits processor; None for free text.
        images: what a processor made besides the token ids ("pixel_values", "token_type_ids"). Image tokens are alike
            whatever the image, so such a prompt is computed anew and not kept.
        streamer: gets the new tokens, forced ones together; `generate` gives it the prompt, and nothing of ours.

    Attributes:
        ids: the new tokens, the end included.
        cached: prompt tokens whose key values were there already.
        forced: new tokens that the grammar left no choice about, the end included where it was forced.
        passes: forward passes.
    """

    def __init__(
        self,
        prompts: PromptCache,
        stop_ids: Collection[int],
        limit: int,
        mask: GrammarMask | None = None,
        images: Mapping[str, Any] | None = None,
        streamer: Any = None,
    ):
        self.prompts, self.stop_ids, self.limit, self.mask = prompts, stop_ids, limit, mask
        self.images, self.streamer = images or {}, streamer
        self.ids: list[int] = []
        self.cached = self.forced = self.passes = 0

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        generation_config: Any,
        **prepared: Any,
    ) -> torch.Tensor:
        prompt: list[int] = input_ids[0].tolist()
        cache = DynamicCache()
        if not self.images:  # the last token is always computed, for its logits
            self.cached, cache = self.prompts.find(prompt[:-1])
        waiting = prompt[self.cached :]
        while not self._over:
            forced = self._take_forced()
            if self._over:
                break
            if self.images and not self.passes:  # alone: image inputs are as long as the prompt
                logits, waiting = self._forward(model, cache, waiting, **self.images), []
            if waiting or forced:
                logits = self._forward(model, cache, waiting + forced)
            if self.passes == 1 and not self.images:
                self.prompts.add(prompt, cache)
            sequence = torch.tensor([prompt + self.ids], device=input_ids.device)
            scores = logits_processor(sequence, logits)
            chosen = torch.multinomial(scores.softmax(-1), 1) if generation_config.do_sample else scores.argmax(-1)
            waiting = [int(chosen)]
            self._take(waiting[0])
        if self.streamer:
            self.streamer.end()
        return torch.tensor([prompt + self.ids], device=input_ids.device)

    @property
    def _over(self) -> bool:
        return len(self.ids) >= self.limit or (bool(self.ids) and self.ids[-1] in self.stop_ids)

    def _forward(self, model: Any, cache: DynamicCache, tokens: list[int], **images: Any) -> torch.Tensor:
        """One pass; returns the logits after the last token, (1, vocabulary) float32."""
        self.passes += 1
        ids = torch.tensor([tokens], device=model.device)
        out = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1, **images)
        logits: torch.Tensor = out.logits[:, -1].to(torch.float32, copy=True)
        return logits

    def _take_forced(self) -> list[int]:
        """What the grammar forces now, the end included."""
        if self.mask is None:
            return []
        forced = self.mask.take_forced(self.limit - len(self.ids))
        self.ids += forced
        self.forced += len(forced)
        if forced and self.streamer:
            self.streamer.put(torch.tensor(forced))
        if self.mask.complete and len(self.ids) < self.limit:
            self.ids.append(min(self.stop_ids))
            self.forced += 1
        return forced

    def _take(self, token: int) -> None:
        self.ids.append(token)
        if token in self.stop_ids:
            return
        if self.mask:
            self.mask.take(token)
        if self.streamer:
            self.streamer.put(torch.tensor([token]))


def require_key_values(config: Any) -> None:
    """
    Raises:
        ModelError: a layer of the model keeps something else than key values of its tokens, a state for example.
    """
    kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    if not kinds or kinds - {DynamicLayer, DynamicSlidingWindowLayer}:
        raise ModelError(f"No key values in layers of the kinds {sorted(kind.__name__ for kind in kinds)}.")


class AnswerText(TextStreamer):
    """Token ids to text as they come, whole words, control tokens dropped. What `on_token` raises ends `generate`."""

    def __init__(self, tokenizer: Any, stop_ids: Collection[int], on_token: OnToken | None = None):
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        self.stop_ids, self.on_token, self.text = stop_ids, on_token, ""

    def put(self, value: torch.Tensor) -> None:
        if not self.next_tokens_are_prompt:
            value = torch.tensor([token for token in value.reshape(-1).tolist() if token not in self.stop_ids])
        whole_words: Any = super()  # untyped
        whole_words.put(value)

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        self.text += text
        if text and self.on_token:
            self.on_token(text)
