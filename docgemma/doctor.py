"""`docgemma doctor`: what is installed, which model can run, what can be reached, and how to fix what is not."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from docgemma.errors import DocGemmaError
from docgemma.settings import Settings

READER_FIX = "In a checkout: git checkout -- data/edge/reader.npz. Else install docgemma again."
EXTRAS = (  # what it is for, the extra that brings it, modules that must be there
    ("Browser demo", "demo", ("gradio",)),
    ("REST API", "serve", ("fastapi", "multipart", "uvicorn")),
    ("Notebooks", "notebooks", ("jupyter", "ipywidgets", "matplotlib")),
)


@dataclass(frozen=True)
class Check:
    """One line of the examination. `needed`: without it nothing runs; otherwise it is an extra."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(settings: Settings) -> list[Check]:
    """Every check, in the order a newcomer needs them. Never raises: a check that fails says so."""
    return [
        _edge(),
        _medgemma(settings),
        _llamacpp(),
        _server(settings),
        _database("Record store", settings.ehr_location, lambda: _try_store(settings)),
        _database("Conversations", settings.db_location, lambda: _try_memory(settings)),
        _database("Knowledge snapshot", "offline", lambda: _try_knowledge(settings)),
        *(_service(name, url, settings) for name, url in _services(settings)),
        *(_extra(*extra) for extra in EXTRAS),
        _films(),
        _space(settings),
    ]


def _edge() -> Check:
    from docgemma.paths import data_file
    from docgemma.reading.reader import load_reader

    try:
        load_reader(data_file("edge", "reader.npz")).read("hello")
    except DocGemmaError as error:
        return Check("Edge model", False, str(error), READER_FIX, needed=True)
    return Check("Edge model", True, "the reader is here; code writes its answers", needed=True)


def _llamacpp() -> Check:
    if find_spec("xllamacpp") is None:
        return Check("GGUF models", False, "llama.cpp is not installed", "pip install xllamacpp")
    return Check("GGUF models", True, f"llama.cpp {_version('xllamacpp')}: --model FILE.gguf")


def _medgemma(settings: Settings) -> Check:
    from docgemma.llm.hf_load import NEEDED
    from docgemma.llm.medgemma import HUB_ID, find_weights, nvidia_device

    lacking = [name for name in (*NEEDED, "bitsandbytes") if find_spec(name) is None]
    if lacking:
        fix = "pip install torch, then pip install 'docgemma[transformers]'"
        return Check("MedGemma", False, f"not installed: {', '.join(lacking)}", fix)
    if not nvidia_device():
        return Check("MedGemma", False, "no NVIDIA GPU found", "Use the edge model, or run on Kaggle with a T4.")
    if not _cuda():
        fix = "Install a torch built for CUDA: pytorch.org/get-started/locally"
        return Check("MedGemma", False, f"a GPU is here, but torch {_version('torch')} cannot use it", fix)
    weights = find_weights(settings.home)
    if weights is None:
        folder = settings.home / "models" / "medgemma"
        fix = f"Accept its licence at huggingface.co/{HUB_ID} and set HF_TOKEN, or put it into {folder}."
        return Check("MedGemma", False, "the GPU can be used, the weights are not on this machine", fix)
    return Check("MedGemma", True, f"transformers {_version('transformers')}, GPU found, weights in {weights}")


def _cuda() -> bool:
    """Whether torch can use the GPU; torch is loaded only where there is one."""
    import torch

    return torch.cuda.is_available()


def _server(settings: Settings) -> Check:
    if not settings.llm_url:
        return Check("Model server", False, "not configured", "Set DOCGEMMA_LLM_URL to an OpenAI-compatible server.")
    return _reach("Model server", settings.llm_url, settings, "Start it, or correct DOCGEMMA_LLM_URL.")


def _extra(name: str, extra: str, modules: tuple[str, ...]) -> Check:
    lacking = [module for module in modules if find_spec(module) is None]
    if lacking:
        return Check(name, False, f"not installed: {', '.join(lacking)}", f"pip install 'docgemma[{extra}]'")
    return Check(name, True, "installed")


def _database(name: str, where: str, attempt: Callable[[], str]) -> Check:
    try:
        return Check(name, True, f"{where}: {attempt()}", needed=True)
    except DocGemmaError as error:
        return Check(name, False, str(error), error.hint, needed=True)


def _try_store(settings: Settings) -> str:
    from docgemma.ehr.open import open_store

    store = open_store(settings)
    try:
        store.search_patients("Smith", limit=1)
        return store.name
    finally:
        store.close()


def _try_memory(settings: Settings) -> str:
    from docgemma.memory import open_memory

    open_memory(settings.db_location)
    return "readable and writable"


def _try_knowledge(settings: Settings) -> str:
    from docgemma.knowledge.sources import open_knowledge

    knowledge = open_knowledge(settings.model_copy(update={"sources": "offline"}))
    try:
        answer = knowledge.label("metformin")
        return f"{answer.source}, as of {answer.as_of}"
    finally:
        knowledge.close()


def _services(settings: Settings) -> list[tuple[str, str]]:
    return [
        ("openFDA", settings.openfda_url),
        ("ClinicalTrials.gov", settings.ctgov_url),
        ("Europe PMC", settings.europepmc_url),
        ("RxNorm", settings.rxnav_url),
    ]


def _films() -> Check:
    from docgemma.demo.stage import find_chromium

    check = _extra("Films of the demo", "record", ("av", "playwright"))
    if not check.ok:
        return check
    try:
        return Check(check.name, True, f"installed, with {find_chromium()}")
    except DocGemmaError as error:
        return Check(check.name, False, str(error), error.hint)


def _service(name: str, url: str, settings: Settings) -> Check:
    if settings.sources == "offline":
        return Check(name, True, "not asked, since DOCGEMMA_SOURCES is offline: the snapshot answers")
    instead = "The offline snapshot is used instead; each answer says so."
    only = "Check the network, or set DOCGEMMA_SOURCES=auto to fall back on the snapshot."
    return _reach(name, url, settings, only if settings.sources == "live" else instead)


def _reach(name: str, url: str, settings: Settings, fix: str) -> Check:
    import httpx

    try:
        httpx.get(url, timeout=min(settings.tool_timeout, 3.0), follow_redirects=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Check(name, False, f"not reachable ({type(error).__name__})", fix)
    return Check(name, True, "reachable")


def _space(settings: Settings) -> Check:
    home = settings.home
    while not home.exists() and home != home.parent:
        home = home.parent
    free_gb = shutil.disk_usage(home).free / 1e9
    fix = "" if free_gb > 1 else "Free some space, or set DOCGEMMA_HOME to another disk."
    return Check("Disk space", free_gb > 1, f"{free_gb:.0f} GB free for {settings.home}", fix, needed=True)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(version unknown)"
