"""`docgemma demo`, `serve` and `mcp`: the app in a browser, the REST API, the tools as an MCP server."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import Model, progress, say
from docgemma.errors import ConfigError
from docgemma.paths import kit

demo_app = typer.Typer(help="The demo in a browser: chat, chart, timeline, approvals.", rich_markup_mode=None)


@demo_app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    share: Annotated[bool, typer.Option("--share", help="A public link; without it the demo stays here.")] = False,
    port: Annotated[Optional[int], typer.Option(help="Port to listen on; the first free one from 7860.")] = None,
) -> None:
    """The demo in a browser: chat, chart, timeline, approvals."""
    if context.invoked_subcommand is None:
        from docgemma.demo.start import run_demo

        run_demo(share or None, port)


@demo_app.command("record")
def record_scenarios(
    out: Annotated[Path, typer.Option(help="Folder for the videos, posters and traces.")] = Path("recordings"),
    scenario: Annotated[Optional[list[str]], typer.Option(help="Id of a scenario; may be given again.")] = None,
    media: Annotated[Optional[Path], typer.Option(help="Folder for a small animation and a screenshot.")] = None,
    model: Model = None,
) -> None:
    """Play the guided scenarios in a real browser and film them, with captions. Needs the record extra and Chromium."""
    try:
        record = kit("film", "record").record
    except ModuleNotFoundError as error:
        raise ConfigError("Films cannot be made here.", hint="pip install 'docgemma[record]'") from error

    for path in record(out, scenario or (), media=media, model=model, on_progress=progress):
        say(str(path))


def serve(
    host: Annotated[str, typer.Option(help="Address; anything beyond this machine needs tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8000,
    model: Model = None,
    demo: Annotated[bool, typer.Option("--demo/--no-demo", help="Mount the demo at /demo.")] = True,
) -> None:
    """The REST API with bearer tokens (DOCGEMMA_API_TOKENS), and the demo mounted."""
    from docgemma.api.server import run_api

    run_api(host, port, demo=demo, model=model)


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP with a token, instead of stdio.")] = False,
    port: Annotated[int, typer.Option(help="Port for --http, on 127.0.0.1; 0 takes a free one.")] = 8765,
) -> None:
    """The ten tools as an MCP server. Writes ask the person through the client, and refuse where it cannot ask."""
    from docgemma.nodes.write_findings import findings_outside, override_outside
    from docgemma.tools.mcp_server import run_mcp

    run_mcp(findings_outside, override_outside, http, port)
