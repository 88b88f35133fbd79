"""The scenarios of the specification once more, with the real edge model.

The reader and code decide, so that no model is called at all. What follows holds besides: an answer, no tool names,
no raw errors, at most `MAX_STEPS` calls of tools, no question "is this enough?".
"""

import json

import pytest

from docgemma.agent import Agent
from docgemma.rules.plan import MAX_STEPS
from docgemma.tools import toolbox

SCENARIOS = [
    "Hello, how are you?",
    "What is hypertension?",
    "Check FDA warnings for dofetilide",
    "Find patient Maria Garcia and check her chart",
    "Check interactions between warfarin, aspirin, and ibuprofen",
    "Check FDA warnings for amiodarone",
    "Search for patient James Wilson",
    "Prescribe metformin 500mg for abc-123",
    "Find patient John Smith, check his chart, and verify metformin safety",
    "Any studies on SGLT2 inhibitors in heart failure?",
    "Find recruiting trials for type 2 diabetes",
    "Document that abc-123 is allergic to penicillin, it gave him hives",
    "Save a progress note for def-456: blood pressure controlled, continue treatment",
]


@pytest.mark.parametrize("question", SCENARIOS)
def test_scenario_holds_its_invariants_on_the_edge_model(edge_agent: Agent, valid, question: str) -> None:
    result = valid(edge_agent.ask(question))
    assert_invariants(result)
    if result["status"] == "needs_approval":
        result = valid(edge_agent.decide(result["thread"], "approve"))
        assert_invariants(result)
        assert result["status"] == "answered"


def test_image_question_is_refused_honestly_with_the_header(edge_agent: Agent, valid, png) -> None:
    result = valid(edge_agent.ask("What do you see in this chest X-ray?", image=png))
    assert_invariants(result)
    assert "64 x 48" in result["answer"] and "cannot" in result["answer"]


def assert_invariants(result: dict) -> None:
    assert result["answer"].strip()
    assert not [tool.name for tool in toolbox() if tool.name in result["answer"]]
    assert "Traceback" not in result["answer"] and "Error:" not in result["answer"]
    assert result["llm_calls"] == 0 and result["tokens"] == {"prompt": 0, "completion": 0}
    assert len([tool for tool in result["tools"] if tool["retries"] == 0]) <= MAX_STEPS
    said = json.dumps(result["timeline"]).lower()
    assert "plan" not in said and "enough" not in said


def test_two_charts_in_one_request_stay_two_peoples(edge_agent: Agent, valid) -> None:
    result = valid(edge_agent.ask("put the charts of abc-123 and def-456 up for me"))
    first, second = (part for part in result["answer"].split("\n\n") if part.startswith("Patient:"))
    assert "abc-123" in first and "sulfamethoxazole" in first and "Allergy: aspirin" not in first
    assert "def-456" in second and "Allergy: aspirin" in second and "sulfamethoxazole" not in second


def test_two_orders_in_one_request_wait_one_after_the_other(edge_agent: Agent, valid) -> None:
    result = valid(edge_agent.ask("Start bisoprolol 1.25 mg od and furosemide 40 mg mane for def-456"))
    given = []
    while result["status"] == "needs_approval":
        args = result["pending_write"]["args"]
        given.append((args["medication_name"], args["dosage"], args["frequency"]))
        result = valid(edge_agent.decide(result["thread"], "reject"))
    assert given == [("bisoprolol", "1.25 mg", "once daily"), ("furosemide", "40 mg", "in the morning")]
