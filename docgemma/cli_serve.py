"""`docgemma serve`: the REST API, with the demo mounted."""

from typing import Annotated, Optional

import typer


def serve(
    host: Annotated[str, typer.Option(help="Address; anything beyond this machine needs tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8000,
    model: Annotated[
        Optional[str], typer.Option(help="edge, medgemma, server, a .gguf file, or a Hugging Face path or id.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo/--no-demo", help="Mount the demo at /demo.")] = True,
) -> None:
    """The REST API with bearer tokens (DOCGEMMA_API_TOKENS), and the demo mounted."""
    from docgemma.api.server import run_api

    run_api(host, port, demo=demo, model=model)
