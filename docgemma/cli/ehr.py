"""`docgemma ehr`: load, search and show FHIR R4 records."""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docgemma.cli.shared import AsJson, print_json, progress
from docgemma.errors import UsageError

if TYPE_CHECKING:
    from docgemma.ehr.base import RecordStore

app = typer.Typer(help="The record store: load, search and show FHIR R4 records.", rich_markup_mode=None)
SHOWN = 20  # lines on what was skipped


@app.command()
def load(
    files: Annotated[list[Path], typer.Argument(help="FHIR R4 bundles, NDJSON or single resources.")],
    as_json: AsJson = False,
) -> None:
    """Load FHIR R4 resources into the record store. One bad resource does not lose the others."""
    from docgemma.ehr.load import load_files

    with _store(create=True) as store:
        report = load_files(store, files, on_progress=progress)
    if as_json:
        print_json(asdict(report))
    else:
        typer.echo(f"Loaded {report.loaded} resources; skipped {len(report.skipped)}.")
        for item in report.skipped[:SHOWN]:
            typer.echo(f"  {item}", err=True)
    if not report.loaded:
        raise UsageError("Nothing was loaded.", hint="The lines above say why.")


@app.command()
def search(name: str, as_json: AsJson = False) -> None:
    """Find patients by name; a typo is forgiven, and said."""
    if not name.strip():
        raise UsageError("The name is empty.", hint="docgemma ehr search 'Maria Garcia'")
    with _store() as store:
        found = store.search_patients(name)
    if as_json:
        print_json({"patients": [asdict(match) for match in found], "source": store.name})
        return
    if not found:
        typer.echo(f"No patient found for {name!r}.")
    for match in found:
        spelt = " (spelt differently)" if match.guessed else ""
        typer.echo(f"{match.name}{spelt}  born {match.birth_date}  {match.sex}  id {match.id}")


@app.command()
def show(patient_id: str, as_json: AsJson = False) -> None:
    """A patient's chart: problems, medications, allergies, results, notes."""
    from docgemma.ehr.summary import print_chart, summarize

    with _store() as store:
        chart = store.chart(patient_id.strip())
    if chart is None:
        raise UsageError(
            f"There is no patient with the id {patient_id!r}.", hint="Look one up: docgemma ehr search NAME"
        )
    if as_json:
        print_json(summarize(chart))
        return
    print_chart(summarize(chart))


def _store(create: bool = False) -> "closing[RecordStore]":
    from docgemma.ehr.open import open_store
    from docgemma.settings import read_settings

    return closing(open_store(read_settings(), create=create))
