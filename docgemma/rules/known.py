"""What a turn knows so far: patients, drugs and findings, from the question, the history and this turn's results."""

import re
from collections.abc import Iterable

from docgemma.rules.drugs import DrugNames
from docgemma.state import AgentState, ExtractedEntities, ToolResult

DRUG_ARGS = ("drug_name", "drug_names", "medication_name")
ACTIVE_MEDICATION = re.compile(r"^Active medication: (.+?)(?: \d|\.|$)", re.MULTILINE)
HISTORY_TURNS = 4
TAIL_CHARS = 20_000  # of a history text that is looked through


NO_ENTITIES = ExtractedEntities(
    patient_ids=[], patient_names=[], drug_mentions=[], action_verbs=[], nct_ids=[], has_image=False
)


def entities(state: AgentState) -> ExtractedEntities:
    """What was extracted from the question; nothing, before it was read."""
    return state.get("extracted_entities") or NO_ENTITIES


def succeeded(state: AgentState) -> list[ToolResult]:
    return [item for item in state.get("tool_results") or [] if not item["error"]]


def tried(state: AgentState, tool: str, field: str) -> set[str]:
    """What an argument of a tool was in this turn's calls, failed ones too; in lower case."""
    results = state.get("tool_results") or []
    return {str(item["args"].get(field)).casefold() for item in results if item["tool_name"] == tool}


def found_patients(state: AgentState) -> list[dict[str, str]]:
    """Patients that this turn's searches and charts settled on: {"id", "name", "label"}. Two matches settle nothing."""
    found: list[dict[str, str]] = []
    for result in succeeded(state):
        payload = result["result"]
        listed = payload.get("patients") or ([payload["patient"]] if payload.get("patient") else [])
        if len(listed) == 1:
            found += listed
    return found


def patient_ids(state: AgentState) -> list[str]:
    """Ids that may be used, likeliest first: named in the question, found in this turn, the active patient."""
    active = state.get("active_patient")
    found = [str(item["id"]) for item in found_patients(state) if item.get("id")]
    asked = entities(state)["patient_ids"]
    current = [active["id"]] if active and (found or asked or not other_patient_named(state)) else []
    return unique([*asked, *reversed(found), *current])


def other_patient_named(state: AgentState) -> bool:
    """Whether the question names somebody who is not the active patient."""
    active = state.get("active_patient")
    names = entities(state)["patient_names"]
    known = name_words(active["name"]) if active else set()
    return any(not name_words(name) <= known for name in names)


def name_words(name: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W\d_]+", name)}


def drugs(state: AgentState, dictionary: DrugNames | None = None) -> list[str]:
    """Drugs that may be meant, likeliest first: of the question, of this turn's charts, of the history.

    The history's texts are looked through only with a dictionary.
    """
    found = [*entities(state)["drug_mentions"], *chart_medications(state)]
    for turn in reversed((state.get("history") or [])[-HISTORY_TURNS:]):
        for call in turn.get("tools", []):
            found += _drug_args(call.get("args", {}))
            found += ACTIVE_MEDICATION.findall(call.get("brief", ""))
        if dictionary:
            text = f"{turn['user']}\n{turn['assistant']}"[:TAIL_CHARS]
            found += [item.text for item in dictionary.find(text)]
    return unique(" ".join(item.split()) for item in found)


def chart_medications(state: AgentState) -> list[str]:
    """Active medications of the charts read in this turn."""
    found = []
    for result in succeeded(state):
        for item in result["result"].get("medications") or []:
            if isinstance(item, dict) and item.get("active", True) and item.get("name"):
                found.append(str(item["name"]))
    return unique(found)


def unique(items: Iterable[str]) -> list[str]:
    """Without repeats, whatever their case; the first spelling stays, and the order."""
    seen: dict[str, str] = {}
    for item in items:
        if item:
            seen.setdefault(item.casefold(), item)
    return list(seen.values())


def _drug_args(args: dict) -> list[str]:
    values = (args.get(name) for name in DRUG_ARGS)
    return [str(item) for value in values if value for item in (value if isinstance(value, list) else [value])]
