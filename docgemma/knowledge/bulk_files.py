"""Public bulk files as documents that can be opened again: .zip, .gz, folders of them, or plain. No parsing."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree.ElementTree import ParseError

import ijson

from docgemma.errors import UsageError

SUFFIXES = (".zip", ".json", ".jsonl", ".ndjson", ".xml", ".gz")
# what a file that is cut short, not what its name says, or not readable raises
UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, ijson.JSONError, ParseError, UnicodeError,
              RecursionError, NotImplementedError, RuntimeError)  # fmt: skip


@dataclass(frozen=True)
class Document:
    """One file, or one member of an archive. `open` begins at its first byte each time, unpacked."""

    name: str
    open: Callable[[], IO[bytes]]


class BrokenFile(Exception):
    """A bulk file ends too early or cannot be read. The text is for a person and holds none of its content."""


def bulk_files(given: Iterable[str | Path]) -> list[Path]:
    """The files themselves, folders opened, in a fixed order, none twice.

    Raises:
        UsageError: a path that is not there, or a folder without a file of a known kind.
    """
    found: dict[Path, None] = {}
    for path in map(Path, given):
        inside = sorted(item for item in path.rglob("*") if _usable(item)) if path.is_dir() else [path]
        if not path.exists() or not inside:
            what = "does not exist" if not path.exists() else f"holds no file that ends in {', '.join(SUFFIXES)}"
            raise UsageError(f"{path} {what}.", hint="Give the downloaded bulk files, or the folder they are in.")
        found |= {item.absolute(): None for item in inside}
    return list(found)


def documents(raw: IO[bytes], name: str, first: int = 0) -> Iterator[Document]:
    """What is inside an opened file, from the member with the number `first`.

    Raises:
        BrokenFile: it is not a whole archive.
    """
    if raw.read(4)[:2] != b"PK":
        if first == 0:
            yield Document(name, lambda: _unpacked(_rewound(raw)))
        return
    try:
        archive = zipfile.ZipFile(raw)
    except UNREADABLE as error:
        raise BrokenFile("not a whole zip archive; download it again") from error
    with archive:
        members = [item for item in archive.infolist() if not item.is_dir() and _usable(Path(item.filename))]
        for member in members[first:]:
            yield Document(member.filename, lambda member=member: _unpacked(archive.open(member)))


def guarded(records: Iterator) -> Iterator:
    """The same records; whatever a broken file raises becomes `BrokenFile`."""
    while True:
        try:
            record = next(records)
        except StopIteration:
            return
        except UNREADABLE as error:
            raise BrokenFile(f"cannot be read to its end ({_kind(error)})") from error
        yield record


def _kind(error: Exception) -> str:
    if isinstance(error, (EOFError, ijson.IncompleteJSONError, ParseError, zlib.error)):
        return "cut short or damaged; download it again"
    return type(error).__name__


def _usable(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith((".", "__MACOSX"))


def _rewound(raw: IO[bytes]) -> IO[bytes]:
    raw.seek(0)
    return _Borrowed(raw)


def _unpacked(stream: IO[bytes]) -> IO[bytes]:
    """Unpacked where the first bytes are gzip's, whatever the name says."""
    buffered = io.BufferedReader(stream, 1 << 16)  # type: ignore[arg-type]
    return _Gzip(fileobj=buffered) if buffered.peek(2)[:2] == b"\x1f\x8b" else buffered


class _Gzip(gzip.GzipFile):
    """Reads what there is: of a file that is cut short everything before the cut, and then the error."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size) if size is None or size < 0 else self.read1(size)


class _Borrowed(io.RawIOBase):
    """A view of a file that stays open when the view is closed."""

    def __init__(self, raw: IO[bytes]):
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        return self._raw.readinto(buffer)  # type: ignore[attr-defined]
