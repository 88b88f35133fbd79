"""The databases that an evidence ledger can live in: SQLite, PostgreSQL, and MariaDB or MySQL, as OpenEMR has it."""

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from docgemma.errors import ConfigError, StoreError
from docgemma.paths import private_file

WAIT_S = 30  # for other writers
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)  # for a while; a full disk stays full
HINT = "Check disk, permissions and address; `docgemma rcm ledger verify` tells whether the ledger is whole."
log = logging.getLogger(__name__)


class Store:
    """A database. Threads and forks may share the object: each session opens a connection of its own."""

    where: str  # for messages; never a password
    api: Any  # the DB-API module
    mark = "%s"  # for a value in a statement
    script: tuple[str, ...] = ()  # the data file that makes the tables, a statement a paragraph
    present = "SELECT to_regclass('rcm_evidence_ledger_seal')"  # finds something where the tables exist
    alone: Sequence[str]  # statements that let one writer in at a time
    snapshot: Sequence[str]  # statements after which what others write is not seen in parts
    heads: Path | None = None  # a file outside of the database, with a line "ID HASH" for each row

    def connect(self) -> Any:
        raise NotImplementedError

    @contextmanager
    def session(self, begin: Sequence[str]) -> Iterator[Any]:
        """A connection whose transaction is committed at the end; otherwise it is undone as the connection closes.

        Raises:
            StoreError: the database cannot be reached, read or written.
        """
        try:
            with closing(self.connect()) as connection:
                for statement in begin:
                    fetch(connection, statement)
                yield connection
                connection.commit()
        except (self.api.Error, OSError) as error:
            reason = f": {error}" if isinstance(error, sqlite3.Error) else ""  # a server's words may hold values
            message = f"The ledger {self.where} cannot be used ({type(error).__name__}{reason})."
            busy = (
                isinstance(error, self.api.OperationalError) and getattr(error, "sqlite_errorcode", 5) & 0xFF in LOCKED
            )
            raise StoreError(message, hint=HINT, retryable=busy) from error

    def stream(self, connection: Any, query: str) -> Iterable[Sequence[Any]]:
        """Rows one by one: a ledger of years does not fit in memory."""
        cursor = connection.cursor()
        cursor.execute(query)
        yield from cursor

    def stored(self, value: Any) -> Any:
        """A value as this database takes it."""
        return value

    def keep_head(self, number: int, row_hash: str) -> None:
        """Note a row's hash outside of the database, where there is such a place."""
        if self.heads is None:
            return
        try:
            with private_file(self.heads).open("ab", buffering=0) as file:
                file.write(f"\n{number} {row_hash}".encode())  # in one, so that the lines of processes do not mix
        except OSError as error:  # the row stands; the head of the next one vouches for it
            log.warning("The head of ledger row %d could not be kept in %s: %s", number, self.heads, error.strerror)

    def kept_heads(self) -> dict[Any, str]:
        """The hashes that were noted, by row.

        Raises:
            StoreError: they cannot be read.
        """
        try:
            lines = self.heads.read_text("ascii", "replace").splitlines() if self.heads and self.heads.exists() else []
        except OSError as error:
            raise StoreError(f"{self.heads} cannot be read: {error.strerror}.", hint=HINT) from error
        noted = [line.split() for line in lines]
        whole = [words for words in noted if len(words) == 2 and len(words[1]) == 64]  # a full disk cuts a line off
        return {int(number): row_hash for number, row_hash in whole if number.isdecimal()}


class SqliteStore(Store):
    """A file that only its owner may read, with a second one beside it for the heads.

    Args:
        create: make the file where there is none; otherwise its absence is a StoreError.
    """

    api, mark, script = sqlite3, "?", ("rcm", "ledger", "sqlite.sql")
    present = "SELECT 1 FROM sqlite_master WHERE name = 'rcm_evidence_ledger_seal'"
    alone, snapshot = ("BEGIN IMMEDIATE",), ("BEGIN",)

    def __init__(self, path: Path, create: bool):
        self.path, self.create, self.where = path, create, str(path)
        self.heads = path.with_suffix(".heads")

    def connect(self) -> sqlite3.Connection:
        if self.create:
            private_file(self.path)
        elif not self.path.exists():
            raise StoreError(f"There is no ledger at {self.path}.", hint="The first verified quote makes it.")
        address = f"{self.path.absolute().as_uri()}?mode=rw"  # read-only where the file is
        connection = sqlite3.connect(address, uri=True, timeout=WAIT_S, isolation_level=None)
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")  # damage is found, not raised
        return connection

    def stored(self, value: Any) -> Any:
        return f"{value.isoformat(timespec='microseconds')}Z" if isinstance(value, datetime) else value


class PostgresStore(Store):
    """A PostgreSQL database."""

    script = ("rcm", "ledger", "postgresql.sql")
    alone = (f"SET LOCAL lock_timeout = '{WAIT_S}s'", "SELECT pg_advisory_xact_lock(hashtext('rcm_evidence_ledger'))")
    snapshot = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",)

    def __init__(self, address: str):
        self.api, self.address, self.where = (
            _driver("psycopg", "docgemma[postgres]"),
            address,
            "at the PostgreSQL address",
        )

    def connect(self) -> Any:
        return self.api.connect(self.address, connect_timeout=10)

    def stream(self, connection: Any, query: str) -> Iterable[Sequence[Any]]:
        return connection.cursor().stream(query)  # type: ignore[no-any-return]


class MysqlStore(Store):
    """A MariaDB or MySQL database, whose tables data/openemr/rcm_evidence_ledger.sql makes.

    Args:
        address: mysql://USER:PASSWORD@HOST:PORT/DATABASE; `?unix_socket=PATH` and other words of pymysql may follow.
            Without a password the environment's MYSQL_PWD is taken.
    """

    present = "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'rcm%seal'"
    # who waits in vain for the lock goes on: the unique previous_hash then refuses one of the two rows
    alone = (f"SELECT GET_LOCK(CONCAT('rcm_evidence_ledger ', DATABASE()), {WAIT_S})", "START TRANSACTION")
    snapshot = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION READ ONLY")

    def __init__(self, address: str):
        self.api = _driver("pymysql", "pymysql")
        parts = urlsplit(address)
        password = parts.password or os.environ.get("MYSQL_PWD", "")
        self.where, self.options = "at the MySQL address", {
            "user": unquote(parts.username or ""), "password": unquote(password), "database": parts.path.strip("/"),
            "host": parts.hostname or "127.0.0.1", "port": parts.port or 3306, "connect_timeout": 10,
            "charset": "utf8mb4", "sql_mode": "STRICT_ALL_TABLES",  # nothing is cut short in silence
            "cursorclass": self.api.cursors.SSCursor, **dict(parse_qsl(parts.query)),
        }  # fmt: skip

    def connect(self) -> Any:
        return self.api.connect(**self.options)


def fetch(connection: Any, statement: str, values: Sequence[Any] = ()) -> list[Sequence[Any]]:
    """Run one statement; its rows, if it gives any."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, *([values] if values else []))  # without values a % is a %
        return list(cursor.fetchall()) if cursor.description else []


def _driver(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"The ledger's database needs {name}.", hint=f"pip install '{package}'") from error
