"""The patient banner, the search for a patient, and the approval card, in a real browser on desktop and phone."""

from contextlib import closing

import pytest

from docgemma.ehr.sqlite import SqliteStore
from tests.test_planted import BY_ID, assert_quoted, planted_chart

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
KOWALSKA = {
    "resourceType": "Patient", "id": "zk-1", "name": [{"given": ["Zofia"], "family": "Kowalska"}],
    "gender": "female", "birthDate": "2025-12-24",
}  # fmt: skip


def records(serve) -> SqliteStore:
    return SqliteStore(serve("scripted").home / "ehr.sqlite")


def orders(serve, patient: str = "ghi-789") -> list[dict]:
    with closing(records(serve)) as store:
        return list(store.chart(patient).medications)


def banner(person) -> str:
    return " ".join(person.page.locator("#dg-banner").inner_text().split())


def opens(person, text: str) -> str:
    """Find a patient by the keyboard alone and open the first; the banner."""
    person.page.locator("#dg-search textarea, #dg-search input").first.focus()
    person.page.keyboard.type(text)
    person.page.locator("#dg-found-0").wait_for()
    person.page.wait_for_timeout(600)  # the last letter's answer
    person.page.keyboard.press("Tab")
    assert person.page.evaluate("document.activeElement.id") == "dg-found-0"
    person.page.keyboard.press("Enter")
    person.page.locator("#dg-found").wait_for(state="hidden")
    person.page.locator(".dg-banner .dg-who strong").wait_for()
    field = "document.querySelector('#dg-search textarea, #dg-search input')"
    person.page.wait_for_function(f"{field}.value === ''")  # emptied a moment after the chart is there
    return banner(person)


def test_the_banner_says_who_is_open_and_stays_in_view_while_the_page_scrolls(visit, width: str) -> None:
    person = visit(width=width)
    assert "No patient is open" in banner(person)
    person.asks(ORDER)
    shown = banner(person)
    for part in ("Aisha Rahman", "born 1990-01-27", "years", "female", "ID ghi-789"):
        assert part in shown
    assert shown.lower().index("severe penicillin (anaphylaxis") < shown.index("latex"), "severe ones first, and marked"
    person.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    person.page.wait_for_timeout(300)
    box = person.page.locator(".dg-banner").bounding_box()
    # on a desktop the conversation scrolls beside it, on a phone the page below it
    assert width == "desktop" or person.page.evaluate("scrollY") > 0
    assert 0 <= box["y"] < (100 if width == "desktop" else 60), "it stays at the top"
    assert box["height"] < person.page.viewport_size["height"] / 5
    assert person.page.evaluate("document.documentElement.scrollWidth") <= person.page.viewport_size["width"]


@pytest.mark.parametrize(
    "typed", ["Rahman Aisha", "Aihsa Rahmann", "27 Jan 1990", "1990-01-27", "GHI 789"],
    ids=["any-order", "typo", "birth-date", "iso-date", "id"],
)  # fmt: skip
def test_a_patient_is_found_by_name_in_any_order_typo_birth_date_and_id(visit, typed: str) -> None:
    assert "Aisha Rahman" in opens(visit(), typed)


def test_the_whole_store_is_searched_and_an_unrecorded_allergy_status_says_ask(visit, serve) -> None:
    with closing(records(serve)) as store:
        store.save([KOWALSKA])
    person = visit(width="phone")
    shown = opens(person, "kowalska")
    assert "Zofia Kowalska" in shown and "month" in shown and "Allergies not recorded: ask" in shown
    person.page.locator("#dg-search textarea, #dg-search input").first.fill("Nobody Atall")
    person.page.get_by_text("Nobody found").wait_for()


def test_a_card_for_another_patient_than_the_banners_stops_until_the_banner_is_switched(visit, serve, width) -> None:
    person, before = visit(width=width), len(orders(serve))
    assert "John Smith" in opens(person, "john smith")
    person.asks(ORDER)
    line = person.page.locator(".dg-differs").inner_text()
    assert line == "This card is for Aisha Rahman; the chart beside it is John Smith’s."
    assert "John Smith" in banner(person), "the banner stays whose it was"
    assert person.page.locator("#dg-approve").is_disabled()
    person.clicks("Open Aisha Rahman’s chart")
    person.page.locator("#dg-approve:not([disabled])").wait_for()
    assert "Aisha Rahman" in banner(person) and not person.sees("#dg-differs")
    person.does(lambda: person.clicks("Reject"))
    assert len(orders(serve)) == before and not person.sees("#dg-differs"), "a decision asks about nobody else"


def test_a_card_for_another_patient_is_approved_once_its_patient_is_confirmed(visit, serve) -> None:
    person, before = visit(), len(orders(serve, "abc-123"))
    opens(person, "aisha rahman")
    person.asks("Prescribe cetirizine 10 mg once daily for abc-123")
    assert person.page.locator("#dg-approve").is_disabled()
    person.clicks("Yes, the card is for John Smith")
    person.page.locator("#dg-approve:not([disabled])").wait_for()
    assert "for John Smith" in person.page.locator(".dg-differs").inner_text(), "the line stays: two patients are shown"
    person.does(lambda: person.clicks("Approve"))
    assert len(orders(serve, "abc-123")) == before + 1


def test_a_pronoun_is_stopped_while_chart_and_answer_are_of_two_patients(visit) -> None:
    person = visit()
    opens(person, "john smith")
    person.asks("What are the allergies of Aisha Rahman, ghi-789?")
    empty = "e => e.getBoundingClientRect().bottom - e.lastElementChild.getBoundingClientRect().bottom"
    assert person.page.locator("#dg-differs").evaluate(empty) < 20, "it hides no answer behind an empty field"
    line = person.page.locator(".dg-differs").inner_text()
    assert line == "This answer is about Aisha Rahman; the chart beside it is John Smith’s."
    assert "Whom do you mean?" in person.asks("What are her medications?")
    assert person.page.locator("#dg-composer textarea").input_value() == "What are her medications?"
    person.clicks("Open Aisha Rahman’s chart")
    person.page.locator("#dg-differs").wait_for(state="hidden")
    assert "Whom do you mean?" not in person.asks("What are her medications?")


def test_a_grave_finding_stands_red_and_approving_asks_for_a_reason_that_the_record_keeps(visit, serve, width) -> None:
    person, before = visit(width=width), len(orders(serve))
    person.asks(ORDER)
    red = person.page.locator(".dg-red").inner_text()
    assert "Contraindicated" in red and "Allergy to penicillin" in red
    unchecked = person.page.locator(".dg-not-checked summary").inner_text()
    assert "latex" not in red and unchecked.startswith("Not checked: the allergy to latex")
    amber = person.page.locator(".dg-findings").all_inner_texts()
    assert "nothing is listed" not in " ".join(amber), "what was looked up and warns of nothing is folded"
    assert not person.page.locator(".dg-not-checked li").is_visible(), "what was not checked is one fold"
    assert "primary" not in person.page.locator("#dg-approve").get_attribute("class")
    assert "primary" in person.page.locator("#dg-edit").get_attribute("class")
    person.clicks("Approve")
    person.page.wait_for_function("() => document.activeElement?.closest('#dg-reason')")
    assert "reason first" in person.page.locator("#dg-needed").inner_text() and len(orders(serve)) == before
    person.page.keyboard.type("Tolerated amoxicillin in 2024")
    person.does(lambda: person.clicks("Approve"))
    note = orders(serve)[0]["note"][-1]["text"]
    assert "Approved despite: Allergy to penicillin" in note and "Tolerated amoxicillin in 2024" in note
    trace = person.stage.trace()
    assert trace["tools"][-1]["override"]["reason"] == "Tolerated amoxicillin in 2024"
    assert any("Tolerated amoxicillin in 2024" in step["detail"] for step in trace["timeline"])
    assert len(orders(serve)) == before + 1


def test_buttons_and_edit_fields_stay_in_view_on_a_phone(visit) -> None:
    person = visit(width="phone")
    person.asks(ORDER)
    height = person.page.viewport_size["height"]
    person.page.locator("#dg-card-title").evaluate("title => title.scrollIntoView({block: 'center'})")
    person.page.wait_for_timeout(300)
    for button in ("#dg-approve", "#dg-edit", "#dg-reject"):
        box = person.page.locator(button).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, f"{button} is in view with the card's head"
    person.clicks("Edit")
    person.page.wait_for_function("() => document.activeElement?.closest('#dg-field-0')")
    person.page.wait_for_timeout(300)
    field, top = person.page.locator("#dg-field-0 textarea"), person.page.locator(".dg-banner").bounding_box()
    box = field.bounding_box()
    assert top["y"] + top["height"] <= box["y"] and box["y"] + box["height"] <= height, "not behind the banner"
    over = "field => { const b = field.getBoundingClientRect(); const at = document.elementFromPoint(b.x + 9, b.y + 9);"
    assert field.evaluate(over + " return at === field || field.contains(at); }"), "nothing lies over the field"


def test_an_alternative_of_the_same_class_edits_the_card_and_is_checked_again(visit, serve, width) -> None:
    patient, before = "abc-123", len(orders(serve, "abc-123"))
    person = visit(width=width)
    person.asks(f"Prescribe clarithromycin 500 mg twice daily for {patient}")
    assert "atorvastatin" in person.page.locator(".dg-red").inner_text()
    offered = person.page.locator("#dg-instead button:visible")
    assert 1 <= offered.count() <= 3
    name = offered.first.inner_text().removesuffix(" instead").lower()
    person.does(offered.first.click)
    card = person.page.locator("#dg-card").inner_text()
    assert f"{name}\n" in card and not person.page.locator(".dg-red").count(), "the gate ran on the alternative"
    assert not person.sees("#dg-approve"), "the other drug's dose is not taken over"
    person.page.wait_for_function("() => document.activeElement?.closest('#dg-field-1')")
    person.clicks("Approve with these changes")
    person.page.get_by_text("Fill in: dosage, frequency").wait_for()
    assert len(orders(serve, patient)) == before
    person.page.get_by_role("textbox", name="Dosage").fill("250 mg")
    person.page.get_by_role("textbox", name="Frequency").fill("once daily")
    person.does(lambda: person.clicks("Approve with these changes"))
    person.page.locator("#dg-approve").wait_for()
    if width == "desktop":  # what is written would be a duplicate of what the phone is offered next
        person.does(lambda: person.clicks("Reject"))
        assert len(orders(serve, patient)) == before
        return
    person.does(lambda: person.clicks("Approve"))
    written = next(item for item in orders(serve, patient) if item["medicationCodeableConcept"]["text"] == name)
    assert "note" not in written, "nothing red stood against it"


def test_the_search_is_used_from_the_keyboard_and_a_line_parts_the_patients(visit) -> None:
    person = visit()
    person.asks("Show the chart of Aisha Rahman, ghi-789")
    person.page.locator("#dg-search input, #dg-search textarea").fill("john smith 1958-04-12")
    person.page.locator("#dg-found-0").wait_for()
    person.page.keyboard.press("Enter")
    person.page.get_by_text("The chart of John Smith is open now.").wait_for()
    assert "John Smith" in person.page.locator("#dg-banner").inner_text()
    person.page.locator("#dg-search input, #dg-search textarea").fill("wilson")
    person.page.locator("#dg-found-1").wait_for()
    person.page.keyboard.press("ArrowDown")
    person.page.keyboard.press("ArrowDown")
    person.page.wait_for_function("() => document.activeElement.id === 'dg-found-1'")
    person.page.keyboard.press("ArrowUp")
    person.page.keyboard.press("Enter")
    person.page.locator("#dg-banner").get_by_text("Wilson").wait_for()


def test_changing_an_entry_is_given_up_again(visit) -> None:
    person = visit(width="phone")
    person.asks(ORDER)
    person.clicks("Edit")
    person.page.locator("#dg-field-0").wait_for()
    person.clicks("Cancel")
    person.page.locator("#dg-approve").wait_for()
    assert not person.sees("#dg-field-0")


def test_on_a_slow_page_what_is_typed_stays_in_the_field_that_was_chosen(visit) -> None:
    """The focus used to jump to the first field under a person's hands, and with it the rest of a frequency."""
    person = visit()
    person.asks(ORDER)
    late = "const on = setTimeout; window.setTimeout = (act, ms, ...more) => on(act, ms === 150 ? 800 : ms, ...more)"
    person.page.evaluate(f"() => {{ {late} }}")
    person.clicks("Edit")
    dosage = person.page.get_by_label("Dosage")
    dosage.fill("")
    dosage.focus()
    person.page.wait_for_timeout(1000)
    person.page.keyboard.type("250 mg")
    assert dosage.input_value() == "250 mg"
    assert person.page.get_by_label("Medication name").input_value() == "amoxicillin"


@pytest.mark.parametrize("planted", ["name-straight-quote-breakout", "family-approved-by-dr", "substance-reversal"])
def test_a_planted_text_reads_as_a_quotation_wherever_the_page_shows_it(visit, serve, planted: str) -> None:
    who = next(key for key, item in BY_ID.items() if item["id"] == planted)
    with closing(records(serve)) as store:
        store.save(planted_chart(who, BY_ID[who]))
    person = visit(width="phone", dark=True)
    opens(person, who)
    person.asks(f"Show me the chart of patient {who}")
    person.page.get_by_text("How this was answered").last.click()
    shown = person.page.locator("body").inner_text().replace("\t", "\n")
    assert "penicillin" in shown and "warfarin" in shown
    assert_quoted(who, shown)
    assert person.page.evaluate("document.documentElement.scrollWidth") <= person.page.viewport_size["width"]
