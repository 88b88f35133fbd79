"""What a message does to a waiting card. No message approves it."""

import pytest

from docgemma.reading.labels import ASKS
from docgemma.rules.amend import NOT_APPROVED, amendment
from docgemma.rules.follow import carried
from tests.rules_help import drug, order, person, request

LAST = request("rx", meant="ordered", patients=[person()], orders=[order("lisinopril", "10 mg", "once daily")])
CARD = {
    "name": "prescribe_medication", "label": "Prescription", "patient": {}, "original": {}, "findings": [],
    "args": {"patient_id": "abc-123", "medication_name": "lisinopril", "dosage": "10 mg", "frequency": "once daily"},
}  # fmt: skip


def decided(*asks: str, **given) -> dict:
    return amendment(carried(request(*asks, **given), LAST, True), LAST, CARD)


@pytest.mark.parametrize("ask", ASKS)
def test_no_ask_approves_a_card(ask: str) -> None:
    assert decided(ask)["decision"] in ("reject", "amend", "hold")
    assert decided(ask, "ok")["decision"] != "approve" and decided("ok")["args"] == {}


def test_a_cancel_rejects() -> None:
    assert decided("cancel")["decision"] == decided("cancel", "chat")["decision"] == "reject"


def test_a_yes_in_words_shows_the_card_again_unchanged() -> None:
    assert decided("ok") == {"decision": "amend", "args": {}, "beside": NOT_APPROVED}


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ({"details": {"dose": "5 mg"}}, {"dosage": "5 mg"}),
        ({"details": {"frequency": "twice daily"}}, {"frequency": "twice daily"}),
        ({"details": {"notes": "for 3 days"}}, {"notes": "for 3 days"}),
        ({"drugs": [drug("enalapril")]}, {"medication_name": "enalapril"}),
        ({"patients": [person("def-456", "Maria Garcia")]}, {"patient_id": "def-456"}),
    ],
)
def test_a_correction_changes_what_it_names_and_nothing_else(given: dict, args: dict) -> None:
    assert decided("fix", **given) == {"decision": "amend", "args": args}


@pytest.mark.parametrize("ask", ["labs", "safe", "gk", "find", "rx", "chat"])
def test_another_question_puts_the_card_aside(ask: str) -> None:
    assert decided(ask)["decision"] == "hold"


def test_a_correction_that_changes_nothing_says_so_and_makes_no_second_card() -> None:
    decision = decided("fix")
    assert (decision["decision"], decision["args"]) == ("amend", {}) and "unchanged" in decision["beside"]
