"""Token ids to text as they come: whole characters only, control tokens dropped, thinking marks kept."""

from collections.abc import Sequence
from typing import Any

from docgemma.llm.base import OnToken

THINKING_MARKS = ("<unused94>", "<unused95>")  # kept, so that the span between them can be removed
UNFINISHED = "�"  # how a tokenizer shows the first bytes of a character


class Detokenizer:
    """Also a transformers streamer (`put`, `end`). What `on_token` raises passes through `generate` to the caller."""

    def __init__(self, tokenizer: Any, stop_ids: Sequence[int], on_token: OnToken | None = None):
        self.tokenizer, self.on_token = tokenizer, on_token
        marks = {tokenizer.get_vocab().get(mark) for mark in THINKING_MARKS}
        self.dropped = (set(tokenizer.all_special_ids) | set(stop_ids)) - marks
        self.text, self._open, self._prompt_seen = "", [], False

    def put(self, ids: Any) -> None:
        """transformers gives the prompt first, then each new token."""
        if self._prompt_seen:
            self.add(ids.reshape(-1).tolist())
        self._prompt_seen = True

    def end(self) -> None:
        self._flush(final=True)

    def add(self, ids: Sequence[int]) -> None:
        self._open += [token for token in ids if token not in self.dropped]
        self._flush(final=False)

    def _flush(self, *, final: bool) -> None:
        piece = self.tokenizer.decode(self._open, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if not piece or (piece.endswith(UNFINISHED) and not final):
            return
        self._open = []
        self.text += piece
        if self.on_token:
            self.on_token(piece)
