"""`docgemma serve` and `docgemma mcp`: the REST API with the demo mounted, and the tools as an MCP server."""

from typing import Annotated

import typer

from docgemma.cli.shared import Model


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
    from docgemma.nodes.write_findings import findings_outside
    from docgemma.tools.mcp_server import run_mcp

    run_mcp(findings_outside, http, port)
