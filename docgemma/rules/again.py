"""Whether a question asks the same tool for several things. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from docgemma.rules import known
from docgemma.rules.ids import PATIENT_ID
from docgemma.rules.orders import orders
from docgemma.rules.request import request
from docgemma.state import AgentState

LISTED = re.compile(
    rf"{PATIENT_ID.pattern}(?:\s*(?:,|;|&|/|\+|\band\b|\bvs\b\.?|\bversus\b|\bwith\b))+\s*(?:then\s+|also\s+)?(?:patient\s+|pt\s+)?"
    rf"{PATIENT_ID.pattern}",
    re.IGNORECASE,
)


def asked_again(name: str, required: Sequence[str], state: AgentState) -> bool:
    """Whether a tool is asked for more than it was called for in this turn: two charts, two labels, two orders.

    Args:
        name: a required tool that was called already.
        required: all tools that the question needs.
        state: of the turn.
    """
    entities = known.entities(state)
    calls = [item["args"] for item in state.get("tool_results") or [] if item["tool_name"] == name]
    if name == "get_patient_chart":
        return _left(listed_patients(state), [call.get("patient_id") for call in calls])
    if name == "check_drug_safety":
        tried = {item["tool_name"] for item in state.get("tool_results") or []}
        alone = not {"check_drug_interactions", "search_medical_literature", "prescribe_medication"} & {
            *required,
            *tried,
        }
        return alone and _left(entities["drug_mentions"], [call.get("drug_name") for call in calls], at_least=2)
    if name == "prescribe_medication":
        listed = [order.drug for order in orders(request(state["user_query"]), entities["drug_mentions"])]
        return _left(listed, [call.get("medication_name") for call in calls])
    return False


def listed_patients(state: AgentState) -> list[str]:
    """Ids of which each is meant: "abc-123 and def-456", not "def-456, sorry, not abc-123"."""
    found = known.entities(state)["patient_ids"]
    return found if len(found) > 1 and LISTED.search(state["user_query"]) else []


def _left(asked: list[str], done: list[Any], at_least: int = 1) -> bool:
    served = {str(item).casefold() for item in done}
    return len(asked) >= at_least and any(item.casefold() not in served for item in asked)
