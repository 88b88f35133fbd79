"""`docgemma trials eval`: run the prescreen over every patient of a set and each ablation, and put it into words."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from docgemma.cli.shared import progress, say
from docgemma.cli.trials import orchestrated
from docgemma.errors import UsageError
from docgemma.graphs.prescreen import Tools, run
from docgemma.llm.base import LLM
from docgemma.memory import open_memory
from docgemma.paths import kit
from docgemma.prescreen.intake import read_note
from docgemma.prescreen.registry import Registry
from docgemma.prescreen.screen import NO_JUDGE, screen
from docgemma.prescreen.toolset import Toolset
from docgemma.settings import Settings

evaluate, ABLATIONS = kit("prescreen", "evaluate"), kit("prescreen", "ablations").ABLATIONS


def measure(
    queries: Path, qrels: Path, names: list[str] | None, budget: int, orchestrator: str, expert: LLM | None,
    settings: Settings, records: Path | None, plot: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """A row for each ablation and patient with judged trials, and a summary of each ablation.

    Raises:
        UsageError: a file is none of its format, or there is no such ablation.
    """
    if not names:
        names = ["full"] if orchestrator != "local" else ["full", "no-feedback", "flat", "filters"]
        names[1:1] = ["no-expert"] if expert and orchestrator == "local" else []
    with _source(records, settings) as (own, shared):
        rows = list(_runs(queries, qrels, names, budget, orchestrator, expert, own, shared))
    if plot:
        evaluate.draw(rows, budget, plot)
    return {"budget": budget, "summary": evaluate.summarized(rows), "rows": rows}


def judge(file: Path, llm: LLM | None, settings: Settings) -> dict[str, Any]:
    """What the model makes of labelled criteria; without a medical model, that it was not asked."""
    cases = evaluate.read_criteria(file)
    if llm is None or llm.profile == "edge":
        return {"n": 0, "not_judged": sum(len(case["criteria"]) for case in cases), "why": NO_JUDGE}
    verdicts = [screen(case["note"], [evaluate.as_study(case)], llm, settings) for case in cases]
    told: dict[str, Any] = evaluate.judged(cases, {trial: items for one in verdicts for trial, items in one.items()})
    return told


@contextmanager
def _source(records: Path | None, settings: Settings) -> Iterator[tuple[Settings, Registry | None]]:
    """Settings of the runs and, for the public registry, the one client whose quota all of them share.

    Records are served with a data home of their own, so that no answer of another server is found in the cache.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="docgemma-")))
        if records is None:
            yield settings, stack.enter_context(closing(Registry(settings)))
        else:
            url = stack.enter_context(kit("prescreen", "mock_server").serving(records))
            yield settings.model_copy(update={"home": home, "db": str(home / "memory.sqlite"), "ctgov_url": url}), None


def _runs(
    queries: Path, qrels: Path, names: list[str], budget: int, orchestrator: str, expert: LLM | None,
    settings: Settings, shared: Registry | None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    known = list(ABLATIONS) if orchestrator == "local" else ["full", "no-expert"]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"{orchestrator} has no ablation {unknown[0]!r}.", hint=f"Choose of {', '.join(known)}.")
    notes, grades = evaluate.read_queries(queries), evaluate.read_qrels(qrels)
    if not set(notes) & set(grades):
        raise UsageError(f"{qrels} judges no trial of a patient of {queries}.")
    for name in names:
        for query in sorted(set(notes) & set(grades)):
            start = time.perf_counter()
            memory = open_memory(settings.db_location)
            with ExitStack() as stack:
                stack.enter_context(closing(memory.conn))
                registry = shared or stack.enter_context(closing(Registry(settings)))
                toolset = Toolset(registry, None if name == "no-expert" else expert, budget)
                local = orchestrator == "local" and ABLATIONS[name](toolset.expert is not None)
                agent = local or orchestrated(orchestrator, settings, toolset)
                told = run(read_note(notes[query]), Tools(toolset, agent, settings), memory, f"{orchestrator} {name}")
            row = evaluate.measured(query, name, told, grades[query], time.perf_counter() - start)
            progress(
                f"{name} {query}: {row['found']} of {row['eligible']} eligible in {sum(row['calls'].values())} calls"
            )
            yield row


def show(told: dict[str, Any]) -> None:
    for line in told.get("summary", []):
        mean = line["mean"]
        say(
            f"{line['ablation']:<12} recall {mean['recall']:.1%} (mean of {line['queries']} patients); {line['found']} "
            f"of {line['n']} eligible trials, {line['pooled']:.1%} ({line['low']:.1%} to {line['high']:.1%})"
        )
        say(
            f"{'':<12} {sum(line['calls'].values())} calls; a patient {mean['terms']:.1f} terms, "
            f"{mean['seconds']:.1f} s, ${mean['cost']:.2f}; nDCG {mean['ndcg_judged']:.2f} judged, "
            f"{mean['ndcg_all']:.2f} all" + (f"; {line['partial']} incomplete" if line["partial"] else "")
        )
    for row in told.get("rows", []):
        if row["partial"]:
            say(f"Incomplete, and so no measure of the search: {row['ablation']} {row['query']}: {row['partial']}")
    if told.get("summary") and not told["model"]:
        say("No medical model is loaded: there is no expert, and so no ablation without it.")
    if not (criteria := told.get("criteria")):
        return
    if why := criteria.get("why"):
        say(why)
        return
    say(
        f"criteria     {criteria['accuracy']:.1%} of {criteria['n']} right ({criteria['low']:.1%} to "
        f"{criteria['high']:.1%}); macro-F1 {criteria['macro_f1']:.2f}, "
        f"always one class {criteria['always_one_class']:.2f}"
    )
    for name, one in criteria["classes"].items():
        figures = ", ".join(f"{figure} {one[figure]:.2f}" for figure in ("precision", "recall", "f1"))
        say(f"  {name:<8} n {one['n']:>3}  {figures}")
