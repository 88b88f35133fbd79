"""Everything without a mouse: by touch on a phone, where nothing hovers, and by the Tab and Enter keys alone."""

from contextlib import closing

import pytest

from docgemma.ehr.sqlite import SqliteStore

METFORMIN = "Find patient John Smith, check his chart, and verify metformin safety"
ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
AT_LENGTH = "What is hypertension, at length?"


def orders(serve, patient: str = "ghi-789") -> list[dict]:
    with closing(SqliteStore(serve("scripted").home / "ehr.sqlite")) as store:
        return list(store.chart(patient).medications)


def taps(person, name: str, role: str = "button") -> None:
    person.page.get_by_role(role, name=name, exact=True).tap()


def sends(person, text: str) -> None:
    person.page.locator("#dg-composer textarea").tap()
    person.page.keyboard.type(text)
    person.page.locator("#dg-composer .submit-button").tap()


def tabs_to(person, selector: str, back: bool = False) -> None:
    """Press Tab until the focus is there."""
    for _ in range(60):
        if person.page.evaluate("selector => !!document.activeElement?.closest(selector)", selector):
            return
        person.page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"Tab does not reach {selector}")


def presses(person, selector: str, key: str = "Enter", back: bool = False) -> None:
    tabs_to(person, selector, back)
    person.page.keyboard.press(key)


@pytest.fixture
def touching(visit):
    person = visit(width="phone", touch=True)
    assert person.page.evaluate("matchMedia('(hover: none) and (pointer: coarse)').matches")
    return person


def test_a_patient_an_answer_and_its_tools_by_touch(touching) -> None:
    person, page = touching, touching.page
    page.locator("#dg-search textarea, #dg-search input").first.tap()
    page.keyboard.type("john smith")
    page.locator("#dg-found-0").tap()
    page.locator(".dg-banner", has_text="John Smith").wait_for()
    person.does(lambda: sends(person, METFORMIN))
    page.get_by_text("How this was answered").last.tap()
    page.locator(".dg-steps:visible").first.wait_for()
    page.locator(".dg-sources summary").first.tap()
    page.locator(".dg-sources details[open]").first.wait_for()
    taps(person, "Reasoning", role="tab")
    page.locator("#dg-trace .dg-facts").wait_for()
    page.locator(".message-buttons:visible").last.get_by_role("button", name="Like", exact=True).tap()
    taps(person, "What can I ask?")
    assert person.sees("#dg-help")
    taps(person, "Close")
    assert not person.sees("#dg-help")
    page.evaluate("() => { window.printed = 0; window.print = () => { window.printed += 1 } }")
    taps(person, "Print")
    page.wait_for_function("() => window.printed === 1")


def test_a_conversation_is_kept_renamed_opened_and_deleted_by_touch(touching) -> None:
    person, page = touching, touching.page
    person.does(lambda: sends(person, "Find patient Tomasz Nowak and check his chart"))
    page.get_by_label("Keep this conversation").tap()
    page.wait_for_function("() => localStorage.getItem('docgemma-kept')?.length > 10")
    page.wait_for_timeout(300)
    taps(person, "New conversation")
    page.wait_for_function("() => !document.querySelector('.dg-said')")
    taps(person, "Conversations")
    row = page.locator("#dg-conversations li").first
    row.wait_for()
    page.wait_for_timeout(600)  # it slides in
    row.get_by_role("button", name="Rename").tap()
    page.keyboard.type("Ward round")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Rename: Ward round").wait_for()
    row.get_by_role("button", name="Ward round").first.tap()
    page.locator(".dg-said").first.wait_for()
    page.locator("#dg-conversations li[aria-current]").wait_for()
    row.get_by_role("button", name="Delete").tap()
    row.get_by_role("button", name="Delete for good").tap()
    page.wait_for_function("() => !document.querySelector('.dg-said')")


def test_a_card_is_refused_without_a_reason_changed_and_rejected_by_touch(touching, serve) -> None:
    person, page, before = touching, touching.page, len(orders(serve))
    person.does(lambda: sends(person, ORDER))
    taps(person, "Approve")
    page.locator("#dg-needed").wait_for()
    page.locator(".dg-not-checked summary").tap()
    assert page.locator(".dg-not-checked li").first.is_visible()
    taps(person, "Edit")
    page.wait_for_function("() => document.activeElement?.closest('#dg-field-0')")
    page.get_by_label("Dosage").fill("250 mg")
    page.locator("#dg-reason textarea").fill("")
    person.does(lambda: taps(person, "Approve with these changes"))
    assert "250 mg" in page.locator("#dg-card dl").inner_text() and len(orders(serve)) == before
    person.does(lambda: taps(person, "Reject"))
    assert len(orders(serve)) == before and not person.sees("#dg-card")


def test_a_turn_is_stopped_and_what_waits_is_withdrawn_by_touch(touching) -> None:
    person, page = touching, touching.page
    sends(person, AT_LENGTH)
    page.locator(".dg-answer").first.wait_for()
    sends(person, "Is it raining?")
    page.locator(".dg-waiting").wait_for()
    taps(person, "Withdraw")
    page.wait_for_function("() => document.querySelector('#dg-composer textarea').value === 'Is it raining?'")
    taps(person, "Stop")
    page.locator("#dg-take-up").wait_for()
    assert "Stopped." in person.talk()[-1]


def test_a_card_is_refused_without_a_reason_changed_and_rejected_from_the_keyboard(visit, serve) -> None:
    person, before = visit(), len(orders(serve))
    page = person.page
    page.keyboard.type(ORDER)  # the composer has the focus
    person.does(lambda: page.keyboard.press("Enter"))
    page.wait_for_function("() => document.activeElement?.id === 'dg-card-title'")
    presses(person, ".dg-not-checked summary")
    assert page.locator(".dg-not-checked li").first.is_visible()
    presses(person, "#dg-approve")
    page.wait_for_function("() => document.activeElement?.closest('#dg-reason')")
    presses(person, "#dg-edit")
    page.wait_for_function("() => document.activeElement?.closest('#dg-field-0')")
    tabs_to(person, "#dg-field-1")
    page.keyboard.press("Control+A")
    page.keyboard.type("250 mg")
    tabs_to(person, "#dg-save")
    person.does(lambda: page.keyboard.press("Enter"))
    page.wait_for_function("() => document.activeElement?.id === 'dg-card-title'")
    assert "250 mg" in page.locator("#dg-card dl").inner_text()
    tabs_to(person, "#dg-reject")
    person.does(lambda: page.keyboard.press("Enter"))
    assert len(orders(serve)) == before and not person.sees("#dg-card")


def test_a_card_for_another_patient_is_settled_from_the_keyboard(visit) -> None:
    person = visit()
    person.asks("Show me the chart of abc-123")
    person.asks(ORDER)
    assert person.page.locator("#dg-approve").is_disabled()
    page = person.page
    presses(person, "#dg-switch", back=True)
    page.locator("#dg-approve:not([disabled])").wait_for()
    page.locator(".dg-banner", has_text="Aisha Rahman").wait_for()
    page.wait_for_function("() => document.activeElement?.id === 'dg-card-title'")  # the focus moves there by itself
    tabs_to(person, "#dg-reject")
    person.does(lambda: page.keyboard.press("Enter"))


def test_answers_and_everyday_tools_work_from_the_keyboard(visit) -> None:
    person = visit()
    page = person.page
    page.evaluate("() => { window.printed = 0; window.print = () => { window.printed += 1 } }")
    page.keyboard.type("Find patient Tomasz Nowak and check his chart")
    person.does(lambda: page.keyboard.press("Enter"))
    presses(person, "#dg-chat .message-buttons button[aria-label='Like']", back=True)
    presses(person, "#dg-chat .thought-group .title", back=True)
    page.locator("#dg-chat .dg-steps:visible").first.wait_for()
    presses(person, "#dg-remember input", key="Space")
    page.wait_for_function("() => localStorage.getItem('docgemma-kept')?.length > 10")
    presses(person, "#dg-print")
    page.wait_for_function("() => window.printed === 1")
    presses(person, "#dg-tabs [role=tab]:nth-of-type(2)")
    page.locator("#dg-trace .dg-facts").wait_for()
    presses(person, "#dg-new", back=True)
    page.wait_for_function("() => !document.querySelector('.dg-said')")
    page.wait_for_function("() => document.activeElement?.closest('#dg-composer')")
    page.keyboard.type(AT_LENGTH)
    page.keyboard.press("Enter")
    page.locator(".dg-answer").first.wait_for()
    page.keyboard.type("Is it raining?")
    page.keyboard.press("Enter")
    page.locator(".dg-waiting").wait_for()
    presses(person, "#dg-withdraw")
    page.wait_for_function("() => document.querySelector('#dg-composer textarea').value === 'Is it raining?'")
    presses(person, "#dg-stop")
    page.locator("#dg-take-up").wait_for()
