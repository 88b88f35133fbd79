"""Draw a page of a PDF with the words of quotes boxed. A quote is found as the auditor finds it."""

import threading
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import UsageError, kind_and_place
from docgemma.rcm.audit import places_of
from docgemma.rcm.pdf import _clean, _inside, _opened

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[float, float, float, float]  # left, top, right, bottom in points
DPI, MOST = 110, 1_700  # pixels an inch; pixels of the longer side, at most
LINE = 3  # points between the tops of two words of a line, at most
FILL, EDGE = (250, 204, 21, 90), (180, 83, 9)
PDFIUM = threading.Lock()  # it may not be called from two threads at once


def page_image(path: Path, page: int, quotes: Sequence[str] = ()) -> "Image":
    """A page, from 1, as an RGB image of about 110 pixels an inch.

    Its `info` says what was marked: "boxes", a list for each quote (one a line, in points), and "missing", the quotes
    that do not stand on the page and have no box.

    Raises:
        UsageError: there is no such page, or it cannot be drawn.
    """
    with path.open("rb") as file:
        pdf, sheets = _opened(file, path.name)
        from pdfplumber.page import Page as Sheet

        if not 1 <= page <= len(sheets):
            raise UsageError(f"{path.name!r} has no page {page}.", hint=f"It has {len(sheets)}.")
        sheet = Sheet(pdf, sheets[page - 1], page_number=page)
        try:
            boxes = _boxes(_words(sheet), quotes) if quotes else []
            with PDFIUM:
                scale = min(DPI, MOST * 72 / max(sheet.width, sheet.height))
                drawn = sheet.to_image(resolution=scale, antialias=True)
        except Exception as error:  # a damaged page raises whatever the parser stumbles over
            raise UsageError(f"Page {page} of {path.name!r} cannot be drawn ({kind_and_place(error)}).") from error
    image = drawn.draw_rects([box for some in boxes for box in some], FILL, EDGE, 2).annotated.convert("RGB")
    image.info = {"boxes": boxes, "missing": [quote for quote, some in zip(quotes, boxes, strict=True) if not some]}
    return image


def _words(sheet: Any) -> list[dict[str, Any]]:
    """The words in the order in which docgemma.rcm.pdf reads them: line by line, a table cell by cell."""
    sheet = sheet.dedupe_chars()
    tables = [table for table in sheet.find_tables() if len(table.rows) > 1 and len(table.columns) > 1]
    words = sheet.extract_words(x_tolerance_ratio=0.15)
    inner = [cell for table in tables for cell in table.cells]
    pieces = [(word["top"], [word]) for word in words if not _inside(word, inner)]
    for table in tables:
        cells = [cell for row in table.rows for cell in row.cells if cell]
        pieces.append((table.bbox[1], [word for cell in cells for word in words if _inside(word, [cell])]))
    return [word for _, some in sorted(pieces, key=lambda piece: piece[0]) for word in some]


def _boxes(words: Sequence[dict[str, Any]], quotes: Sequence[str]) -> list[list[Box]]:
    """Where each quote stands, one box a line."""
    text, marks, top = "", list[tuple[int, int, dict[str, Any]]](), 0.0  # a word, where it begins and ends
    for word in words:
        text += " " if abs(word["top"] - top) <= LINE else "\n"
        end = len(text) + len(shown := _clean(word["text"]))
        marks.append((len(text), end, word))
        text, top = text + shown, word["top"]
    found = list[list[Box]]()
    for quote in quotes:
        places = places_of(quote, text) if quote.strip() else []
        hit = [[word for one, two, word in marks if one < end and start < two] for start, end in places]
        lines = [list(line) for some in hit for _, line in groupby(some, key=lambda word: round(word["top"] / LINE))]
        ends = [(line[0], line[-1]) for line in lines]
        found.append([(one["x0"] - 2, one["top"] - 1, two["x1"] + 2, one["bottom"] + 1) for one, two in ends])
    return found
