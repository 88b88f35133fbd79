"""No name, id or birth date of a patient reaches a service outside: neither literature nor trials."""

import pytest

from docgemma.agent import Agent
from docgemma.rules.plan import private
from tests.rules_help import person, request

OUTSIDE = ("search_medical_literature", "find_clinical_trials")
WHO = ("john", "smith", "abc-123", "1958", "maria", "garcia", "def-456", "1971")

QUESTIONS = [
    "Any studies on metformin in chronic kidney disease for John Smith?",
    "literature on SGLT2 inhibitors for patient abc-123",
    "is there evidence for metformin in CKD 3b for ABC-123 (John Smith, born 1958-04-12)",
    "recruiting trials for John Smith's type 2 diabetes",
    "find trials on asthma for Maria García, DOB 03/09/1971",
    "trials for migraine that def-456 could join",
    "pubmed: sumatriptan safety, for garcia maria please",
    "john smith (12.4.1958) - papers about metformin and lactic acidosis?",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_patient_reaches_a_literature_or_trial_query(edge_agent: Agent, question: str) -> None:
    sent = queries(edge_agent.ask(question))
    assert sent and not [(word, query) for query in sent for word in WHO if word in query.lower()]


def test_nor_does_the_patient_who_is_open(edge_agent: Agent) -> None:
    thread = edge_agent.ask("Show me the chart of John Smith")["thread"]
    for question in (
        "any studies on metformin for him?",
        "trials for John's diabetes?",
        "evidence for this in Mr Smith?",
    ):
        sent = queries(edge_agent.ask(question, thread=thread))
        assert not [(word, query) for query in sent for word in WHO if word in query.lower()], question


def test_a_language_model_cannot_send_a_name_either(agent: Agent, scripted) -> None:
    scripted.enqueue(
        "intent_classify",
        {"intent": "TOOL_NEEDED", "task_summary": "x", "suggested_tool": "search_medical_literature"},
    )
    for _ in range(4):
        scripted.enqueue("tool_select", {"tool_name": "search_medical_literature"})
        scripted.enqueue("tool_arguments", {"query": "metformin for John Smith abc-123 born 1958-04-12"})
        scripted.enqueue("result_classify", {"quality": "success_rich", "brief_summary": "Found."})
    scripted.enqueue("synthesize", "Reviewed.")
    sent = queries(agent.ask("Any studies on metformin in CKD for John Smith, abc-123?"))
    assert sent and not [(word, query) for query in sent for word in WHO if word in query.lower()]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("metformin for John Smith", "metformin for"), ("john's metformin", "metformin"),
        ("SMITH metformin", "metformin"),
        ("Smithfield trial of metformin", "Smithfield trial of metformin"), ("abc-123 metformin abc-123", "metformin"),
    ],
)  # fmt: skip
def test_whole_words_of_the_patient_leave_a_query(text: str, left: str) -> None:
    assert private(text, request(patients=[person(said="John Smith")])) == left


def queries(result: dict) -> list[str]:
    return [str(value) for tool in result["tools"] if tool["name"] in OUTSIDE for value in tool["args"].values()]


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("Ana Smith-Jones", "metformin in smith jones", "metformin in"),
        ("Ana Smith", "metformin for Smith-Jones/Smith", "metformin for"),
    ],
)
def test_a_part_of_a_double_name_does_not_leave_either(name: str, text: str, left: str) -> None:
    assert private(text, request("lit", patients=[person("xyz-123", name)])) == left
