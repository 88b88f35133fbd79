"""`docgemma doctor`: what is installed, which model can run, what can be reached, and how to fix what is not."""

import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from docgemma.errors import DocGemmaError
from docgemma.settings import Settings


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
        _edge(settings),
        _medgemma(),
        _server(settings),
        _database("Record store", settings.ehr_location, lambda: _try_store(settings)),
        _database("Conversations", settings.db_location, lambda: _try_memory(settings)),
        _database("Knowledge snapshot", "offline", lambda: _try_knowledge(settings)),
        *(_reach(name, url, settings) for name, url in _services(settings)),
        _space(settings),
    ]


def _edge(settings: Settings) -> Check:
    from docgemma.llm.load import edge_adapter, edge_weights

    if find_spec("xllamacpp") is None:
        return Check("Edge model", False, "llama.cpp is not installed", "pip install xllamacpp", needed=True)
    try:
        weights, adapter = edge_weights(), edge_adapter()
    except DocGemmaError as error:
        return Check("Edge model", False, str(error), error.hint, needed=True)
    trained = "with its adapter" if adapter else "without its adapter: it cannot choose tools"
    found = f"{weights.name} on llama.cpp {_version('xllamacpp')}, {trained}"
    return Check("Edge model", adapter is not None, found, "" if adapter else "Put data/edge/adapter.gguf back.", True)


def _medgemma() -> Check:
    lacking = [name for name in ("torch", "transformers", "bitsandbytes", "outlines") if find_spec(name) is None]
    if lacking:
        return Check("MedGemma", False, f"not installed: {', '.join(lacking)}", "pip install 'docgemma[transformers]'")
    if not (os.path.exists("/dev/nvidiactl") or shutil.which("nvidia-smi")):
        return Check("MedGemma", False, "no NVIDIA GPU found", "Use the edge model, or run on Kaggle with a T4.")
    return Check("MedGemma", True, f"transformers {_version('transformers')}, GPU found")


def _server(settings: Settings) -> Check:
    if not settings.llm_url:
        return Check("Model server", False, "not configured", "Set DOCGEMMA_LLM_URL to an OpenAI-compatible server.")
    return _reach("Model server", settings.llm_url, settings)


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


def _reach(name: str, url: str, settings: Settings) -> Check:
    import httpx

    try:
        httpx.get(url, timeout=min(settings.tool_timeout, 3.0), follow_redirects=False)
    except httpx.HTTPError as error:
        return Check(name, False, f"not reachable ({type(error).__name__})", "The offline snapshot is used instead.")
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
