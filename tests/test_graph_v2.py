"""The v2 graph on exact paths: four routes with their call budgets, corrections, error strategies, confidence.

The model is scripted; rules, tools, record store, knowledge and memory are the real ones.
"""

from collections.abc import Iterator

import pytest

from docgemma.agent import Agent
from docgemma.errors import ErrorType, StoppedError, ToolError
from docgemma.settings import Settings
from tests.scripted import ScriptedLLM
from tests.test_graph_v3 import always_failing, assert_safe, executed, failing_once

START = ["image_detection", "context_assembler", "triage"]
CALL = ["tool_execute", "assess_result"]
LONG = ["plan_tool", "validate_call", *CALL]
ALONE = {"narrowing": False, "copy_args": False}  # the model does all that v2 leaves to it


@pytest.fixture
def agent(settings: Settings, scripted: ScriptedLLM) -> Iterator[Agent]:
    with Agent(settings, llm=scripted, graph="v2") as agent:
        yield agent


@pytest.fixture
def bare_agent(settings: Settings, scripted: ScriptedLLM) -> Iterator[Agent]:
    with Agent(settings.model_copy(update=ALONE), llm=scripted, graph="v2") as agent:
        yield agent


def triaged(llm: ScriptedLLM, route: str, tool: str | None = None, query: str | None = None) -> ScriptedLLM:
    return llm.enqueue("triage", {"route": route, "tool": tool, "query": query})


def call(tool: str, query: str) -> dict:
    return {"tool_name": tool, "query": query}


def decomposed(llm: ScriptedLLM, *calls: dict, unclear: bool = False) -> ScriptedLLM:
    return llm.enqueue("decompose", {"requires_clarification": unclear, "subtasks": list(calls)})


# -- the four routes and their budgets (v2, "LLM call budget by route") ----------------------------------------------


def test_direct_takes_two_calls(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    triaged(scripted, "direct").enqueue("synthesize", "Loop diuretics act on the ascending limb of the loop of Henle.")
    result = valid(agent.ask("How do loop diuretics work in the nephron?"))
    assert result["path"] == [*START, "synthesize"] and result["intent"] == "DIRECT"
    assert result["llm_calls"] == 2 and result["confidence"] == "low", "general knowledge is not checked"
    assert result["graph"] == "v2"


def test_lookup_takes_two_calls_and_is_sure_of_a_complete_answer(
    bare_agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    triaged(scripted, "lookup", "check_drug_safety", "dofetilide").enqueue(
        "synthesize", "Dofetilide has a boxed warning."
    )
    result = valid(bare_agent.ask("Check FDA warnings for dofetilide"))
    assert result["path"] == [*START, "fast_path", "validate_call", *CALL, "synthesize"]
    assert result["tools"][0]["args"] == {"drug_name": "dofetilide"}
    assert result["llm_calls"] == 2 and result["confidence"] == "high" and result["sources"]
    assert_safe(result)


def test_lookup_with_a_bad_argument_has_it_corrected_in_three_calls(
    bare_agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    triaged(scripted, "lookup", "check_drug_interactions", "warfarin")
    scripted.enqueue("tool_arguments", {"drug_names": ["warfarin", "aspirin"]})
    scripted.enqueue("synthesize", "Warfarin with aspirin raises the risk of bleeding.")
    result = valid(bare_agent.ask("Check interactions between warfarin and aspirin"))
    assert result["path"] == [*START, "fast_path", "validate_call", "fix_args", *CALL, "synthesize"]
    assert result["tools"][0]["args"] == {"drug_names": ["warfarin", "aspirin"]} and result["llm_calls"] == 3
    asked = next(prompt for node, prompt, _ in scripted.history if node == "tool_arguments")
    assert "The last attempt failed" in asked.user, "it is told what is wrong"


def test_an_argument_that_was_said_is_copied_and_needs_no_correction(agent: Agent, scripted: ScriptedLLM) -> None:
    triaged(scripted, "lookup", "check_drug_interactions", "warfarin").enqueue("synthesize", "A risk of bleeding.")
    result = agent.ask("Check interactions between warfarin and aspirin")
    assert result["tools"][0]["args"] == {"drug_names": ["warfarin", "aspirin"]} and result["llm_calls"] == 2


def test_reasoning_without_a_tool_takes_four_calls(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    triaged(scripted, "reasoning").enqueue("think", "Preload falls, so the ventricle empties better.")
    scripted.enqueue("extract_needs", {"calls": []}).enqueue("synthesize", "Diuretics lower preload.")
    result = valid(agent.ask("Why does preload matter in heart failure?"))
    assert result["path"] == [*START, "think", "extract_needs", "synthesize"]
    assert result["llm_calls"] == 4 and result["confidence"] == "low"
    assert "ventricle empties better" in scripted.history[-1][1].user, "the answer is written from the reasoning"


def test_reasoning_with_a_tool_thinks_twice_in_five_calls(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    triaged(scripted, "reasoning").enqueue("think", "An ACE inhibitor suits; its label matters.")
    scripted.enqueue("extract_needs", {"calls": [call("check_drug_safety", "amlodipine")]})
    scripted.enqueue("think", "The label has no boxed warning.").enqueue("synthesize", "Amlodipine may be continued.")
    result = valid(agent.ask("Which antihypertensive goes with amlodipine in CKD stage 3?"))
    assert result["path"] == [
        *START,
        "think",
        "extract_needs",
        "fast_path",
        "validate_call",
        *CALL,
        "think_again",
        "synthesize",
    ]
    assert executed(result) == ["check_drug_safety"] and result["llm_calls"] == 5
    assert result["confidence"] == "medium", "what a model concludes is not checked"
    limits = [
        config.max_tokens
        for (node, *_), config in zip(scripted.history, scripted.configs, strict=True)
        if node == "think"
    ]
    assert limits == [1024, 1024]
    second = [prompt for node, prompt, _ in scripted.history if node == "think"][1]
    assert "Drug Safety Report" in second.user and "An ACE inhibitor suits" in second.user
    said = [step["detail"] for step in result["timeline"] if "hink" in step["label"]]
    assert all(detail.startswith("The model's own reasoning, not checked") for detail in said) and len(said) == 2


def test_reasoning_about_a_patient_and_a_drug_still_makes_the_whole_order_check(
    agent: Agent, scripted: ScriptedLLM
) -> None:
    """The model asks for nothing; safety and completeness are no model's choice, and cost no call."""
    triaged(scripted, "reasoning").enqueue("think", "It should be fine.").enqueue("extract_needs", {"calls": []})
    scripted.enqueue("think", "Fine.").enqueue("synthesize", "Yes.")
    result = agent.ask("Can I give John Smith metformin?")
    assert {"get_patient_chart", "check_drug_safety", "check_drug_interactions"} <= set(executed(result))
    assert result["llm_calls"] == 5 and "eGFR 41" in result["answer"]


def test_multi_step_takes_three_calls_and_one_for_each_part(bare_agent: Agent, scripted: ScriptedLLM, valid) -> None:
    parts = [call("check_drug_safety", "dofetilide"), call("search_medical_literature", "dofetilide in heart failure")]
    decomposed(triaged(scripted, "multi_step"), *parts)
    for part in parts:
        scripted.enqueue("plan_tool", part)
    scripted.enqueue("synthesize", "Dofetilide has a boxed warning.")
    result = valid(bare_agent.ask("Check FDA warnings for dofetilide and find studies of it in heart failure"))
    assert result["path"] == [*START, "decompose", *LONG, *LONG, "synthesize"]
    assert executed(result) == [part["tool_name"] for part in parts] and result["llm_calls"] == 3 + 2
    assert_safe(result)


def test_multi_step_never_takes_more_than_three_calls_a_part(
    bare_agent: Agent, scripted: ScriptedLLM, valid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned, corrected, worded anew; then the part is left out."""
    monkeypatch.setattr(bare_agent.toolbox, "call", always_failing(bare_agent, ToolError(ErrorType.NOT_FOUND)))
    decomposed(triaged(scripted, "multi_step"), call("search_medical_literature", "ck"))
    scripted.enqueue("plan_tool", call("search_medical_literature", "ck"))
    scripted.enqueue("tool_arguments", {"query": "metformin in kidney disease"})
    scripted.enqueue("plan_tool", call("search_medical_literature", "metformin and renal impairment"))
    scripted.enqueue("synthesize", "Nothing was found.")
    result = valid(bare_agent.ask("Find literature on metformin in CKD"))
    tried = [tool["args"]["query"] for tool in result["tools"]]
    assert tried == ["metformin in kidney disease", "metformin and renal impairment"] and result["llm_calls"] == 3 + 3
    assert result["path"][3:] == [
        "decompose", "plan_tool", "validate_call", "fix_args", *CALL, "error_strategy", *LONG, "error_strategy",
        "synthesize",
    ]  # fmt: skip
    assert result["confidence"] == "low" and scripted.pending() == {}


# -- error strategies ------------------------------------------------------------------------------------------------


def test_retry_same_calls_again_after_a_timeout(
    agent: Agent, scripted: ScriptedLLM, valid, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_once(agent, monkeypatch, ToolError(ErrorType.TIMEOUT))
    triaged(scripted, "lookup", "check_drug_safety", "amiodarone").enqueue("synthesize", "Pulmonary toxicity.")
    result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert result["path"][3:] == ["fast_path", "validate_call", *CALL, "error_strategy", *CALL, "synthesize"]
    assert [(tool["error_type"], tool["retries"]) for tool in result["tools"]] == [("timeout", 0), (None, 1)]
    assert result["confidence"] == "high", "the retry brought it" and result["llm_calls"] == 2


def test_the_fast_path_gives_up_after_two_retries(
    agent: Agent, scripted: ScriptedLLM, valid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.toolbox, "call", always_failing(agent, ToolError(ErrorType.TIMEOUT)))
    triaged(scripted, "lookup", "check_drug_safety", "amiodarone")
    scripted.enqueue("synthesize", "Amiodarone 400 mg causes pulmonary toxicity.")
    result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert [tool["retries"] for tool in result["tools"]] == [0, 1, 2] and result["confidence"] == "low"
    assert "400 mg" not in result["answer"] and "did not respond. Nothing was checked." in result["answer"]


def test_retry_reformulate_words_the_query_anew(
    agent: Agent, scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_once(agent, monkeypatch, ToolError(ErrorType.NOT_FOUND))
    decomposed(triaged(scripted, "multi_step"), call("search_medical_literature", "metformin in CKD"))
    scripted.enqueue("plan_tool", call("search_medical_literature", "metformin renal impairment"))
    scripted.enqueue("synthesize", "Some studies were found.")
    result = agent.ask("Find literature on metformin in CKD")
    assert [tool["args"]["query"] for tool in result["tools"]][1] == "metformin renal impairment"
    assert "Worded anew" in [step["detail"] for step in result["timeline"]]


def test_skip_subtask_goes_on_with_the_next_part(
    agent: Agent, scripted: ScriptedLLM, valid, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = agent.toolbox.call
    down = ToolError(ErrorType.DRUG_NOT_IN_DATABASE, entity="dofetilide")

    def safety_fails(name, args, context):
        return (
            always_failing(agent, down)(name, args, context)
            if name == "check_drug_safety"
            else real(name, args, context)
        )

    monkeypatch.setattr(agent.toolbox, "call", safety_fails)
    decomposed(
        triaged(scripted, "multi_step"), call("check_drug_safety", "dofetilide"), call("find_clinical_trials", "afib")
    )
    scripted.enqueue("plan_tool", call("check_drug_safety", "dofetilide"))
    scripted.enqueue("synthesize", "One trial was found.")
    result = valid(agent.ask("Check FDA warnings for dofetilide and find trials for atrial fibrillation"))
    assert [tool["ok"] for tool in result["tools"]] == [False, True]
    assert executed(result)[1] == "find_clinical_trials" and result["confidence"] == "medium"
    assert "Left out" in [step["detail"] for step in result["timeline"]]


def test_a_request_of_more_than_five_parts_ends_at_five(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    drugs = "dofetilide warfarin metformin amiodarone digoxin lithium".split()
    decomposed(triaged(scripted, "multi_step"), *[call("check_drug_safety", drug) for drug in drugs[:5]])
    for drug in drugs:
        scripted.enqueue("plan_tool", call("check_drug_safety", drug))
    scripted.enqueue("synthesize", "Reviewed.")
    result = valid(agent.ask(f"Check the FDA warnings of {', '.join(drugs[:-1])} and {drugs[-1]}"))
    assert len(agent._stored(result["thread"]).values["subtasks"]) == 5
    assert len({str(tool["args"]) for tool in result["tools"]}) == 6, "the last part has two drugs of the plan"
    assert result["llm_calls"] <= 3 + 3 * 5


# -- people and patients ---------------------------------------------------------------------------------------------


def test_the_open_patients_summary_is_before_the_model_and_no_evidence(
    agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    triaged(scripted, "direct").enqueue("synthesize", "Sure.")
    result = valid(agent.ask("How do loop diuretics work in the nephron?", patient="abc-123"))
    assert (
        "Patient's record in brief:" in scripted.history[0][1].user
        and "sulfamethoxazole" in scripted.history[0][1].user
    )
    assert result["tools"] == []


def test_a_record_that_cannot_be_read_is_not_an_empty_summary(
    agent: Agent, scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.toolbox, "call", always_failing(agent, ToolError(ErrorType.SERVICE_UNAVAILABLE)))
    triaged(scripted, "direct").enqueue("synthesize", "Sure.")
    agent.ask("How do loop diuretics work in the nephron?", patient="abc-123")
    assert "unavailable" in scripted.history[0][1].user


def test_a_patient_of_the_store_is_never_answered_directly(agent: Agent, scripted: ScriptedLLM) -> None:
    triaged(scripted, "direct").enqueue("synthesize", "His potassium is fine.")
    result = agent.ask("What is the potassium of abc-123?")
    assert executed(result) == ["get_patient_chart"] and "fast_path" in result["path"]


def test_three_patients_of_one_name_are_asked_about_and_the_answer_goes_on(
    agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    decomposed(triaged(scripted, "multi_step"), call("search_patient", "James Wilson"), call("get_patient_chart", "x"))
    asked = valid(agent.ask("Find patient James Wilson and check his chart"))
    assert asked["status"] == "needs_clarification" and len(asked["options"]) == 3 and asked["confidence"] is None
    assert "synthesize" not in scripted.nodes(), "the question is a template, never generated"
    scripted.enqueue("synthesize", "His chart was reviewed.")
    result = valid(agent.ask("the second one", thread=asked["thread"]))
    assert result["path"] == ["image_detection", "assess_result", *LONG, "synthesize"]
    assert result["tools"][-1]["args"] == {"patient_id": asked["options"][1]["id"]}


def test_decompose_asks_where_the_first_part_cannot_begin(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    decomposed(triaged(scripted, "multi_step"), call("get_patient_chart", "her"), unclear=True)
    asked = valid(agent.ask("Check her chart and her potassium"))
    assert asked["path"] == [*START, "decompose", "synthesize"] and asked["tools"] == []
    assert asked["status"] == "needs_clarification" and "patient ID" in asked["answer"]
    scripted.enqueue("synthesize", "Her chart was reviewed.")
    result = valid(agent.ask("def-456", thread=asked["thread"]))
    assert result["tools"][-1]["args"] == {"patient_id": "def-456"} and result["status"] == "answered"


def test_a_clarification_that_code_sees_no_need_for_is_not_asked(agent: Agent, scripted: ScriptedLLM) -> None:
    decomposed(triaged(scripted, "multi_step"), call("check_drug_safety", "dofetilide"), unclear=True)
    scripted.enqueue("synthesize", "Dofetilide has a boxed warning.")
    assert executed(agent.ask("Check FDA warnings for dofetilide")) == ["check_drug_safety"]


@pytest.mark.parametrize("route", ["lookup", "multi_step", "reasoning"])
def test_a_write_waits_and_happens_once(agent: Agent, scripted: ScriptedLLM, valid, route: str) -> None:
    order = call("prescribe_medication", "metformin 500mg")
    triaged(scripted, route, "prescribe_medication", "metformin 500mg").enqueue("think", "An order.")
    decomposed(scripted, order).enqueue("extract_needs", {"calls": []}).enqueue("think", "Done.")
    scripted.enqueue("synthesize", "Metformin was ordered.")
    before = len(agent.store.chart("abc-123").medications)
    waiting = valid(agent.ask("Prescribe metformin 500mg for abc-123"))
    assert waiting["status"] == "needs_approval" and waiting["confidence"] is None
    assert len(agent.store.chart("abc-123").medications) == before, "nothing is written before a person decides"
    result = valid(agent.decide(waiting["thread"], "approve"))
    assert result["status"] == "answered" and result["graph"] == "v2"
    assert len(agent.store.chart("abc-123").medications) == before + 1


def test_a_write_that_nobody_ordered_is_not_prepared(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    """Whatever the model names, on every route."""
    order = call("prescribe_medication", "amiodarone 200 mg daily for abc-123")
    triaged(scripted, "lookup", **{"tool": order["tool_name"], "query": order["query"]}).enqueue("synthesize", "No.")
    result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert executed(result) == ["check_drug_safety"] and result["pending_write"] is None
    decomposed(triaged(scripted, "multi_step"), order).enqueue("synthesize", "No.")
    result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert executed(result) == ["check_drug_safety"] and result["pending_write"] is None


def test_an_image_is_looked_at_by_the_tool(settings: Settings, valid, png) -> None:
    scripted = ScriptedLLM(vision=True)
    triaged(scripted, "direct").enqueue("tool_execute", FINDINGS).enqueue("analyze_medical_image", FINDINGS)
    scripted.enqueue("synthesize", "There is a right upper lobe opacity; specialist review is advised.")
    with Agent(settings, llm=scripted, graph="v2") as agent:
        result = valid(agent.ask("What do you see?", image=png))
    assert executed(result) == ["analyze_medical_image"] and result["llm_calls"] == 3
    assert "right upper lobe" in result["answer"].lower()


FINDINGS = {
    "modality": "chest_xray", "findings": ["Right upper lobe opacity"],
    "impression": "Possible right upper lobe mass", "confidence": 0.6, "requires_specialist_review": True,
}  # fmt: skip


def test_thinking_can_be_stopped(agent: Agent, scripted: ScriptedLLM) -> None:
    triaged(scripted, "reasoning").enqueue("think", "A long chain of thoughts. " * 20)
    answers = iter([False] * 4)
    with pytest.raises(StoppedError):
        agent.ask("Why does preload matter in heart failure?", stop=lambda: next(answers, True))
    scripted.enqueue("synthesize", "Hello.")
    triaged(scripted, "direct")
    assert agent.ask("Hello")["status"] == "answered"
