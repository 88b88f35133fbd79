"""Where conversations and pending approvals live: a LangGraph checkpointer on SQLite or PostgreSQL."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError, StoreError
from docgemma.paths import private_file

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver

    Memory = SqliteSaver | PostgresSaver


def open_memory(location: str) -> "Memory":
    """The checkpointer at a SQLite path or a postgresql:// address.

    Raises:
        StoreError: it cannot be opened, read or written.
    """
    if location.startswith(("postgresql://", "postgres://")):
        return _postgres(location)
    return _sqlite(Path(location))


def _sqlite(path: Path) -> "SqliteSaver":
    from langgraph.checkpoint.sqlite import SqliteSaver

    try:
        connection = sqlite3.connect(private_file(path), check_same_thread=False, timeout=30)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA secure_delete=ON")  # what is forgotten is overwritten
        saver = SqliteSaver(connection)
        saver.setup()
        connection.execute("PRAGMA user_version = 1")  # fails now, not in mid-turn, where the file is read-only
        connection.commit()
    except (sqlite3.Error, OSError) as error:
        raise broken(str(path), error) from error
    return saver


def _postgres(location: str) -> "PostgresSaver":
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise ConfigError("PostgreSQL support is not installed.", hint="pip install 'docgemma[postgres]'") from error
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row, "connect_timeout": 10}
    try:
        pool = ConnectionPool(
            location, connection_class=psycopg.Connection[dict[str, Any]], kwargs=options, min_size=1, max_size=8,
            timeout=15, open=True,
        )  # fmt: skip
        saver = PostgresSaver(pool)
        saver.setup()
    except psycopg.Error as error:
        raise broken("at the PostgreSQL address", error) from error
    return saver


def last_checkpoints(memory: "Memory", prefix: str = "", limit: int = 2**31 - 1) -> dict[str, str]:
    """The conversations whose id begins with `prefix`, with their last checkpoint; the one last worked on first."""
    last = "GROUP BY thread_id ORDER BY MAX(checkpoint_id) DESC LIMIT"  # checkpoint ids grow with time
    if isinstance(memory.conn, sqlite3.Connection):
        query = f"SELECT thread_id, MAX(checkpoint_id) FROM checkpoints WHERE thread_id >= ? AND thread_id < ? {last} ?"
        with memory.lock:  # a range, so that the primary key is used
            return dict(memory.conn.execute(query, (prefix, prefix + "\U0010ffff", limit)))
    query = f"SELECT thread_id, MAX(checkpoint_id) AS id FROM checkpoints WHERE starts_with(thread_id, %s) {last} %s"
    with memory._cursor() as cursor:
        return {row["thread_id"]: row["id"] for row in cursor.execute(query, (prefix, limit))}


def vacuum(memory: "Memory") -> None:
    """Leave nothing of what was deleted in the database's files.

    Raises:
        StoreError: another program is using the file.
    """
    if not isinstance(memory.conn, sqlite3.Connection):
        with memory._cursor() as cursor:
            cursor.execute("VACUUM")
        return
    with memory.lock:
        try:
            memory.conn.commit()
            memory.conn.execute("VACUUM")
            busy = memory.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:
            busy = True
    if busy:
        raise StoreError(
            "The conversations are deleted, but another program uses their file, so that traces may be left in it.",
            hint="Do it again when no answer is being written.", retryable=True,
        )  # fmt: skip


def broken(where: str, error: Exception) -> StoreError:
    reason = str(error).splitlines()[0][:120] if str(error) else "no reason given"
    return StoreError(
        f"The conversation database {where} cannot be used ({type(error).__name__}: {reason}).",
        hint="Set DOCGEMMA_DB to another file, or move this one away to start afresh.",
    )
