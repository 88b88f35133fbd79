"""`docgemma kaggle`: the folder that runs on Kaggle, and what it brought back."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, progress
from docgemma.errors import UsageError

app = typer.Typer(
    help="The Kaggle kernel: build the folder that is pushed, collect what it measured.", rich_markup_mode=None
)


@app.command("build")
def build_command(
    out: Annotated[Path, typer.Option(help="The folder to make.")] = Path("build/kaggle"),
    user: Annotated[Optional[str], typer.Option(envvar="KAGGLE_USERNAME", help="Your user name on Kaggle.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Only you see kernel and dataset.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the kernel and its dataset, check them for a T4, and say what to run next."""
    if not user:
        hint = "docgemma kaggle build --user NAME, or set KAGGLE_USERNAME"
        raise UsageError("Whose kernel is it? Its address begins with a Kaggle user's name.", hint=hint)
    from docgemma.paths import kit

    progress("Building the wheel …")
    report = kit("kaggle", "build").build(out, user, private)
    print_json(report) if as_json else kit("kaggle", "words").print_build(report)


@app.command("collect")
def collect_command(
    folder: Annotated[Path, typer.Argument(help="What `kaggle kernels output` downloaded.")],
    as_json: AsJson = False,
) -> None:
    """Take a finished run's output into data/results, and make the write-up and the README's figures from it."""
    from docgemma.paths import kit

    progress("Making texts, page and notebooks from it; minutes …")
    report = kit("kaggle", "collect").collect(folder)
    print_json(report) if as_json else kit("kaggle", "words").print_collected(report)
