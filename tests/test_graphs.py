"""What holds of all three graphs: every scenario of the specifications on the edge model, writes, and conversations
that go on in the graph they run.
"""

import json
import re
from pathlib import Path

import pytest

from docgemma.agent import Agent
from docgemma.graphs import GRAPHS, load_graph
from docgemma.notebook import failing
from docgemma.paths import kit
from docgemma.report import words
from docgemma.rules.plan import MAX_STEPS
from docgemma.settings import Settings
from docgemma.tools import toolbox
from tests.models import smollm2
from tests.test_edge_scenarios import SCENARIOS

EXAMPLES = [  # of v1 and v2
    "Thank you",
    "What's the mechanism of action for metformin?",
    "Define hypertension",
    "Check interactions between warfarin and aspirin",
    "Best antihypertensive for CKD stage 3 patient on amlodipine?",
    "Review the chart of abc-123, check interactions with a new prescription of amiodarone, suggest alternatives",
    "Patient ID abc-123. Pull their smoking history and find current screening guidelines for lung cancer.",
    "Pull patient 402's records",
    "Find clinical trials for TNBC",
    "Can I give John Smith metformin?",
    "Check her chart",
]
EARLIER = ["v1", "v2"]


def agent_of(graph: str, settings: Settings, llm) -> Agent:
    return Agent(settings, llm=llm, graph=graph)


@pytest.mark.parametrize("graph", EARLIER)
def test_every_scenario_is_answered_under_the_contract(settings: Settings, edge_llm, valid, graph: str) -> None:
    """The path, the calls and the status are v3's, whatever the wiring; no model is asked."""
    with agent_of("v3", settings, edge_llm) as v3, agent_of(graph, settings, edge_llm) as agent:
        for question in [*SCENARIOS, *EXAMPLES]:
            expected, result = v3.ask(question), valid(agent.ask(question))
            assert result["graph"] == graph and result["llm_calls"] == 0, question
            assert result["status"] == expected["status"], question
            if result["status"] != "needs_clarification":  # v1 and v2 may ask before a call has failed
                assert calls(result) == calls(expected), question
            assert begins(result) == begins(expected), question
            assert not [tool.name for tool in toolbox() if tool.name in result["answer"]], question
            assert len(calls(result)) <= MAX_STEPS, question
            assert all(
                step["label"] in words()["labels"].values() or "entry" in step["label"] for step in result["timeline"]
            )


def begins(result: dict) -> str:
    """The first line; a source's number is the place of its look-up, which is each graph's own."""
    return re.sub(r"\[\d+\]", "[]", result["answer"].splitlines()[0])


def calls(result: dict) -> list[str]:
    made = [*result["tools"], *([result["pending_write"]] if result["pending_write"] else [])]
    return sorted({json.dumps([tool["name"], tool["args"]], sort_keys=True) for tool in made})


@pytest.mark.parametrize("graph", EARLIER)
def test_an_image_is_refused_honestly_with_the_header(settings: Settings, edge_llm, valid, png, graph: str) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        result = valid(agent.ask("What do you see in this chest X-ray?", image=png))
    assert "64 x 48" in result["answer"] and "cannot" in result["answer"]
    assert [tool["error_type"] for tool in result["tools"]] == ["no_vision"]


@pytest.mark.parametrize("graph", EARLIER)
def test_an_outage_is_never_nothing_found(settings: Settings, edge_llm, valid, graph: str) -> None:
    with agent_of(graph, settings, edge_llm) as agent, failing(agent, "service_unavailable", 9):
        result = valid(agent.ask("What is the potassium of abc-123?"))
    assert result["confidence"] in (None, "low")
    assert "no potassium" not in result["answer"].lower() and not any(tool["ok"] for tool in result["tools"])


@pytest.mark.parametrize("graph", EARLIER)
def test_a_retry_after_a_timeout(settings: Settings, edge_llm, valid, graph: str) -> None:
    with agent_of(graph, settings, edge_llm) as agent, failing(agent, "timeout", 1):
        result = valid(agent.ask("Check FDA warnings for amiodarone"))
    assert [tool["error_type"] for tool in result["tools"]] == ["timeout", None]
    assert [tool["retries"] for tool in result["tools"]] == [0, 1]


# -- one conversation, one graph -------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", EARLIER)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_decision_by_another_agent_goes_on_in_the_conversations_graph(
    settings: Settings, edge_llm, valid, graph: str, decision: str
) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        before = len(agent.store.chart("abc-123").medications)
        waiting = valid(agent.ask("Prescribe metformin 500mg for abc-123"))
    with Agent(settings, llm=edge_llm) as another:  # as `docgemma ask --thread T --approve` starts it: no graph named
        result = valid(another.decide(waiting["thread"], decision))
        assert result["graph"] == graph and "tool_select" not in result["path"]
        assert len(another.store.chart("abc-123").medications) == before + (decision == "approve")
        assert valid(another.ask("Hello", thread=waiting["thread"]))["graph"] == graph


@pytest.mark.parametrize("graph", EARLIER)
def test_an_answer_to_a_clarification_goes_on_in_the_graph_that_asked(
    settings: Settings, edge_llm, valid, graph: str
) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        asked = valid(agent.ask("Find patient James Wilson and check his chart"))
    with agent_of("v3", settings, edge_llm) as v3:
        result = valid(v3.ask("the second one", thread=asked["thread"]))
        assert result["graph"] == graph and result["tools"][-1]["args"] == {"patient_id": asked["options"][1]["id"]}
        later = valid(v3.ask("What is his potassium?", thread=asked["thread"]))
    assert later["graph"] == "v3", "a new question may change the graph, and the patient stays open"
    assert later["tools"][-1]["args"] == {"patient_id": asked["options"][1]["id"]}


@pytest.mark.parametrize("graph", EARLIER)
def test_another_question_is_answered_above_the_card_which_waits_on(
    settings: Settings, edge_llm, valid, graph: str
) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        before = len(agent.store.chart("abc-123").medications)
        thread = agent.ask("Prescribe metformin 500mg for abc-123")["thread"]
        above = valid(agent.ask("Check FDA warnings for dofetilide", thread=thread))
        assert above["status"] == "needs_approval" and "dofetilide" in above["answer"].lower()
        changed = valid(agent.ask("make it 250 mg", thread=thread))
        assert changed["status"] == "needs_approval" and changed["pending_write"]["args"]["dosage"] == "250 mg"
        done = valid(agent.decide(thread, "approve"))
        assert done["status"] == "answered" and len(agent.store.chart("abc-123").medications) == before + 1


@pytest.mark.parametrize("graph", EARLIER)
def test_two_orders_wait_one_after_the_other(settings: Settings, edge_llm, valid, graph: str) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        result, given = agent.ask("Start bisoprolol 1.25 mg od and furosemide 40 mg mane for def-456"), []
        while result["status"] == "needs_approval":
            given.append(result["pending_write"]["args"]["medication_name"])
            result = valid(agent.decide(result["thread"], "reject"))
    assert given == ["bisoprolol", "furosemide"]


@pytest.mark.parametrize("graph", EARLIER)
def test_a_pronoun_that_does_not_fit_is_asked_about(settings: Settings, edge_llm, valid, graph: str) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        asked = valid(agent.ask("What is her potassium?", patient="abc-123"))
        assert asked["status"] == "needs_clarification" and asked["options"][0]["id"] == "abc-123"
        result = valid(agent.ask("yes", thread=asked["thread"]))
    assert result["tools"][-1]["args"] == {"patient_id": "abc-123"}


@pytest.mark.parametrize("graph", EARLIER)
def test_a_turn_that_was_cut_off_is_taken_up_in_its_graph(settings: Settings, edge_llm, valid, graph: str) -> None:
    with agent_of(graph, settings, edge_llm) as agent:
        stops = iter([False] * 3)
        with pytest.raises(Exception, match="Stopped"):
            agent.ask("Find patient Maria Garcia and check her chart", thread="cut", create=True,
                      stop=lambda: next(stops, True))  # fmt: skip
    with Agent(settings, llm=edge_llm) as another:
        result = valid(another.proceed("cut"))
    assert result["graph"] == graph and "def-456" in json.dumps(result["tools"])


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_node_has_a_label_and_a_colour(graph: str) -> None:
    nodes = set(load_graph(graph).nodes)
    assert nodes <= set(words()["labels"]) and nodes - {"reopen_card"} <= set(kit("experiments", "plots").COLOURS)


def test_the_command_line_takes_a_graph(settings: Settings, home: Path) -> None:
    from tests.test_cli import run

    done = run(home, "ask", "Prescribe metformin 500mg for abc-123", "--graph", "v2", "--json")
    thread = json.loads(done.stdout)["thread"]
    after = json.loads(run(home, "ask", "--thread", thread, "--approve", "--json").stdout)
    assert after["graph"] == "v2" and after["status"] == "answered" and after["confidence"] == "high"


BUDGETS = {"direct": 2, "lookup": 3, "reasoning": 5}  # physical generations; else 3 and 3 for each part


@pytest.mark.slow
@pytest.mark.parametrize("graph", EARLIER)
@pytest.mark.parametrize("question", ["Find recruiting trials for type 2 diabetes"])  # reasoning takes it minutes here
def test_a_real_language_model_keeps_to_the_budget(settings: Settings, valid, graph: str, question: str) -> None:
    """SmolLM2-135M, which was trained for none of this: whatever it says, answer, contract and budget hold."""
    with agent_of(graph, settings, smollm2()) as agent:
        result = valid(agent.ask(question))
        stored = agent._stored(result["thread"]).values
    assert result["llm_calls"] <= BUDGETS.get(stored["route"], 3 + 3 * len(stored["subtasks"])), result["path"]
    assert result["answer"].strip() and not [tool.name for tool in toolbox() if tool.name in result["answer"]]
