"""`docgemma snapshot`: make the offline knowledge from the public bulk files, and say what is in it."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

app = typer.Typer(help="The offline knowledge: build it from bulk files, and say what it holds.", rich_markup_mode=None)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Files = Optional[list[Path]]
SHOWN = 20


@app.command("build")
def build_command(
    openfda: Annotated[
        Files, typer.Option(help="openFDA label downloads (drug-label-*.json.zip), or a folder.")
    ] = None,
    ctgov: Annotated[Files, typer.Option(help="ClinicalTrials.gov download (zip, JSON, NDJSON), or a folder.")] = None,
    literature: Annotated[
        Files, typer.Option(help="PubMed baseline (*.xml.gz) or Europe PMC JSON, or a folder.")
    ] = None,
    more: Annotated[Optional[list[Path]], typer.Argument(help="Further files of the last option.", hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Build the snapshot; each option may be given more than once. After a stop, the same command goes on."""
    from docgemma.errors import UsageError

    if more:
        hint = "Repeat the option (--openfda A --openfda B), or give the folder that holds them."
        raise UsageError(f"{more[0]} belongs to no option.", hint=hint)
    with _bar(sys.stderr.isatty()) as on_progress:
        report = build(openfda or [], ctgov or [], literature or [], on_progress)
    _print_json(report) if as_json else _print_report(report)


@app.command("info")
def info_command(as_json: AsJson = False) -> None:
    """What is inside, from which files, and how old it is."""
    found = info()
    _print_json(found) if as_json else _print_info(found)


def build(
    openfda: list[Path], ctgov: list[Path], literature: list[Path], on_progress: Callable = lambda progress: None
) -> dict[str, Any]:
    """`knowledge.bulk.build_from_files` in the data home of the settings."""
    from docgemma.knowledge.bulk import build_from_files
    from docgemma.settings import read_settings

    return build_from_files(read_settings().home, openfda, ctgov, literature, on_progress)


def info() -> dict[str, Any]:
    """`knowledge.bulk_info.info` of the data home of the settings."""
    from docgemma.knowledge import bulk_info
    from docgemma.settings import read_settings

    return bulk_info.info(read_settings().home)


@contextmanager
def _bar(terminal: bool) -> Iterator[Callable]:
    """A bar on stderr; where that is not a terminal, a line for every file."""
    if not terminal:
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading")

        def show(progress: Any) -> None:
            doing = f"{progress.doing}, {progress.records:,} records"
            bar.update(task, description=doing, completed=progress.bytes_done, total=progress.bytes_total)

        yield show


class _Lines:
    def __init__(self) -> None:
        self.last = ""

    def __call__(self, progress: Any) -> None:
        if progress.doing != self.last:
            self.last = progress.doing
            typer.echo(f"{progress.doing} ({progress.bytes_done:,} of {progress.bytes_total:,} bytes)", err=True)


def _print_report(report: dict[str, Any]) -> None:
    again = " (gone on from where the last build stopped)" if report["resumed"] else ""
    typer.echo(f"Built {report['path']} in {report['seconds']} s{again}.")
    for kind, part in report["kinds"].items():
        typer.echo(_line(kind, part))
    for title, notes in (("Left out", report["left_out"]), ("Problem", report["problems"])):
        for note in notes[:SHOWN]:
            where = f" (first: {note['first']})" if note["first"] else ""
            times = f" {note['count']:,} times" if note["count"] > 1 else ""
            typer.echo(f"{title}: {note['file']}: {note['reason']}{times}{where}", err=True)
        if len(notes) > SHOWN:
            typer.echo(f"{title}: and {len(notes) - SHOWN} more; --json lists all.", err=True)


def _print_info(found: dict[str, Any]) -> None:
    origin = "the records that come with the package" if found["shipped"] else "built from bulk files"
    typer.echo(f"{found['path']}: {origin}, made {found['built'][:10]}.")
    for kind, part in found["kinds"].items():
        age = f", {part['age_days']} days old" if part["age_days"] is not None else ""
        typer.echo(_line(kind, part) + age)
        if part["demonstration"]:
            typer.echo(f"    {part['demonstration']} of them are invented demonstration records.")
        if part.get("bulk_labels"):
            typer.echo(f"    {part['bulk_labels']:,} with a label from the files, the others as shipped.")
        for file in part["files"][:SHOWN]:
            typer.echo(f"    {file['file']}: {file['records']:,} records, as of {file['as_of'] or 'unknown'}")
        if part["file_count"] > SHOWN:
            typer.echo(f"    and {part['file_count'] - SHOWN} more files")
    if found["shipped"]:
        typer.echo("To make one from the public bulk files: docgemma snapshot build --help")


def _line(kind: str, part: dict[str, Any]) -> str:
    return f"  {kind}: {part['count']:,} from {part['source']}, as of {part['as_of'] or 'unknown'}"


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
