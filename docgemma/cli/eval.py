"""`docgemma eval`: a golden set, pass or fail a case a line, then a summary."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, quick_start
from docgemma.errors import ConfigError

WriteLine = Callable[[str], Any]


def evaluate(
    file: Annotated[Path, typer.Argument(help="A YAML file of cases; data/natural/README.md says what one holds.")],
    as_json: AsJson = False,
    only: Annotated[Optional[str], typer.Option(help="Run the one case with this id.")] = None,
    save: Annotated[
        Optional[Path], typer.Option(help="Write every turn, answer and card, to this .jsonl file.")
    ] = None,
) -> None:
    """Run a golden set offline, on the shipped synthetic records: your own are neither read nor changed."""
    with quick_start():
        from docgemma.experiments.cases import load_cases
        from docgemma.experiments.golden import run_file
        from docgemma.settings import read_settings

    load_cases(file, only)  # before a file of an earlier run is written over
    with _saving(save) as write:

        def finished(case: Any) -> None:
            for turn in case.turns:
                write(json.dumps(asdict(turn), ensure_ascii=False, default=str))
            if not as_json:
                typer.echo(_line(case))

        report = run_file(file, read_settings(), progress=finished, only=only).as_dict()
    if as_json:
        print_json(report)
    else:
        typer.echo(_summary(report))


@contextmanager
def _saving(path: Path | None) -> Iterator[WriteLine]:
    """Writes a line at once, so that a stopped run keeps what it has; nothing where no file is wanted."""
    if path is None:
        yield lambda line: None
        return
    try:
        out = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Choose another --save.") from error
    with out:
        yield lambda line: print(line, file=out, flush=True)


def _line(case: Any) -> str:
    verdict = "pass" if case.passed else "FAIL"
    return f"{verdict}  {case.id}  {case.seconds:.2f} s" + ("" if case.passed else f"  {case.why}")


def _summary(report: dict[str, Any]) -> str:
    found = report["metrics"]
    return (
        f"\n{report['passed']} of {report['total']} passed: {found['share']:.1%} "
        f"(95 % interval {found['low']:.1%} to {found['high']:.1%}). {found['turns']} turns, median "
        f"{found['median_seconds']:.2f} s, 95th percentile {found['p95_seconds']:.2f} s."
    )
