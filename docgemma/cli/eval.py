"""`docgemma eval`: a golden set, pass or fail a case a line, then a summary."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, quick_start


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

        run = kit("rcm" if kit("rcm", "golden").is_rcm(file) else "golden", "runs").evaluate
    if not run(file, as_json, only, save, plot):
        raise typer.Exit(1)
