"""v1 and v2: the route by the plan, and how sure an answer is."""

import pytest

from docgemma.nodes.subtasks import confidence, route_by_plan
from docgemma.rules.known import NOTHING, replaced
from docgemma.state import AgentState


def state(*results: dict, asks: str = "safe", **keys) -> AgentState:
    base = {"error": None, "error_type": None, "empty": False, "writes": False, "result": {}}
    made = [
        {**base, "tool_name": "check_drug_safety", "args": {"drug_name": str(at)}, **item}
        for at, item in enumerate(results)
    ]
    return {"request": replaced(NOTHING, asks=asks.split()), "tool_results": made, "status": "answered", **keys}


GOOD, NONE, FAILED = {}, {"empty": True}, {"error": "The service was busy.", "error_type": "timeout"}
LOST = {"supported": False, "removed": ["A sentence."]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(GOOD), "high"),
        (state({**FAILED, "args": {"drug_name": "x"}}, {"args": {"drug_name": "x"}}), "high"),  # a retry brought it
        (state(GOOD, NONE), "medium"),
        (state(GOOD, FAILED), "medium"),
        (state(GOOD, unanswered=[{"ask": "dose", "reason": "not stored"}]), "medium"),
        (state(GOOD, grounding=LOST), "medium"),
        (state(GOOD, quality=["success_partial"]), "medium"),
        (state(GOOD, error_messages=["Not done: Prescription."]), "medium"),
        (state(GOOD, route="reasoning"), "medium"),  # a conclusion that nobody checks
        (state(GOOD, route="reasoning", asks="may"), "high"),  # an order, which code checks
        (state(NONE), "low"),
        (state(FAILED), "low"),
        (state(asks="gk"), "low"),  # general knowledge
        (state(asks="gk", sources=[{"title": "A guideline"}]), "high"),  # a curated definition
        (state(asks="chat"), "high"),
        (state({"result": {"decision": "rejected"}, "writes": True}, asks="rx"), "high"),
        (state(status="needs_clarification"), None),
    ],
)
def test_confidence_follows_from_what_happened(given: AgentState, expected: str | None) -> None:
    assert confidence(given) == expected


DRUG = {"said": "metformin", "name": "metformin", "how": "named", "members": []}


@pytest.mark.parametrize(
    ("asks", "drugs", "expected"),
    [
        ("chat", [], "direct"),
        ("safe", [DRUG], "lookup"),
        ("safe lit", [DRUG], "multi_step"),
        ("may", [DRUG], "reasoning"),
        ("", [DRUG], "reasoning"),
    ],
)
def test_the_route_follows_from_the_plan(asks: str, drugs: list[dict], expected: str) -> None:
    request = replaced(NOTHING, asks=asks.split(), drugs=drugs, query="metformin", said="metformin")
    assert route_by_plan({"request": request}) == expected
