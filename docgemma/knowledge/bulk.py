"""A snapshot from the public bulk files: streamed, so that memory stays flat, and taken up where it was stopped.

The finished file takes the place of the old one in one step; until then every question is answered from the old one.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docgemma.errors import StoppedError, StoreError, UsageError
from docgemma.knowledge import bulk_ctgov, bulk_drugs, bulk_literature, bulk_openfda
from docgemma.knowledge.build import add_interaction, add_meta, content_hash, read_part, shipped_snapshot
from docgemma.knowledge.bulk_files import bulk_files
from docgemma.knowledge.bulk_read import OnProgress, Progress, Reading
from docgemma.knowledge.bulk_staging import TABLES, Staging
from docgemma.knowledge.snapshot import SCHEMA, VERSION, Snapshot
from docgemma.paths import data_file

NAME = "snapshot.sqlite"
RULES = "1"  # raise it when the same files would give another snapshot
MAX_LISTED = 50  # files named one by one in what the snapshot says of itself
TABLES_OF = {
    "drugs": ("drug", "drug_name", "label_text"),
    "literature": ("article", "article_text(rowid, title, abstract, keywords)"),
    "trials": ("trial", "trial_text(rowid, title, conditions, interventions, summary, keywords)"),
}


def build_from_files(
    home: Path,
    openfda: Iterable[str | Path] = (),
    ctgov: Iterable[str | Path] = (),
    literature: Iterable[str | Path] = (),
    on_progress: OnProgress = lambda progress: None,
) -> dict[str, Any]:
    """Build `home/snapshot.sqlite`. The same call after a kill goes on where the last one stopped.

    Args:
        openfda: openFDA label downloads, `drug-label-0001-of-0013.json.zip`, or folders of them.
        ctgov: ClinicalTrials.gov downloads in the shape of API version 2: a zip with a file a study, JSON, NDJSON.
        literature: PubMed baseline or update files (`.xml.gz`), or Europe PMC answers in JSON.
        on_progress: called a few times a second of work.

    Returns:
        `path`, `seconds`, `resumed`, `kinds` (as `Snapshot.info`), `left_out` (on purpose) and `problems` (broken files
        and records), both as [{"file", "reason", "count", "first"}]. A kind without files, or whose files held nothing
        usable, is kept from the snapshot that was there, or from the shipped one.

    Raises:
        UsageError: a file is not there, or nothing usable is in any of them.
        StoreError: the data home cannot be written, or another build is running.
        StoppedError: Ctrl-C. What was read stays.
    """
    given = {"drugs": openfda, "trials": ctgov, "literature": literature}
    files = [(kind, path) for kind, paths in given.items() for path in bulk_files(paths)]
    if not files:
        raise UsageError("No bulk files were given.", hint="Give at least one of --openfda, --ctgov and --literature.")
    return _Build(home, files, on_progress).run()


class _Build:
    def __init__(self, home: Path, files: list[tuple[str, Path]], on_progress: OnProgress):
        self.home, self.on_progress = home, on_progress
        self.shipped = data_file("knowledge")
        shipped = read_part(self.shipped / "drugs.jsonl", "drugs")
        names = bulk_openfda.Names({record.name: words for record, words in shipped.records})
        self.readers = {"drugs": bulk_openfda.Reader(names), "trials": bulk_ctgov, "literature": bulk_literature}
        schema = SCHEMA + "".join(reader.SCHEMA for reader in self.readers.values())
        self.content = _content(files, self.shipped)
        self.staging = Staging(home, self.content, files, schema)
        self.total = self.staging.total("bytes")

    def run(self) -> dict[str, Any]:
        start = time.monotonic()
        reading = Reading(self.staging, self.readers, self.on_progress)
        try:
            for place in self.staging.unread():
                reading.read(place)
            usable = self.staging.total("kept") > 0
            if usable and not self.staging.filled:
                self._fill()
            report = self._publish() if usable else {"problems": self.staging.notes(wrong=True)}
        except sqlite3.Error as error:
            raise StoreError(
                f"The snapshot could not be built ({error}).",
                hint="Free some space; the same command goes on from here.",
            ) from error
        except KeyboardInterrupt as error:
            raise StoppedError("Stopped.", hint="The same command goes on from here.") from error
        finally:
            self.staging.close()
        self.staging.remove_files()
        if not usable:
            raise _nothing(report["problems"])
        return {**report, "seconds": round(time.monotonic() - start, 1)}

    def _fill(self) -> None:
        """Everything that is made of all files, in one transaction."""
        staging = self.staging
        old = _old_snapshot(self.home)
        staging.db.execute("ATTACH ? AS old", (f"file:{quote(str(old.absolute()))}?mode=ro",))
        staging.begin()
        for kind, reader in self.readers.items():
            if not staging.total("kept", f"kind = '{kind}'"):
                self._keep(kind)
                continue
            if kind == "drugs":
                origin = bulk_drugs.Origin(reader.SOURCE, staging.as_of(kind))
                parts = read_part(self.shipped / "drugs.jsonl", kind)
                bulk_drugs.finish(staging.db, origin, parts, self._merging)
            files = staging.files(kind)
            self._meta(kind, reader.SOURCE, staging.as_of(kind), files[:MAX_LISTED], len(files))
        self._add_interactions()
        built = datetime.now(UTC).isoformat(timespec="seconds")
        add_meta(staging.db, {"version": str(VERSION), "content": self.content, "built": built})
        for table in ("staged", "staged_name"):
            staging.db.execute(f"DROP TABLE {table}")
        staging.db.execute("UPDATE build SET filled = 1")
        staging.db.execute("COMMIT")
        staging.db.execute("DETACH old")

    def _merging(self, done: int) -> None:
        if done % 100 == 0:
            self.on_progress(Progress("merging labels into drugs", self.total, self.total, done))

    def _keep(self, kind: str) -> None:
        """The records of the snapshot that was there."""
        for table in TABLES_OF[kind]:
            name, _, columns = table.rstrip(")").partition("(")
            into = f"{name} ({columns})" if columns else name
            self.staging.db.execute(f"INSERT INTO {into} SELECT {columns or '*'} FROM old.{name}")
        self.staging.db.execute("INSERT INTO meta SELECT key, value FROM old.meta WHERE key LIKE ?", (f"{kind}.%",))

    def _add_interactions(self) -> None:
        part = read_part(self.shipped / "interactions.jsonl", "interactions")
        for record, words in part.records:
            add_interaction(self.staging.db, record, words)
        self._meta("interactions", part.source, part.as_of, [], 0)

    def _meta(self, kind: str, source: str, as_of: str, files: list[dict[str, Any]], count: int) -> None:
        values = {"source": source, "as_of": as_of, "files": json.dumps(files), "file_count": str(count)}
        add_meta(self.staging.db, {f"{kind}.{key}": value for key, value in values.items()})

    def _publish(self) -> dict[str, Any]:
        """Compact, safe on the disk, then in the place of the old one."""
        self.on_progress(Progress("writing the snapshot", self.total, self.total, self.staging.total("kept")))
        new, path = self.home / f"{NAME}.new", self.home / NAME
        new.unlink(missing_ok=True)
        self.staging.db.execute("VACUUM INTO ?", (str(new),))
        with closing(sqlite3.connect(new)) as connection, connection:
            for table in TABLES:
                connection.execute(f"DROP TABLE {table}")
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(new, path)
        return {
            "path": str(path),
            "resumed": self.staging.resumed,
            "kinds": Snapshot(path).info()["kinds"],
            "left_out": self.staging.notes(wrong=False),
            "problems": self.staging.notes(wrong=True),
        }


def _nothing(problems: list[dict[str, Any]]) -> UsageError:
    what = f" {problems[0]['file']}: {problems[0]['reason']}." if problems else ""
    return UsageError(f"Nothing usable was found.{what}", hint="The snapshot that was there stays as it is.")


def _old_snapshot(home: Path) -> Path:
    """What is kept where no files are given: the snapshot built before, if this version can read it, or the shipped."""
    try:
        return Snapshot(home / NAME).path
    except StoreError:
        return shipped_snapshot(home)


def _content(files: list[tuple[str, Path]], shipped: Path) -> str:
    """Changes with any file's name, size or time, and with the shipped records."""
    digest = hashlib.sha256(f"{VERSION} {RULES} {content_hash(shipped)}".encode())
    for kind, path in files:
        stat = path.stat()
        digest.update(f"\n{kind} {path} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:12]
