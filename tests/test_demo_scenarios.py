"""The guided scenarios: each takes the path it promises, through the real graph, tools, rules and stores."""

import json
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="the demo extra is not installed")

from docgemma.agent import Agent
from docgemma.demo import scenarios as played
from docgemma.demo.scenarios import Scenario, Step, load_scenarios
from docgemma.errors import UsageError
from docgemma.paths import kit
from tests.scenario_model import ScenarioLLM
from tests.test_edge_scenarios import assert_invariants

traces = kit("film", "traces")
SCENARIOS = load_scenarios()
BY_ID = {item.id: item for item in SCENARIOS}


@pytest.fixture
def agent(settings):
    with Agent(settings, llm=ScenarioLLM()) as agent:
        yield agent


def play(agent: Agent, scenario: Scenario, thread: str) -> list[dict]:
    results: list[dict] = []
    for number in range(len(scenario.steps)):
        results.append(played.take(agent, scenario, number, thread, results[-1] if results else None))
    return results


def check(scenario: Scenario, steps: list[dict]) -> None:
    """What the scenario promises is what happened."""
    for step, result in zip(scenario.steps, steps, strict=True):
        assert step.unmet(result) == [], step.caption


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.id)
def test_scenario_takes_the_path_that_it_promises(agent: Agent, valid, scenario: Scenario) -> None:
    steps = play(agent, scenario, "demo")
    check(scenario, steps)
    for done in steps:
        valid(done)


def test_a_broken_promise_is_named() -> None:
    result = {"status": "refused", "tools": [{"name": "search_patient"}], "path": [], "answer": "No."}
    step = Step(caption="A caption.", expect={"status": "answered", "tools": [], "says": ["128 x 128"]})
    assert step.unmet(result) == [
        "status is refused, not answered", "tools is ['search_patient'], not []", "'128 x 128' is not in the answer",
    ]  # fmt: skip


def test_every_way_a_turn_can_go_has_a_scenario_with_title_captions_and_what_to_notice() -> None:
    assert list(BY_ID) == [
        "direct", "single-tool", "multi-tool", "error-recovery", "ask-the-clinician", "image", "approval",
        "hidden-instruction",
    ]  # fmt: skip
    assert all(item.title and item.notice and all(step.caption for step in item.steps) for item in SCENARIOS)


def test_the_failure_of_a_scenario_touches_nobody_else(agent: Agent) -> None:
    step = BY_ID["error-recovery"].steps[0]
    with played.troubled(agent, step.fails) as own:
        args = {"drug_name": "amiodarone"}
        assert agent.toolbox.call("check_drug_safety", args, agent.tool_context())["error_type"] is None
        assert own.toolbox.call("check_drug_safety", args, own.tool_context())["error_type"] == "timeout"
        assert own.toolbox.call("check_drug_safety", args, own.tool_context())["error_type"] is None


def test_the_allergy_is_on_the_card_and_the_changed_order_is_written_once(agent: Agent) -> None:
    before = len(agent.store.chart("ghi-789").medications)
    first, *_, last = play(agent, BY_ID["approval"], "demo")
    assert "penicillin" in " ".join(first["pending_write"]["findings"]).lower()
    assert last["status"] == "answered"
    written = agent.store.chart("ghi-789").medications
    assert len(written) == before + 1
    assert not any("amoxicillin" in json.dumps(item["medicationCodeableConcept"]) for item in written)


def test_the_hidden_instruction_orders_nothing_and_hides_no_allergy(agent: Agent) -> None:
    patient = agent.store.search_patients("Tomasz Nowak")[0].id
    before = len(agent.store.chart(patient).medications)
    agent.llm.enqueue("synthesize", "No allergies are recorded. Morphine 60 mg four times daily was prescribed.")
    (done,) = play(agent, BY_ID["hidden-instruction"], "demo")
    assert not done["pending_write"] and len(agent.store.chart(patient).medications) == before
    assert "no allergies" not in done["answer"].lower(), "the model obeyed, and code did not"
    assert "was prescribed" not in done["answer"]


def test_a_choice_that_was_never_offered_is_refused(agent: Agent) -> None:
    with pytest.raises(UsageError, match="nothing to choose"):
        played.take(agent, BY_ID["ask-the-clinician"], 1, "demo", None)


def test_a_play_is_read_back_as_it_was_stored(agent: Agent, tmp_path: Path) -> None:
    for scenario in SCENARIOS:
        results = play(agent, scenario, scenario.id)
        traces.store_trace(tmp_path, scenario.id, results)
        stored = traces.load_trace(scenario.id, tmp_path)
        assert stored["model"] == "scripted" and stored["steps"] == json.loads(json.dumps(results, default=str))
        check(scenario, stored["steps"])


def test_a_scenario_that_was_never_recorded_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recording"):
        traces.load_trace("direct", tmp_path)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.id)
def test_the_shipped_recording_is_of_the_edge_model_and_keeps_the_promise(scenario: Scenario, valid) -> None:
    stored = traces.load_trace(scenario.id)
    assert stored["model"] == "edge"
    check(scenario, stored["steps"])
    for result in stored["steps"]:
        assert_invariants(valid(result))
