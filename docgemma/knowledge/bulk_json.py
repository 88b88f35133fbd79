"""The records of a JSON document of any size: a list inside an object, a bare list, one object, or one a line."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any

import ijson

from docgemma.knowledge.bulk_files import UNREADABLE

Open = Callable[[], IO[bytes]]
SMALL = 4 << 20  # a document up to this many bytes is read whole
LONGEST = 64 << 20  # bytes of one record in a file with a record a line
BAD: Any = object()  # stands for a record that is not JSON


def json_records(open_document: Open, lists: tuple[str, ...]) -> Iterator[Any]:
    """Records in order; `BAD` for a line that is not JSON.

    Args:
        lists: where the records may be, `results` or `resultList.result`; an object without any is one record.

    Raises:
        ijson.JSONError: the document is cut short or is not JSON; the records before that have been yielded.
    """
    with open_document() as stream:
        head = _head(stream)
    whole = _loads(head) if len(head) <= SMALL else BAD
    line, newline, _ = head.partition(b"\n")
    if whole is not BAD:
        yield from _inside(whole, lists)
    elif newline and isinstance(_loads(line), dict):
        yield from _lines(open_document)
    else:
        yield from _streamed(open_document, lists)


def stated_value(open_document: Open, at: str, before: str) -> Any:
    """One value near the beginning of a document, `meta.last_updated`; None if `before` comes first or it is broken."""
    try:
        with open_document() as stream:
            for prefix, event, value in ijson.parse(stream):
                if prefix == at:
                    return value
                if prefix == before and event == "start_array":
                    return None
    except UNREADABLE:  # whoever reads the records of this document says so
        return None
    return None


def _head(stream: IO[bytes]) -> bytes:
    """The first bytes; whatever breaks after them is met again when the records are read."""
    head = b""
    with suppress(*UNREADABLE):
        while len(head) <= SMALL and (more := stream.read(SMALL + 1 - len(head))):
            head += more
    return head


def _inside(value: Any, lists: tuple[str, ...]) -> Iterator[Any]:
    for path in lists:
        inner = value
        for key in path.split("."):
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, list):
            yield from inner
            return
    yield from value if isinstance(value, list) else [value]


def _lines(open_document: Open) -> Iterator[Any]:
    with open_document() as stream:
        while line := stream.readline(LONGEST):
            if line.strip():
                yield _loads(line)


def _streamed(open_document: Open, lists: tuple[str, ...]) -> Iterator[Any]:
    with open_document() as stream:
        place = _place(stream, lists)
    if place is not None:
        with open_document() as stream:
            yield from ijson.items(stream, place, use_float=True)


def _place(stream: IO[bytes], lists: tuple[str, ...]) -> str | None:
    """ijson's name for the records; None where the document has no list of them."""
    for prefix, event, _ in ijson.parse(stream):
        if event == "start_array" and prefix in ("", *lists):
            return f"{prefix}.item" if prefix else "item"
    return None


def _loads(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return BAD
