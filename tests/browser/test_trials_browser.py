"""The Trials tab in a real browser: a note, its searches, the shortlist, an outage, nobody else's page."""

import os
import threading
from collections.abc import Iterator

import pytest

from docgemma.paths import PACKAGE, kit
from tests.browser.test_axe_browser import walks

RECORDS = PACKAGE.parent / "data" / "prescreen" / "benchmark" / "dev" / "records.jsonl.gz"
NOTE = "A 34-year-old woman with generalised myasthenia gravis. A thymoma was removed. She takes pyridostigmine."


@pytest.fixture(scope="module", autouse=True)
def registry(serve) -> Iterator[object]:
    """The project's own registry on this machine; the demo is started with its address, and reaches nothing else."""
    standin = kit("prescreen", "mock_server")
    server = standin.open_server(RECORDS)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["DOCGEMMA_CTGOV_URL"] = standin.address(server)
    serve("edge")
    del os.environ["DOCGEMMA_CTGOV_URL"]
    yield server
    server.shutdown()
    server.server_close()


def opens(visit, **how):
    person = visit("edge", **how)
    person.clicks("Trials", role="tab")
    return person


def searches(person, note: str = NOTE) -> str:
    person.page.get_by_label("What is known of the patient").fill(note)
    person.clicks("Find trials")
    person.page.locator("#dg-trials").get_by_text("Searching:").wait_for()
    return shown(person)


def shown(person) -> str:
    person.page.locator("#dg-trials h2").wait_for()
    return person.page.locator("#dg-trials").inner_text()


def test_a_note_becomes_a_shortlist_with_its_searches_and_their_reasons(visit, width: str) -> None:
    person = opens(visit, width=width)
    text = searches(person)
    assert "of 25 calls" in text and "34 years, female, myasthenia gravis" in text
    assert "SYN-TRIAL-" in text and "The criteria are not judged" in text and "Partial" not in text
    person.page.get_by_text("Searches:").click()
    assert "found" in person.page.locator("#dg-trials .dg-steps li").first.inner_text()
    assert person.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert person.left_this_machine() == [] and person.errors == []


def test_it_works_by_keyboard_alone(visit) -> None:
    person = opens(visit)
    person.page.get_by_label("What is known of the patient").focus()
    person.page.keyboard.type(NOTE)
    person.page.keyboard.press("Tab")
    assert person.page.evaluate("document.activeElement.id") == "dg-trials-go"
    person.page.keyboard.press("Enter")
    assert "SYN-TRIAL-" in shown(person)


def test_nobody_else_sees_it_and_a_reload_or_clear_forgets_it(visit, serve) -> None:
    one, other = opens(visit), opens(visit)
    searches(one)
    assert "myasthenia" not in other.page.locator("body").inner_text()
    one.clicks("Clear")
    one.page.locator("#dg-trials h2").wait_for(state="detached")
    assert one.page.get_by_label("What is known of the patient").input_value() == ""
    searches(one)
    one.open()
    one.clicks("Trials", role="tab")
    assert "myasthenia" not in one.page.locator("body").inner_text()
    files = [file for file in serve("edge").home.rglob("*") if file.is_file() and "knowledge-" not in file.name]
    assert files and not [file for file in files if b"myasthenia" in file.read_bytes()]


def test_axe_finds_nothing_on_the_trials(visit, width: str) -> None:
    person = opens(visit, width=width)

    def empty() -> None: ...

    def shortlist() -> None:
        searches(person)
        person.page.get_by_text("Searches:").click()

    def empty_note() -> None:
        person.clicks("Clear")
        person.clicks("Find trials")
        person.page.locator("#dg-trials [role=alert]").wait_for()

    walks(person, empty, shortlist, empty_note)


def test_an_outage_says_so_and_what_was_found_stays_marked_partial(visit, registry) -> None:
    """The registry fails after three searches."""
    person, page, left = opens(visit), registry.trials.page, [3]

    def failing(asked):
        left[0] -= 1
        if left[0] < 0:
            raise OSError("gone")
        return page(asked)

    registry.trials.page = failing
    try:
        text = searches(person)
    finally:
        registry.trials.page = page
    assert "Partial: search_trials failed" in text and "SYN-TRIAL-" in text
    assert person.page.locator("#dg-trials [role=alert]").is_visible()
