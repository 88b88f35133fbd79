"""The RCM tab in a real browser: a checklist beside the page of each quote, what is asked back, what is kept."""

from pathlib import Path

import pytest

pytest.importorskip("pdfplumber", reason="the rcm extra is not installed")

from docgemma.paths import data_file
from docgemma.rcm.ledger import open_ledger
from docgemma.settings import Settings
from tests.browser.test_axe_browser import violations

NOTES = data_file("rcm", "notes")
DRAWN = "() => document.querySelector('.dg-page > img')?.naturalWidth > 0"


def opens(visit, **how):
    person = visit("edge", **how)
    person.clicks("RCM", role="tab")
    return person


def takes(person, sample: str) -> None:
    person.page.get_by_label("Or a sample note").click()
    person.page.get_by_role("option", name=sample, exact=True).click()
    person.page.locator("#dg-rcm-papers li").get_by_text(sample).wait_for()


def adds(person, *papers: Path) -> None:
    person.page.locator("#dg-rcm-add input[type=file]").set_input_files(papers)


def runs(person) -> str:
    person.clicks("Run")
    return answered(person)


def answered(person) -> str:
    person.page.locator("#dg-rcm section, #dg-rcm [role=alert]").first.wait_for()
    return person.page.locator("#dg-rcm").inner_text()


def kept(server, *words: bytes) -> list[Path]:
    """Files of the demo that hold any of the words, the ledger left out; that is where quotes stay."""
    files = [
        file for file in server.home.rglob("*") if file.is_file() and not file.name.startswith(("ledger", "rcm-charts"))
    ]
    return [file for file in files if any(word in file.read_bytes() for word in words)]


def test_each_quote_of_the_checklist_is_highlighted_on_its_page(visit, width: str) -> None:
    person = opens(visit, width=width)
    takes(person, "abernathy_lumbar_mri.pdf")
    person.clicks("Run")
    person.page.locator("#dg-rcm").get_by_text("Working:").wait_for()
    text = answered(person)
    # one too many: the strict xfail in tests/test_rcm_criteria.py says which; both figures fall when it is mended
    assert text.index("Verdict") < text.index("3 of 5 criteria are met") < text.index("Checklist")
    assert "MET" in text and "NOT DOCUMENTED" in text and "A person decides" in text and "Confidence 92 %" in text
    assert "not given by this model" in text and "Evidence ledger" in text and "not replace" in text
    person.page.wait_for_function(DRAWN)
    assert "highlighted: “Mr. Abernathy is a" in person.page.locator(".dg-page > img").get_attribute("alt")
    quote = person.page.get_by_role("button", name="Straight leg raise negative")  # one side of the contradiction
    quote.focus()
    person.page.keyboard.press("Enter")
    person.page.locator(".dg-page").get_by_text("Page 2 of abernathy_lumbar_mri.pdf").wait_for()
    person.page.wait_for_function(DRAWN)
    assert person.page.locator("#dg-rcm [aria-pressed=true]").all_inner_texts() == [quote.inner_text()]
    assert "highlighted: “Straight leg raise" in person.page.locator(".dg-page > img").get_attribute("alt")
    box = person.page.locator(".dg-page > img").bounding_box()
    assert box["y"] < person.page.viewport_size["height"] - 100 and box["width"] > 300
    assert person.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(person) == []
    person.clicks("Enlarge")
    person.page.wait_for_function("() => document.querySelector('#dg-rcm-large img').naturalWidth > 900")
    assert violations(person) == []
    person.page.keyboard.press("Escape")
    assert not person.sees("#dg-rcm-large")
    person.page.get_by_text("Steps:").click()
    assert "page 3 of 3 of abernathy_lumbar_mri.pdf" in person.page.locator("#dg-rcm .dg-steps").inner_text()
    assert person.left_this_machine() == [] and person.errors == []


def test_what_is_asked_back_is_answered_in_its_place(visit) -> None:
    person = opens(visit)
    takes(person, "wilson_without_birth_date.pdf")
    assert "Whom do you mean?" in runs(person)
    assert violations(person) == []
    person.page.get_by_role("button", name="James Wilson, male, born 1985-07-30").focus()
    person.page.keyboard.press("Enter")
    person.page.locator("#dg-rcm h2").get_by_text("Verdict").wait_for()
    text = person.page.locator("#dg-rcm").inner_text()
    assert "born 1985-07-30" in text and "born 1949" not in text


def test_uploads_are_read_and_clear_forgets_all_but_the_ledger(visit, serve, tmp_path: Path) -> None:
    one, other, server = opens(visit), opens(visit), serve("edge")
    fake = tmp_path / "letter.pdf"
    fake.write_text("no PDF")
    adds(one, NOTES / "gonzalez_knee_replacement.pdf", fake)
    one.page.locator("#dg-rcm-papers [role=alert]").get_by_text("is not a PDF").wait_for()
    assert one.page.locator("#dg-rcm-papers li").all_inner_texts() == ["gonzalez_knee_replacement.pdf 4 pages"]
    assert "All criteria are met" in runs(one) and kept(server, b"Maria Gonzalez", b"%PDF-")
    assert "Gonzalez" not in other.page.locator("body").inner_text()
    one.clicks("Clear")
    one.page.locator("#dg-rcm").get_by_text("Forgotten").wait_for()
    assert "ledger stay" in one.page.locator("#dg-rcm").inner_text() and not one.sees(".dg-page")
    assert kept(server, b"Maria Gonzalez", b"%PDF-", b"Kellgren") == []
    ledger = open_ledger(Settings(home=server.home).db_location, create=False)
    report = ledger.check()
    assert report.rows > 0 and not report.faults
    assert "Gonzalez" not in server.log.read_text(encoding="utf-8")


def test_stop_ends_a_long_reading_and_run_goes_on(visit) -> None:
    person = opens(visit)
    takes(person, "lindqvist_full_record.pdf")
    person.clicks("Run")
    person.page.locator("#dg-rcm").get_by_text("Working: page").wait_for()
    person.clicks("Stop")
    person.page.locator("#dg-rcm [role=alert]").get_by_text("Stopped.").wait_for()
    first = person.page.locator("#dg-rcm summary").inner_text()
    assert int(first.removeprefix("Steps: ")) < 25
    person.clicks("Run")
    person.page.locator("#dg-rcm h2").first.wait_for()
    person.page.locator("#dg-rcm summary").last.click()
    assert "page 1 of 25" not in person.page.locator("#dg-rcm .dg-steps").inner_text()
    assert "page 25 of 25" in person.page.locator("#dg-rcm .dg-steps").inner_text()


def test_a_grave_finding_and_an_unreadable_page_are_said(visit) -> None:
    person = opens(visit, dark=True)
    takes(person, "rahman_amoxicillin.pdf")
    text = runs(person)
    assert "Physician Review Required" in text and "Allergy to penicillin" in text and "Checklist" not in text
    takes(person, "lindqvist_knee_mri.pdf")
    person.page.locator("#dg-rcm h2").first.wait_for(state="detached")
    assert "page 3 is a scanned image" in runs(person)
    person.page.locator("#dg-rcm button.dg-quote").get_by_text("lindqvist_knee_mri.pdf, page 3").click()
    person.page.locator(".dg-page").get_by_text("Page 3 of").wait_for()
    assert violations(person) == []
