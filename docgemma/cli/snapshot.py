"""`docgemma snapshot`: make the offline knowledge from the public bulk files, and say what is in it."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, progress

app = typer.Typer(help="The offline knowledge: build it from bulk files, and say what it holds.", rich_markup_mode=None)

Files = Optional[list[Path]]


@app.command("build")
def build_command(
    openfda: Annotated[
        Files, typer.Option(help="openFDA label downloads (drug-label-*.json.zip), or a folder.")
    ] = None,
    ctgov: Annotated[Files, typer.Option(help="ClinicalTrials.gov download (zip, JSON), or a folder.")] = None,
    literature: Annotated[
        Files, typer.Option(help="PubMed baseline (*.xml.gz) or Europe PMC JSON, or a folder.")
    ] = None,
    more: Annotated[Optional[list[Path]], typer.Argument(help="Further files of the last option.", hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Build the snapshot; each option may be given more than once. A stopped build leaves the old one as it was."""
    from docgemma.errors import UsageError
    from docgemma.paths import kit
    from docgemma.settings import read_settings

    if more:
        hint = "Repeat the option (--openfda A --openfda B), or give the folder that holds them."
        raise UsageError(f"{more[0]} belongs to no option.", hint=hint)
    report = kit("knowledge", "bulk").build_from_files(
        read_settings().home, openfda or [], ctgov or [], literature or [], progress
    )
    print_json(report) if as_json else kit("knowledge", "report").print_report(report)


@app.command("info")
def info_command(as_json: AsJson = False) -> None:
    """What is inside, from which sources, and how old it is."""
    from docgemma.knowledge.sources import open_snapshot
    from docgemma.paths import kit
    from docgemma.settings import read_settings

    found = open_snapshot(read_settings()).info()
    print_json(found) if as_json else kit("knowledge", "report").print_info(found)
