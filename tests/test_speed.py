"""What code does between two model calls should not be felt: `make bench` prints the times; none is asserted."""

import pytest

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.rules.candidates import narrow
from docgemma.rules.entities import extract
from docgemma.rules.routing import route
from docgemma.schemas import TOOL_ARG_SCHEMAS
from docgemma.state import ToolResult

QUESTION = "Find patient John Smith, check his chart, and verify metformin safety with his lisinopril 10 mg and aspirin"
pytestmark = pytest.mark.benchmark


@pytest.fixture(scope="module")
def drugs():
    return load_drug_names()


def state_of(question: str, drugs) -> dict:
    result = ToolResult(
        tool_name="search_patient", tool_label="Patient Search", args={"name": "John Smith"},
        result={"patients": [{"id": "abc-123", "name": "John Smith"}]}, formatted_result="Found patient John Smith.",
        error=None, error_type=None, details={}, empty=False, source="test", as_of=None, links=[],
        seconds=0.0, retries=0,
    )  # fmt: skip
    return {
        "user_query": question, "extracted_entities": extract(question, drugs), "tool_results": [result],
        "step_count": 1, "retry_count": 0, "total_retries": 0, "last_result_classification": "success_rich",
    }  # fmt: skip


def test_entity_extraction(benchmark, drugs) -> None:
    found = benchmark(extract, QUESTION, drugs)
    assert found["drug_mentions"] == ["metformin", "lisinopril", "aspirin"]


def test_routing_rules(benchmark, drugs) -> None:
    assert benchmark(route, state_of(QUESTION, drugs)) == "tool_select"


def test_candidate_narrowing(benchmark, drugs) -> None:
    assert benchmark(narrow, list(TOOL_ARG_SCHEMAS), state_of(QUESTION, drugs)) == ["get_patient_chart"]


def test_state_assembly(benchmark, agent) -> None:
    from docgemma.nodes.input_assembly import assemble_input

    class Runtime:
        context = agent_context(agent)

    update = benchmark(assemble_input, {"message": QUESTION}, Runtime)
    assert update["extracted_entities"]["patient_names"] == ["John Smith"]


def agent_context(agent):
    from docgemma.nodes.context import Context

    return Context(
        llm=agent.llm, profile=agent.profile, toolbox=agent.toolbox, store=agent.store, knowledge=agent.knowledge,
        drugs=agent.drugs, settings=agent.settings, thread="t",
    )  # fmt: skip
