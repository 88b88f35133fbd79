"""`docgemma eval`: a golden set, pass or fail a case a line, then a summary."""

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, quick_start, say
from docgemma.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from docgemma.experiments.golden import CaseResult


def evaluate(
    file: Annotated[Path, typer.Argument(help="A YAML file of cases; data/natural/README.md says what one holds.")],
    as_json: AsJson = False,
    only: Annotated[Optional[str], typer.Option(help="Run the one case with this id.")] = None,
    save: Annotated[
        Optional[Path], typer.Option(help="Write every turn, answer and card, to this .jsonl file.")
    ] = None,
    plot: Annotated[
        Optional[Path], typer.Option(help="Draw the kept runs of the revenue-cycle agent's set; a .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Run a golden set offline, on the shipped synthetic records: your own are neither read nor changed.

    A set of the revenue-cycle agent is kept run by run in the data home; it ends with status 1 below its targets.
    """
    with quick_start():
        from docgemma.paths import kit

        rcm = kit("rcm", "golden").is_rcm(file)
    if rcm:
        if not kit("rcm", "runs").evaluate(file, as_json, only, save, plot):
            raise typer.Exit(1)
        return
    if plot:
        raise UsageError("--plot draws the runs of the revenue-cycle agent only.", hint="Leave it out.")
    with quick_start():
        from docgemma.experiments.cases import load_cases
        from docgemma.experiments.golden import run_cases, summarize
        from docgemma.settings import read_settings

    cases = load_cases(file, only)  # before a file of an earlier run is written over
    try:
        saved = save.open("w", encoding="utf-8", buffering=1) if save else None
    except OSError as error:
        raise ConfigError(f"{save} cannot be written: {error.strerror}.", hint="Choose another --save.") from error

    def finished(case: "CaseResult") -> None:
        if saved:  # a line at once, so that a stopped run keeps what it has
            saved.writelines(json.dumps(asdict(turn), ensure_ascii=False, default=str) + "\n" for turn in case.turns)
        if not as_json:
            say(f"{'pass' if case.passed else 'FAIL'}  {case.id}  {case.seconds:.2f} s  {case.why}".rstrip())

    with saved or nullcontext():
        report = summarize(run_cases(cases, read_settings(), progress=finished))
    if as_json:
        print_json(report)
        return
    found = report["metrics"]
    say(
        f"\n{report['passed']} of {report['total']} passed: {found['share']:.1%} "
        f"(95 % interval {found['low']:.1%} to {found['high']:.1%}). {found['turns']} turns, median "
        f"{found['median_seconds']:.2f} s, 95th percentile {found['p95_seconds']:.2f} s."
    )
