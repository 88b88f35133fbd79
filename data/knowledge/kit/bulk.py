"""Build the snapshot from the public bulk files, streamed, and say what it holds.

The finished file takes the place of the old one in one step; until then every question is answered from the old one.
A build that was killed leaves the old snapshot as it was: run the same command again.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docgemma.errors import StoppedError, StoreError, UsageError
from docgemma.knowledge import literature, trials
from docgemma.knowledge.build import (
    DOCUMENT,
    add_document,
    add_interaction,
    add_meta,
    new_snapshot,
    read_part,
    row_of,
    shipped_snapshot,
)
from docgemma.knowledge.drug_rules import fact_key
from docgemma.knowledge.label_interactions import Drug, read_both
from docgemma.knowledge.snapshot import BUILT, Snapshot
from docgemma.paths import kit

STEP = 50_000  # records of a file between two lines of progress
NOT_A_RECORD = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
RETRACTED = "retracted publication"
UNHARMONISED = "not harmonised by FDA: the label names no ingredient"
SOURCES = {  # what answers name as their source
    "drugs": "openFDA bulk labels",
    "trials": "ClinicalTrials.gov bulk data",
    "literature": "PubMed and Europe PMC bulk data",
}
TABLES = {
    "drugs": ("drug", "drug_name", "interaction", "basis"),
    "trials": ("trial",),
    "literature": ("article",),
}
OnProgress = Callable[[str], None]

readers, bulk_labels = kit("knowledge", "bulk_files"), kit("knowledge", "bulk_labels")


def build_from_files(
    home: Path,
    openfda: Iterable[str | Path] = (),
    ctgov: Iterable[str | Path] = (),
    literature: Iterable[str | Path] = (),
    on_progress: OnProgress = lambda line: None,
) -> dict[str, Any]:
    """Build `home/snapshot.sqlite` from files, or folders of them.

    A kind without files, or whose files held nothing usable, is kept from the snapshot that was there, or from the
    shipped one.

    Returns:
        `path`, `seconds`, `kinds` (as `Snapshot.info`), `left_out` (on purpose) and `problems` (broken files and
        records), both as [{"file", "reason", "count", "first"}], and `boxed_warnings`, [{"drug", "shipped", "label"}]
        where only one side has one.

    Raises:
        UsageError: a file is not there, or nothing usable is in any of them.
        StoreError: the data home cannot be written, or another build is running.
        StoppedError: Ctrl-C.
    """
    given = {"drugs": openfda, "trials": ctgov, "literature": literature}
    files = [readers.BulkFile(kind, path) for kind in given for path in readers.bulk_files(given[kind])]
    if not files:
        raise UsageError("No bulk files were given.", hint="Give at least one of --openfda, --ctgov and --literature.")
    start = time.monotonic()
    try:
        with only_build(home), new_snapshot(home / BUILT) as db:
            _read_files(db, files, on_progress)
            boxed = _fill_tables(db, files, home)
    except KeyboardInterrupt as error:
        raise StoppedError("Stopped.", hint="The snapshot that was there stays as it is.") from error
    notes = [note for file in files for note in file.notes.values()]
    return {
        "path": str(home / BUILT),
        "seconds": round(time.monotonic() - start, 1),
        "kinds": Snapshot(home / BUILT).info()["kinds"],
        "left_out": [note for note in notes if note["reason"] in (RETRACTED, UNHARMONISED)],
        "problems": [note for note in notes if note["reason"] not in (RETRACTED, UNHARMONISED)],
        "boxed_warnings": boxed,
    }


@contextmanager
def only_build(home: Path) -> Iterator[None]:
    """Keep other builds out of this data home; the lock ends with the process. Remove what a killed build left."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(home / ".snapshot.lock", timeout=0.5, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            for left in home.glob(f".{BUILT}.*"):
                left.unlink()
            yield
    except (OSError, sqlite3.OperationalError) as error:
        if "locked" in str(error):
            raise StoreError("Another build is running in this data home.", hint="Wait for it, or stop it.") from error
        raise StoreError(
            f"The data home cannot be written ({error}).", hint="Free space, or set DOCGEMMA_HOME."
        ) from error


def _read_files(db: sqlite3.Connection, files: list[Any], on_progress: OnProgress) -> None:
    """Store trials and articles; labels are staged, since a drug is made of many of them."""
    names = bulk_labels.Names({record.name: words for record, words in read_part("drugs").records})
    for statement in bulk_labels.STAGED:
        db.execute(statement)
    for number, file in enumerate(files, 1):
        on_progress(f"reading {file.path.name}, file {number} of {len(files)}")
        for count, (where, raw) in enumerate(file.read(), 1):
            try:
                left_out = _store(db, file, raw, names)
            except NOT_A_RECORD:
                left_out = f"not a record of {file.kind}"
            if left_out:
                file.note(left_out, where)
            else:
                file.records += 1
            if count % STEP == 0:
                on_progress(f"{file.path.name}: {count:,} records read")
        if file.kind == "drugs":
            db.execute(bulk_labels.PRUNE)
        if not file.records and not file.notes:
            file.note(f"nothing usable for {file.kind} in this file", "")
    on_progress("merging what was read")


def _store(db: sqlite3.Connection, file: Any, raw: Any, names: Any) -> str:
    """Store one record, a later one in the place of an earlier one with its id; why it is left out, or ""."""
    if file.kind == "drugs":
        label = bulk_labels.stage(db, raw, names)
        file.dated(newest=label.effective if label else "")
        return "" if label else UNHARMONISED
    elif file.kind == "trials":
        study = trials.Study.model_validate(raw)
        trial = trials.parse(study)
        add_document(db, trial, study.keywords, "INSERT OR REPLACE")
        file.dated(stated=study.data_version, newest=study.updated)
    else:
        record = literature.Record.model_validate(raw)
        article = literature.article(record)
        if not article.title and not article.abstract:
            raise ValueError("an article without words")
        file.dated(newest=record.changed)
        if RETRACTED in map(str.lower, record.kinds):
            db.execute("DELETE FROM article WHERE rowid = ?", (row_of(article.id),))
            return RETRACTED
        add_document(db, article, record.keywords, "INSERT OR REPLACE")
    return ""


def _fill_tables(db: sqlite3.Connection, files: list[Any], home: Path) -> list[Any]:
    """Make the drugs of their labels, keep what no file was read for, and note where everything is from."""
    read = {file.kind for file in files if file.records}
    if not read:
        first = next((note for file in files for note in file.notes.values()), None)
        what = f" {first['file']}: {first['reason']}." if first else ""
        raise UsageError(f"Nothing usable was found.{what}", hint="The snapshot that was there stays as it is.")
    _keep_old(db, [kind for kind in TABLES if kind not in read], home)
    boxed: list[Any] = []
    for kind in read:
        these = [file for file in files if file.kind == kind and file.records]  # the oldest date that one states
        as_of = min((file.stated for file in these if file.stated), default="") or max(file.newest for file in these)
        if kind == "drugs":
            drugs, boxed = bulk_labels.add_labels(db, SOURCES[kind], as_of, read_part("drugs"))
            _add_interactions(db, drugs)
            add_meta(db, {"drugs.boxed_warnings": str(len(boxed))})
        add_meta(db, {f"{kind}.source": SOURCES[kind], f"{kind}.as_of": as_of})
    for table in ("staged", "staged_name"):
        db.execute(f"DROP TABLE {table}")
    return boxed


def _keep_old(db: sqlite3.Connection, kinds: list[str], home: Path) -> None:
    """Copy kinds from the snapshot built before, if this version can read it, or from the shipped one."""
    try:
        old = Snapshot(home / BUILT).path
    except StoreError:
        old = shipped_snapshot(home)
    db.execute("ATTACH ? AS old", (f"file:{quote(str(old.absolute()))}?mode=ro",))
    for table in (table for kind in kinds for table in TABLES[kind]):
        documents = table in ("trial", "article")
        into, columns = (f"{table} (rowid, {DOCUMENT})", f"rowid, {DOCUMENT}") if documents else (table, "*")
        db.execute(f"INSERT INTO {into} SELECT {columns} FROM old.{table}")
    for kind in [*kinds, *(["interactions"] if "drugs" in kinds else [])]:
        db.execute("INSERT INTO meta SELECT key, value FROM old.meta WHERE key LIKE ?", (f"{kind}.%",))


def _add_interactions(db: sqlite3.Connection, drugs: dict[str, Drug]) -> None:
    """The shipped pairs, each with the sentence of a label that supports it, where one does."""
    part = read_part("interactions")
    for record, _ in part.records:
        a, b = (drugs.get(name) or Drug(name, (name,)) for name in record.drugs)
        said = [item.source.basis(item.section, item.quote) for item in read_both(a, b)[:1]]
        bulk_labels.add_basis(db, "interactions", [(fact_key({"drugs": sorted(record.drugs)}), text) for text in said])
        add_interaction(db, record)
    add_meta(db, {"interactions.source": part.source, "interactions.as_of": part.as_of})
