"""`docgemma snapshot`: make the offline knowledge from the public bulk files, and say what is in it."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, progress, say

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
    from docgemma.settings import read_settings

    found = open_snapshot(read_settings()).info()
    print_json(found) if as_json else _print_info(found)


def _print_info(found: dict[str, Any]) -> None:
    origin = "the records that come with the package" if found["shipped"] else "built from bulk files"
    say(f"{found['path']}: {origin}, made {found['built'][:10]}.")
    for kind, part in found["kinds"].items():
        age = f", {part['age_days']} days old" if part["age_days"] is not None else ""
        say(kind_line(kind, part) + age)
        if part.get("demonstration"):
            say(f"    {part['demonstration']} of them are invented demonstration records.")
        if part.get("bulk_labels"):
            say(f"    {part['bulk_labels']:,} with a label from the files, the others as shipped.")
            say(f"    {part['boxed_warnings']:,} boxed warnings disagree with the shipped data.")
            say(f"    {part['conditions']:,} conditions, {part['doses']:,} maxima with the sentence of a label.")
        if part.get("with_basis"):
            say(f"    {part['with_basis']:,} with the sentence of a label that supports them.")
    if found["shipped"]:
        say("To make one from the public bulk files: docgemma snapshot build --help")


def kind_line(kind: str, part: dict[str, Any]) -> str:
    """One kind of records: how many, from where, as of when."""
    return f"  {kind}: {part['count']:,} from {part['source']}, as of {part['as_of'] or 'unknown'}"
