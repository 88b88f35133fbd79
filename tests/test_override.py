"""An approval against a grave finding: the severity travels with the card, and the reason with entry and report."""

import json
from pathlib import Path

import pytest

from docgemma.agent import Agent
from docgemma.nodes.write_findings import alternatives, override_outside
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding
from docgemma.rules.override import NO_REASON, REASON_CHARS, override, override_text, ranked, red
from docgemma.rules.plan import NOT_SPECIFIED
from tests.test_cli import run
from tests.test_mcp_server import Person, call, context  # noqa: F401

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
MILD = "Prescribe cetirizine 10 mg once daily for abc-123"
WHY = "Tolerated  amoxicillin\nin 2024"


def written(agent: Agent, patient: str = "ghi-789") -> dict:
    return agent.store.chart(patient).medications[0]


def test_each_finding_has_its_rank_in_words_the_gravest_first() -> None:
    lines = ranked([Finding(NOTE, "n"), Finding(UNCHECKED, "u"), Finding(MAJOR, "m"), Finding(CONTRAINDICATED, "c"),
                    Finding(MODERATE, "o"), Finding(MAJOR, "m")])  # fmt: skip
    ranks = [(line["rank"], line["text"]) for line in lines]
    assert ranks == [
        ("contraindicated", "c"), ("major", "m"), ("moderate", "o"), ("minor", "n"), ("unchecked", "u"),
    ]  # fmt: skip
    assert red(lines) == ["c", "m"] and override(lines[2:], "why") is None and override_text(None) == ""
    assert len(override(lines, "x" * 999)["reason"]) == REASON_CHARS


@pytest.mark.parametrize(
    ("reason", "kept"), [(WHY, "Tolerated amoxicillin in 2024"), ("", NO_REASON), (" \n", NO_REASON)]
)
def test_what_was_approved_despite_what_and_why_is_in_record_report_and_timeline(
    edge_agent: Agent, valid, reason: str, kept: str
) -> None:
    waiting = valid(edge_agent.ask(ORDER))
    card = waiting["pending_write"]
    assert card["ranked"][0]["rank"] == "contraindicated" and card["ranked"][0]["text"] == card["findings"][0]
    assert {line["rank"] for line in card["ranked"]} >= {"contraindicated", "unchecked"}
    done = valid(edge_agent.decide(waiting["thread"], "approve", reason=reason))
    despite = red(card["ranked"])
    assert done["tools"][-1]["override"] == {"despite": despite, "reason": kept}
    note = written(edge_agent)["note"][-1]["text"]
    assert note.startswith(f"Approved despite: {despite[0]}") and note.endswith(f"Reason: {kept}")
    assert any(note in step["detail"] for step in done["timeline"])


def test_nothing_is_kept_where_nothing_grave_stood(edge_agent: Agent, valid) -> None:
    waiting = edge_agent.ask(MILD)
    assert not red(waiting["pending_write"]["ranked"]), waiting["pending_write"]["findings"]
    done = valid(edge_agent.decide(waiting["thread"], "approve", reason="just so"))
    assert "override" not in done["tools"][-1] and "note" not in written(edge_agent, "abc-123")


def test_an_amended_card_is_always_shown_again(edge_agent: Agent, valid) -> None:
    """Also where the change raises no new finding: an edit would be written then."""
    before = len(edge_agent.store.chart("abc-123").medications)
    thread = edge_agent.ask("Prescribe clarithromycin 500 mg twice daily for abc-123")["thread"]
    change = {"medication_name": "azithromycin", "dosage": NOT_SPECIFIED, "frequency": NOT_SPECIFIED}
    again = valid(edge_agent.decide(thread, "amend", change))
    assert again["pending_write"]["args"]["medication_name"] == "azithromycin"
    again = valid(edge_agent.decide(thread, "amend", {"notes": "with food"}))
    assert again["status"] == "needs_approval" and len(edge_agent.store.chart("abc-123").medications) == before


def test_alternatives_are_of_the_class_and_pass_the_gate(edge_agent: Agent) -> None:
    gate = edge_agent._context("", {})
    order = {"patient_id": "abc-123", "dosage": "500 mg", "frequency": "twice daily"}
    assert alternatives({**order, "medication_name": "clarithromycin"}, gate) == ["azithromycin", "erythromycin"]
    too_much = {**order, "medication_name": "naproxen", "dosage": "5000 mg"}
    assert alternatives(too_much, gate) == [], "the dose is wrong, not the drug"
    allergic = {**order, "patient_id": "ghi-789", "medication_name": "amoxicillin"}
    assert alternatives(allergic, gate) == [], "every penicillin has the allergy"
    assert alternatives({"patient_id": "ghi-789", "substance": "latex", "reaction": "rash"}, gate) == []
    assert alternatives({**order, "patient_id": "nobody", "medication_name": "clarithromycin"}, gate) == []


def test_the_command_line_takes_a_reason_and_works_without(home: Path) -> None:
    waiting = json.loads(run(home, "ask", ORDER, "--json").stdout)
    done = run(home, "ask", "--thread", waiting["thread"], "--approve", "--reason", "Tested negative", "--json")
    assert json.loads(done.stdout)["tools"][-1]["override"]["reason"] == "Tested negative"
    asked = run(home, "ask", ORDER)
    assert '--approve --reason "…"' in asked.stderr
    direct = run(home, "ask", ORDER, "--approve", "--json")
    assert json.loads(direct.stdout)["tools"][-1]["override"]["reason"] == NO_REASON


def test_an_entry_confirmed_over_mcp_says_that_no_reason_was_given(context) -> None:  # noqa: F811
    order = {"patient_id": "ghi-789", "medication_name": "amoxicillin", "dosage": "500 mg", "frequency": "twice daily"}
    call(context, "prescribe_medication", order, person=Person(), override=override_outside)
    note = context.store.chart("ghi-789").medications[0]["note"][-1]["text"]
    assert note.startswith("Approved despite: Allergy to penicillin") and NO_REASON in note
