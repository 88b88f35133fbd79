"""The text of a PDF, page by page: sections with offsets, and which pages could not be read. No OCR."""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError, UsageError, kind_and_place
from docgemma.rcm.header import is_label, words
from docgemma.rcm.pdf_bounds import TooMuchError, bound
from docgemma.rcm.policy_files import payers
from docgemma.rcm.records import FAILED, Document, Page, Section
from docgemma.text.characters import fold, visible

if TYPE_CHECKING:
    from pdfplumber.page import Page as Sheet
    from pdfplumber.pdf import PDF

MAX_PAGES = 2_000
MAX_BYTES = 200_000_000
TOP = "Top of page"  # what stands above the first title of a page
HEADER, FOOTER = "Header", "Footer"  # lines in the page's margins
SCAN_AREA = 0.5  # an image over this share of the page, with fewer words than these beside it, is a scan
SCAN_WORDS = 40
UNMAPPED = 0.2  # share of letters that the file does not map to characters; above it the text is noise
LARGER = 1.12  # a title's letters against the body's
TITLE_CHARS, TITLE_WORDS = 80, 10
MARGINS = (0.05, 0.93)  # of the page's height
WIN_BULLET = "127"  # codes that WinAnsi leaves free are bullets (PDF 32000-1, annex D.2, note 3)
BULLETS = "-•*–·"


@dataclass(frozen=True)
class Line:
    """A line of text, or a row of a table, with how much of it is a title."""

    top: float  # points from the upper edge
    text: str
    title: str = ""
    titled: int = 0  # characters of the text that are its title


def read_pdf(path: Path) -> Document:
    """Read a whole PDF, cited by the file's name.

    Raises:
        UsageError: there is no such file, or it is empty, no PDF, damaged, protected by a password or too large.
        ConfigError: pdfplumber is not installed.
    """
    return document_of(path, list(pages_of(path)))


def document_of(path: Path, pages: Sequence[Page], name: str = "") -> Document:
    """Put pages that were read one by one together. A section that goes on over a page break keeps its title."""
    joined, last = [], ""
    for page in pages:
        sections = [
            Section(title=last or one["title"], start=one["start"], end=one["end"]) if one["title"] == TOP else one
            for one in page["sections"]
        ]
        titles = [one["title"] for one in sections if one["title"] not in (TOP, HEADER, FOOTER)]
        last = "" if page["failed"] else titles[-1] if titles else last
        joined.append(Page(**{**page, "sections": sections}))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Document(name=visible(name) or visible(path.name), digest=digest, pages=joined)


def count_pages(path: Path) -> int:
    """How many pages the file has; nothing of them is read. Raises UsageError as `read_pdf` does."""
    with _check(path).open("rb") as file:
        return len(_opened(file, path.name)[1])


def pages_of(path: Path, start: int = 1) -> Iterator[Page]:
    """Read page after page from number `start` on; the pages before it cost nothing. One page is held at a time.

    A page that is a scan, or fails, comes with `failed` set (and what text there is) and does not stop the rest.
    With the first page UsageError is raised as `read_pdf` does.
    """
    with _check(path).open("rb") as file:
        pdf, sheets = _opened(file, path.name)
        from pdfplumber.page import Page as Sheet

        words()  # a fault of our own data is not the page's
        for number in range(max(start, 1), len(sheets) + 1):
            sheet, sheets[number - 1] = sheets[number - 1], None  # what it holds goes with it
            try:
                page = _read(Sheet(pdf, sheet, page_number=number), number)
            except Exception as error:  # a damaged page raises whatever the parser stumbles over
                what = "too large to be read" if TooMuchError in map(type, (error, *error.args)) else "damaged"
                why = f"{FAILED}: page {number} is {what} ({kind_and_place(error)})."
                page = Page(number=number, text="", sections=[], failed=why)
            yield page
            pdf.doc._cached_objs.clear()  # else the parser keeps what it read of every page


def _check(path: Path) -> Path:
    """Refuse what cannot be a readable PDF before a parser sees it."""
    shown, again = f"{visible(path.name)!r}", "Export or download it again."
    try:
        if not path.is_file():
            raise UsageError(f"There is no file {shown}.", hint="Give the path of a PDF.")
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}.", hint="Give the path of a PDF.") from None
    if b"%PDF-" not in head:
        raise UsageError(f"{shown} {'is not a PDF' if size else 'is empty'}.", hint=again)
    if size > MAX_BYTES:
        said = f"{shown} has {size // 1_000_000:,} MB; at most {MAX_BYTES // 1_000_000} MB can be read."
        raise UsageError(said, hint="Split it.")
    return path


def _opened(file: Any, name: str) -> "tuple[PDF, list[Any]]":
    """The parsed file and its page objects, none of them read yet."""
    try:
        from pdfminer.pdfdocument import PDFPasswordIncorrect
        from pdfminer.pdfpage import PDFPage
        from pdfplumber.pdf import PDF

        bound()
    except ImportError as error:
        raise ConfigError("Reading PDFs needs pdfplumber.", hint="Install it: pip install 'docgemma[rcm]'") from error
    shown = f"{visible(name)!r}"
    try:
        pdf = PDF.open(file)
        sheets = list(islice(PDFPage.create_pages(pdf.doc), MAX_PAGES + 1))
    except Exception as error:  # a damaged file raises whatever the parser stumbles over
        if any(isinstance(one, PDFPasswordIncorrect) for one in (error, *error.args)):
            raise UsageError(f"{shown} is protected by a password.", hint="Save a copy without one.") from None
        said = f"{shown} is damaged and cannot be read ({kind_and_place(error)})."
        raise UsageError(said, hint="Export or download it again.") from error
    if not sheets:
        raise UsageError(f"{shown} is damaged: it holds no page.", hint="Export or download it again.")
    if len(sheets) > MAX_PAGES:
        said = f"{shown} has more than {MAX_PAGES:,} pages."
        raise UsageError(said, hint="Split it, and give the part that the request rests on.")
    return pdf, sheets


def _read(sheet: "Sheet", number: int) -> Page:
    """Text and sections of one page; a row of a table is a line, its cells parted by tabs."""
    sheet = sheet.dedupe_chars()  # letters printed twice to look bold
    found = [table for table in sheet.find_tables() if len(table.rows) > 1 and len(table.columns) > 1]
    cells = [cell for table in found for cell in table.cells]
    lines = _lines(sheet.filter(lambda part: not _inside(part, cells)) if cells else sheet)
    for table in found:
        rows = ("\t".join(_cell(cell or "") for cell in row).strip("\t") for row in table.extract())
        lines += [Line(table.bbox[1] + at / 1000, row) for at, row in enumerate(filter(None, rows))]
    lines.sort(key=lambda line: line.top)
    text, sections = _sections(lines, *(sheet.height * margin for margin in MARGINS))
    return Page(number=number, text=text, sections=sections, failed=_failed(sheet, number, text))


def _failed(sheet: "Sheet", number: int, text: str) -> str:
    """Why the page could not be read, "" where it was. A blank page was read."""
    if text.count("\ufffd") > UNMAPPED * len(text):
        return f"{FAILED}: the letters of page {number} cannot be told apart."
    area = sum(image["width"] * image["height"] for image in sheet.images) / (sheet.width * sheet.height)
    if area >= SCAN_AREA and len(text.split()) < SCAN_WORDS:
        return f"{FAILED}: page {number} is a scanned image without text."
    if any(note["data"].get("V") for note in sheet.annots):
        return f"{FAILED}: page {number} has form fields that cannot be read; print the form to a PDF first."
    if not text and (sheet.images or sheet.curves):
        return f"{FAILED}: page {number} holds drawings and no text."
    return ""


def _inside(part: dict[str, Any], cells: list[Any]) -> bool:
    x, y = (part["x0"] + part["x1"]) / 2, (part["top"] + part["bottom"]) / 2
    return any(left <= x < right and top <= y < bottom for left, top, right, bottom in cells)


def _clean(text: str) -> str:
    """One line in NFC without invisible characters; a soft hyphen at its end is a hyphen."""
    first, *unmapped = text.rstrip().split("(cid:")
    for number, _, rest in (piece.partition(")") for piece in unmapped):
        first += ("•" if number == WIN_BULLET else "\ufffd") + rest
    text = f"{first[:-1]}-" if first.endswith("\u00ad") else first
    return visible(unicodedata.normalize("NFC", text)).replace("\n", " ").replace("\t", " ").strip()


def _cell(text: str) -> str:
    """One cell on one line, but for a word that is broken by a hyphen: that stays as it is."""
    lines = [_clean(line) for line in text.split("\n")]
    return "".join(line + ("\n" if line.endswith("-") and line[-2:-1].isalpha() else " ") for line in lines).strip()


def _lines(sheet: "Sheet") -> list[Line]:
    """The lines outside tables, each with its title if it has one."""
    styles = Counter((round(char["size"], 1), _bold(char)) for char in sheet.chars if char["text"].strip())
    body, bold = max(styles, key=lambda style: (styles[style], style)) if styles else (0.0, False)
    lines = []
    for line in sheet.extract_text_lines(return_chars=True, x_tolerance_ratio=0.15):
        letters = [char for char in line["chars"] if char["text"].strip()]
        if text := _clean(line["text"]):
            large = all(char["size"] >= body * LARGER for char in letters)
            heavy = [large or (_bold(char) and not bold) for char in letters]
            lines.append(Line(line["top"], text, *_title(text, large, heavy)))
    return lines


def _bold(char: dict[str, Any]) -> bool:
    return any(mark in char["fontname"].casefold() for mark in ("bold", "black", "heavy"))


def _title(text: str, large: bool, heavy: list[bool]) -> tuple[str, int]:
    """The title with which a line begins and its length; ("", 0) for a line without one.

    Titles are larger, or bold, or in capitals ("HISTORY OF PRESENT ILLNESS:"), or known ("Assessment:").
    """
    head, colon, rest = text.partition(": ") if not large else (text, "", "")
    if any(rest.startswith(payer) for payer in payers()):  # "Plan: Harborview Benefit Trust     Surgeon: ..."
        return "", 0
    if not colon and head.endswith(":"):
        head, colon = head[:-1], ":"
    letters = len("".join(head.split()))
    if not letters or len(head) > TITLE_CHARS or len(head.split()) > TITLE_WORDS or text[0] in BULLETS:
        return "", 0
    capitals = head.isupper() and sum(map(str.isalpha, head)) > 3 and not any(map(str.isdigit, head))
    titled = all(heavy[:letters]) or capitals or fold(head) in words()["sections"]
    if titled and not (colon and is_label(head)) and (colon or head[-1] not in ".,;"):
        return head, len(head) + len(colon)
    return "", 0


def _sections(lines: list[Line], upper: float, lower: float) -> tuple[str, list[Section]]:
    """The page's text, and its sections, none of them empty, in order and without overlap."""
    text, marks = "", [(HEADER, 0, 0)]  # title, where it begins, where it ends
    for line in lines:
        at, now = len(text), marks[-1][0]
        if line.top >= lower:
            marks += [(FOOTER, at, at)] if now != FOOTER else []
        elif line.title and line.top >= upper:
            marks.append((line.title, at, at + line.titled))
        elif now == HEADER and line.top >= upper:
            marks.append((TOP, at, at))
        text += line.text + "\n"
    text, sections = text.rstrip("\n"), []
    ends = [begins for _, begins, _ in marks[1:]] + [len(text)]
    for (title, _, after), end in zip(marks, ends, strict=True):
        if body := text[after:end].strip():
            start = text.index(body, after)
            sections.append(Section(title=title, start=start, end=start + len(body)))
    return text, sections
