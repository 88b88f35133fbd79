"""One SQLite file of records: opened safely, shared by threads and processes, every failure one clear StoreError."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from docgemma.errors import StoreError
from docgemma.paths import private_file

APPLICATION_ID = 0x44474552  # "DGER": tells this file from any other SQLite database
VERSION = 3  # of the tables

# A row a patient in `people`, rowid as in `resource`: folded words of the names, of the family names, keys of id and
# identifiers, birth date. The last two begin with # to keep them out of the words of names.
TABLES = f"""
CREATE TABLE resource (
    type TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, last_updated TEXT NOT NULL,
    patient_id TEXT NOT NULL, section TEXT NOT NULL, body TEXT NOT NULL
);
CREATE UNIQUE INDEX resource_id ON resource (type, id);
CREATE INDEX resource_patient ON resource (patient_id, section);

-- the key of a write and what it made: the same key cannot make a second resource
CREATE TABLE write_key (key TEXT PRIMARY KEY, type TEXT NOT NULL, id TEXT NOT NULL) WITHOUT ROWID;

CREATE VIRTUAL TABLE people USING fts5 (
    words, family, ids, born, tokenize = "ascii tokenchars '#_'", prefix = '1 2'
);
CREATE VIRTUAL TABLE people_word USING fts5vocab (people, row);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION}
"""

HINT = "Check disk, folder and permissions; if it is damaged, restore a backup or point DOCGEMMA_EHR at another file."
LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Database:
    """An open record database. One lock lets threads take turns; SQLite does the same for processes.

    Args:
        create: make the file where there is none; otherwise its absence is an error.
        busy_timeout_s: how long to wait for another process's write.

    Raises:
        StoreError: no such file or folder, not a record store, corrupt, not readable, locked.
    """

    def __init__(self, path: Path, create: bool, busy_timeout_s: float):
        self.path, self._create, self._lock = path, create, threading.RLock()
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

    def prepare(self, fill: Callable[[], object]) -> None:
        """Make the tables of a new file and fill it, in one transaction; refuse a file that is something else."""
        with self._guarded():
            if self._create and self._is_empty():
                with self.writing():
                    if self._is_empty():  # no other process was faster
                        for statement in TABLES.split(";"):  # executescript would commit
                            self.connection.execute(statement)
                        fill()
            if self._pragma("application_id") != APPLICATION_ID:
                hint = "Point DOCGEMMA_EHR at a record store, or at a file that does not exist yet."
                raise StoreError(f"{self.path} is a database, but not a record store of docgemma.", hint=hint)
            if self._pragma("user_version") != VERSION:
                hint = "Nothing in it was changed. Use the version that wrote it, or load the records into a new file."
                raise StoreError(f"{self.path} was written by another version of docgemma.", hint=hint)
            with suppress(sqlite3.OperationalError):  # read-only, or in use by others, who then do this
                self.connection.execute("PRAGMA journal_mode = WAL")

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Only within `reading` or `writing`."""
        return self.connection.execute(sql, values)

    @contextmanager
    def reading(self, begin: str = "BEGIN") -> Iterator[None]:
        """One snapshot: what another process commits meanwhile is not seen in parts."""
        with self._lock, self._guarded():
            self.connection.execute(begin)
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def writing(self) -> AbstractContextManager[None]:
        """One transaction, taken at once so that what is read inside cannot change before it is written."""
        return self.reading("BEGIN IMMEDIATE")

    def close(self) -> None:
        with self._lock:
            self.connection.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn SQLite's errors (they hold no values), and those of a stored body that is no JSON, into a StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in LOCKED
            hint = "Try again; if it persists, close the other program." if locked else HINT
            raise StoreError(f"The record store {self.path} failed: {error}.", hint=hint, retryable=locked) from error
        except OSError as error:
            raise StoreError(f"The record store {self.path} failed: {error.strerror}.", hint=HINT) from error
        except json.JSONDecodeError as error:
            raise StoreError(f"The record store {self.path} holds a damaged entry.", hint=HINT) from error

    def _pragma(self, name: str) -> int:
        return int(self.connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _is_empty(self) -> bool:
        return not self.connection.execute("SELECT 1 FROM sqlite_master").fetchone()
