"""Run a golden set through the whole agent: each case on its own copy of the shipped records, with one loaded model."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from docgemma.agent import Agent
from docgemma.ehr.open import open_store
from docgemma.errors import DocGemmaError, kind_and_place
from docgemma.experiments.statistics import wilson
from docgemma.knowledge.build import shipped_snapshot
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.paths import kit
from docgemma.settings import Settings

failed_checks = kit("golden", "checks").failed_checks


@dataclass
class TurnResult:
    """What came of one turn. `card` is the write that waited before anything was decided."""

    id: str  # the case's; "nn-c01.2" is the second turn of a conversation
    case: str
    question: str
    status: str = ""
    answer: str = ""
    card: dict[str, Any] | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)  # name, args, ok
    failed: list[str] = field(default_factory=list)  # short reasons; empty where it is right
    decided: str = ""  # the answer after `decide`
    seconds: float = 0.0
    llm_calls: int = 0
    tokens: dict[str, int] = field(default_factory=dict)  # prompt, completion


@dataclass
class CaseResult:
    """One case. A turn that raised ends it; what follows is not asked."""

    id: str
    turns: list[TurnResult]

    @property
    def passed(self) -> bool:
        return not self.why

    @property
    def why(self) -> str:
        """All reasons in one line, those of a conversation with the turn's number; empty where it passed."""
        return "; ".join(
            (f"turn {number}: " if turn.id != self.id else "") + ", ".join(turn.failed)
            for number, turn in enumerate(self.turns, 1)
            if turn.failed
        )

    @property
    def seconds(self) -> float:
        return sum(turn.seconds for turn in self.turns)


def summarize(cases: list[CaseResult]) -> dict[str, Any]:
    """The contract's JSON: `passed, total, failed: [{id, why}], metrics`. Seconds are those of a turn."""
    failed = [{"id": case.id, "why": case.why} for case in cases if not case.passed]
    passed, total = len(cases) - len(failed), len(cases)
    low, high = wilson(passed, total)
    seconds = [turn.seconds for case in cases for turn in case.turns]
    metrics = {
        "share": round(passed / total, 4), "low": round(low, 4), "high": round(high, 4), "turns": len(seconds),
        "median_seconds": round(float(np.median(seconds)), 3),
        "p95_seconds": round(float(np.percentile(seconds, 95, method="inverted_cdf")), 3),
    }  # fmt: skip
    return {"passed": passed, "total": total, "failed": failed, "metrics": metrics}


def run_cases(
    cases: list[Any],
    settings: Settings,
    llm: LLM | None = None,
    progress: Callable[[CaseResult], Any] = lambda case: None,
) -> list[CaseResult]:
    """Run cases offline, on the shipped records: neither the user's record store nor a server is touched.

    Args:
        llm: a loaded model, left open; None loads that of the settings.
        progress: called with each case as it is finished.

    Raises:
        UsageError: there is no such model.
        StoreError, ModelError: the run could not begin. What goes wrong in a case is a failed case.
    """
    results = []
    with prepared_run(settings, llm) as (prepared, model):
        for case in cases:
            results.append(run_case(case, prepared, model))
            progress(results[-1])
    return results


@contextmanager
def prepared_run(settings: Settings, llm: LLM | None) -> Iterator[tuple[Settings, LLM]]:
    """A prepared data home that is deleted afterwards, and the model: `llm`, left open, or that of the settings."""
    model = llm or load_llm(settings=settings)
    try:
        with tempfile.TemporaryDirectory(prefix="docgemma-eval-") as folder:
            yield prepare_home(Path(folder, "prepared"), settings), model
    finally:
        if llm is None:
            model.close()


def prepare_home(home: Path, settings: Settings) -> Settings:
    """Seed a data home with the shipped records and snapshot; returns settings that use it and nothing else."""
    home.mkdir(parents=True)
    shutil.copy(shipped_snapshot(settings.home), home)
    load_drug_names()  # a case finds it loaded
    own = {"home": home, "sources": "offline", "ehr": None, "db": None, "mcp_url": None}
    prepared = settings.model_copy(update=own)
    open_store(prepared).close()
    return prepared


def run_case(case: Any, prepared: Settings, llm: LLM, graph: str | None = None) -> CaseResult:
    """Ask a case's turns in one new conversation, on a copy of the prepared home that is deleted afterwards."""
    done = CaseResult(case.id, [])
    try:
        with case_home(prepared) as own, Agent(own, llm=llm, graph=graph) as agent:
            thread = None
            for number, turn in enumerate(case.turns, 1):
                name = f"{case.id}.{number}" if len(case.turns) > 1 else case.id
                done.turns.append(TurnResult(name, case.id, turn.ask))
                thread = _take_turn(agent, turn, thread, case.patient, done.turns[-1])
    except Exception as error:  # whatever it is, the other cases are still run
        done.turns = done.turns or [TurnResult(case.id, case.id, case.turns[0].ask)]
        line = error.line() if isinstance(error, DocGemmaError) else kind_and_place(error)
        done.turns[-1].failed.append(f"stopped: {' '.join(line.split())}")
    return done


@contextmanager
def case_home(prepared: Settings) -> Iterator[Settings]:
    """Settings of a copy of the prepared home, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="case-", dir=prepared.home.parent) as folder:
        yield prepared.model_copy(update={"home": shutil.copytree(prepared.home, Path(folder, "home"))})


def _take_turn(agent: Agent, turn: Any, thread: str | None, patient: str | None, out: TurnResult) -> str:
    """Ask, check, decide; fills `out`. Returns the conversation. The patient is opened with its first message."""
    start = time.perf_counter()
    try:
        result = agent.ask(turn.ask, thread=thread, patient=None if thread else patient)
    finally:
        out.seconds = round(time.perf_counter() - start, 3)
    out.status, out.answer, out.card = result["status"], result["answer"], result["pending_write"]
    out.tools = [{key: tool[key] for key in ("name", "args", "ok")} for tool in result["tools"]]
    out.llm_calls, out.tokens = result["llm_calls"], result["tokens"]
    out.failed = failed_checks(turn, result)
    if turn.decide and out.card:
        out.decided = agent.decide(result["thread"], turn.decide)["answer"]
    return str(result["thread"])
