"""Bounds on what one page of a hostile PDF may cost: a small file can unpack to gigabytes, or draw for ever."""

import logging
import zlib
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

MAX_STREAM = 10_000_000  # bytes of one stream, unpacked
MAX_MARKS = 100_000  # letters, paths and nested forms of one page; a dense page of text has 10,000


class TooMuchError(Exception):
    """A page needs more than the bounds allow."""


class Unpacker:
    """zlib's decompressor, which stops at MAX_STREAM bytes."""

    def __init__(self) -> None:
        self.inner, self.size = zlib.decompressobj(), 0

    def decompress(self, data: bytes) -> bytes:
        """The next unpacked bytes.

        Raises:
            TooMuchError: the stream has more than MAX_STREAM of them.
        """
        unpacked = self.inner.decompress(data, MAX_STREAM - self.size + 1)
        self.size += len(unpacked)
        if self.size > MAX_STREAM:
            raise TooMuchError
        return unpacked


def unpack(data: bytes) -> bytes:
    """What zlib.decompress does, within MAX_STREAM bytes."""
    unpacked = (unpacker := Unpacker()).decompress(data)
    if not unpacker.inner.eof:
        raise zlib.error("The stream ends too early.")
    return unpacked


@lru_cache(maxsize=1)
def bound() -> None:
    """Put the bounds into pdfminer and pdfplumber, which have none of their own and no way to set any."""
    import pdfplumber.page as plumber
    from pdfminer import pdftypes

    class Counting(plumber.PDFPageAggregatorWithMarkedContent):
        """The drawing of one page, which stops after MAX_MARKS marks."""

        marks = 0

    def counting(draw: Any) -> Any:
        def counted(self: Counting, *args: Any, **kwargs: Any) -> Any:
            self.marks += 1
            if self.marks > MAX_MARKS:
                raise TooMuchError
            return draw(self, *args, **kwargs)

        return counted

    for name in ("render_char", "paint_path", "begin_figure"):
        setattr(Counting, name, counting(getattr(Counting, name)))
    for name in ("pdfminer", "pdfplumber"):
        logging.getLogger(name).setLevel(logging.ERROR)  # their warnings show what the file holds
    limited = SimpleNamespace(decompress=unpack, decompressobj=Unpacker, error=zlib.error)
    pdftypes.zlib = limited  # type: ignore[attr-defined, assignment]
    plumber.PDFPageAggregatorWithMarkedContent = Counting  # type: ignore[misc]
