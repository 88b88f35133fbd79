"""A new tool is its own file and one line of the registry: all else takes what it has to know from the `Tool`."""

from dataclasses import replace

import pytest

from docgemma import tools
from docgemma.agent import Agent
from docgemma.ehr.open import open_store
from docgemma.errors import ConfigError
from docgemma.schemas import Schema
from docgemma.tools import Toolbox, ToolContext, ToolOutput, toolbox, untrusted
from docgemma.tools.base import Tool
from tests.test_graph_v3 import intent, rich
from tests.test_mcp_server import Person, call, listed

NAME, LABEL = "check_bed_occupancy", "Bed Occupancy"
QUESTION = "How many beds are free on ward 7?"
OCCUPANCY = "Ward 7 has 4 free beds."


class BedArgs(Schema):
    ward: str


BEDS = Tool(
    name=NAME, label=LABEL, signature="(ward: str)", description="Count the free beds of a ward.", args=BedArgs,
    example="Is there a bed on ward 3?", run=lambda args, context: ToolOutput({"free": 4}, "Ward list"),
    format=lambda data: f"Ward 7 has {data['free']} free beds.",
)  # fmt: skip


class TransferArgs(Schema):
    patient_id: str
    ward: str


TRANSFER = replace(
    BEDS, name="transfer_patient", label="Transfer", args=TransferArgs, needs="patient", writes=True,
    run=lambda args, context: ToolOutput({}, "Ward list"), format=lambda data: "Transferred to ward 7.",
)  # fmt: skip


@pytest.fixture(params=[BEDS, TRANSFER], ids=["read", "write"])
def eleventh(request, monkeypatch):
    """Register one more tool, in the one place."""
    ten = tools.registry.registered()
    monkeypatch.setattr(tools.registry, "registered", lambda: (*ten, request.param))
    untrusted.own_words.cache_clear()
    yield request.param
    untrusted.own_words.cache_clear()


@pytest.fixture
def agent(eleventh, settings, scripted):
    with Agent(settings, llm=scripted) as agent:
        yield agent


@pytest.mark.parametrize("eleventh", [BEDS], indirect=True)
def test_the_model_may_choose_it_and_the_answer_shows_its_label(agent, scripted) -> None:
    rich(intent(scripted, NAME)).enqueue("tool_arguments", {"ward": "7"})
    scripted.enqueue("synthesize", f"By {NAME}: {OCCUPANCY}")
    result = agent.ask(QUESTION)
    assert [(tool["name"], tool["label"], tool["args"]) for tool in result["tools"]] == [(NAME, LABEL, {"ward": "7"})]
    assert OCCUPANCY in result["answer"] and NAME not in result["answer"]


@pytest.mark.parametrize("eleventh", [BEDS], indirect=True)
def test_it_is_described_where_the_model_chooses_among_several(settings, scripted, eleventh) -> None:
    with Agent(settings.model_copy(update={"narrowing": False}), llm=scripted) as agent:
        rich(intent(scripted, NAME)).enqueue("tool_select", {"tool_name": NAME})
        scripted.enqueue("tool_arguments", {"ward": "7"}).enqueue("synthesize", OCCUPANCY)
        agent.ask(QUESTION)
    prompt = next(prompt for node, prompt, _ in scripted.history if node == "tool_select")
    assert eleventh.full_description in prompt.system and eleventh.example in prompt.system


@pytest.mark.parametrize("eleventh", [TRANSFER], indirect=True)
def test_a_new_write_stops_for_a_person_and_is_made_once(agent, scripted) -> None:
    rich(intent(scripted, "transfer_patient"), 3).enqueue("tool_select", {"tool_name": "transfer_patient"})
    scripted.enqueue("tool_arguments", {"ward": "7"})
    scripted.enqueue("synthesize", "Transferred to ward 7.")
    asked = agent.ask("What about a place on ward 7 for John Smith (abc-123)?")
    assert asked["status"] == "needs_approval", asked
    assert asked["pending_write"]["label"] == "Transfer" and asked["pending_write"]["patient"]["id"] == "abc-123"
    done = agent.decide(asked["thread"], "approve")
    assert [tool["ok"] for tool in done["tools"] if tool["name"] == "transfer_patient"] == [True]
    assert "Transferred to ward 7." in done["answer"]


def test_it_is_served_over_mcp(eleventh, settings) -> None:
    context = ToolContext(settings, open_store(settings), knowledge=None)
    served = listed(context, tools=toolbox())[eleventh.name]
    assert (served.title, served.description) == (eleventh.label, eleventh.description)
    assert list(served.input_schema["properties"]) == list(eleventh.args.model_fields)
    assert served.annotations.read_only_hint is not eleventh.writes
    args, person = {"patient_id": "abc-123", "ward": "7"}, Person()
    args = {name: args[name] for name in eleventh.args.model_fields}
    answer = call(context, eleventh.name, args, tools=toolbox(), person=person)
    assert answer.structured_content["ok"] and "ward 7" in answer.structured_content["text"].lower()
    assert len(person.asked) == eleventh.writes


def test_its_name_and_label_cannot_be_planted_in_a_result(eleventh) -> None:
    plain = eleventh.name.replace("_", " ")
    assert untrusted.clean_text(f"[{eleventh.label}] {eleventh.name}") == f"({eleventh.label}) {plain}"


@pytest.mark.parametrize(
    ("changed", "line"),
    [({"name": "search_patient"}, "taken"), ({"label": "Patient Record"}, "taken"), ({"example": ""}, "example"),
     ({"needs": "luck"}, "'luck'"), ({"writes": True}, "patient_id")],
)  # fmt: skip
def test_a_tool_that_is_declared_wrongly_stops_the_start(changed, line) -> None:
    with pytest.raises(ConfigError, match=line):
        Toolbox([*toolbox(), replace(BEDS, **changed)])
