"""What comes back and what does not, the list of conversations, the queue, copy, thumbs, print: in a real browser."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.browser.conftest import sign_in

CHECK = "Check FDA warnings for dofetilide"
ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
NOWAK = "Find patient Tomasz Nowak and check his chart"
AT_LENGTH = "What is hypertension, at length?"


def whole(person) -> str:
    """Everything that the page holds, hidden or not, and what the browser stores."""
    stored = person.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    return person.page.locator("body").inner_html() + stored


def new_tab(person, visitor):
    """A second tab of the same browser."""
    return visitor(person.page.context.new_page(), person.server)


def list_opened(person) -> None:
    person.clicks("Conversations")
    person.page.locator("#dg-conversations h2").wait_for()
    person.page.wait_for_timeout(600)  # it slides in


def remembered(person) -> None:
    person.page.get_by_label("Keep this conversation").check()
    person.page.wait_for_function("() => localStorage.getItem('docgemma-kept')?.length > 10")
    person.page.wait_for_timeout(300)


def exported(person, button: str) -> str:
    """The address from which a file with the patient's name came."""
    with person.page.expect_download() as download:
        person.page.locator(button).click()
    assert "Nowak" in Path(download.value.path()).read_text(encoding="utf-8")
    return download.value.url


def begins_anew(person) -> None:
    person.clicks("New conversation")
    person.page.wait_for_function("() => !document.querySelector('.dg-said')")
    person.page.wait_for_timeout(300)


def test_new_conversation_reload_and_new_tab_show_nobody_the_patient_before(visit, serve, width: str) -> None:
    person = visit(width=width)
    person.asks(NOWAK)
    assert "Nowak" in whole(person)
    other = new_tab(person, type(person))
    assert "Nowak" not in whole(other) and other.talk() == []
    person.open()
    assert "Nowak" not in whole(person) and person.talk() == [], "a reload"
    person.asks(ORDER)
    begins_anew(person)
    person.page.get_by_text("The entry that waited was not recorded").wait_for()
    assert not person.sees("#dg-card") and not person.sees("#dg-export")
    left = whole(person)
    assert "Aisha" not in left.replace(ORDER, "") and "docgemma-trace" not in left
    with closing(sqlite3.connect(serve("scripted").home / "memory.sqlite")) as memory:
        person.page.wait_for_timeout(500)
        rows = " ".join(str(row) for row in memory.execute("SELECT thread_id, checkpoint FROM checkpoints"))
    assert "ghi-789" not in rows, "it is forgotten on the disk, too"


def test_an_entry_that_waits_comes_back_after_an_accidental_reload_of_its_tab_only(visit, width: str) -> None:
    person = visit(width=width)
    person.asks(ORDER)
    assert new_tab(person, type(person)).talk() == []
    person.page.reload()
    person.page.locator("#dg-card").wait_for()
    assert "not recorded" in person.does(lambda: person.clicks("Reject")).lower()


def test_a_turn_that_runs_comes_back_after_a_reload_with_what_waits_behind_it(visit) -> None:
    person = visit()
    person.page.locator("#dg-composer textarea").fill(AT_LENGTH)
    person.page.keyboard.press("Enter")
    person.page.locator(".dg-answer").first.wait_for()
    person.page.locator("#dg-composer textarea").fill(CHECK)
    person.page.keyboard.press("Enter")
    person.page.locator(".dg-waiting").wait_for()
    person.page.reload()
    person.page.locator(".dg-waiting").wait_for()
    assert person.talk()[0] == AT_LENGTH
    person.clicks("Stop")
    person.page.locator("#dg-take-up").wait_for()
    assert person.page.locator("#dg-composer textarea").input_value() == CHECK, "Stop hands back what waited"


def test_what_is_sent_while_a_turn_runs_waits_can_be_withdrawn_and_runs_next(visit, width: str) -> None:
    person = visit(width=width)
    field = person.page.locator("#dg-composer textarea")
    field.fill(AT_LENGTH)
    person.page.keyboard.press("Enter")
    person.page.locator(".dg-answer").first.wait_for()
    field.fill("Is it raining?")
    person.page.keyboard.press("Enter")
    person.page.locator(".dg-waiting").wait_for()
    assert "Is it raining?" in person.page.locator("#dg-line").inner_text()
    field.fill("")  # Gradio empties it a moment later, not always while an answer streams
    person.clicks("Withdraw")
    person.page.wait_for_function("() => document.querySelector('#dg-composer textarea').value === 'Is it raining?'")
    assert not person.sees("#dg-line")
    field.fill(CHECK)
    field.press("Enter")
    person.page.locator(".dg-waiting").wait_for()
    field.fill("a draft")
    person.page.get_by_text("boxed warning").first.wait_for(timeout=60_000)
    assert [item for item in person.talk() if item in (AT_LENGTH, CHECK)] == [AT_LENGTH, CHECK]
    assert not person.sees("#dg-line") and field.input_value() == "a draft", "what is being typed stays"


def test_a_kept_conversation_is_opened_renamed_and_deleted_in_the_list(visit, width: str) -> None:
    person = visit(width=width)
    person.asks(NOWAK)
    remembered(person)
    begins_anew(person)
    assert not person.page.get_by_label("Keep this conversation").is_checked()
    assert "Nowak" not in whole(visit()), "another browser"
    list_opened(person)
    row = person.page.locator("#dg-conversations li").first
    assert NOWAK in row.inner_text()
    row.get_by_role("button", name="Rename").click()
    person.page.keyboard.type("Ward round")
    person.page.keyboard.press("Enter")
    person.page.wait_for_timeout(500)
    person.page.reload()
    person.page.wait_for_function("() => document.querySelector('#dg-new:not([disabled])')")
    assert person.talk() == [], "a new page is empty; what was kept is in the list"
    list_opened(person)
    row.get_by_role("button", name="Ward round").first.click()
    person.page.locator(".dg-said").first.wait_for()
    person.page.locator("#dg-conversations li[aria-current]").wait_for()  # the list knows it, too
    assert person.page.get_by_label("Keep this conversation").is_checked()
    person.page.wait_for_timeout(500)
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete for good").click()
    person.page.get_by_text("Only conversations that you keep").wait_for()
    person.page.wait_for_function("() => !document.querySelector('.dg-said')")
    assert "Nowak" not in whole(person)


def test_the_list_works_from_the_keyboard(visit) -> None:
    person = visit()
    person.asks(CHECK)
    person.page.get_by_label("Keep this conversation").focus()
    person.page.keyboard.press("Space")
    person.page.wait_for_function("() => localStorage.getItem('docgemma-kept')?.length > 10")
    person.page.get_by_role("button", name="Conversations").press("Enter")  # focus and key at once: the page may redraw
    person.page.locator("#dg-conversations li").wait_for()
    person.page.wait_for_timeout(600)
    for _ in range(3):
        person.page.keyboard.press("Tab")
    assert "Delete" in person.page.evaluate("document.activeElement.getAttribute('aria-label')")
    person.page.keyboard.press("Shift+Tab")
    assert "Rename" in person.page.evaluate("document.activeElement.getAttribute('aria-label')")
    person.page.keyboard.press("Enter")
    person.page.keyboard.type("Ward round")
    person.page.keyboard.press("Enter")
    person.page.get_by_role("button", name="Rename: Ward round").wait_for()
    person.page.wait_for_timeout(600)
    assert person.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Rename: Ward round"
    person.page.keyboard.press("Tab")
    person.page.keyboard.press("Enter")
    person.page.keyboard.press("Enter")
    person.page.get_by_text("Only conversations that you keep").wait_for()
    person.page.wait_for_function("() => document.activeElement?.closest('#dg-composer')")
    assert not person.errors


def test_an_answer_is_copied_as_text_and_a_thumb_is_kept_without_words(visit, serve) -> None:
    person = visit()
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.asks(CHECK)
    person.page.locator(".message-buttons:visible").last.get_by_role("button", name="Copy message").click()
    person.page.wait_for_timeout(300)
    copied = person.page.evaluate("navigator.clipboard.readText()")
    assert "boxed warning" in copied and "\nSources\n" in copied and "<" not in copied
    assert person.page.get_by_role("button", name="Like", exact=True).filter(visible=True).count() == 1
    person.page.locator(".message-buttons:visible").last.get_by_role("button", name="Like", exact=True).click()
    list_opened(person)
    person.page.locator("#dg-feedback").get_by_text("Feedback", exact=True).click()
    with person.page.expect_download() as download:
        person.page.locator("#dg-export-feedback").click()
    (thumb, *_) = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert thumb["liked"] is True and "dofetilide" not in json.dumps(thumb)
    assert (serve("scripted").home / "feedback.jsonl").stat().st_mode & 0o077 == 0


def test_what_is_printed_is_who_asked_what_the_answers_and_the_sources(visit, width: str) -> None:
    person = visit(width=width)
    person.page.evaluate("() => { window.printed = 0; window.print = () => { window.printed += 1 } }")
    person.asks(CHECK)
    person.clicks("Print")
    person.page.wait_for_function("() => window.printed === 1")
    person.page.emulate_media(media="print")
    seen = person.page.evaluate("document.body.innerText")
    assert CHECK in seen and "boxed warning" in seen and "Sources" in seen
    for hidden in ("How this was answered", "New conversation", "Reasoning", "Keep this", "Offline", "Pick a patient"):
        assert hidden not in seen, hidden
    box = person.page.locator("#dg-chat").bounding_box()
    assert box["height"] >= person.page.locator(".dg-answer").last.bounding_box()["height"], "nothing is cut off"


def test_the_conversation_fills_the_window_and_the_composer_stays_in_view(visit, width: str) -> None:
    person = visit(width=width)
    height = person.page.viewport_size["height"]
    for _ in range(2):
        foot = person.page.locator("#dg-composer").bounding_box()
        assert height - 300 < foot["y"] < foot["y"] + foot["height"] <= height
        person.asks(CHECK)
    assert person.page.evaluate("document.documentElement.scrollWidth") <= person.page.viewport_size["width"]


def test_help_opens_and_closes_without_a_pointer(visit, width: str) -> None:
    person = visit(width=width)
    person.page.get_by_role("button", name="What can I ask?").focus()
    person.page.keyboard.press("Enter")
    assert person.sees("#dg-help") and "Boxed warning" in person.page.locator("#dg-help").inner_text()
    person.page.keyboard.press("Escape")
    assert not person.sees("#dg-help")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_list_and_help_keep_their_contrast(visit, dark: bool) -> None:
    person = visit(dark=dark)
    person.asks(CHECK)
    remembered(person)
    list_opened(person)
    person.page.locator("#dg-feedback").get_by_text("Feedback", exact=True).click()
    person.clicks("What can I ask?")
    person.page.wait_for_timeout(500)
    assert person.page.evaluate((Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")) == []


def test_a_second_login_in_the_same_browser_sees_nothing_of_the_first(visit, serve, ct: Path) -> None:
    person = visit("login", user="dr-a")
    person.asks("What do you see in this CT image?", image=ct)
    person.asks(NOWAK)
    list_opened(person)
    assert "Nowak" in person.page.locator("#dg-conversations").inner_text()
    person.page.locator("#dg-feedback").get_by_text("Feedback", exact=True).click()
    person.page.get_by_label("Add question and answer").check()
    person.page.locator(".message-buttons:visible").last.get_by_role("button", name="Like", exact=True).click()
    mine = [exported(person, "#dg-export-feedback")]
    person.clicks("Conversations")
    person.page.wait_for_timeout(600)
    person.clicks("Reasoning", role="tab")
    mine.append(exported(person, "#dg-export"))
    person.page.get_by_role("link", name="Sign out").click()
    person.page.get_by_label("username").wait_for()
    sign_in(person.page.context, serve("login"), "dr-b")
    person.open()
    assert "Signed in: dr-b" in person.page.locator("#dg-badges").inner_text()
    assert person.talk() == [] and "Nowak" not in whole(person) and "web.dr-a" not in whole(person)
    list_opened(person)
    assert "Your conversations appear here" in person.page.locator("#dg-conversations").inner_text()
    person.page.locator("#dg-feedback").get_by_text("Feedback", exact=True).click()
    assert not person.sees("#dg-export-feedback")
    for address in mine:  # even who knows where the first one's exports lay
        assert person.page.context.request.get(address).status in (403, 404), address
    kept = serve("login").home / "images"
    assert [path for path in kept.rglob("*") if path.is_file()], "the image is kept for the first one alone"
    person.page.get_by_role("link", name="Sign out").click()
    person.page.get_by_label("username").wait_for()
    sign_in(person.page.context, serve("login"), "dr-a")
    person.open()
    list_opened(person)
    person.page.get_by_role("button", name="What do you see").first.click()
    person.page.locator(".dg-said").first.wait_for()
    assert NOWAK in person.talk(), "the first one comes back to theirs"
