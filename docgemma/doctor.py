"""`docgemma doctor`: what is installed, which model can run, what can be reached, and how to fix what is not."""

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from docgemma.errors import ConfigError, DocGemmaError
from docgemma.settings import Settings

Attempt = Callable[[Settings], str]  # says what was found; raises an error whose hint is the fix


@dataclass(frozen=True)
class Check:
    """One line of the examination. `needed`: without it nothing runs; otherwise it is an extra."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = False


def examine(settings: Settings) -> list[Check]:
    """Every check, in the order a newcomer needs them. Never raises: a check that fails says so."""
    needed: dict[str, Attempt] = {
        "Edge model": _edge, "Record store": _record_store, "Conversations": _conversations,
        "Knowledge snapshot": _snapshot, "Disk space": _space,
    }  # fmt: skip
    extras: dict[str, Attempt] = {
        "MedGemma": _medgemma,
        "GGUF models": partial(_installed, "pip install xllamacpp", ("xllamacpp",)),
        "Model server": _server,
        "openFDA": partial(_service, settings.openfda_url),
        "ClinicalTrials.gov": partial(_service, settings.ctgov_url),
        "Europe PMC": partial(_service, settings.europepmc_url),
        "RxNorm": partial(_service, settings.rxnav_url),
        "Browser demo": partial(_installed, "pip install 'docgemma[demo]'", ("gradio",)),
        "REST API": partial(_installed, "pip install 'docgemma[serve]'", ("fastapi", "uvicorn")),
        "Notebooks": partial(_installed, "pip install 'docgemma[notebooks]'", ("jupyter", "ipywidgets", "matplotlib")),
        "Films of the demo": _films,
    }
    return [_check(name, attempt, settings, name in needed) for name, attempt in (needed | extras).items()]


def _check(name: str, attempt: Attempt, settings: Settings, needed: bool) -> Check:
    try:
        return Check(name, True, attempt(settings), needed=needed)
    except DocGemmaError as error:
        return Check(name, False, str(error), error.hint, needed)


def _edge(settings: Settings) -> str:
    from docgemma.paths import data_file
    from docgemma.reading.reader import load_reader

    load_reader(data_file("edge", "reader.npz")).read("hello")
    return "the reader is here; code writes its answers"


def _record_store(settings: Settings) -> str:
    from docgemma.ehr.open import open_store

    with closing(open_store(settings)) as store:
        store.search_patients("Smith", limit=1)
        return f"{settings.ehr_location}: {store.name}"


def _conversations(settings: Settings) -> str:
    from docgemma.memory import open_memory

    open_memory(settings.db_location).conn.close()
    return f"{settings.db_location}: readable and writable"


def _snapshot(settings: Settings) -> str:
    from docgemma.knowledge.sources import open_knowledge

    with closing(open_knowledge(settings.model_copy(update={"sources": "offline"}))) as knowledge:
        answer = knowledge.label("metformin")
        return f"offline: {answer.source}, as of {answer.as_of}"


def _space(settings: Settings) -> str:
    home = next(folder for folder in (settings.home, *settings.home.absolute().parents) if folder.exists())
    free_gb = shutil.disk_usage(home).free / 1e9
    found = f"{free_gb:.0f} GB free for {settings.home}"
    if free_gb <= 1:
        raise ConfigError(found, hint="Free some space, or set DOCGEMMA_HOME to another disk.")
    return found


def _medgemma(settings: Settings) -> str:
    from docgemma.llm.hf_load import NEEDED
    from docgemma.llm.medgemma import HUB_ID, find_weights, nvidia_device

    fix = "pip install torch, then pip install 'docgemma[transformers]'"
    _installed(fix, (*NEEDED, "bitsandbytes"), settings)
    if not nvidia_device():
        raise ConfigError("no NVIDIA GPU found", hint="Use the edge model, or run on Kaggle with a T4.")
    if not _cuda():
        fix = "Install a torch built for CUDA: pytorch.org/get-started/locally"
        raise ConfigError("a GPU is here, but torch cannot use it", hint=fix)
    weights = find_weights(settings.home)
    if weights is None:
        folder = settings.home / "models" / "medgemma"
        fix = f"Accept its licence at huggingface.co/{HUB_ID} and set HF_TOKEN, or put it into {folder}."
        raise ConfigError("the GPU can be used, the weights are not on this machine", hint=fix)
    return f"GPU found, weights in {weights}"


def _cuda() -> bool:
    """Whether torch can use the GPU; torch is loaded only where there is one."""
    import torch

    return torch.cuda.is_available()


def _installed(fix: str, modules: tuple[str, ...], settings: Settings) -> str:
    if lacking := [module for module in modules if find_spec(module) is None]:
        raise ConfigError(f"not installed: {', '.join(lacking)}", hint=fix)
    return "installed"


def _films(settings: Settings) -> str:
    _installed("pip install 'docgemma[record]'", ("gradio", "jinja2", "av", "playwright"), settings)
    return f"installed, with {find_chromium()}"


def find_chromium() -> str:
    """Its path. Raises ConfigError where it is not installed."""
    by_playwright = sorted(Path.home().glob(".cache/ms-playwright/chromium-*/chrome-linux*/chrome"))
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if paths := [*found, *map(str, by_playwright)]:
        return paths[0]
    raise ConfigError("Chromium is not on the PATH.", hint="Install it (Debian: apt-get install chromium).")


def _server(settings: Settings) -> str:
    if not settings.llm_url:
        raise ConfigError("not configured", hint="Set DOCGEMMA_LLM_URL to an OpenAI-compatible server.")
    return _reach(settings.llm_url, settings, "Start it, or correct DOCGEMMA_LLM_URL.")


def _service(url: str, settings: Settings) -> str:
    if settings.sources == "offline":
        return "not asked, since DOCGEMMA_SOURCES is offline: the snapshot answers"
    instead = "The offline snapshot is used instead; each answer says so."
    only = "Check the network, or set DOCGEMMA_SOURCES=auto to fall back on the snapshot."
    return _reach(url, settings, only if settings.sources == "live" else instead)


def _reach(url: str, settings: Settings, fix: str) -> str:
    import httpx

    try:
        httpx.get(url, timeout=min(settings.tool_timeout, 3.0), follow_redirects=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConfigError(f"not reachable ({type(error).__name__})", hint=fix) from error
    return "reachable"
