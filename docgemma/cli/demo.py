"""`docgemma demo`: the app in a browser, and its scenarios on film."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import progress

app = typer.Typer(help="The demo in a browser: chat, chart, timeline, approvals.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    share: Annotated[bool, typer.Option("--share", help="A public link; without it the demo stays here.")] = False,
    port: Annotated[Optional[int], typer.Option(help="Port to listen on; the first free one from 7860.")] = None,
) -> None:
    """The demo in a browser: chat, chart, timeline, approvals."""
    if context.invoked_subcommand is None:
        from docgemma.demo.start import run_demo

        run_demo(share or None, port)


@app.command("record")
def record_scenarios(
    out: Annotated[Path, typer.Option(help="Folder for the videos, posters and traces.")] = Path("recordings"),
    scenario: Annotated[Optional[list[str]], typer.Option(help="Id of a scenario; may be given again.")] = None,
    media: Annotated[Optional[Path], typer.Option(help="Folder for a small animation and a screenshot.")] = None,
    model: Annotated[Optional[str], typer.Option(help="As DOCGEMMA_MODEL.")] = None,
) -> None:
    """Play the guided scenarios in a real browser and film them, with captions. Needs the record extra and Chromium."""
    from docgemma.demo.record import record

    for path in record(out, scenario or (), media=media, model=model, on_progress=progress):
        typer.echo(path)
