"""Whether a question asks the same tool for several things. Pure."""

import itertools
import re
from collections.abc import Sequence

from docgemma.rules import known
from docgemma.rules.ids import PATIENT_ID
from docgemma.rules.orders import orders, places
from docgemma.rules.request import request
from docgemma.state import AgentState

OTHER_DRUG_TOOLS = frozenset({"check_drug_interactions", "search_medical_literature", "prescribe_medication"})
JOINED = re.compile(r"(?:[\s,;&/+]|\b(?:and|or|plus|also|separately|then|for|of|on|as well as)\b)+", re.IGNORECASE)
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
    if name == "get_patient_chart":
        return _left(listed_patients(state), known.tried(state, name, "patient_id"))
    if name == "check_drug_safety":
        tried = {item["tool_name"] for item in state.get("tool_results") or []}
        alone = not OTHER_DRUG_TOOLS & {*required, *tried}
        listed = _listed_drugs(request(state["user_query"]), entities["drug_mentions"]) if alone else []
        return _left(listed, known.tried(state, name, "drug_name"))
    if name == "prescribe_medication":
        ordered = [order.drug for order in orders(request(state["user_query"]), entities["drug_mentions"])]
        return _left(ordered, known.tried(state, name, "medication_name"))
    return False


def listed_patients(state: AgentState) -> list[str]:
    """Ids of which each is meant: "abc-123 and def-456", not "def-456, sorry, not abc-123"."""
    found = known.entities(state)["patient_ids"]
    return found if len(found) > 1 and LISTED.search(state["user_query"]) else []


def _listed_drugs(text: str, drugs: Sequence[str]) -> list[str]:
    """Drugs of which one follows the other: "pioglitazone and, separately, rosiglitazone"."""
    listed: list[str] = []
    for (start, name), (after, following) in itertools.pairwise(places(text, drugs)):
        if JOINED.fullmatch(text[start + len(name) : after]):
            listed += [name, following]
    return known.unique(listed)


def _left(asked: Sequence[str], done: set[str]) -> bool:
    return any(item.casefold() not in done for item in asked)
