"""Render the sample notes of sources/ as PDFs, byte for byte the same each time: build.py [FOLDER].

A source is YAML between two lines of "---" (the file's subject, the running head of pages 2 on; `each` and `template`:
pages made from rows), then the text: "# title", "## heading", ": header line", "- item", "| table | row |",
"=== page" (a new page), "=== scan FILE" (a page that is only an image), "=== white TEXT" (letters nobody sees); a line
that ends in "\\" breaks there.
"""

import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml
from reportlab.lib import colors
from reportlab.lib.pagesizes import LETTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Image, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

HERE = Path(__file__).resolve().parent
MARGIN = 60  # points
BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10, leading=13.5, spaceAfter=5)
ITEM = ParagraphStyle("item", BODY, leftIndent=14, bulletIndent=4, spaceAfter=2)
HEADER = ParagraphStyle("header", BODY, spaceAfter=0)
CELL = ParagraphStyle("cell", BODY, fontSize=9, leading=11, spaceAfter=0)
HEAD = ParagraphStyle(
    "head", BODY, fontName="Helvetica-Bold", fontSize=10.5, spaceBefore=7, spaceAfter=2, keepWithNext=1
)
TITLE = ParagraphStyle("title", HEAD, fontSize=14, leading=18, spaceBefore=4, spaceAfter=6)
WHITE = ParagraphStyle("white", BODY, fontSize=4, leading=5, textColor=colors.white)
GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.grey), ("VALIGN", (0, 0), (-1, -1), "TOP")]
FOOTER = "Synthetic sample for software tests. No real patient, clinician, facility or payer."


def read_source(path: Path) -> tuple[dict[str, Any], str]:
    """The head and the text of a source; rows of `each` are set into `template` where the text says "=== each"."""
    _, head, text = path.read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(head)
    rows = [about["template"].format(**row) for row in about.get("each", [])]
    return about, text.replace("=== each\n", "\n=== page\n".join(rows) + "\n")


def flow(text: str) -> list[Flowable]:
    """The text as reportlab's flowables, block by block."""
    made: list[Flowable] = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        if block.startswith("| "):
            rows = [[Paragraph(escape(cell.strip()), CELL) for cell in line.strip("| ").split("|")] for line in lines]
            width = (LETTER[0] - 2 * MARGIN) / len(rows[0])
            made += [Table(rows, colWidths=[width] * len(rows[0]), style=GRID), Spacer(1, 6)]
            continue
        if block.startswith((": ", "- ")):
            style = HEADER if block.startswith(": ") else ITEM
            bullet = None if style is HEADER else "\u2022"
            made += [Paragraph(spaced(line[2:]), style, bulletText=bullet) for line in lines]
            made.append(Spacer(1, 5))
            continue
        while lines and lines[0].startswith(("# ", "## ", "===")):
            made += command(lines.pop(0))
        if lines:
            made.append(Paragraph(escape("\n".join(lines)).replace("\\\n", "<br/>"), BODY))
    return made


def command(line: str) -> list[Flowable]:
    """A title, a heading, or one of the "===" lines."""
    if line.startswith("# "):
        return [Paragraph(escape(line[2:]), TITLE)]
    if line.startswith("## "):
        return [Paragraph(escape(line[3:]), HEAD)]
    what, _, rest = line.removeprefix("=== ").partition(" ")
    if what == "scan":
        return [PageBreak(), Image(str(HERE / "sources" / rest), width=480, height=640), PageBreak()]
    return [PageBreak()] if what == "page" else [Paragraph(escape(rest), WHITE)]


def spaced(line: str) -> str:
    """A header line whose wide gaps stay wide."""
    return escape(line).replace("  ", "\u00a0\u00a0 ")


def build(source: Path, target: Path) -> None:
    """Render one source."""
    about, text = read_source(source)

    def edges(canvas: Canvas, made: SimpleDocTemplate) -> None:
        canvas.setFont("Helvetica", 7.5)
        canvas.drawString(MARGIN, 30, f"{FOOTER}   Page {made.page}")
        if made.page > 1 and about.get("running"):
            canvas.drawString(MARGIN, LETTER[1] - 32, about["running"])

    document = SimpleDocTemplate(
        str(target), pagesize=LETTER, leftMargin=MARGIN, rightMargin=MARGIN, topMargin=54, bottomMargin=54,
        title=about["subject"], author="DocGemma sample", invariant=1, pageCompression=0,  # zlibs differ
    )  # fmt: skip
    document.build(flow(text), onFirstPage=edges, onLaterPages=edges)


def scan(text: Path, target: Path) -> None:
    """Draw a text as a photographed page, slightly askew: letters that no program can copy. Its JPEG is kept."""
    from PIL import Image as Picture
    from PIL import ImageDraw, ImageFont

    page = Picture.new("L", (600, 800), 244)
    ImageDraw.Draw(page).multiline_text(
        (50, 60), text.read_text(encoding="utf-8"), 60, ImageFont.load_default(14), spacing=7
    )
    page.rotate(0.8, fillcolor=225).save(target, quality=35)


def main(folder: Path = HERE) -> None:
    """Render every source into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for text in sorted((HERE / "sources").glob("*.scan.txt")):
        if not (picture := text.with_suffix("").with_suffix(".jpg")).exists():
            scan(text, picture)
    for source in sorted((HERE / "sources").glob("*.md")):
        build(source, folder / f"{source.stem}.pdf")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
