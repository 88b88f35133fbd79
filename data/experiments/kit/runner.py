"""Run suites: every trial is a row of one SQLite file, so that an interrupted run goes on where it stopped."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docgemma.errors import MalformedOutputError, ModelError, OutOfTokensError
from docgemma.experiments.workers import in_processes, on_ray
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.paths import in_kit, kit, private_file
from docgemma.settings import Settings

if TYPE_CHECKING:
    from data.experiments.kit.suites import Case, Suite
    from data.experiments.kit.trial import BY_CODE, Metered, Options, Outcome
else:
    Case, Suite = kit("experiments", "suites").Case, kit("experiments", "suites").Suite
    trial = kit("experiments", "trial")
    BY_CODE, Metered, Options, Outcome = trial.BY_CODE, trial.Metered, trial.Options, trial.Outcome

CHUNK = 4  # trials that go to another process at a time
TABLE = """create table if not exists trials (suite, condition, case_id, model, seed, definition, row,
 primary key (suite, condition, case_id, model, seed))"""
Row = dict[str, Any]
Rows = dict[tuple[str, str, str], Row]  # by suite, condition and case


class Job(NamedTuple):
    """One trial to run."""

    suite: str
    condition: str
    task: str
    correct: list[str]
    options: Options
    case: Case

    def __reduce__(self) -> tuple[Any, ...]:  # of a kit, as `in_kit` says
        return in_kit, ("experiments", "runner", "Job", *self)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.suite, self.condition, self.case["id"]

    @property
    def definition(self) -> str:
        """Changes with the case and the condition: a stored row of an earlier wording is run again."""
        return sha256(json.dumps(self[2:], sort_keys=True, default=str).encode()).hexdigest()[:16]


class Trials:
    """The stored rows of one model and seed."""

    def __init__(self, path: Path, *own: Any):
        self.own, self.database = own, sqlite3.connect(private_file(path), timeout=60)
        self.database.execute(TABLE)

    def of(self, jobs: Sequence[Job]) -> Rows:
        """The rows of these trials that were run."""
        found = self.database.execute("select * from trials where model = ? and seed = ?", self.own)
        stored = {(*item[:3], item[5]): item[6] for item in found}
        keys = [(job.key, (*job.key, job.definition)) for job in jobs]
        return {key: json.loads(stored[whole]) for key, whole in keys if whole in stored}

    def save(self, job: Job, row: Row) -> None:
        values = (*job.key, *self.own, job.definition, json.dumps(row, ensure_ascii=False))
        with self.database:
            self.database.execute("insert or replace into trials values (?, ?, ?, ?, ?, ?, ?)", values)


def run_suites(
    suites: Sequence[Suite],
    name: str,
    settings: Settings,
    *,
    n: int | None = None,
    seed: int = 0,
    workers: int = 1,
    fresh: bool = False,
    ray: str | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Rows:
    """Run what is not stored yet; nothing is run again, whatever stopped an earlier run.

    Args:
        name: the model's, as `load_llm` takes it.
        n: cases a condition; None takes all.
        workers: processes, each with its own copy of the model; with one, threads up to the model's slots.
        fresh: run stored trials again, where the code has changed.
        ray: address of a Ray cluster, "local" for this machine.

    Raises:
        ModelError: the model could not be loaded or does not answer; what was run is stored.
        ConfigError: Ray is not installed, or not there.
    """  # fmt: skip
    jobs = list(jobs_of(suites, name == "edge", n))
    trials = Trials(settings.home / "experiments.sqlite", model_key(name, settings), seed)
    rows = {} if fresh else trials.of(jobs)
    left = [job for job in jobs if job.key not in rows]
    elsewhere = bool(ray) or workers > 1
    size = CHUNK if elsewhere else 1
    chunks = [left[at : at + size] for at in range(0, len(left), size)]
    given = (name, settings.model_dump_json(), seed)
    ran = _elsewhere(chunks, workers, ray, *given) if elsewhere else _in_threads(chunks, *given)
    progress(len(rows), len(jobs))
    for job, row in ran if left else ():
        trials.save(job, row)
        rows[job.key] = row
        progress(len(rows), len(jobs))
    trials.database.close()
    return rows


def jobs_of(suites: Sequence[Suite], edge: bool, n: int | None) -> Iterator[Job]:
    """Every trial; on the edge model those that code answers."""
    for suite, condition in ((one, condition) for one in suites for condition in one.conditions):
        options = suite.options_of(condition)
        for case in suite.cases_of(condition, n) if by_code(options) or not edge else ():
            yield Job(suite.name, condition.name, suite.task, suite.correct, options, case)


def by_code(options: Options) -> bool:
    return options.get("way") in BY_CODE


def model_key(name: str, settings: Settings) -> str:
    """What rows are stored under: gemma-3-270m of /models/gemma-3-270m.gguf; a server's own name for its model."""
    return f"server {settings.llm_name or ''}".strip() if name == "server" else Path(name).name.removesuffix(".gguf")


def run_trial(job: Job, llm: LLM, seed: int) -> Row:
    """One trial as it is stored."""
    metered, task = Metered(llm, seed), kit("experiments", "tasks").TASKS[job.task]
    try:
        outcome, unparsed = task(job.case, job.options, metered), False
    except (MalformedOutputError, OutOfTokensError):
        outcome, unparsed = Outcome(None, {}), True
    calls = metered.calls
    return {
        "got": outcome.got, "correct": not unparsed and all(outcome.checks[check] for check in job.correct),
        "unparsed": unparsed, "checks": outcome.checks, "detail": outcome.detail, "calls": len(calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "seconds": round(sum(call.seconds for call in calls), 3),
    }  # fmt: skip


@lru_cache(maxsize=1)
def _model(name: str, settings_json: str) -> LLM:
    return load_llm(name, Settings.model_validate_json(settings_json))


def _run_chunk(chunk: list[Job], name: str, settings_json: str, seed: int) -> list[tuple[Job, Row]]:
    """In whatever thread or process: with the model that is loaded there, once."""
    return [(job, run_trial(job, _model(name, settings_json), seed)) for job in chunk]


def _in_threads(chunks: list[list[Job]], name: str, settings_json: str, seed: int) -> Iterator[tuple[Job, Row]]:
    llm = _model(name, settings_json)
    pool = ThreadPoolExecutor(llm.slots)
    try:
        for rows in pool.map(partial(_run_chunk, name=name, settings_json=settings_json, seed=seed), chunks):
            yield from rows  # in order: what was run before an outage is stored before the outage is raised
    finally:
        pool.shutdown(cancel_futures=True)
        llm.close()
        _model.cache_clear()


def _elsewhere(chunks: list[list[Job]], workers: int, ray: str | None, *given: Any) -> Iterator[tuple[Job, Row]]:
    name, settings_json, seed = given
    here = ("experiments", "runner", "_run_chunk")
    run = partial(in_kit, *here, name=name, settings_json=settings_json, seed=seed)
    for _, rows in on_ray(run, chunks, ray) if ray else in_processes(run, chunks, workers):
        if rows is None:
            died = "A worker of Ray died." if ray else "A worker process died."
            raise ModelError(died, hint="Is there memory for the model? What was run is stored.")
        yield from rows
