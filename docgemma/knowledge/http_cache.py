"""Answers of the public APIs kept on disk for a while. Optional by nature: any trouble with the file is a miss.

hishel was looked at: it keeps answers before they are parsed (a wrong shape too), without a bound on the file's size.
"""

import json
import logging
import sqlite3
import time
import zlib
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from docgemma.paths import private_file

logger = logging.getLogger(__name__)

OPEN = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=OFF; -- a power cut may cost the cache, nothing else
CREATE TABLE IF NOT EXISTS responses
  (key TEXT PRIMARY KEY, fetched REAL NOT NULL, expires REAL NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL);
"""
EVICT = """
DELETE FROM responses WHERE expires <= ? OR key IN (
  SELECT key FROM (SELECT key, sum(size) OVER (ORDER BY fetched DESC, key) AS running FROM responses)
  WHERE running > ?)
"""


class Cached(NamedTuple):
    data: Any
    as_of: str  # ISO date on which the service gave this answer


class ResponseCache:
    """JSON answers by key, in one SQLite file that several processes may share.

    Args:
        path: the file; made on first use, readable by its owner only.
        max_bytes: what the kept bodies may weigh, compressed; the oldest go first.
    """

    def __init__(self, path: Path, max_bytes: int = 50_000_000):
        self.path, self.max_bytes = path, max_bytes

    def get(self, key: str) -> Cached | None:
        """The answer and its date, or None: absent, expired or unreadable."""
        rows = self._run("SELECT body, fetched FROM responses WHERE key = ? AND expires > ?", key, time.time())
        try:
            return Cached(json.loads(zlib.decompress(rows[0][0])), _day(rows[0][1])) if rows else None
        except (zlib.error, ValueError):
            return None

    def put(self, key: str, data: Any, ttl_s: float) -> None:
        """Keep an answer for `ttl_s` seconds and let go of what is expired or too much."""
        body, now = zlib.compress(json.dumps(data, separators=(",", ":")).encode()), time.time()
        if len(body) <= self.max_bytes:
            self._run("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?)", key, now, now + ttl_s, len(body), body)
            self._run(EVICT, now, self.max_bytes)

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement in its own connection: safe from any thread; a busy or unwritable file is a miss."""
        try:
            with closing(sqlite3.connect(private_file(self.path), timeout=1.0, isolation_level=None)) as connection:
                connection.executescript(OPEN)
                return connection.execute(statement, values).fetchall()
        except (sqlite3.OperationalError, OSError) as error:
            logger.warning("The cache of API answers is not usable now: %s", error)
        except sqlite3.DatabaseError as error:
            logger.warning("The cache of API answers was corrupt (%s); starting an empty one.", error)
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    Path(f"{self.path}{suffix}").unlink()
        return []


def _day(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).date().isoformat()
