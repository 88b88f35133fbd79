"""Reading bulk files into the snapshot that is being built: record by record, one bad one never losing the others."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, Protocol

from docgemma.knowledge.bulk_files import BrokenFile, Document, documents, guarded
from docgemma.knowledge.bulk_json import BAD, Open
from docgemma.knowledge.bulk_staging import Note, Place, Staging

BATCH = 500  # records a transaction: what a killed build does again
TIDY_EVERY = 10_000
NOT_A_RECORD = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


class Reader(Protocol):
    """One kind of bulk file; a module or an object."""

    SOURCE: str  # what answers name as their source
    SCHEMA: str  # tables of its own

    def records(self, open_document: Open) -> Iterator[Any]:
        """Raw records of a document, `BAD` for one that is none."""

    def stated(self, open_document: Open) -> str | None:
        """The date that the document states for its data."""

    def add(self, connection: sqlite3.Connection, raw: Any) -> Note:
        """Store one record, or raise one of `NOT_A_RECORD`."""

    def tidy(self, connection: sqlite3.Connection) -> None:
        """Now and then: drop what later records made superfluous."""


@dataclass(frozen=True)
class Progress:
    """How far a build is. Bytes are of the files as they lie on the disk; `records`: kept so far, or drugs merged."""

    doing: str
    bytes_done: int
    bytes_total: int
    records: int


OnProgress = Callable[[Progress], None]


class Reading:
    """Reads files to their ends, from where the staging file says.

    Args:
        readers: by kind.
    """

    def __init__(self, staging: Staging, readers: dict[str, Reader], on_progress: OnProgress):
        self.staging, self.readers, self.on_progress = staging, readers, on_progress
        self.pending = self.untidy = 0  # records since the last commit, and since the last tidying
        self.records, self.total = staging.total("kept"), staging.total("bytes")
        self.before = staging.total("bytes", "done")

    def read(self, place: Place) -> None:
        """One file to its end, or to where it breaks; what came before is kept."""
        self.staging.begin()
        try:
            raw = place.path.open("rb")
        except OSError as error:
            self.staging.note(place, f"cannot be opened ({type(error).__name__})", "")
        else:
            with raw:
                self._read_documents(place, raw)
        if not place.kept and not self.staging.noted(place):
            self.staging.note(place, f"nothing usable for {place.kind} in this file", "")
        self._commit(place, done=True)
        self.before += place.bytes
        self._say(place, 0)

    def _read_documents(self, place: Place, raw: IO[bytes]) -> None:
        try:
            for document in documents(raw, place.path.name, place.member):
                self._read_document(place, self.readers[place.kind], document, raw)
                place.member, place.record = place.member + 1, 0
        except BrokenFile as error:
            self.staging.note(place, str(error), "")

    def _read_document(self, place: Place, reader: Reader, document: Document, raw: IO[bytes]) -> None:
        try:
            place.stated = _older(place.stated, _day(reader.stated(document.open)))
            for record in islice(guarded(reader.records(document.open)), place.record, None):
                place.record += 1
                self._store(place, reader, record, document)
                self.pending += 1
                if self.pending >= BATCH:
                    self._commit(place)
                    self._say(place, raw.tell())
                    self.staging.begin()
        except BrokenFile as error:
            self.staging.note(place, str(error), f"{document.name}, after record {place.record}")

    def _store(self, place: Place, reader: Reader, record: Any, document: Document) -> None:
        where = f"{document.name}, record {place.record}"
        try:
            if record is BAD:
                raise ValueError("not JSON")
            note = reader.add(self.staging.db, record)
        except NOT_A_RECORD:
            self.staging.note(place, f"not a record of {place.kind}", where)
            return
        place.stated = _older(place.stated, _day(note.stated))
        place.newest = max(filter(None, (place.newest, _day(note.newest))), default=None)
        if note.skipped:
            self.staging.note(place, note.skipped, where, wrong=False)
        elif note.counted:
            place.kept += 1
            self.records += 1

    def _commit(self, place: Place, done: bool = False) -> None:
        self.untidy += self.pending
        self.pending = 0
        if self.untidy >= TIDY_EVERY:
            self.readers[place.kind].tidy(self.staging.db)
            self.untidy = 0
        self.staging.commit(place, done)

    def _say(self, place: Place, at: int) -> None:
        done = self.before + min(at, place.bytes)
        self.on_progress(Progress(place.path.name, done, self.total, self.records))


def _day(value: Any) -> str | None:
    """An ISO date that is not in the future, else None."""
    try:
        day = datetime.strptime(str(value)[:10], "%Y-%m-%d").date().isoformat()
    except ValueError:
        return None
    return day if day <= datetime.now(UTC).date().isoformat() else None


def _older(a: str | None, b: str | None) -> str | None:
    return min(filter(None, (a, b)), default=None)
