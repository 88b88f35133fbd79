"""The language model of the revenue-cycle agent: prompts are scrubbed, and where one model is down the next answers."""

from collections.abc import Callable
from typing import Any

from docgemma.errors import DocGemmaError, ModelError
from docgemma.llm import load_llm
from docgemma.llm.base import LLM, Completion, GenConfig, Prompt
from docgemma.rcm.pii import Scrubber
from docgemma.settings import Settings


def load_first(name: str | None, settings: Settings, on_progress: Callable[[str], object] | None = None) -> LLM:
    """The model that is asked first; where its server is down, one that answers nothing, so that the next one does."""
    try:
        return load_llm(name, settings, on_progress=on_progress)
    except ModelError:
        return Unreached(name or settings.model or "the model")


class Unreached(LLM):
    """Stands for a model that could not be loaded."""

    def __init__(self, name: str):
        self.name = name

    def complete(self, prompt: Prompt, config: GenConfig, *, node: str, **options: Any) -> Completion:
        raise ModelError(f"{self.name} cannot be reached.")


class Guarded(LLM):
    """A model that never sees a name, and after it those of DOCGEMMA_RCM_MODELS.

    Attributes:
        down: models that did not answer, by name, in order; the answer tells it.
        calls: the record of each generation.
    """

    def __init__(self, first: LLM, scrubber: Scrubber, settings: Settings):
        self.scrubber, self.settings, self.models = scrubber, settings, [first]
        self.names = [name for name in (settings.rcm_models or "").replace(",", " ").split() if name != first.name]
        self.down: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.on_call = lambda call: self.calls.append(call.as_dict())

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of the model that answers now."""
        return self._alive().name

    @property
    def profile(self) -> Any:  # type: ignore[override]
        return self._alive().profile

    def complete(self, prompt: Prompt, config: GenConfig, *, node: str, **options: Any) -> Completion:
        """As the first model that answers.

        Raises:
            ModelError: none of them did.
        """
        hidden = Prompt(user=self.scrubber.scrub(prompt.user), system=prompt.system, prefix=prompt.prefix)
        while (model := self._alive()).profile != "edge":
            try:
                return model.complete(hidden, config, node=node, **options)
            except ModelError:
                self.down.append(model.name)
        raise ModelError("No language model answers.", hint="Try again later, or set DOCGEMMA_RCM_MODELS.")

    @property
    def ends_with_code(self) -> bool:
        """Whether the edge model is configured to answer after the others, and now does."""
        return any(model.profile == "edge" for model in self.models[1:])

    def close(self) -> None:
        """Release what was loaded here; the first model is its owner's."""
        for model in self.models[1:]:
            model.close()

    def _alive(self) -> LLM:
        """The last model that was loaded, or the next one where it is down; where all are, the edge model, which is
        asked nothing."""
        while self.models[-1].name in self.down:
            if not self.names:
                return load_llm("edge", self.settings)
            name = self.names.pop(0)
            try:
                self.models.append(load_llm(name, self.settings))
            except DocGemmaError:  # not there: the next
                self.down.append(name)
        return self.models[-1]
