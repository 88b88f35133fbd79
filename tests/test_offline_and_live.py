"""The demo questions give the same shape of answer from the snapshot and from the live services (their stand-in)."""

import pytest

from docgemma.agent import Agent
from docgemma.settings import Settings
from tests.scripted import ScriptedLLM
from tests.standin import standin  # noqa: F401  (a fixture)
from tests.test_graph_v3 import intent

QUESTIONS = {
    "Check FDA warnings for dofetilide": "check_drug_safety",
    "Check interactions between warfarin, aspirin, and ibuprofen": "check_drug_interactions",
    "Find clinical trials for type 2 diabetes": "find_clinical_trials",
    "Find patient John Smith, check his chart, and verify metformin safety": "search_patient",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_offline_and_live_give_the_same_shape_of_answer(question: str, home, standin, valid) -> None:  # noqa: F811
    offline = answer(question, Settings(home=home, sources="offline"), valid)
    live = answer(question, Settings(home=home, sources="live", **standin.urls), valid)
    assert offline["path"] == live["path"] and offline["status"] == live["status"] == "answered"
    for ours, theirs in zip(offline["tools"], live["tools"], strict=True):
        assert (ours["name"], ours["args"], ours["ok"]) == (theirs["name"], theirs["args"], theirs["ok"])
        assert ours["source"] and theirs["source"]
        assert (ours["as_of"] is None) == (theirs["as_of"] is None)
    knowledge = [tool["source"] for tool in live["tools"] if "patient" not in tool["name"]]
    assert knowledge and all("snapshot" not in source.lower() for source in knowledge)


def test_a_service_that_is_down_is_replaced_by_the_snapshot_and_said(home, valid) -> None:
    nowhere = "http://127.0.0.1:9"
    settings = Settings(home=home, sources="auto", openfda_url=nowhere, rxnav_url=nowhere)
    result = answer("Check FDA warnings for dofetilide", settings, valid)
    assert "snapshot" in result["tools"][0]["source"].lower()
    assert "offline snapshot" in result["answer"]


def answer(question: str, settings: Settings, valid) -> dict:
    llm = ScriptedLLM()
    intent(llm, QUESTIONS[question])
    for _ in range(4):
        llm.enqueue("tool_select", {"tool_name": QUESTIONS[question]})
        llm.enqueue("result_classify", {"quality": "success_rich", "brief_summary": "Data returned."})
    llm.enqueue("tool_arguments", {"condition": "type 2 diabetes"})
    llm.enqueue("synthesize", "Reviewed.")
    with Agent(settings, llm=llm) as agent:
        return valid(agent.ask(question))
