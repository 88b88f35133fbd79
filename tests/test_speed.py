"""What code does in a turn should not be felt: `make bench` prints the times; none is asserted."""

import pytest

from docgemma.agent import Agent
from docgemma.nodes.input_assembly import understand
from docgemma.rules.plan import planned
from docgemma.rules.routing import route
from tests.rules_help import drug, patient_found, person, request, the_reader, turn

QUESTION = "Find patient John Smith, check his chart, and verify metformin safety with his lisinopril 10 mg and aspirin"
HIS_CHART = request("find", "chart", "safe", patients=[person(search="John Smith")], drugs=[drug("metformin")])
pytestmark = pytest.mark.benchmark


def test_reading_a_request(benchmark) -> None:
    assert benchmark(the_reader().read, QUESTION).spans["name"]


def test_linking_and_reading_a_message(benchmark, agent: Agent) -> None:
    context = agent._context("t", {})
    found = benchmark(understand, QUESTION, {"message": QUESTION}, context)
    assert [patient["id"] for patient in found["patients"]] == ["abc-123"]


def test_planning(benchmark) -> None:
    assert benchmark(planned, turn(HIS_CHART, patient_found()))


def test_routing_rules(benchmark) -> None:
    state = turn(HIS_CHART, patient_found(), last_result_classification="success_rich")
    assert benchmark(route, state) == "tool_select"


def test_a_turn_of_one_look_up(benchmark, edge_agent: Agent) -> None:
    assert benchmark(edge_agent.ask, "What is the potassium of abc-123?")["status"] == "answered"
