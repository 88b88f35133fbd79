"""Build the snapshot from the public bulk files, streamed, and say what it holds.

The finished file takes the place of the old one in one step; until then every question is answered from the old one.
A build that was killed leaves the old snapshot as it was: run the same command again.
"""

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

from docgemma.errors import StoppedError, StoreError, UsageError
from docgemma.knowledge import basis, bulk_labels, ctgov, europepmc, pubmed
from docgemma.knowledge.build import (
    Part,
    add_article,
    add_interaction,
    add_meta,
    add_trial,
    content_hash,
    new_snapshot,
    read_part,
    remove,
    shipped_snapshot,
)
from docgemma.knowledge.bulk_files import Broken, Stated, bulk_files, bulk_records
from docgemma.knowledge.live import gravest_of_both
from docgemma.knowledge.snapshot import Snapshot, age_days
from docgemma.paths import data_file

NAME = "snapshot.sqlite"
MAX_LISTED = 50  # files named one by one in what the snapshot says of itself
STEP = 50_000  # records of a file between two lines of progress
PRUNE_EVERY = 10_000
NOT_A_RECORD = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
RETRACTED = "retracted publication"
UNHARMONISED = "not harmonised by FDA: the label names no ingredient"
# what answers name as their source, and where a JSON file of the kind has its records
KINDS = {
    "drugs": (bulk_labels.SOURCE, "results"),
    "trials": ("ClinicalTrials.gov bulk data", "studies"),
    "literature": ("PubMed and Europe PMC bulk data", "resultList.result"),
}
TABLES_OF = {
    "drugs": ("drug", "drug_name", "label_text", "fact_basis"),
    "literature": ("article", "article_text(rowid, title, abstract, keywords)"),
    "trials": ("trial", "trial_text(rowid, title, conditions, interventions, summary, keywords)"),
}


@dataclass
class Source:
    """One bulk file and what came of it. `stated`: the date that it gives its data; `newest`: of its records."""

    kind: str
    path: Path
    bytes: int
    records: int = 0
    stated: str | None = None
    newest: str | None = None
    wrong: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, notes: dict[str, dict[str, Any]], reason: str, where: str) -> None:
        """Count something that is not in the snapshot, with the place where it was seen first."""
        found = {"file": self.path.name, "reason": reason, "count": 0, "first": where}
        notes.setdefault(reason, found)["count"] += 1


OnProgress = Callable[[str], None]


def build_from_files(
    home: Path,
    openfda: Iterable[str | Path] = (),
    ctgov: Iterable[str | Path] = (),
    literature: Iterable[str | Path] = (),
    on_progress: OnProgress = lambda line: None,
) -> dict[str, Any]:
    """Build `home/snapshot.sqlite`.

    Args:
        openfda: openFDA label downloads, `drug-label-0001-of-0013.json.zip`, or folders of them.
        ctgov: ClinicalTrials.gov downloads in the shape of API version 2: a zip with a file a study, JSON, NDJSON.
        literature: PubMed baseline or update files (`.xml.gz`), or Europe PMC answers in JSON.
        on_progress: called with a line for a person at every file, and now and then in a long one.

    Returns:
        `path`, `seconds`, `kinds` (as `Snapshot.info`), `left_out` (on purpose) and `problems` (broken files and
        records), both as [{"file", "reason", "count", "first"}], and `boxed_warnings`, [{"drug", "shipped", "label"}]
        where only one side has one. A kind without files, or whose files held nothing usable, is kept from the
        snapshot that was there, or from the shipped one.

    Raises:
        UsageError: a file is not there, or nothing usable is in any of them.
        StoreError: the data home cannot be written, or another build is running.
        StoppedError: Ctrl-C.
    """
    given = {"drugs": openfda, "trials": ctgov, "literature": literature}
    files = [Source(kind, path, path.stat().st_size) for kind in given for path in bulk_files(given[kind])]
    if not files:
        raise UsageError("No bulk files were given.", hint="Give at least one of --openfda, --ctgov and --literature.")
    start = time.monotonic()
    try:
        with only_build(home), new_snapshot(home / NAME, _content(files), bulk_labels.SCHEMA) as db:
            boxed = _Build(home, db, files, on_progress).run()
    except KeyboardInterrupt as error:
        raise StoppedError("Stopped.", hint="The snapshot that was there stays as it is.") from error
    return {
        "path": str(home / NAME),
        "seconds": round(time.monotonic() - start, 1),
        "kinds": Snapshot(home / NAME).info()["kinds"],
        "left_out": [note for file in files for note in file.left_out.values()],
        "problems": [note for file in files for note in file.wrong.values()],
        "boxed_warnings": boxed,
    }


@contextmanager
def only_build(home: Path) -> Iterator[None]:
    """Keep other builds out of this data home; the lock ends with the process. Remove what a killed build left."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(home / ".snapshot.lock", timeout=0.5, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            for left in home.glob(f".{NAME}.*"):
                left.unlink()
            yield
    except (OSError, sqlite3.OperationalError) as error:
        if "locked" in str(error):
            raise StoreError("Another build is running in this data home.", hint="Wait for it, or stop it.") from error
        hint = "Free some space, or set DOCGEMMA_HOME to another folder."
        raise StoreError(f"The data home cannot be written ({error}).", hint=hint) from error


class _Build:
    def __init__(self, home: Path, db: sqlite3.Connection, files: list[Source], on_progress: OnProgress):
        self.home, self.db, self.files, self.on_progress = home, db, files, on_progress
        self.names = bulk_labels.Names({record.name: words for record, words in _shipped("drugs").records})

    def run(self) -> list[dict[str, str]]:
        """Read every file, then fill the tables that are made of all of them; the boxed warnings that disagree."""
        for number, file in enumerate(self.files, 1):
            self.on_progress(f"reading {file.path.name}, file {number} of {len(self.files)}")
            self._read(file)
        kept = {file.kind for file in self.files if file.records}
        if not kept:
            first = next((note for file in self.files for note in file.wrong.values()), None)
            what = f" {first['file']}: {first['reason']}." if first else ""
            hint = "The snapshot that was there stays as it is."
            raise UsageError(f"Nothing usable was found.{what}", hint=hint)
        self.on_progress("merging what was read")
        if others := [kind for kind in KINDS if kind not in kept]:
            self._keep_old(others)
        boxed: list[dict[str, str]] = []
        for kind in kept:
            origin = bulk_labels.Origin(KINDS[kind][0], self._as_of(kind))
            if kind == "drugs":
                boxed = bulk_labels.finish(self.db, origin, _shipped("drugs"))
                add_meta(self.db, {"drugs.boxed_warnings": str(len(boxed))})
            self._add_origin(kind, origin.source, origin.as_of)
        self._add_interactions(read_basis="drugs" in kept)
        for table in ("staged", "staged_name"):
            self.db.execute(f"DROP TABLE {table}")
        return boxed

    def _read(self, file: Source) -> None:
        for number, (where, record) in enumerate(bulk_records(file.path, KINDS[file.kind][1]), 1):
            if isinstance(record, Broken):
                file.note(file.wrong, record.reason, where)
            elif isinstance(record, Stated):
                file.stated = min(filter(None, (file.stated, _day(record.date))), default=None)
            else:
                self._store(file, where, record)
            if number % STEP == 0:
                self.on_progress(f"{file.path.name}: {number:,} records read")
            if number % PRUNE_EVERY == 0 and file.kind == "drugs":
                self.db.execute(bulk_labels.PRUNE)
        if not file.records and not file.wrong and not file.left_out:
            file.note(file.wrong, f"nothing usable for {file.kind} in this file", "")

    def _store(self, file: Source, where: str, raw: Any) -> None:
        """Store one record. A later one with the same id takes the place of an earlier one."""
        stated, left_out = None, ""
        try:
            if isinstance(raw, pubmed.Deleted):
                for item in raw.ids:
                    remove(self.db, "article", item)
                return
            if file.kind == "drugs":
                label = bulk_labels.stage(self.db, raw, self.names)
                newest, left_out = (label.effective, "") if label else (None, UNHARMONISED)
            elif file.kind == "trials":
                trial, words, stated, newest = ctgov.bulk_trial(raw)
                remove(self.db, "trial", trial.id)
                add_trial(self.db, trial, words)
            else:
                read = pubmed.article if isinstance(raw, Element) else europepmc.bulk_article
                article, kinds, words, newest = read(raw)
                if not article.title and not article.abstract:
                    raise ValueError("an article without words")
                remove(self.db, "article", article.id)
                left_out = RETRACTED if RETRACTED in map(str.lower, kinds) else ""
                if not left_out:
                    add_article(self.db, article, words)
        except NOT_A_RECORD:
            file.note(file.wrong, f"not a record of {file.kind}", where)
            return
        file.stated = min(filter(None, (file.stated, _day(stated))), default=None)
        file.newest = max(filter(None, (file.newest, _day(newest))), default=None)
        if left_out:
            file.note(file.left_out, left_out, where)
        else:
            file.records += 1

    def _keep_old(self, kinds: list[str]) -> None:
        """Copy the kinds without files from the snapshot built before, if this version can read it, or the shipped."""
        try:
            old = Snapshot(self.home / NAME).path
        except StoreError:
            old = shipped_snapshot(self.home)
        self.db.execute("ATTACH ? AS old", (f"file:{quote(str(old.absolute()))}?mode=ro",))
        for kind in kinds:
            for table in TABLES_OF[kind]:
                name, _, columns = table.rstrip(")").partition("(")
                into = f"{name} ({columns})" if columns else name
                self.db.execute(f"INSERT INTO {into} SELECT {columns or '*'} FROM old.{name}")
            self.db.execute("INSERT INTO meta SELECT key, value FROM old.meta WHERE key LIKE ?", (f"{kind}.%",))

    def _add_interactions(self, read_basis: bool) -> None:
        """The shipped pairs; with labels at hand, also the sentence of a label that supports each."""
        part = _shipped("interactions")
        drug = lru_cache(maxsize=128)(lambda name: bulk_labels.stored_drug(self._rows, name))
        for record, words in part.records:
            add_interaction(self.db, record, words)
            a, b = sorted(record.drugs)
            if read_basis and (found := gravest_of_both(drug(a), drug(b))):
                own, label, said = found[0]
                basis.add_basis(self.db, "interaction", f"{a} + {b}", own.name, label, said.section, said.quote)
        self._add_origin("interactions", part.source, part.as_of)

    def _add_origin(self, kind: str, source: str, as_of: str) -> None:
        files = [file for file in self.files if file.kind == kind]
        listed = [
            {"file": file.path.name, "bytes": file.bytes, "records": file.records, "as_of": file.stated or file.newest}
            for file in files[:MAX_LISTED]
        ]
        values = {"source": source, "as_of": as_of, "files": json.dumps(listed), "file_count": str(len(files))}
        add_meta(self.db, {f"{kind}.{key}": value for key, value in values.items()})

    def _as_of(self, kind: str) -> str:
        """The oldest date that a file states for its data, else the newest record's; "" if neither is known."""
        files = [file for file in self.files if file.kind == kind and file.records]
        stated = min((file.stated for file in files if file.stated), default="")
        return stated or max((file.newest for file in files if file.newest), default="")

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()


def info(home: Path) -> dict[str, Any]:
    """`Snapshot.info` of the one that is used, and `shipped` (False: it was built into `home`).

    Raises:
        StoreError: it is corrupt, or was made by another version.
    """
    built = home / NAME
    return {**Snapshot(built if built.is_file() else shipped_snapshot(home)).info(), "shipped": not built.is_file()}


def _day(value: Any) -> str | None:
    """An ISO date that is not in the future, else None."""
    age = age_days(str(value)[:10])
    return str(value)[:10] if age is not None and age >= 0 else None


def _shipped(kind: str) -> Part:
    return read_part(data_file("knowledge", f"{kind}.jsonl"), kind)


def _content(files: list[Source]) -> str:
    """A hash of the files' names and sizes and of the shipped records."""
    made_from = [content_hash(data_file("knowledge")), *((file.kind, file.path.name, file.bytes) for file in files)]
    return hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]
