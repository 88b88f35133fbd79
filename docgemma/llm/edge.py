"""The edge model: the reader understands, code composes; it generates no text, so there are no weights to load here."""

from typing import Any

from docgemma.errors import ModelError
from docgemma.llm.base import LLM, Completion, GenConfig, Prompt


class EdgeLLM(LLM):
    """Stands where a language model would; every question of the graph is settled before it is asked."""

    name = "edge"
    profile = "edge"

    def complete(self, prompt: Prompt, config: GenConfig, *, node: str, **options: Any) -> Completion:
        raise ModelError(
            f"The edge model writes no text, and was asked to at {node}.", hint="Load a language model: --model."
        )
