"""Accessibility as axe-core measures it: names, roles, contrast, sizes of targets, on every state of the page."""

from collections.abc import Callable

import pytest

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")

from axe_playwright_python.base import AXE_SCRIPT

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
RUN = "axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})"
IS_DARK = "dark => document.body.classList.contains('dark') === dark"


def violations(person) -> list[str]:
    """What axe finds on the page as it stands, light and dark."""
    person.page.locator("#dg-chat .examples[role=list]").wait_for(state="detached")  # until page.js has run
    found = []
    for scheme in ("light", "dark"):
        person.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour on its way to another
        person.page.wait_for_function(IS_DARK, arg=scheme == "dark")
        if not person.page.evaluate("typeof axe === 'object'"):
            person.page.evaluate(AXE_SCRIPT)
        for rule in person.page.evaluate(RUN)["violations"]:
            found += [f"{scheme}: {rule['id']}, {rule['impact']}: {item['html']}" for item in rule["nodes"]]
    return found


def walks(person, *states: Callable[[], object]) -> None:
    for state in states:
        state()
        assert violations(person) == [], state.__name__


def test_axe_finds_nothing_on_questions_and_answers(visit, width: str) -> None:
    person = visit(width=width)
    search = person.page.locator("#dg-search textarea, #dg-search input").first

    def empty() -> None: ...

    def results_of_a_search() -> None:
        search.fill("smith")
        person.page.locator("#dg-found-0").wait_for()

    def answer_with_sources() -> None:
        search.fill("")
        person.page.locator("#dg-found").wait_for(state="hidden")
        person.asks("Find patient John Smith, check his chart, and verify metformin safety")
        person.page.get_by_text("How this was answered").last.click()
        person.page.locator(".dg-sources summary").first.click()

    def reasoning() -> None:
        person.clicks("Reasoning", role="tab")

    def the_list() -> None:
        person.page.get_by_label("Keep this conversation").check()
        person.page.wait_for_function("() => localStorage.getItem('docgemma-kept')?.length > 10")
        person.clicks("Conversations")
        person.page.locator("#dg-conversations li").wait_for()
        person.page.locator("#dg-feedback").get_by_text("Feedback", exact=True).click()

    def the_help() -> None:
        person.clicks("Conversations")
        person.clicks("What can I ask?")

    walks(person, empty, results_of_a_search, answer_with_sources, reasoning, the_list, the_help)


def test_axe_finds_nothing_on_a_card(visit, width: str) -> None:
    person = visit(width=width)

    def card_with_red_findings() -> None:
        person.asks(ORDER)
        person.page.locator("#dg-reject").hover()

    def reason_that_is_missing() -> None:
        person.clicks("Approve")
        person.page.locator("#dg-needed").wait_for()

    def fields_to_edit() -> None:
        person.clicks("Edit")
        person.page.wait_for_function("() => document.activeElement?.closest('#dg-field-0')")

    def rejected() -> None:
        person.does(lambda: person.clicks("Reject"))

    def card_for_another_patient() -> None:
        person.asks("Prescribe cetirizine 10 mg once daily for abc-123")
        assert person.sees("#dg-differs")

    walks(person, card_with_red_findings, reason_that_is_missing, fields_to_edit, rejected, card_for_another_patient)
    person.does(lambda: person.clicks("Reject"))


def test_axe_finds_nothing_on_a_played_scenario(visit, width: str) -> None:
    person = visit(width=width)

    def nothing_played_yet() -> None:
        person.clicks("Scenarios", role="tab")

    def played() -> None:
        person.page.get_by_label("One look-up").check()
        person.does(lambda: person.clicks("Play"))

    walks(person, nothing_played_yet, played)
