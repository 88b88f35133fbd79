"""One SQLite file: opened safely, shared by threads and processes, and every failure one clear StoreError."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docgemma.errors import StoreError
from docgemma.paths import private_file

APPLICATION_ID = 0x44474552  # "DGER": tells this file from any other SQLite database
VERSION = 2  # of the tables

TABLES = """
CREATE TABLE resource (
    type TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, last_updated TEXT NOT NULL,
    patient_id TEXT NOT NULL, section TEXT NOT NULL, body TEXT NOT NULL
);
CREATE UNIQUE INDEX resource_id ON resource (type, id);
CREATE INDEX resource_patient ON resource (patient_id, section);

-- every version ever stored, the current one included
CREATE TABLE history (
    type TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, last_updated TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (type, id, version)
);

-- the key of a write and what it made: the same key cannot make a second resource
CREATE TABLE write_key (key TEXT PRIMARY KEY, type TEXT NOT NULL, id TEXT NOT NULL) WITHOUT ROWID;

-- made from the Patient resources, to find them
CREATE TABLE person (patient_id TEXT PRIMARY KEY, name TEXT NOT NULL, birth_date TEXT NOT NULL, sex TEXT NOT NULL);
CREATE TABLE name_token (
    token TEXT NOT NULL, is_family INTEGER NOT NULL, patient_id TEXT NOT NULL,
    PRIMARY KEY (token, is_family, patient_id)
) WITHOUT ROWID;
CREATE INDEX name_of_patient ON name_token (patient_id, token);
CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE);  -- only grows, see search.py
-- id and identifiers without case and hyphens, see identifiers.py
CREATE TABLE identifier (
    value_folded TEXT NOT NULL, patient_id TEXT NOT NULL, PRIMARY KEY (value_folded, patient_id)
) WITHOUT ROWID;
CREATE INDEX identifier_of_patient ON identifier (patient_id);
"""

DAMAGED = ("is damaged", "Restore it from a backup, or set DOCGEMMA_EHR to another file.")
LOCKED = ("is locked by another program", "Try again; if it persists, close the other program.")
READ_ONLY = ("cannot be written", "Make the file and its folder writable.")
DISK = ("is on a disk that failed or is full", "Free space and try again.")
FAILURES = {  # SQLite's primary result code -> what to say, without SQL and without values
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_FULL: DISK,
    sqlite3.SQLITE_IOERR: DISK,
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check that file and folder exist and that you may use them."),
}


class Database:
    """An open record database. One lock lets threads take turns; SQLite does the same for processes.

    Args:
        path: the file.
        create: make the file where there is none; otherwise its absence is an error.
        busy_timeout_s: how long to wait for another process's write.

    Raises:
        StoreError: no such file or folder, not a record store, corrupt, not readable, locked.
    """

    def __init__(self, path: Path, create: bool, busy_timeout_s: float):
        self.path, self.busy_timeout_s = path, busy_timeout_s
        self._lock = threading.RLock()
        if not path.parent.is_dir():
            hint = "Create it, or point DOCGEMMA_EHR at another place."
            raise StoreError(f"The folder of the record store, {path.parent}, does not exist.", hint=hint)
        if not create and not path.exists():
            hint = "Make it with `docgemma ehr load FILE...`, or unset DOCGEMMA_EHR for the synthetic patients."
            raise StoreError(f"There is no record store at {path}.", hint=hint)
        uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        with self._guarded():
            private_file(path)
            self.connection = sqlite3.connect(
                uri, uri=True, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
            )

    def prepare(self, create: bool, fill: Callable[[], object]) -> None:
        """Make the tables of a new file; refuse a file that is something else.

        Args:
            create: an empty file may become a record store.
            fill: store the first resources, within the transaction that makes the tables.
        """
        with self._guarded():
            if create and self._is_empty():
                self._use_wal()
                with self.writing():
                    if self._is_empty():  # no other process was faster
                        pragmas = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}"
                        for statement in (TABLES + pragmas).split(";"):  # executescript would commit
                            self.connection.execute(statement)
                        fill()
            if self._pragma("application_id") != APPLICATION_ID:
                hint = "Point DOCGEMMA_EHR at a record store, or at a file that does not exist yet."
                raise StoreError(f"{self.path} is a database, but not a record store of docgemma.", hint=hint)
            if self._pragma("user_version") != VERSION:
                hint = "Nothing in it was changed. Use the version that wrote it, or load the records into a new file."
                raise StoreError(f"{self.path} was written by another version of docgemma.", hint=hint)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Only within `reading` or `writing`."""
        return self.connection.execute(sql, values)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot: what another process commits meanwhile is not seen in parts."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, taken at once so that what is read inside cannot change before it is written."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    def close(self) -> None:
        with self._lock:
            self.connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock, self._guarded():
            self.connection.execute(begin)
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn SQLite's errors, and those of a stored body that is no JSON, into a StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            said, hint = FAILURES.get(_code(error), (f"failed: {error}", "Run `docgemma doctor`."))
            raise StoreError(f"The record store {self.path} {said}.", hint=hint, retryable=said == LOCKED[0]) from error
        except json.JSONDecodeError as error:
            raise StoreError(f"The record store {self.path} {DAMAGED[0]}.", hint=DAMAGED[1]) from error

    def _pragma(self, name: str) -> int:
        return int(self.connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _is_empty(self) -> bool:
        return not self.connection.execute("SELECT 1 FROM sqlite_master").fetchone()

    def _use_wal(self) -> None:
        # SQLite does not call its busy handler for this switch, so two first uses at once need a loop of our own
        deadline = time.monotonic() + self.busy_timeout_s
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code, or -1 where the error came from Python's side."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF
