"""From a name to a loaded model. Heavy libraries are imported by the back end that needs them, when it is chosen."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docgemma.errors import ModelError, UsageError
from docgemma.llm.base import LLM, Completion, GenConfig, Prompt
from docgemma.llm.medgemma import find_weights, nvidia_device
from docgemma.settings import Settings

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
POSSIBLE = "Possible are edge, medgemma, server, a .gguf file, or the folder or hub id of a Hugging Face chat model."


class EdgeLLM(LLM):
    """The edge model: the reader understands and code composes, so it has no weights and is asked nothing."""

    name = "edge"
    profile = "edge"

    def complete(self, prompt: Prompt, config: GenConfig, *, node: str, **options: Any) -> Completion:
        raise ModelError(
            f"The edge model writes no text, and was asked to at {node}.", hint="Load a language model: --model."
        )


def load_llm(
    name: str | None = None,
    settings: Settings | None = None,
    on_progress: Callable[[str], object] | None = None,
) -> LLM:
    """Load a language model.

    Args:
        name: `edge`, `medgemma`, `server`, a `.gguf` file, a folder or hub id of a Hugging Face chat model; None takes
            `settings.model`, else `medgemma` where an NVIDIA GPU and its weights are found, else `edge`.
        settings: None reads DOCGEMMA_* from the environment.
        on_progress: gets one line a step; None prints to stderr where loading takes long.

    Raises:
        UsageError: there is no such model.
        ConfigError: a setting is missing, or a library that the model needs.
        ModelError: the model was found and could not be loaded.
    """
    settings = settings or Settings()
    name = name or settings.model or default_model(settings)
    if name == "edge":
        return EdgeLLM()
    if name == "server":
        from docgemma.llm.server import ServerLLM

        return ServerLLM(settings.llm_url or "", model=settings.llm_name, key=settings.llm_key)
    if name.lower().endswith(".gguf"):
        from docgemma.llm.llamacpp import LlamaCppLLM

        weights = Path(name).expanduser()
        for path in (weights, settings.mmproj):
            if path is not None and not path.is_file():
                raise UsageError(f"There is no model file {path}.", hint=POSSIBLE)
        return LlamaCppLLM(weights.stem, weights, mmproj=settings.mmproj, threads=settings.threads)
    if name == "medgemma" or HUB_ID.fullmatch(name) or Path(name).is_dir():
        from docgemma.llm.pool import load_copies

        return load_copies(name, settings, on_progress or (lambda line: print(line, file=sys.stderr)))
    raise UsageError(f"There is no model {name!r}.", hint=POSSIBLE)


def default_model(settings: Settings) -> str:
    """`medgemma` where an NVIDIA GPU and MedGemma's weights are on this machine, else `edge`. Imports no torch."""
    return "medgemma" if nvidia_device() and find_weights(settings.home) else "edge"
