"""From a name to a loaded model. Heavy libraries are imported by the back end that needs them, when it is chosen."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from docgemma.errors import UsageError
from docgemma.llm.base import LLM
from docgemma.llm.medgemma import find_weights, nvidia_device
from docgemma.settings import Settings

OnProgress = Callable[[str], object]

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
POSSIBLE = "Possible are edge, medgemma, server, a .gguf file, or the folder or hub id of a Hugging Face chat model."


def load_llm(
    name: str | None = None,
    settings: Settings | None = None,
    on_progress: OnProgress | None = None,
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
        from docgemma.llm.edge import EdgeLLM

        return EdgeLLM()
    if name == "server":
        from docgemma.llm.server import ServerLLM

        return ServerLLM(settings.llm_url or "", model=settings.llm_name, key=settings.llm_key)
    if name.lower().endswith(".gguf"):
        return _load_gguf(name, settings)
    if name == "medgemma" or HUB_ID.fullmatch(name) or Path(name).is_dir():
        from docgemma.llm.pool import load_copies

        return load_copies(name, settings, on_progress or (lambda line: print(line, file=sys.stderr)))
    raise UsageError(f"There is no model {name!r}.", hint=POSSIBLE)


def default_model(settings: Settings) -> str:
    """`medgemma` where an NVIDIA GPU and MedGemma's weights are on this machine, else `edge`. Imports no torch."""
    return "medgemma" if nvidia_device() and find_weights(settings.home) else "edge"


def _load_gguf(name: str, settings: Settings) -> LLM:
    from docgemma.llm.llamacpp import LlamaCppLLM

    weights = Path(name).expanduser()
    for path in (weights, settings.mmproj):
        if path is not None and not path.is_file():
            raise UsageError(f"There is no model file {path}.", hint=POSSIBLE)
    return LlamaCppLLM(weights.stem, weights, mmproj=settings.mmproj, threads=settings.threads)
