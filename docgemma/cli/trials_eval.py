"""`docgemma trials eval`: recall of the eligible trials at a budget, its ablations, and the judging of criteria."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, Model, print_json, progress, say
from docgemma.errors import UsageError

if TYPE_CHECKING:
    from docgemma.llm.base import LLM
    from docgemma.prescreen.registry import Registry
    from docgemma.settings import Settings


def evaluate(
    queries: Annotated[Optional[Path], typer.Option(help="queries.jsonl of TREC Clinical Trials.")] = None,
    qrels: Annotated[Optional[Path], typer.Option(help="Its qrels.tsv.")] = None,
    records: Annotated[Optional[Path], typer.Option(help="Serve these trials instead of asking the registry.")] = None,
    criteria: Annotated[Optional[Path], typer.Option(help="Labelled criteria, to be judged by the model.")] = None,
    budget: Annotated[int, typer.Option(min=1, max=100, help="Calls at most, a patient.")] = 25,
    ablation: Annotated[Optional[list[str]], typer.Option(help="full, no-expert, no-feedback, flat, filters.")] = None,
    orchestrator: Annotated[str, typer.Option(help="local, or gemini.")] = "local",
    model: Model = None,
    as_json: AsJson = False,
    plot: Annotated[Optional[Path], typer.Option(help="Draw recall against calls into this file.")] = None,
) -> None:
    """Measure the prescreen against judged trials, and the model against labelled criteria."""
    from docgemma.cli.trials import medical_model
    from docgemma.prescreen.evaluate import draw, summarized
    from docgemma.settings import read_settings

    if bool(queries) != bool(qrels) or not (queries or criteria):
        raise UsageError("Give --queries and --qrels, or --criteria, or all three.")
    settings = read_settings()
    expert = medical_model(model, settings)
    told: dict[str, Any] = {"model": expert.name if expert else None}
    if queries and qrels:
        names = ablation or (["full"] if orchestrator != "local" else ["full", "no-feedback", "flat", "filters"])
        if not ablation and expert and orchestrator == "local":
            names.insert(1, "no-expert")
        with _source(records, settings) as (own, shared):
            rows = list(_runs(queries, qrels, names, budget, orchestrator, expert, own, shared))
        told |= {"budget": budget, "summary": summarized(rows), "rows": rows}
        if plot:
            draw(rows, budget, plot)
    if criteria:
        told["criteria"] = _judged(criteria, expert, settings)
    print_json(told) if as_json else _show(told)


@contextmanager
def _source(records: Path | None, settings: "Settings") -> "Iterator[tuple[Settings, Registry | None]]":
    """Settings of the runs and, for the public registry, the one client whose quota all of them share.

    Records are served with a data home of their own, so that no answer of another server is found in the cache.
    """
    from docgemma.paths import kit
    from docgemma.prescreen.registry import Registry

    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="docgemma-")))
        if records is None:
            yield settings, stack.enter_context(closing(Registry(settings)))
        else:
            url = stack.enter_context(kit("prescreen", "mock_server").serving(records))
            yield settings.model_copy(update={"home": home, "db": str(home / "memory.sqlite"), "ctgov_url": url}), None


def _runs(
    queries: Path, qrels: Path, names: list[str], budget: int, orchestrator: str, expert: "LLM | None",
    settings: "Settings", shared: "Registry | None",
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A row for each ablation and patient with judged trials."""
    from docgemma.cli.trials import orchestrated
    from docgemma.graphs.prescreen import Tools, run
    from docgemma.memory import open_memory
    from docgemma.prescreen.evaluate import ABLATIONS, measured, read_qrels, read_queries
    from docgemma.prescreen.intake import read_note
    from docgemma.prescreen.registry import Registry
    from docgemma.prescreen.toolset import Toolset

    known = list(ABLATIONS) if orchestrator == "local" else ["full", "no-expert"]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"{orchestrator} has no ablation {unknown[0]!r}.", hint=f"Choose of {', '.join(known)}.")
    notes, grades = read_queries(queries), read_qrels(qrels)
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
                agent = orchestrated(orchestrator, settings, toolset, ABLATIONS[name])
                told = run(read_note(notes[query]), Tools(toolset, agent, settings), memory, f"{orchestrator} {name}")
            row = measured(query, name, told, grades[query], time.perf_counter() - start)
            progress(
                f"{name} {query}: {row['found']} of {row['eligible']} eligible in {sum(row['calls'].values())} calls"
            )
            yield row


def _judged(file: Path, judge: "LLM | None", settings: "Settings") -> dict[str, Any]:
    """What the model makes of labelled criteria; without a medical model, that it was not asked."""
    from docgemma.prescreen.evaluate import as_study, judged, read_criteria
    from docgemma.prescreen.screen import NO_JUDGE, screen

    cases = read_criteria(file)
    if judge is None or judge.profile == "edge":
        return {"n": 0, "not_judged": sum(len(case["criteria"]) for case in cases), "why": NO_JUDGE}
    verdicts = [screen(case["note"], [as_study(case)], judge, settings) for case in cases]
    return judged(cases, {trial: items for one in verdicts for trial, items in one.items()})


def _show(told: dict[str, Any]) -> None:
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
