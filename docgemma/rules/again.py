"""Whether a question asks the same tool for several things. Pure."""

from collections.abc import Sequence
from typing import Any

from docgemma.rules import known
from docgemma.rules.orders import orders
from docgemma.rules.request import request
from docgemma.state import AgentState


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
        return _left(entities["patient_ids"], [call.get("patient_id") for call in calls], at_least=2)
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


def _left(asked: list[str], done: list[Any], at_least: int = 1) -> bool:
    served = {str(item).casefold() for item in done}
    return len(asked) >= at_least and any(item.casefold() not in served for item in asked)
