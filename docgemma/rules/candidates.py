"""Candidate narrowing: before the model chooses a tool, code removes those that cannot apply.

Where the task patterns still miss something that can be done now, its tools stand: the order lookup, reading,
knowledge, writes is control flow, and control flow belongs to code. Where a trained model named another tool with the
intent, it chooses, unless a write was ordered in so many words. Otherwise the model chooses among all that can apply.
"""

import re
from collections.abc import Sequence

from docgemma.rules import known
from docgemma.rules.asked import never_orders, writes_asked, writes_possible
from docgemma.rules.completion import NEEDS_PATIENT, missing_tools, unwanted_tools
from docgemma.rules.drugs import DrugNames
from docgemma.rules.spans import choices
from docgemma.state import AgentState

LOOKS_FOR = re.compile(
    r"\b(?:find|search|look\s*up|locate|patient|pt|registered|surname|name|named|called|system|books|mrn|mr|mrs|ms|miss)\b",
    re.I,
)
# a record is plainly to be read: code says that this comes before what the model named
READS_FIRST = re.compile(r"\b(?:check|review|show|open|pull|bring|get|see|look|view|find)\b", re.IGNORECASE)
WRITES = ("prescribe_medication", "add_allergy", "save_clinical_note")


def narrow(
    names: Sequence[str], state: AgentState, dictionary: DrugNames | None = None, meant: str | None = None
) -> list[str]:
    """The tools that can apply now, in the order given; never an empty list.

    Args:
        names: all tools.
        state: of the turn, entities extracted.
        dictionary: finds drugs in the history's texts as well; without it only calls and charts count.
        meant: the tool that the model named with the intent, where its word is worth as much as the patterns'. It
            counts before the first call.
    """
    meant = None if state.get("tool_results") else meant
    missing = [name for name in missing_tools(state) if name in names]
    meant = None if missing and missing[0] in WRITES else meant  # a write ordered in so many words
    refused = unwanted_tools(state["user_query"])
    possible = [name for name in names if name not in refused and _applies(name, state, missing, dictionary, meant)]
    ready = [name for name in missing if name in possible]
    unsure = [name for name in possible if name in WRITES and name not in missing]
    if ready and ready[0] == missing[0] and missing[0] in ("search_patient", "get_patient_chart"):
        ready = ready[:1]  # the rest needs what this finds
    settled = missing if READS_FIRST.search(state["user_query"]) else ready
    if ready and meant not in (None, *settled):
        return possible  # patterns know few ways of asking, and the model read the question otherwise: it chooses
    if ready:
        return [name for name in names if name in (*ready, *unsure)]
    return possible or missing[:1] or list(names)


def _applies(
    name: str, state: AgentState, missing: Sequence[str], dictionary: DrugNames | None, meant: str | None
) -> bool:
    entities = known.entities(state)
    required = name in missing
    if name == "analyze_medical_image":
        return bool(entities["has_image"])
    if name in WRITES and not (required or name in _writes(state, meant)):
        return False
    if name in NEEDS_PATIENT and not known.patient_ids(state):
        # with nobody to search for either, the call itself asks for the patient
        return required and not _can_search(state)
    if name == "search_patient" and not required and not (_new_name(state) and _may_search(state)):
        return False
    if name == "check_drug_interactions" and len(known.drugs(state, dictionary)) < 2:
        unknown = name == meant and len(choices("drug_names", name, state, dictionary) or []) >= 2
        return (required or unknown) and not {"search_patient", "get_patient_chart"} & set(missing)
    return required or not _served(name, state)


def _writes(state: AgentState, meant: str | None) -> list[str]:
    question, entities = state["user_query"], known.entities(state)
    # what the model read in the question alone; a person decides about every write that comes of it
    named = [meant] if meant and not never_orders(question) else []
    return [*writes_asked(question, entities), *writes_possible(question, entities), *named]


def _can_search(state: AgentState) -> bool:
    names = known.entities(state)["patient_names"]
    searched = any(item["tool_name"] == "search_patient" for item in state.get("tool_results") or [])
    return bool(names) and not searched


def _may_search(state: AgentState) -> bool:
    """Whether somebody may be looked for: named, or a question that is not plainly about drugs."""
    entities = known.entities(state)
    return (
        bool(entities["patient_names"]) or not entities["drug_mentions"] or bool(LOOKS_FOR.search(state["user_query"]))
    )


def _new_name(state: AgentState) -> bool:
    """Whether somebody is named whom no search of this turn has looked for, and whose id is not known."""
    entities = known.entities(state)
    names = entities["patient_names"]
    active = state.get("active_patient")
    if not names:
        return not entities["patient_ids"] and not active and not known.found_patients(state)
    tried = [
        known.name_words(str(item["args"].get("name", "")))
        for item in state.get("tool_results") or []
        if item["tool_name"] == "search_patient"
    ]
    settled = [known.name_words(active["name"])] if active else []
    return any(not any(known.name_words(name) <= words for words in [*tried, *settled]) for name in names)


def _served(name: str, state: AgentState) -> bool:
    """Whether a tool has answered already and nothing is left that it was not asked about."""
    done = [item for item in known.succeeded(state) if item["tool_name"] == name]
    if not done:
        return False
    asked = {str(value).casefold() for item in done for value in _flat(item["args"].values())}
    entities = known.entities(state)
    if name == "get_patient_chart":
        return all(item.casefold() in asked for item in entities["patient_ids"])
    if name == "check_drug_safety":
        return all(item.casefold() in asked for item in entities["drug_mentions"])
    return True


def _flat(values) -> list:
    return [part for value in values for part in (value if isinstance(value, list) else [value])]
