"""Run a golden set through the whole agent: each case on its own copy of the shipped records, with one loaded model."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docgemma.agent import Agent
from docgemma.ehr.open import open_store
from docgemma.errors import DocGemmaError, kind_and_place
from docgemma.experiments.cases import Case, Turn, load_cases
from docgemma.experiments.checks import failed_checks
from docgemma.experiments.outcomes import CaseResult, Report, TurnResult
from docgemma.knowledge.build import shipped_snapshot
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.settings import Settings


def run_file(
    path: Path,
    settings: Settings,
    llm: LLM | None = None,
    progress: Callable[[CaseResult], Any] | None = None,
    only: str | None = None,
) -> Report:
    """Run a file's cases, offline, on the shipped records: neither the user's record store nor a server is touched.

    Args:
        llm: a loaded model, left open; None loads that of the settings.
        progress: called with each case as it is finished.
        only: the id of the one case to run.

    Raises:
        CaseFileError: the file cannot be used.
        UsageError: there is no case `only`, or no such model.
        StoreError, ModelError: the run could not begin. What goes wrong in a case is a failed case.
    """
    cases = load_cases(Path(path), only)
    model = llm or load_llm(settings=settings)
    results = []
    try:
        with tempfile.TemporaryDirectory(prefix="docgemma-eval-") as folder:
            prepared = prepare_home(Path(folder, "prepared"), settings)
            for case in cases:
                results.append(run_case(case, prepared, model))
                if progress:
                    progress(results[-1])
    finally:
        if llm is None:
            model.close()
    return Report(results)


def prepare_home(home: Path, settings: Settings) -> Settings:
    """Seed a data home with the shipped records and snapshot; returns settings that use it and nothing else."""
    home.mkdir(parents=True)
    shutil.copy(shipped_snapshot(settings.home), home)
    load_drug_names()  # a case finds it loaded
    own = {"home": home, "sources": "offline", "ehr": None, "db": None, "mcp_url": None}
    prepared = Settings(**settings.model_dump() | own)
    open_store(prepared).close()
    return prepared


def run_case(case: Case, prepared: Settings, llm: LLM) -> CaseResult:
    """Ask a case's turns in one new conversation, on a copy of the prepared home that is deleted afterwards."""
    done = CaseResult(case.id, [])
    try:
        with _agent(prepared, llm) as agent:
            thread = None
            for number, turn in enumerate(case.turns, 1):
                name = f"{case.id}.{number}" if len(case.turns) > 1 else case.id
                done.turns.append(TurnResult(name, case.id, turn.ask))
                thread = _take_turn(agent, turn, thread, case.patient, done.turns[-1])
    except Exception as error:  # whatever it is, the other cases are still run
        if not done.turns:
            done.turns.append(TurnResult(case.id, case.id, case.turns[0].ask))
        line = error.line() if isinstance(error, DocGemmaError) else kind_and_place(error)
        done.turns[-1].failed.append(f"stopped: {' '.join(line.split())}")
    return done


def _take_turn(agent: Agent, turn: Turn, thread: str | None, patient: str | None, out: TurnResult) -> str:
    """Ask, check, decide; fills `out`. Returns the conversation. The patient is opened with its first message."""
    start = time.perf_counter()
    try:
        result = agent.ask(turn.ask, thread=thread, patient=None if thread else patient)
    finally:
        out.seconds = round(time.perf_counter() - start, 3)
    out.status, out.answer, out.card = result["status"], result["answer"], result.get("pending_write")
    out.tools = [{key: tool.get(key) for key in ("name", "args", "ok")} for tool in result["tools"]]
    out.failed = failed_checks(turn, result, lambda patient_id: _name(agent, patient_id))
    if turn.decide and out.card:
        out.decided = agent.decide(result["thread"], turn.decide)["answer"]
    return str(result["thread"])


def _name(agent: Agent, patient_id: str) -> str:
    found = agent.store.patient(patient_id)
    return found.name if found else "unknown"


@contextmanager
def _agent(prepared: Settings, llm: LLM) -> Iterator[Agent]:
    """An agent on a fresh copy of a data home, closed except for its model, which the next case uses."""
    with tempfile.TemporaryDirectory(prefix="case-", dir=prepared.home.parent) as folder:
        home = shutil.copytree(prepared.home, Path(folder, "home"))
        agent = Agent(Settings(**prepared.model_dump() | {"home": home}), llm=llm)
        try:
            yield agent
        finally:
            agent.store.close()
            agent.knowledge.close()
            agent.memory.conn.close()
