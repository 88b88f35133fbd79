"""`docgemma trials`: find the trials that a patient may be eligible for, and measure how many are found."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from docgemma.cli.shared import say

app = typer.Typer(help="Clinical trials that a patient may be eligible for.", no_args_is_help=True)


@app.command("mock-server")
def mock_server(
    records: Annotated[Path, typer.Option(help="Studies as the API gives them, one JSON object a line; .gz too.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8011,
) -> None:
    """Answer as ClinicalTrials.gov v2 does, on 127.0.0.1, from a file of records; Ctrl-C ends it."""
    from docgemma.prescreen.mock_server import address, open_server

    with open_server(records, port) as server, suppress(KeyboardInterrupt):
        say(f"{len(server.trials.studies)} trials. Use them with: export DOCGEMMA_CTGOV_URL={address(server)}")
        server.serve_forever()
