"""Files made of a weights file, kept in the data home: how they are named, and what is cleared away."""

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

PART = ".part"  # what is still being written
ABANDONED, UNUSED = 3600, 30 * 86400  # seconds after which an unfinished file is nobody's, a finished one not needed


def fingerprint(weights: Path) -> str:
    """Which file this is, without reading it."""
    stat = weights.stat()
    return hashlib.sha256(f"{weights.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:12]


def used(path: Path) -> Path:
    """Note that it is in use (by its time); a folder that cannot be written is left as it is."""
    with suppress(OSError):
        os.utime(path)
    return path


def sweep(folder: Path, stem: str) -> None:
    """Clear away what killed processes left, and what was made of `stem` and not used for a month."""
    made = re.compile(rf"{re.escape(stem)}-[0-9a-f]{{12}}(\.gguf)?")
    for path in folder.iterdir():
        limit = ABANDONED if path.suffix == PART else UNUSED if made.fullmatch(path.name) else None
        with suppress(OSError):
            if limit and time.time() - path.stat().st_mtime > limit:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
