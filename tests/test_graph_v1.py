"""The v1 graph on exact paths: direct or complex, decompose, plan, execute, check; its three limits."""

from collections.abc import Iterator

import pytest

from docgemma.agent import Agent
from docgemma.errors import ErrorType, ToolError
from docgemma.settings import Settings
from tests.scripted import ScriptedLLM
from tests.test_graph_v2 import ALONE, call, decomposed
from tests.test_graph_v3 import always_failing, assert_safe, executed, failing_once

START = ["image_detection", "complexity_router"]
LOOP = ["plan_tool", "tool_execute", "check_result"]


@pytest.fixture
def agent(settings: Settings, scripted: ScriptedLLM) -> Iterator[Agent]:
    with Agent(settings, llm=scripted, graph="v1") as agent:
        yield agent


def routed(llm: ScriptedLLM, complexity: str = "complex") -> ScriptedLLM:
    return llm.enqueue("complexity_router", {"complexity": complexity, "reasoning": "A clinical task."})


def test_direct_takes_two_calls(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    routed(scripted, "direct").enqueue("synthesize", "Loop diuretics act on the ascending limb of the loop of Henle.")
    result = valid(agent.ask("How do loop diuretics work in the nephron?"))
    assert result["path"] == [*START, "synthesize"] and result["llm_calls"] == 2
    assert result["graph"] == "v1" and result["confidence"] is None, "v1 does not say how sure it is"


def test_each_part_is_planned_executed_and_checked(settings: Settings, scripted: ScriptedLLM, valid) -> None:
    parts = [call("check_drug_safety", "dofetilide"), call("search_medical_literature", "dofetilide in heart failure")]
    decomposed(routed(scripted), *parts).enqueue("plan_tool", parts[0]).enqueue("plan_tool", parts[1])
    scripted.enqueue("synthesize", "Dofetilide has a boxed warning.")
    with Agent(settings.model_copy(update=ALONE), llm=scripted, graph="v1") as agent:
        result = valid(agent.ask("Check FDA warnings for dofetilide and find studies of it in heart failure"))
    assert result["path"] == [*START, "decompose", *LOOP, *LOOP, "synthesize"]
    assert executed(result) == [part["tool_name"] for part in parts] and result["llm_calls"] == 3 + 2
    assert_safe(result)


def test_the_decomposition_of_the_specification(agent: Agent, scripted: ScriptedLLM, valid, png) -> None:
    """ "Analyze the X-ray, retrieve the history, find guidelines": three parts in their order."""
    scripted.vision = True
    question = (
        "CXR shows what looks like a mass in the right upper lobe. Patient ID abc-123. "
        "Pull their smoking history and find current screening guidelines for lung cancer."
    )
    parts = [
        call("analyze_medical_image", "right upper lobe mass"), call("get_patient_chart", "abc-123"),
        call("search_medical_literature", "lung cancer screening"),
    ]  # fmt: skip
    decomposed(routed(scripted), *parts)
    for part in parts:
        scripted.enqueue("plan_tool", part)
    findings = {
        "modality": "chest_xray", "findings": ["Right upper lobe opacity"], "impression": "Possible mass",
        "confidence": 0.6, "requires_specialist_review": True,
    }  # fmt: skip
    scripted.enqueue("analyze_medical_image", findings).enqueue("synthesize", "A right upper lobe opacity was seen.")
    result = valid(agent.ask(question, image=png))
    assert executed(result) == ["analyze_medical_image", "get_patient_chart", "search_medical_literature"]
    assert "lung cancer screening" not in str(result["tools"]), (
        "a model's own words do not leave beside a patient's name"
    )
    assert result["llm_calls"] <= 3 + 3 * 5 + 1


def test_a_failed_call_is_repeated_as_it_is_and_at_most_three_times(
    agent: Agent, scripted: ScriptedLLM, valid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.toolbox, "call", always_failing(agent, ToolError(ErrorType.TIMEOUT)))
    decomposed(routed(scripted), call("check_drug_safety", "amiodarone"))
    scripted.enqueue("synthesize", "Amiodarone 400 mg causes pulmonary toxicity.")
    result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert [tool["retries"] for tool in result["tools"]] == [0, 1, 2, 3]
    assert result["path"] == [*START, "decompose", *LOOP, *LOOP[1:] * 3, "synthesize"]
    assert "400 mg" not in result["answer"] and "did not respond. Nothing was checked." in result["answer"]


def test_a_retry_that_works_goes_on(agent: Agent, scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_once(agent, monkeypatch, ToolError(ErrorType.NOT_FOUND))
    decomposed(routed(scripted), call("check_drug_safety", "amiodarone")).enqueue("synthesize", "Pulmonary toxicity.")
    result = agent.ask("Check FDA warnings for amiodarone")
    assert [tool["ok"] for tool in result["tools"]] == [False, True]
    assert result["tools"][0]["args"] == result["tools"][1]["args"]


def test_a_part_is_worked_on_at_most_three_times(agent: Agent, scripted: ScriptedLLM) -> None:
    """One part for four drugs: three of them, then the plan adds the fourth as a part of its own."""
    decomposed(routed(scripted), call("check_drug_safety", "the four drugs"))
    for drug in ("dofetilide", "warfarin", "metformin"):
        scripted.enqueue("plan_tool", call("check_drug_safety", drug))
    scripted.enqueue("synthesize", "Reviewed.")
    result = agent.ask("What are the FDA warnings of dofetilide, warfarin, metformin and digoxin")
    stored = agent._stored(result["thread"]).values
    assert executed(result).count("check_drug_safety") == 4 and len(stored["subtasks"]) > 1
    assert max(scripted.nodes().count(node) for node in ("plan_tool",)) <= 3


def test_decompose_asks_where_nothing_can_begin_and_the_answer_goes_on(
    agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    decomposed(routed(scripted), call("get_patient_chart", "her"), unclear=True)
    asked = valid(agent.ask("Check her chart"))
    assert asked["path"] == [*START, "decompose", "synthesize"] and asked["status"] == "needs_clarification"
    scripted.enqueue("synthesize", "Her chart was reviewed.")
    result = valid(agent.ask("def-456", thread=asked["thread"]))
    assert result["path"] == ["image_detection", "tool_execute", "check_result", "synthesize"]
    assert result["tools"][-1]["args"] == {"patient_id": "def-456"}


def test_a_request_in_which_nothing_was_understood_is_asked_about(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    decomposed(routed(scripted), call("get_patient_chart", "that thing"), unclear=True)
    asked = valid(agent.ask("Do the usual"))
    assert asked["status"] == "needs_clarification" and asked["answer"].startswith("Which patient?")
    routed(scripted, "direct").enqueue("synthesize", "Hello.")
    assert valid(agent.ask("Hello", thread=asked["thread"]))["status"] == "answered"


def test_a_failed_call_that_only_a_person_can_settle_ends_in_a_question(
    agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    decomposed(routed(scripted), call("search_patient", "James Wilson"))
    asked = valid(agent.ask("Search for patient James Wilson"))
    assert asked["path"] == [*START, "decompose", *LOOP, "synthesize"]
    assert asked["status"] == "needs_clarification" and len(asked["options"]) == 3
    assert "synthesize" not in scripted.nodes() and len(asked["tools"]) == 1


def test_a_write_waits_and_happens_once(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    decomposed(routed(scripted), call("prescribe_medication", "metformin 500mg"))
    scripted.enqueue("synthesize", "Metformin was ordered.")
    before = len(agent.store.chart("abc-123").medications)
    waiting = valid(agent.ask("Prescribe metformin 500mg for abc-123"))
    assert waiting["status"] == "needs_approval"
    result = valid(agent.decide(waiting["thread"], "approve"))
    assert result["path"] == [*START, "decompose", *LOOP, "synthesize"] and result["graph"] == "v1"
    assert len(agent.store.chart("abc-123").medications) == before + 1


def test_an_image_or_a_patient_is_always_complex(agent: Agent, scripted: ScriptedLLM) -> None:
    decomposed(routed(scripted, "direct"), call("get_patient_chart", "abc-123")).enqueue("synthesize", "Fine.")
    assert executed(agent.ask("What is the potassium of abc-123?")) == ["get_patient_chart"]


def test_parts_that_a_limit_left_out_are_named(
    agent: Agent, scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docgemma.nodes.subtasks.MAX_SUBTASKS", 1)
    decomposed(routed(scripted), call("search_patient", "Maria Garcia")).enqueue("synthesize", "")
    scripted.enqueue("plan_tool", call("search_patient", "Maria Garcia"))
    result = agent.ask("Find patient Maria Garcia and check her chart")
    assert executed(result) == ["search_patient"]
    assert "Not done, because the request has too many parts: Patient Record." in result["answer"]
