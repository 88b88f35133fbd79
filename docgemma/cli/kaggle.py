"""`docgemma kaggle`: the folder that runs on Kaggle."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, progress
from docgemma.errors import UsageError

app = typer.Typer(help="The Kaggle kernel: build the folder that is pushed.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """The Kaggle kernel: build the folder that is pushed."""


@app.command("build")
def build_command(
    out: Annotated[Path, typer.Option(help="The folder to make.")] = Path("build/kaggle"),
    user: Annotated[Optional[str], typer.Option(envvar="KAGGLE_USERNAME", help="Your user name on Kaggle.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the kernel and its dataset, check them for a T4, and say what to run next."""
    if not user:
        hint = "docgemma kaggle build --user NAME, or set KAGGLE_USERNAME"
        raise UsageError("Whose kernel is it? Its address begins with a Kaggle user's name.", hint=hint)
    from docgemma.kaggle.build import build

    progress("Building the wheel …")
    report = build(out, user)
    if as_json:
        print_json(report)
        return
    typer.echo(f"{report['folder']}: kernel {report['kernel']} ({report['kernel_bytes'] / 1e3:.0f} kB),")
    typer.echo(f"  dataset {report['dataset']} ({report['dataset_bytes'] / 1e6:.1f} MB). Checked for a T4:")
    for line in report["checks"]:
        typer.echo(f"  ok  {line['name']}: {line['found']}")
    typer.echo("Next (a token for it: kaggle.com, Settings, API; wait until the status is ready):")
    for command in report["commands"]:
        typer.echo(f"  {command}")
    typer.echo("A later build of the dataset: kaggle datasets version -m new -p … instead of create.")
