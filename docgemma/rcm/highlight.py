"""Draw a page of a PDF with the words of quotes boxed. A quote is found as the auditor finds it."""

import threading
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import UsageError, kind_and_place
from docgemma.rcm.audit import _places
from docgemma.rcm.pdf import _clean, _inside, _opened

if TYPE_CHECKING:
    from pdfplumber.page import Page as Sheet
    from PIL.Image import Image

Box = tuple[float, float, float, float]  # left, top, right, bottom in points
DPI, MOST = 110, 1_700  # pixels an inch; pixels of the longer side, at most
SAME_LINE = 3  # points between the tops of two words
FILL, EDGE = (250, 204, 21, 90), (180, 83, 9)
PDFIUM = threading.Lock()  # it may not be called from two threads at once


def page_image(path: Path, page: int, quotes: Sequence[str] = ()) -> "Image":
    """A page, from 1, as an RGB image of about 110 pixels an inch.

    Returns:
        An image whose `info` says what was marked: "boxes", a list for each quote (one a line, in points; none where
        the quote does not stand on the page), and "missing", the quotes without a box.

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
            boxes = found(sheet, quotes) if quotes else []
            scale = min(DPI, MOST * 72 / max(sheet.width, sheet.height))
            with PDFIUM:
                drawn = sheet.to_image(resolution=scale, antialias=True)
        except Exception as error:  # a damaged page raises whatever the parser stumbles over
            raise UsageError(f"Page {page} of {path.name!r} cannot be drawn ({kind_and_place(error)}).") from error
    image = drawn.draw_rects([box for some in boxes for box in some], FILL, EDGE, 2).annotated.convert("RGB")
    missing = [quote for quote, some in zip(quotes, boxes, strict=True) if not some]
    image.info = {"boxes": boxes, "missing": missing}
    return image


def found(sheet: "Sheet", quotes: Sequence[str]) -> list[list[Box]]:
    """Where each quote stands, one box a line."""
    text, marks = "", list[tuple[int, int, dict[str, Any]]]()  # a word, where it begins and ends
    for word in _words(sheet):
        text += "\n" if marks and abs(word["top"] - marks[-1][2]["top"]) > SAME_LINE else " "
        shown = _clean(word["text"])
        marks.append((len(text), len(text) + len(shown), word))
        text += shown
    places = [_places(quote, text) if quote.strip() else [] for quote in quotes]
    return [
        [box for start, end in some for box in _boxes([word for one, two, word in marks if one < end and start < two])]
        for some in places
    ]


def _words(sheet: "Sheet") -> list[dict[str, Any]]:
    """The words in the order in which docgemma.rcm.pdf reads them: line by line, a table cell by cell."""
    sheet = sheet.dedupe_chars()
    tables = [table for table in sheet.find_tables() if len(table.rows) > 1 and len(table.columns) > 1]
    cells = [cell for table in tables for cell in table.cells]
    words = sheet.extract_words(x_tolerance_ratio=0.15)
    pieces = [(word["top"], [word]) for word in words if not _inside(word, cells)]
    for table in tables:
        ordered = [cell for row in table.rows for cell in row.cells if cell]
        pieces.append((table.bbox[1], [word for cell in ordered for word in words if _inside(word, [cell])]))
    return [word for _, some in sorted(pieces, key=lambda piece: piece[0]) for word in some]


def _boxes(words: list[dict[str, Any]]) -> list[Box]:
    lines = [list(line) for _, line in groupby(words, key=lambda word: round(word["top"] / SAME_LINE))]
    return [
        (line[0]["x0"] - 2, min(w["top"] for w in line) - 1, line[-1]["x1"] + 2, max(w["bottom"] for w in line) + 1)
        for line in lines
    ]
