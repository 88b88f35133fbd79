"""Where conversations and pending approvals live: a LangGraph checkpointer on SQLite or PostgreSQL."""

import sqlite3
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from docgemma.errors import ConfigError, StoreError


def open_memory(location: str) -> BaseCheckpointSaver:
    """The checkpointer at a SQLite path or a postgresql:// address.

    Raises:
        StoreError: it cannot be opened, read or written.
    """
    if location.startswith(("postgresql://", "postgres://")):
        return _postgres(location)
    return _sqlite(Path(location))


def _sqlite(path: Path) -> BaseCheckpointSaver:
    from langgraph.checkpoint.sqlite import SqliteSaver

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
        connection.execute("PRAGMA journal_mode=WAL")
        saver = SqliteSaver(connection)
        saver.setup()
        connection.execute("PRAGMA user_version = 1")  # fails now, not in mid-turn, where the file is read-only
        connection.commit()
    except (sqlite3.Error, OSError) as error:
        raise broken(str(path), error) from error
    return saver


def _postgres(location: str) -> BaseCheckpointSaver:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise ConfigError("PostgreSQL support is not installed.", hint="pip install 'docgemma[postgres]'") from error
    options: dict[str, Any] = {
        "autocommit": True,
        "prepare_threshold": 0,
        "row_factory": dict_row,
        "connect_timeout": 10,
    }
    try:
        pool = ConnectionPool(location, min_size=1, max_size=8, kwargs=options, timeout=15, open=True)
        saver = PostgresSaver(pool)
        saver.setup()
    except psycopg.Error as error:
        raise broken("at the PostgreSQL address", error) from error
    return saver


def newest_threads(memory: BaseCheckpointSaver, prefix: str, limit: int) -> list[str]:
    """Ids of the conversations that begin with `prefix`, the one that was last worked on first."""
    last = "GROUP BY thread_id ORDER BY MAX(checkpoint_id) DESC LIMIT"  # checkpoint ids grow with time
    if hasattr(memory, "cursor"):
        with memory.cursor(transaction=False) as cursor:  # a range, so that the primary key is used
            cursor.execute(
                f"SELECT thread_id FROM checkpoints WHERE thread_id >= ? AND thread_id < ? {last} ?",
                (prefix, prefix + "\U0010ffff", limit),
            )
            return [row[0] for row in cursor.fetchall()]
    with memory.conn.connection() as connection:
        rows = connection.execute(
            f"SELECT thread_id FROM checkpoints WHERE starts_with(thread_id, %s) {last} %s", (prefix, limit)
        ).fetchall()
    return [row["thread_id"] for row in rows]


def broken(where: str, error: Exception) -> StoreError:
    return StoreError(
        f"The conversation database {where} cannot be used ({type(error).__name__}: {_reason(error)}).",
        hint="Set DOCGEMMA_DB to another file, or move this one away to start afresh.",
    )


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else "no reason given"
