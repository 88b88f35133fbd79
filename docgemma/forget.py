"""Forget conversations: what was said, entries that wait for approval, kept images, answers kept from public services.

What was approved stays in the patient record. Bytes are overwritten and the file is made smaller (vacuumed).
"""

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from docgemma.errors import StoreError, UnknownThreadError
from docgemma.memory import broken, last_checkpoints, vacuum
from docgemma.settings import Settings

if TYPE_CHECKING:
    from docgemma.memory import Memory

FEEDBACK = "feedback.jsonl"  # thumbs of the demo
STAYS = "Entries that were approved stay in the patient record."
EPOCH = datetime(1582, 10, 15, tzinfo=UTC)  # of the time in a UUID of version 6 (RFC 9562), in steps of 100 ns


def forget_thread(settings: Settings, memory: "Memory", thread: str) -> None:
    """Forget one conversation.

    Raises:
        UnknownThreadError: there is none of that name.
        StoreError: it could not be forgotten, or not wholly.
    """
    if thread not in last_checkpoints(memory, thread):
        raise UnknownThreadError(f"There is no conversation {thread!r}.", hint="Its id was printed with its answer.")
    _forget(settings, memory, [thread])


def forget_before(settings: Settings, memory: "Memory", before: datetime, prefix: str = "") -> int:
    """Forget the conversations that nobody has continued since `before` and whose id begins with `prefix`.

    Returns:
        How many.
    """
    found = last_checkpoints(memory, prefix)
    old = [thread for thread, checkpoint in found.items() if written_at(checkpoint) < before]
    if old:
        _forget(settings, memory, old)
    return len(old)


def forget_expired(settings: Settings, memory: "Memory") -> None:
    """Forget what DOCGEMMA_KEEP_DAYS no longer allows to be kept; at each start."""
    if settings.keep_days is not None:
        forget_before(settings, memory, datetime.now(UTC) - timedelta(days=settings.keep_days))


def forget_all(settings: Settings, memory: "Memory") -> int:
    """Forget every conversation, kept image and thumb, and what was kept of the public services' answers."""
    threads = list(last_checkpoints(memory))
    with _said_where_it_fails():
        for folder in (settings.home / "images", settings.home / "http-cache"):
            if folder.exists():
                shutil.rmtree(folder)
        earlier = settings.home.glob("http-cache-*")  # an earlier version kept answers in a database
        for file in (*earlier, settings.home / FEEDBACK):
            file.unlink(missing_ok=True)
    _forget(settings, memory, threads)
    return len(threads)


def image_folder(settings: Settings, thread: str) -> Path:
    """Its images, and what the demo notes about it. Its id may open it, so the folder has another name."""
    return settings.home / "images" / hashlib.sha256(thread.encode()).hexdigest()[:32]


def written_at(checkpoint_id: str) -> datetime:
    """When a checkpoint was written."""
    digits = UUID(checkpoint_id).hex
    return EPOCH + timedelta(microseconds=int(digits[:12] + digits[13:16], 16) // 10)


def _forget(settings: Settings, memory: "Memory", threads: list[str]) -> None:
    """Images first: where that fails, the conversation is still there and can be forgotten again."""
    with _said_where_it_fails():
        for thread in threads:
            if (folder := image_folder(settings, thread)).exists():
                shutil.rmtree(folder)
    try:
        for thread in threads:
            memory.delete_thread(thread)
        vacuum(memory)
    except sqlite3.Error as error:
        raise broken(settings.db_location, error) from error


@contextmanager
def _said_where_it_fails() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "Make the data folder writable and forget again."
        raise StoreError(f"Kept images could not be removed: {error.strerror}.", hint=hint) from error
