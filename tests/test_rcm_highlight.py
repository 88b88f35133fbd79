"""A page of a PDF is drawn with the words of a quote boxed, and nothing else."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("pdfplumber", reason="the rcm extra is not installed")

import pdfplumber
from PIL import ImageChops
from reportlab.pdfgen.canvas import Canvas

from docgemma.errors import UsageError
from docgemma.paths import data_file
from docgemma.rcm.highlight import MOST, PDFIUM, page_image
from docgemma.rcm.pdf import read_pdf
from docgemma.rcm.sentences import sentences_of

NOTES = data_file("rcm", "notes")
ABERNATHY = NOTES / "abernathy_lumbar_mri.pdf"
HYPHENATED = "Chronic low back pain, stable under conservative management."
TWO_LINES = "He has no weakness and no numbness."


def boxed(path: Path, page: int, quote: str) -> list[str]:
    """The words whose middle lies in each box of a quote."""
    boxes = page_image(path, page, [quote]).info["boxes"][0]
    with pdfplumber.open(path) as pdf:
        words = pdf.pages[page - 1].extract_words(x_tolerance_ratio=0.15)
    return [
        " ".join(
            word["text"] for word in words
            if left < (word["x0"] + word["x1"]) / 2 < right and top < (word["top"] + word["bottom"]) / 2 < bottom
        )
        for left, top, right, bottom in boxes
    ]  # fmt: skip


def written(path: Path, text: str, size: tuple[float, float] = (612, 792), turned: bool = False) -> Path:
    canvas = Canvas(str(path), pagesize=size)
    if turned:
        canvas.setPageRotation(90)
        canvas.rotate(90)
    canvas.drawString(100, -300 if turned else 500, text)
    canvas.save()
    return path


@pytest.mark.parametrize(
    ("page", "quote", "lines"),
    [
        (2, "Straight leg raise negative on both sides.", ["Straight leg raise negative on both sides."]),
        (2, TWO_LINES, ["He has no", "weakness and no numbness."]),
        (2, HYPHENATED, ["Chronic low back pain, stable under conser-", "vative management."]),
        (2, "stable under conser-\nvative management.", ["stable under conser-", "vative management."]),
    ],
)
def test_a_quote_gets_a_box_on_each_of_its_lines(page: int, quote: str, lines: list[str]) -> None:
    assert boxed(ABERNATHY, page, quote) == lines


def test_a_row_of_a_table_is_read_cell_by_cell() -> None:
    row = "Diagnosis\tICD-10-CM M17.11\tUnilateral primary osteoarthritis, right knee"
    found = boxed(NOTES / "gonzalez_knee_replacement.pdf", 1, row)
    assert found == ["Diagnosis ICD-10-CM M17.11 Unilateral primary osteoarthritis, right", "knee"]


@pytest.mark.parametrize("quote", ["No such words stand here.", "eg raise negative", "able", " "])
def test_a_quote_that_does_not_stand_there_has_no_box_and_is_named(quote: str) -> None:
    image = page_image(ABERNATHY, 2, [quote])
    assert image.info == {"boxes": [[]], "missing": [quote]}
    assert ImageChops.difference(image, page_image(ABERNATHY, 2)).getbbox() is None


@pytest.mark.parametrize("name", sorted(path.name for path in NOTES.glob("*.pdf") if "full" not in path.name))
def test_every_sentence_that_can_be_quoted_is_found_on_its_page(name: str) -> None:
    document = read_pdf(NOTES / name)
    said = sentences_of([document])
    for page in document["pages"]:
        quotes = [one.text for one in said if one.page == page["number"]]
        assert page_image(NOTES / name, page["number"], quotes).info["missing"] == []


@pytest.mark.parametrize("turned", [False, True])
def test_the_box_lies_on_the_ink_also_of_a_turned_page(tmp_path: Path, turned: bool) -> None:
    path = written(tmp_path / "note.pdf", "The right knee has hurt for six months.", turned=turned)
    plain, marked = page_image(path, 1), page_image(path, 1, ["right knee has hurt"])
    left, top, right, bottom = ImageChops.difference(plain, marked).getbbox()
    darkest, _ = plain.crop((left, top, right, bottom)).convert("L").getextrema()
    assert darkest < 60 and (bottom - top) < 30 and 100 < right - left < 200


def test_a_page_of_any_size_stays_within_bounds(tmp_path: Path) -> None:
    path = written(tmp_path / "poster.pdf", "The right knee hurts.", size=(14_000, 9_000))
    assert max(page_image(path, 1, ["right knee"]).size) <= MOST


def test_what_is_no_page_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no page 4"):
        page_image(ABERNATHY, 4)
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(ABERNATHY.read_bytes()[:700])
    with pytest.raises(UsageError, match="damaged"):
        page_image(broken, 1)


def test_only_one_page_is_drawn_at_a_time() -> None:
    """PDFium itself may not be called from two threads at once."""
    with ThreadPoolExecutor(1) as pool:
        with PDFIUM:
            drawn = pool.submit(page_image, ABERNATHY, 2)
            with pytest.raises(TimeoutError):
                drawn.result(timeout=1)
        assert ImageChops.difference(drawn.result(timeout=20), page_image(ABERNATHY, 2)).getbbox() is None
