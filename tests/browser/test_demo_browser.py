"""What people see and do, in a real browser against a real server process, on desktop and phone widths."""

import json
from pathlib import Path

import pytest

from docgemma.demo.scenarios import load_scenarios

SCENARIOS = load_scenarios()
ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
WILSON = "Find patient James Wilson and check his chart"


def orders(serve, patient: str = "ghi-789") -> list[str]:
    """What the record store holds, read beside the server."""
    from docgemma.ehr.sqlite import SqliteStore

    store = SqliteStore(serve("scripted").home / "ehr.sqlite")
    try:
        return [json.dumps(item) for item in store.chart(patient).medications]
    finally:
        store.close()


def test_a_question_is_answered_with_its_sources_and_its_timeline(visit, width: str) -> None:
    person = visit(width=width)
    said = person.asks("Check FDA warnings for dofetilide")
    assert "boxed warning" in said and "Sources" in said and "as of" in said
    person.page.get_by_text("How this was answered").last.click()
    steps = person.page.locator(".dg-steps").first.inner_text()
    assert "Understanding the question" in steps and "Looking it up" in steps and " s" in steps
    assert "check_drug_safety" not in person.page.locator("#dg-chat").inner_text()
    links = person.page.locator(".dg-sources a")
    assert links.first.get_attribute("href").startswith("https://") and links.first.get_attribute("rel")
    assert person.page.evaluate("document.documentElement.scrollWidth") <= person.page.viewport_size["width"]
    assert not person.left_this_machine() and not person.errors


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.id)
def test_a_scenario_played_by_hand_keeps_its_promise(visit, valid, scenario) -> None:
    """The same steps that the recorder films, on a desktop: typed, attached, chosen, edited, approved."""
    stage = visit().stage
    for number, step in enumerate(scenario.steps):
        stage.perform(scenario, number)
        assert step.unmet(valid(stage.trace())) == [], step.caption


def test_a_dicom_image_is_shown_and_honestly_not_read(visit, ct: Path) -> None:
    person = visit(width="phone")
    said = person.asks("What do you see in this CT image?", image=ct)
    assert "cannot" in said and "128 x 128" in said
    assert "128 x 128" in person.page.locator(".dg-image").get_attribute("alt")
    assert person.page.locator(".dg-image").evaluate("image => image.naturalWidth") == 128


def test_a_file_that_is_no_image_gets_one_line_and_the_question_stays(visit, tmp_path: Path) -> None:
    person = visit()
    (tmp_path / "scan.png").write_text("not an image")
    person.page.set_input_files("#dg-composer input[type=file]", tmp_path / "scan.png")
    person.page.wait_for_timeout(500)
    assert "not an image that can be read" in person.asks("What is this?")
    assert person.page.locator("#dg-composer textarea").input_value() == "What is this?"


def test_an_order_is_shown_with_its_findings_and_written_when_approved(visit, serve, width: str) -> None:
    person, before = visit(width=width), len(orders(serve))
    person.asks(ORDER)
    card = person.page.locator("#dg-card").inner_text()
    assert "amoxicillin" in card and "Aisha Rahman" in card and "Allergy to penicillin" in card
    assert "Aisha Rahman" in person.page.locator("#dg-chart").inner_text(), "the chart is beside the order"
    assert len(orders(serve)) == before, "nothing is written before the decision"
    person.page.locator("#dg-reason textarea").fill("The allergy was ruled out")
    person.does(lambda: person.clicks("Approve"))
    assert len(orders(serve)) == before + 1 and not person.sees("#dg-card")


def test_a_rejected_order_is_not_written_and_says_so(visit, serve, width: str) -> None:
    person, before = visit(width=width), len(orders(serve))
    person.asks(ORDER)
    said = person.does(lambda: person.clicks("Reject"))
    assert "not recorded" in said.lower()
    assert len(orders(serve)) == before and not person.sees("#dg-card")


def test_a_changed_order_is_checked_again_and_written_as_changed(visit, serve) -> None:
    person, before = visit(width="phone"), len(orders(serve))
    person.asks(ORDER)
    person.clicks("Edit")
    person.page.wait_for_function("() => document.activeElement?.closest('#dg-field-0')")
    assert not person.sees("#dg-approve"), "nothing beside the fields approves the entry as it was"
    person.page.get_by_label("Medication name").fill("nitrofurantoin")
    person.page.get_by_label("Dosage").fill("100 mg")
    person.page.get_by_label("Frequency").fill("twice daily")
    person.does(lambda: person.clicks("Approve with these changes"))
    card = person.page.locator("#dg-card").inner_text()
    assert "nitrofurantoin" in card, "new findings are shown before it is written"
    assert len(orders(serve)) == before
    person.does(lambda: person.clicks("Approve"))
    assert len(orders(serve)) == before + 1
    assert any("nitrofurantoin" in item for item in orders(serve))


def test_a_clarification_is_answered_with_a_button(visit) -> None:
    person = visit(width="phone")
    assert "Which one did you mean?" in person.asks(WILSON)
    person.does(lambda: person.page.get_by_role("button", name="1985-07-30").click())
    person.page.wait_for_function("() => document.activeElement?.closest('#dg-composer')")
    assert "born 1985-07-30" in person.page.locator("#dg-chart").inner_text()
    assert not person.page.get_by_role("button", name="1949-02-11").count(), "choices that no longer stand are gone"


def test_stop_ends_a_turn_and_the_conversation_stays_usable(visit, width: str) -> None:
    person = visit(width=width)
    at_rest = person.page.locator("#dg-main").bounding_box()["width"]
    person.page.locator("#dg-composer textarea").fill("What is hypertension, at length?")

    def ask_and_stop() -> None:
        person.page.keyboard.press("Enter")
        person.page.locator(".dg-answer").first.wait_for()  # words have begun to come
        shown = person.page.locator("#dg-main").bounding_box()["width"]
        assert abs(shown - at_rest) < 1, "the page keeps its width while a turn runs"
        person.clicks("Stop")

    assert "Stopped." in person.does(ask_and_stop)
    assert person.sees("#dg-take-up") and person.page.locator("#dg-composer textarea").is_enabled()


def test_everything_works_from_the_keyboard(visit, serve) -> None:
    person, before = visit(), len(orders(serve))
    person.page.locator("#dg-composer textarea").focus()
    person.page.keyboard.type(ORDER)
    person.does(lambda: person.page.keyboard.press("Enter"))
    person.page.wait_for_function("() => document.activeElement?.id === 'dg-card-title'")
    for _ in range(2 + person.page.locator("#dg-card summary").count()):  # past the folds of findings and the reason
        person.page.keyboard.press("Tab")
    assert person.page.evaluate("document.activeElement.innerText") == "Approve"
    person.page.keyboard.press("Tab")
    person.page.keyboard.press("Tab")
    assert person.page.evaluate("document.activeElement.innerText") == "Reject"
    person.does(lambda: person.page.keyboard.press("Enter"))
    assert len(orders(serve)) == before


def test_two_people_never_see_each_others_conversation(visit) -> None:
    first, second = visit(), visit()
    first.asks("Check FDA warnings for dofetilide")
    assert second.talk() == []
    second.asks("What is hypertension?")
    first.asks("Check FDA warnings for warfarin")
    assert "warfarin" in " ".join(first.talk()) and "What is hypertension" not in " ".join(first.talk())
    assert "dofetilide" not in " ".join(second.talk())


def test_a_conversation_and_its_open_decision_survive_a_restart(visit, serve) -> None:
    person = visit()
    person.asks("Check FDA warnings for dofetilide")
    person.asks(ORDER)
    server = serve("scripted")
    server.stop()
    server.start()
    person.server = server
    person.open()
    person.page.locator("#dg-card").wait_for()
    assert person.talk()[0] == "Check FDA warnings for dofetilide" and "boxed warning" in person.talk()[1]
    assert "not recorded" in person.does(lambda: person.clicks("Reject")).lower()


def test_the_turn_can_be_exported_without_the_key_to_the_conversation(visit, valid) -> None:
    person = visit()
    person.asks("Check FDA warnings for dofetilide")
    person.clicks("Reasoning", role="tab")
    with person.page.expect_download() as download:
        person.page.locator("#dg-export").click()
    trace = valid(json.loads(Path(download.value.path()).read_text(encoding="utf-8")))
    assert trace["tools"][0]["name"] == "check_drug_safety" and trace["timeline"]
    assert not trace["thread"].startswith("web")


def test_a_scenario_is_played_step_by_step_and_says_what_to_notice(visit) -> None:
    person = visit()
    person.clicks("Scenarios", role="tab")
    person.page.get_by_label("An instruction hidden in a chart").check()
    person.does(lambda: person.clicks("Play"))
    shown = " ".join(person.talk())
    assert "step 1 of 1" in shown and "What to notice" in shown
    assert not person.sees("#dg-card"), "the planted order asks for nothing"
    person.clicks("Patient", role="tab")
    assert "morphine" in person.page.locator(".dg-allergies").inner_text()


def test_text_that_a_note_planted_makes_the_browser_fetch_nothing(visit) -> None:
    person = visit()
    person.asks(
        "![x](https://example.org/steal) <img src='https://example.org/steal'> Check FDA warnings for dofetilide"
    )
    assert "![x](https://example.org/steal)" in person.talk()[0]
    assert not person.left_this_machine()
    blocked = "fetch('https://example.org/').then(() => 'left', () => 'blocked')"
    assert person.page.evaluate(blocked) == "blocked", "the page's policy holds the browser back"


@pytest.mark.parametrize(("width", "dark"), [("desktop", False), ("phone", True)], ids=["light", "dark"])
def test_texts_keep_their_contrast(visit, width: str, dark: bool) -> None:
    """WCAG AA: 4.5 to 1, and 3 to 1 for large texts, measured on what is drawn."""
    person = visit(width=width, dark=dark)
    person.asks("Check FDA warnings for dofetilide")
    person.asks(ORDER)
    person.clicks("Edit")
    person.page.wait_for_timeout(300)
    assert person.page.evaluate((Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")) == []


def test_nothing_that_was_said_stands_in_the_servers_log(visit, serve) -> None:
    person = visit()
    person.asks("Find patient Tomasz Nowak and check his chart")
    log = serve("scripted").log.read_text(encoding="utf-8")
    assert "Nowak" not in log and "Traceback" not in log
