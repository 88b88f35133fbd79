"""An entry that was not made is said by code to be not made, whatever the model says and however it was classified."""

import pytest

from docgemma.agent import Agent
from docgemma.rules.claims import claims_entry
from docgemma.rules.refusal import NOT_PREPARED, NOTHING_RECORDED, without_entries
from tests.scripted import ScriptedLLM
from tests.test_graph_v3 import LOOP, intent, rich

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"


def orders(agent: Agent, patient: str = "ghi-789") -> int:
    return len(agent.store.chart(patient).medications)


def reject(agent: Agent, scripted: ScriptedLLM) -> dict:
    intent(scripted, "prescribe_medication")
    return agent.decide(agent.ask(ORDER)["thread"], "reject")


def test_a_rejected_order_is_answered_by_code_and_no_model_is_asked(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    before = orders(agent)
    result = valid(reject(agent, scripted))  # nothing is enqueued for the model: it would fail if it were asked
    assert result["answer"] == f"Prescription: not recorded. The clinician rejected it.\n{NOTHING_RECORDED}"
    assert result["status"] == "refused" and orders(agent) == before
    assert result["path"] == ["input_assembly", "intent_classify", *LOOP, "synthesize"]


def test_the_timeline_and_the_quality_of_a_rejected_order_do_not_speak_of_success(
    agent: Agent, scripted: ScriptedLLM
) -> None:
    result = reject(agent, scripted)
    shown = [step["detail"] for step in result["timeline"]]
    assert "Prescription: not recorded" in shown and "Rejected by the clinician; nothing was recorded" in shown
    assert not any("found" in detail for detail in shown if "Found:" not in detail)
    assert result["quality"] == ["error_fatal"]


def test_a_rejection_beside_a_look_up_is_told_and_an_earlier_entry_bears_nothing_out(
    agent: Agent, scripted: ScriptedLLM
) -> None:
    """The turn before wrote an order. This one reads a chart, and its own order is rejected."""
    rich(intent(scripted, "prescribe_medication")).enqueue("synthesize", "Done.")
    waiting = agent.ask("Prescribe lisinopril 10 mg once daily for ghi-789")
    written = agent.decide(waiting["thread"], "approve")
    assert written["answer"].startswith("Prescribed lisinopril")
    scripted.enqueue("tool_select", {"tool_name": "get_patient_chart"})
    rich(intent(scripted, "get_patient_chart"), 2)
    both = "Check the chart of ghi-789 and prescribe amoxicillin 500 mg three times daily"
    waiting = agent.ask(both, thread=written["thread"])
    scripted.enqueue("synthesize", "Allergies beyond that are not recorded. The prescription has been placed.")
    result = agent.decide(waiting["thread"], "reject")
    assert "Prescription: not recorded. The clinician rejected it." in result["answer"]
    assert "has been placed" not in result["answer"]
    assert "The prescription has been placed." in result["grounding"]["removed"]


@pytest.mark.parametrize(
    "question",
    [ORDER, "Add a penicillin allergy with hives for abc-123", "Write a progress note for abc-123: he is stable"],
)
def test_an_order_that_was_taken_for_a_general_question_says_that_nothing_was_recorded(
    agent: Agent, scripted: ScriptedLLM, valid, question: str
) -> None:
    before = orders(agent)
    intent(scripted)  # DIRECT; nothing is enqueued for the answer
    result = valid(agent.ask(question))
    assert result["answer"] == NOT_PREPARED and result["status"] == "refused"
    assert result["path"] == ["input_assembly", "intent_classify", "synthesize"] and orders(agent) == before


def test_a_general_answer_cannot_claim_an_entry(agent: Agent, scripted: ScriptedLLM) -> None:
    intent(scripted).enqueue("synthesize", "Hello. I have prescribed amoxicillin for her. Is there anything else?")
    result = agent.ask("Thanks, that is all")
    assert "prescribed" not in result["answer"] and result["answer"].startswith(NOTHING_RECORDED)
    assert result["grounding"] == {"supported": False, "removed": ["I have prescribed amoxicillin for her."]}


@pytest.mark.parametrize(
    ("text", "before", "left"),
    [
        ("The order has been placed.", [], ""),
        ("I have saved the note. Rest well.", [], "Rest well."),
        ("The order has been placed.", ["Prescribed lisinopril 10 mg for A. B."], "The order has been placed."),
        ("Hypertension is high blood pressure.", [], "Hypertension is high blood pressure."),
    ],
)
def test_only_claims_of_an_entry_that_nothing_confirms_are_removed(text: str, before: list[str], left: str) -> None:
    kept, removed = without_entries(text, before)
    assert kept == left and all(claims_entry(item, before) for item in removed)
