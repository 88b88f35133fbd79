"""The snapshot that is being built: one SQLite file that knows how far it has come, so that a killed build goes on.

Records and the place reached in their file are written in the same transaction; nothing is stored twice or lost.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docgemma.errors import StoreError

NAME = "snapshot.building.sqlite"
CACHE_KIB = 64 << 10
SCHEMA = """
CREATE TABLE build (inputs TEXT NOT NULL, filled INTEGER NOT NULL DEFAULT 0);
CREATE TABLE file (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL,
    member INTEGER NOT NULL DEFAULT 0, record INTEGER NOT NULL DEFAULT 0, kept INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0, stated TEXT, newest TEXT);
CREATE TABLE problem (file INTEGER, reason TEXT, count INTEGER NOT NULL, first TEXT NOT NULL,
    wrong INTEGER NOT NULL, PRIMARY KEY (file, reason)) WITHOUT ROWID;
"""
TABLES = ("build", "file", "problem")


@dataclass(frozen=True)
class Note:
    """What became of one record. `stated`: the ISO date its source gives the data; `newest`: the record's own date."""

    skipped: str = ""  # why it was left out on purpose
    stated: str | None = None
    newest: str | None = None
    counted: bool = True


@dataclass
class Place:
    """One file and how far it has been read."""

    number: int
    kind: str
    path: Path
    bytes: int
    member: int
    record: int
    kept: int
    stated: str | None
    newest: str | None


class Staging:
    """The open file; only one process may hold it.

    Args:
        inputs: a hash of everything that goes in; a build of other inputs is thrown away.
        files: (kind, path) of every file, in the order of reading.
        schema: tables of the snapshot and of the readers.

    Raises:
        StoreError: another build holds it, or it cannot be written.
    """

    def __init__(self, home: Path, inputs: str, files: list[tuple[str, Path]], schema: str):
        self.path = home / NAME
        try:
            home.mkdir(parents=True, exist_ok=True)
            self.db = self._open()
            self.resumed = self._inputs() == inputs
            if not self.resumed:
                self._begin_again(inputs, files, schema)
        except (OSError, sqlite3.OperationalError) as error:
            raise _unwritable(error) from error

    def _open(self) -> sqlite3.Connection:
        address = f"file:{quote(str(self.path.absolute()))}"  # an address: others can then be attached read-only
        db = sqlite3.connect(address, uri=True, timeout=1, isolation_level=None)
        try:
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
                db.execute(f"PRAGMA {pragma}").fetchall()
            db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            db.execute("BEGIN IMMEDIATE")  # takes the lock, which is then kept
            db.execute("COMMIT")
            return db
        except sqlite3.OperationalError:
            db.close()
            raise
        except sqlite3.DatabaseError:  # not a database: left by a full disk or a broken machine
            db.close()
            self.remove_files()
            return self._open()

    def _inputs(self) -> str | None:
        try:
            row = self.db.execute("SELECT inputs FROM build").fetchone()
            return row[0] if row else None
        except sqlite3.DatabaseError:
            return None

    def _begin_again(self, inputs: str, files: list[tuple[str, Path]], schema: str) -> None:
        self.db.close()
        self.remove_files()
        self.db = self._open()
        rows = [(kind, str(path), path.stat().st_size) for kind, path in files]
        self.db.executescript(f"BEGIN;{SCHEMA}{schema}")
        self.db.executemany("INSERT INTO file (kind, path, bytes) VALUES (?, ?, ?)", rows)
        self.db.execute("INSERT INTO build (inputs) VALUES (?)", (inputs,))
        self.db.execute("COMMIT")

    def unread(self) -> list[Place]:
        """Files that are not done, in order."""
        rows = self.db.execute(
            "SELECT number, kind, path, bytes, member, record, kept, stated, newest FROM file WHERE NOT done"
            " ORDER BY number"
        )
        return [Place(number, kind, Path(path), *rest) for number, kind, path, *rest in rows]

    def total(self, what: str, where: str = "1") -> int:
        """A sum over all files, `bytes` or `kept`."""
        return self.db.execute(f"SELECT coalesce(sum({what}), 0) FROM file WHERE {where}").fetchone()[0]

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def commit(self, place: Place, done: bool = False) -> None:
        """The records since `begin` and the place they reach, together."""
        self.db.execute(
            "UPDATE file SET member = ?, record = ?, kept = ?, stated = ?, newest = ?, done = ? WHERE number = ?",
            (place.member, place.record, place.kept, place.stated, place.newest, done, place.number),
        )
        self.db.execute("COMMIT")

    def note(self, place: Place, reason: str, where: str, wrong: bool = True) -> None:
        """Something left out, counted by reason, with where it was seen first. `wrong`: not on purpose."""
        self.db.execute(
            "INSERT INTO problem VALUES (?, ?, 1, ?, ?) ON CONFLICT (file, reason) DO UPDATE SET count = count + 1",
            (place.number, reason, where, wrong),
        )

    def noted(self, place: Place) -> bool:
        return bool(self.db.execute("SELECT 1 FROM problem WHERE file = ?", (place.number,)).fetchone())

    def notes(self, wrong: bool) -> list[dict[str, Any]]:
        """`file`, `reason`, `count` and `first` (place of the first) of what was left out."""
        rows = self.db.execute(
            "SELECT path, reason, count, first FROM problem JOIN file ON file.number = problem.file"
            " WHERE wrong = ? ORDER BY file.number, count DESC, reason",
            (wrong,),
        )
        keys = ("file", "reason", "count", "first")
        return [dict(zip(keys, (Path(path).name, *rest), strict=True)) for path, *rest in rows]

    def files(self, kind: str) -> list[dict[str, Any]]:
        """`file`, `bytes`, `records` (kept) and `as_of` of every file of a kind."""
        rows = self.db.execute(
            "SELECT path, bytes, kept, coalesce(stated, newest) FROM file WHERE kind = ? ORDER BY number", (kind,)
        )
        keys = ("file", "bytes", "records", "as_of")
        return [dict(zip(keys, (Path(path).name, *rest), strict=True)) for path, *rest in rows]

    @property
    def filled(self) -> bool:
        """Everything is in place; only the file has yet to be put where it is read."""
        return bool(self.db.execute("SELECT filled FROM build").fetchone()[0])

    def as_of(self, kind: str) -> str:
        """The oldest date that a source states for its data, else the newest record's; "" if neither is known."""
        where = "FROM file WHERE kind = ? AND kept > 0"
        stated, newest = self.db.execute(f"SELECT min(stated), max(newest) {where}", (kind,)).fetchone()
        return stated or newest or ""

    def close(self) -> None:
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        self.db.close()

    def remove_files(self) -> None:
        for end in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(NAME + end).unlink(missing_ok=True)


def _unwritable(error: Exception) -> StoreError:
    if "locked" in str(error):
        return StoreError("Another build is running in this data home.", hint="Wait for it, or stop it.")
    return StoreError(
        f"The data home cannot be written ({error}).", hint="Free some space, or set DOCGEMMA_HOME to another folder."
    )
