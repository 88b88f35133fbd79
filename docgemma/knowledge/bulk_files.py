"""Read the records of public bulk files of any size: .zip, .gz or plain; JSON, one record a line, PubMed's XML."""

import gzip
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import ParseError

import ijson

from docgemma.errors import UsageError
from docgemma.knowledge import pubmed

SUFFIXES = (".zip", ".json", ".jsonl", ".ndjson", ".xml", ".gz")
SMALL = 4 << 20  # a document up to this many bytes is read whole
LONGEST = 64 << 20  # bytes of one record in a file with a record a line
CUT_SHORT = (EOFError, zlib.error, zipfile.BadZipFile, ijson.IncompleteJSONError, ParseError)
# what a file that is cut short, not what its name says, or not readable raises
UNREADABLE = (*CUT_SHORT, OSError, ijson.JSONError, UnicodeError, RecursionError, NotImplementedError, RuntimeError)
Open = Callable[[], IO[bytes]]


@dataclass(frozen=True)
class Broken:
    """Stands where a file cannot be read further. The reason is for a person and holds none of its content."""

    reason: str


@dataclass(frozen=True)
class Stated:
    """The date that a file gives its data."""

    date: Any


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


def bulk_records(path: Path, at: str) -> Iterator[tuple[str, Any]]:
    """Each record with its place ("a.json, record 2"); `Stated`, `Broken`, and None for what is not JSON, among them.

    Args:
        at: where a JSON document has its records, `results` or `resultList.result`; one without it is one record.
    """
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                yield from _document(path.name, lambda: path.open("rb"), at)
                return
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    if not member.is_dir() and _usable(Path(member.filename)):
                        yield from _document(member.filename, partial(archive.open, member), at)
    except UNREADABLE as error:
        yield path.name, _broken(error)


def _document(name: str, open_packed: Open, at: str) -> Iterator[tuple[str, Any]]:
    """One file, or one member of an archive; a broken one does not keep the next from being read."""
    count = 0
    try:
        for record in _records(partial(_unpacked, open_packed), at):
            count += not isinstance(record, Stated)
            yield f"{name}, record {count}", record
    except UNREADABLE as error:
        yield f"{name}, after record {count}", _broken(error)


def _records(open_document: Open, at: str) -> Iterator[Any]:
    with open_document() as stream:
        head = _head(stream)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
        with open_document() as stream:
            yield from pubmed.elements(stream)
        return
    line, newline, _ = head.partition(b"\n")
    if len(head) <= SMALL and (whole := _loads(head)) is not None:
        yield from _inside(whole, at)
    elif newline and isinstance(_loads(line), dict):
        with open_document() as stream:
            while line := stream.readline(LONGEST):
                if line.strip():
                    yield _loads(line)
    else:
        yield from _streamed(open_document, at)


def _head(stream: IO[bytes]) -> bytes:
    """The first bytes; whatever breaks after them is met again when the records are read."""
    head = b""
    with suppress(*UNREADABLE):
        while len(head) <= SMALL and (more := stream.read(SMALL + 1 - len(head))):
            head += more
    return head


def _inside(value: Any, at: str) -> Iterator[Any]:
    if isinstance(value, dict) and isinstance(meta := value.get("meta"), dict):
        yield Stated(meta.get("last_updated"))
    inner = value
    for key in at.split("."):
        inner = inner.get(key) if isinstance(inner, dict) else None
    records = inner if isinstance(inner, list) else value
    yield from records if isinstance(records, list) else [records]


def _streamed(open_document: Open, at: str) -> Iterator[Any]:
    place = None
    with open_document() as stream:
        for prefix, event, value in ijson.parse(stream):
            if prefix == "meta.last_updated":
                yield Stated(value)
            if event == "start_array" and prefix in ("", at):
                place = f"{prefix}.item" if prefix else "item"
                break
    if place:
        with open_document() as stream:
            yield from ijson.items(stream, place, use_float=True)


def _loads(text: bytes) -> Any:
    """None where it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unpacked(open_packed: Open) -> Any:
    """Unpacked where the first bytes are gzip's, whatever the name says."""
    stream: Any = open_packed()
    return _Gzip(stream) if stream.peek(2)[:2] == b"\x1f\x8b" else stream


class _Gzip(gzip.GzipFile):
    """Reads what there is: of a file that is cut short everything before the cut, and then the error."""

    def __init__(self, packed: IO[bytes]):
        super().__init__(fileobj=packed)
        self.packed = packed

    def close(self) -> None:
        super().close()
        self.packed.close()

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size) if size is None or size < 0 else self.read1(size)


def _broken(error: Exception) -> Broken:
    what = "cut short or damaged; download it again" if isinstance(error, CUT_SHORT) else type(error).__name__
    return Broken(f"cannot be read to its end ({what})")


def _usable(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith((".", "__MACOSX"))
