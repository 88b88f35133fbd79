"""The edge model: the reader understands, code composes; it generates no text, so there are no weights to load here."""

from docgemma.errors import ModelError
from docgemma.llm.base import LLM, Completion


class EdgeLLM(LLM):
    """Stands where a language model would; every question of the graph is settled before it is asked."""

    name = "edge"
    profile = "edge"

    def complete(self, prompt, config, *, node, schema=None, layout="json", on_token=None) -> Completion:
        raise ModelError(
            f"The edge model writes no text, and was asked to at {node}.", hint="Load a language model: --model."
        )
