"""The unit, integration and regression tables of the v3 specification, section 15, on exact paths.

The model is scripted; rules, tools, record store, knowledge and memory are the real ones.
"""

import pytest

from docgemma.agent import Agent
from docgemma.errors import ErrorType, ToolError
from docgemma.tools import toolbox
from tests.scripted import ScriptedLLM

DIRECT_PATH = ["input_assembly", "intent_classify", "synthesize"]
LOOP = ["tool_select", "tool_execute", "result_classify", "router"]
SINGLE_PATH = [*DIRECT_PATH[:2], *LOOP, "synthesize"]
NAMES = list(toolbox().tools)


def intent(llm: ScriptedLLM, tool: str | None = None, summary: str = "A clinical task.") -> ScriptedLLM:
    return llm.enqueue(
        "intent_classify",
        {"intent": "TOOL_NEEDED" if tool else "DIRECT", "task_summary": summary, "suggested_tool": tool},
    )


def rich(llm: ScriptedLLM, times: int = 1) -> ScriptedLLM:
    for _ in range(times):
        llm.enqueue("result_classify", {"quality": "success_rich", "brief_summary": "Data returned."})
    return llm


def executed(result: dict) -> list[str]:
    return [tool["name"] for tool in result["tools"]]


def assert_safe(result: dict) -> None:
    """What holds of every answer, whatever the model said."""
    assert result["answer"].strip()
    assert not [name for name in NAMES if name in result["answer"]]
    assert "Traceback" not in result["answer"] and "Error:" not in result["answer"]


# -- integration table ---------------------------------------------------------------------------------------------


def test_hello_how_are_you_takes_the_direct_path(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    intent(scripted).enqueue("synthesize", "Hello! How can I help you today?")
    result = valid(agent.ask("Hello, how are you?"))
    assert result["path"] == DIRECT_PATH
    assert result["tools"] == [] and result["llm_calls"] == 2
    assert "Hello" in result["answer"]


def test_what_is_hypertension_takes_the_direct_path(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    intent(scripted)  # nothing is enqueued for the answer: the term has a curated definition, with its reference
    result = valid(agent.ask("What is hypertension?"))
    assert result["path"] == DIRECT_PATH and result["intent"] == "DIRECT" and result["llm_calls"] == 1
    assert "blood pressure" in result["answer"] and "Source:" in result["answer"] and result["sources"]


def test_general_knowledge_says_that_it_is_not_from_a_source(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    intent(scripted).enqueue("synthesize", "Loop diuretics act on the ascending limb of the loop of Henle.")
    result = valid(agent.ask("How do loop diuretics work in the nephron?"))
    assert result["path"] == DIRECT_PATH and "ascending limb" in result["answer"]
    assert "general medical knowledge" in result["answer"], "a direct answer says where it comes from"


def test_check_fda_warnings_for_dofetilide_uses_one_tool(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    rich(intent(scripted, "check_drug_safety")).enqueue("tool_select", {"tool_name": "check_drug_safety"})
    scripted.enqueue("synthesize", "Dofetilide is fine.")
    result = valid(agent.ask("Check FDA warnings for dofetilide"))
    assert result["path"] == SINGLE_PATH
    assert result["tools"][0]["args"] == {"drug_name": "dofetilide"}
    assert "boxed warning" in result["answer"].lower(), "a boxed warning is never lost, whatever the model wrote"
    assert result["llm_calls"] <= 5
    assert_safe(result)


def test_find_patient_maria_garcia_and_check_her_chart_calls_both_tools(
    agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    rich(intent(scripted, "search_patient"), 2)
    scripted.enqueue("tool_select", {"tool_name": "search_patient"})
    scripted.enqueue("tool_select", {"tool_name": "get_patient_chart"})
    scripted.enqueue("synthesize", "Maria Garcia's chart was reviewed.")
    result = valid(agent.ask("Find patient Maria Garcia and check her chart"))
    assert executed(result) == ["search_patient", "get_patient_chart"]
    assert result["tools"][1]["args"] == {"patient_id": "def-456"}
    assert result["path"] == [*DIRECT_PATH[:2], *LOOP, *LOOP, "synthesize"]
    assert result["llm_calls"] <= 8
    assert_safe(result)


def test_check_interactions_between_three_drugs_passes_all_three(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    drugs = ["warfarin", "aspirin", "ibuprofen"]
    rich(intent(scripted, "check_drug_interactions"))
    scripted.enqueue("tool_select", {"tool_name": "check_drug_interactions"})
    scripted.enqueue("tool_arguments", {"drug_names": drugs})
    scripted.enqueue("synthesize", "Warfarin with aspirin or ibuprofen raises the risk of bleeding.")
    result = valid(agent.ask("Check interactions between warfarin, aspirin, and ibuprofen"))
    assert result["path"] == SINGLE_PATH
    assert result["tools"][0]["args"] == {"drug_names": drugs}
    assert_safe(result)


def test_check_fda_warnings_for_amiodarone_with_a_timeout_retries_then_answers(
    agent: Agent, scripted: ScriptedLLM, valid, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_once(agent, monkeypatch, ToolError(ErrorType.TIMEOUT))
    rich(intent(scripted, "check_drug_safety"))
    scripted.enqueue("tool_select", {"tool_name": "check_drug_safety"})
    scripted.enqueue("error_handler", {"strategy": "retry_same"})
    scripted.enqueue("synthesize", "Amiodarone can cause pulmonary toxicity.")
    result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert result["path"] == [*DIRECT_PATH[:2], *LOOP, "error_handler", *LOOP, "synthesize"]
    assert [tool["error_type"] for tool in result["tools"]] == ["timeout", None]
    assert [tool["retries"] for tool in result["tools"]] == [0, 1]
    assert_safe(result)


def test_search_for_patient_james_wilson_asks_which_one(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    intent(scripted, "search_patient").enqueue("tool_select", {"tool_name": "search_patient"})
    result = valid(agent.ask("Search for patient James Wilson"))
    assert result["status"] == "needs_clarification"
    assert result["path"] == [*DIRECT_PATH[:2], *LOOP, "error_handler", "synthesize"]
    assert len(result["options"]) == 3
    assert result["answer"].startswith("I found 3 patients matching 'James Wilson'. Which one did you mean?")
    assert "synthesize" not in scripted.nodes(), "the question is a template, never generated"


def test_chest_xray_what_do_you_see_reports_the_image_findings(settings, valid, tmp_path, png) -> None:
    scripted = ScriptedLLM(vision=True)
    findings = {
        "modality": "chest_xray", "findings": ["Right upper lobe opacity"],
        "impression": "Possible right upper lobe mass", "confidence": 0.6, "requires_specialist_review": True,
    }  # fmt: skip
    scripted.enqueue("input_assembly", findings)
    intent(scripted).enqueue("synthesize", "There is a right upper lobe opacity; specialist review is advised.")
    with Agent(settings, llm=scripted) as agent:
        result = valid(agent.ask("What do you see?", image=png))
    assert result["path"] == DIRECT_PATH and result["llm_calls"] == 3
    assert "right upper lobe" in result["answer"].lower()


def test_prescribe_metformin_500mg_for_abc_123_waits_then_confirms(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    rich(intent(scripted, "prescribe_medication"))
    scripted.enqueue("tool_select", {"tool_name": "prescribe_medication"})
    scripted.enqueue("synthesize", "Metformin 500mg was ordered for abc-123.")
    before = len(agent.store.chart("abc-123").medications)
    waiting = valid(agent.ask("Prescribe metformin 500mg for abc-123"))
    assert waiting["status"] == "needs_approval"
    assert waiting["pending_write"]["args"]["patient_id"] == "abc-123"
    assert waiting["pending_write"]["args"]["medication_name"] == "metformin"
    assert waiting["pending_write"]["args"]["dosage"] == "500mg"
    assert len(agent.store.chart("abc-123").medications) == before, "nothing is written before a person decides"
    result = valid(agent.decide(waiting["thread"], "approve"))
    assert result["path"] == SINGLE_PATH and result["status"] == "answered"
    assert len(agent.store.chart("abc-123").medications) == before + 1
    assert_safe(result)


# -- regression table ----------------------------------------------------------------------------------------------


def test_multi_tool_query_makes_no_plan_upfront(agent: Agent, scripted: ScriptedLLM) -> None:
    """One tool at a time: no schema that the model fills can hold more than one step."""
    rich(intent(scripted, "search_patient"), 3)
    for name in ("search_patient", "get_patient_chart", "check_drug_safety"):
        scripted.enqueue("tool_select", {"tool_name": name})
    scripted.enqueue("synthesize", "Reviewed.")
    agent.ask("Find patient John Smith, check his chart, and verify metformin safety")
    for node, _, schema in scripted.history:
        if schema is not None:
            assert not [field for field in schema.model_fields if field in ("steps", "plan", "subtasks")], node
    assert scripted.nodes().index("tool_select" if "tool_select" in scripted.nodes() else "result_classify") <= 1


def test_sufficient_data_is_never_judged_by_the_model(agent: Agent, scripted: ScriptedLLM) -> None:
    rich(intent(scripted, "check_drug_safety")).enqueue("tool_select", {"tool_name": "check_drug_safety"})
    scripted.enqueue("synthesize", "Reviewed.")
    agent.ask("Check FDA warnings for dofetilide")
    told = " ".join(f"{prompt.system} {prompt.user}".lower() for _, prompt, _ in scripted.history)
    assert "enough" not in told and "sufficient" not in told


def test_multiple_patient_matches_ask_and_do_not_retry(agent: Agent, scripted: ScriptedLLM) -> None:
    intent(scripted, "search_patient").enqueue("tool_select", {"tool_name": "search_patient"})
    result = agent.ask("Search for patient James Wilson")
    assert len(result["tools"]) == 1 and "error_handler" not in scripted.nodes()


def test_tool_error_is_not_answered_from_pretrained_knowledge(
    agent: Agent, scripted: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.toolbox, "call", always_failing(agent, ToolError(ErrorType.TIMEOUT)))
    intent(scripted, "check_drug_safety").enqueue("tool_select", {"tool_name": "check_drug_safety"})
    for _ in range(2):
        scripted.enqueue("error_handler", {"strategy": "retry_same"})
    scripted.enqueue("synthesize", "Amiodarone 400 mg causes pulmonary toxicity, hepatotoxicity and thyroid disease.")
    result = agent.ask("Check FDA warnings for amiodarone")
    assert "400 mg" not in result["answer"] and "pulmonary toxicity" not in result["answer"].lower()
    assert "The drug label service did not respond. Nothing was checked." in result["answer"]


def test_synthesis_never_shows_tool_names(agent: Agent, scripted: ScriptedLLM) -> None:
    rich(intent(scripted, "check_drug_safety")).enqueue("tool_select", {"tool_name": "check_drug_safety"})
    scripted.enqueue("synthesize", "[check_drug_safety] Dofetilide has a boxed warning. check_drug_safety says so.")
    assert_safe(agent.ask("Check FDA warnings for dofetilide"))


@pytest.mark.parametrize(
    "texts", [[""], ["   \n"], ["<unused94>thinking without an end", "<unused94>again"], ["<unused94>a<unused95>"]]
)
def test_synthesis_is_never_empty(agent: Agent, scripted: ScriptedLLM, texts: list[str]) -> None:
    rich(intent(scripted, "check_drug_safety")).enqueue("tool_select", {"tool_name": "check_drug_safety"})
    for text in texts:
        scripted.enqueue("synthesize", text)
    result = agent.ask("Check FDA warnings for dofetilide")
    assert_safe(result)
    assert "dofetilide" in result["answer"].lower()


# -- helpers -------------------------------------------------------------------------------------------------------


def failing_once(agent: Agent, monkeypatch: pytest.MonkeyPatch, error: ToolError) -> None:
    """The first call of any tool fails; later ones are the real thing."""
    real, left = agent.toolbox.call, [1]

    def call(name, args, context):
        if left:
            left.pop()
            return always_failing(agent, error)(name, args, context)
        return real(name, args, context)

    monkeypatch.setattr(agent.toolbox, "call", call)


def always_failing(agent: Agent, error: ToolError):
    return lambda name, args, context: agent.toolbox.failed(name, args, error)
