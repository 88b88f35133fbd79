"""One SQLite file: opened safely, shared by threads and processes, and every failure one clear StoreError."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from docgemma.ehr.schema import APPLICATION_ID, LOOKUPS, TABLES, VERSION
from docgemma.errors import StoreError


class Database:
    """An open record database. One lock lets threads take turns; SQLite does the same for processes.

    Args:
        path: the file.
        fill: called once, inside the transaction that makes the tables of a new file.
        index: called once, inside the transaction that makes the look-up tables of a file that lacks them.
        create: make the file where there is none; otherwise its absence is an error.
        busy_timeout_s: how long to wait for another process's write.

    Raises:
        StoreError: no such file or folder, not a record store, corrupt, not readable, locked.
    """

    def __init__(
        self,
        path: Path,
        fill: Callable[["Database"], None],
        index: Callable[["Database"], None],
        create: bool,
        busy_timeout_s: float,
    ):
        self.path = path
        self.busy_timeout_s = busy_timeout_s
        self._lock = threading.RLock()
        self.connection = self._connect(create)
        try:
            with self._guarded():
                self._prepare(fill if create else None)
                self._add_lookups(index)
        except BaseException:
            self.connection.close()
            raise

    def execute(self, sql: str, values: tuple | list = ()) -> sqlite3.Cursor:
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
        try:
            yield
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        except json.JSONDecodeError as error:  # of a stored body
            raise _damaged(self.path) from error

    def _connect(self, create: bool) -> sqlite3.Connection:
        if not self.path.parent.is_dir():
            hint = "Create it, or point DOCGEMMA_EHR at another place."
            raise StoreError(f"The folder of the record store, {self.path.parent}, does not exist.", hint=hint)
        if not create and not self.path.exists():
            hint = "Make it with `docgemma ehr load FILE...`, or unset DOCGEMMA_EHR for the synthetic patients."
            raise StoreError(f"There is no record store at {self.path}.", hint=hint)
        uri = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        with self._guarded():
            return sqlite3.connect(
                uri, uri=True, timeout=self.busy_timeout_s, isolation_level=None, check_same_thread=False
            )

    def _prepare(self, fill: Callable[["Database"], None] | None) -> None:
        """Make the tables of a new file, or refuse a file that is something else."""
        if fill and self._is_empty():
            self._use_wal()
            with self.writing():
                # another process may have been faster
                if self._is_empty():
                    self._make(fill)
        application, version = (self._pragma(name) for name in ("application_id", "user_version"))
        if application != APPLICATION_ID:
            hint = "Point DOCGEMMA_EHR at a record store, or at a file that does not exist yet."
            raise StoreError(f"{self.path} is a database, but not a record store of docgemma.", hint=hint)
        if version != VERSION:
            hint = "Use the version that wrote it, or load the records into a new file."
            raise StoreError(f"{self.path} was written by another version of docgemma.", hint=hint)

    def _make(self, fill: Callable[["Database"], None]) -> None:
        # not executescript, which would commit the transaction
        for statement in (TABLES + LOOKUPS).split(";"):
            self.execute(statement)
        self.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self.execute(f"PRAGMA user_version = {VERSION}")
        fill(self)

    def _add_lookups(self, index: Callable[["Database"], None]) -> None:
        """Give a file of an older program its look-up tables, or only this connection where it cannot be written."""
        if self._has("identifier"):
            return
        try:
            with self.writing():
                self._make_lookups(index, "main")
        except StoreError as error:
            if _code(error.__cause__) != sqlite3.SQLITE_READONLY:
                raise
            with self.reading():
                self._make_lookups(index, "temp")

    def _make_lookups(self, index: Callable[["Database"], None], place: str) -> None:
        # another process may have been faster
        if self._has("identifier"):
            return
        placed = LOOKUPS.replace("CREATE TABLE ", f"CREATE TABLE {place}.").replace("X ", f"X {place}.")
        for statement in placed.split(";"):
            self.execute(statement)
        index(self)

    def _has(self, table: str) -> bool:
        return self.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0] > 0

    def _pragma(self, name: str) -> int:
        return self.execute(f"PRAGMA {name}").fetchone()[0]

    def _is_empty(self) -> bool:
        return self.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0

    def _use_wal(self) -> None:
        # SQLite does not call its busy handler for this switch, so two first uses at once need a loop of our own
        deadline = time.monotonic() + self.busy_timeout_s
        while True:
            try:
                self.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """What went wrong, in one line without SQL and without values."""
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        hint = "Try again; if it persists, close the other program."
        return StoreError(f"The record store {path} is locked by another program.", hint=hint, retryable=True)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _damaged(path)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"The record store {path} cannot be written.", hint="Make the file and its folder writable.")
    if code == sqlite3.SQLITE_CANTOPEN:
        hint = "Check that the file and its folder exist and that you may read and write them."
        return StoreError(f"The record store {path} cannot be opened.", hint=hint)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreError(f"The disk of the record store {path} failed or is full.", hint="Free space and try again.")
    return StoreError(f"The record store {path} failed: {error}.", hint="Run `docgemma doctor`.")


def _code(error: BaseException | None) -> int:
    """SQLite's primary result code, or -1 where the error came from Python's side."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def _damaged(path: Path) -> StoreError:
    return StoreError(
        f"The record store {path} is damaged.", hint="Restore it from a backup, or set DOCGEMMA_EHR to another file."
    )
