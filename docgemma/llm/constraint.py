"""What the grammar allows next, as llguidance sees it: the forced tokens, or a mask over the vocabulary.

Outlines' llguidance back end reads the same matcher with the same tokenizer and grammar, so both paths allow the same
tokens. Where the grammar's bytes are forced, llguidance's mask is the one token of their canonical tokenization (its
`compute_ff_tokens`): plain decoding has no choice there either, and skipping it changes nothing.
"""

from typing import Any

import torch
from llguidance import LLMatcher

from docgemma.errors import ModelError
from docgemma.llm.kv_cache import UnsupportedError


class Constraint:
    """The state of one constrained answer.

    Args:
        tokenizer: llguidance's, made with the tokens that end an answer as its eos tokens.
        grammar: a Lark grammar.

    Raises:
        UnsupportedError: llguidance refuses the grammar.
    """

    def __init__(self, tokenizer: Any, grammar: str):
        self.matcher = LLMatcher(tokenizer, grammar, log_level=0)
        if self.matcher.is_error():
            raise UnsupportedError(f"a grammar that llguidance refuses ({self.matcher.get_error()[:120]})")
        words = (tokenizer.vocab_size + 31) // 32
        self._mask = torch.zeros(words, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    @property
    def complete(self) -> bool:
        """Nothing may follow but the end."""
        return self.matcher.is_stopped()

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

    def mask(self) -> torch.Tensor:
        """(vocabulary / 32,) int32 on the CPU, a bit a token, valid until the next call."""
        self.matcher.unsafe_compute_mask_ptr(self._mask.data_ptr(), self._mask.numel() * 4)
        return self._mask


class MaskApplier:
    """Forbids on the model's device what a mask leaves out; the mask is all that is sent there."""

    def __init__(self, device: Any):
        self._bits = torch.arange(32, dtype=torch.int32, device=device)

    def __call__(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """`logits`: (vocabulary,), changed in place. The model's vocabulary may be padded past the tokenizer's."""
        words = mask.to(logits.device, non_blocking=True)
        allowed = ((words.unsqueeze(1) >> self._bits) & 1).reshape(-1)[: logits.shape[0]]
        logits[: allowed.shape[0]].masked_fill_(allowed == 0, float("-inf"))
        logits[allowed.shape[0] :] = float("-inf")
        return logits
