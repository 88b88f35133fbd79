"""Whom a request is about: who is named, who was found, else the patient who is open ("her"). Pure."""

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.rules import known
from docgemma.state import AgentState


def found_patients(state: AgentState) -> list[dict[str, str]]:
    """Patients that this turn's searches settled on: {"id", "name", "label"}. Two matches settle nothing."""
    listed = [item["result"].get("patients") or [] for item in known.made(state, "search_patient")]
    return [patients[0] for patients in listed if len(patients) == 1]


def searched_in_vain(state: AgentState) -> bool:
    """Whether somebody was looked for in this turn and nobody was found."""
    searches = [item for item in state.get("tool_results") or [] if item["tool_name"] == "search_patient"]
    return bool(searches) and not found_patients(state)


def patients_meant(state: AgentState) -> list[str]:
    """Ids of the patients who are meant, in order. Whoever the request names wins over the patient who is open, also
    where nobody of that name exists."""
    asked = known.request(state)
    found = [item["id"] for item in found_patients(state)]
    named = known.unique([*(patient["id"] for patient in asked["patients"]), *found])
    if named or asked["unclear"]:
        return named
    active = state.get("turn_patient") or state.get("active_patient")
    about = set(asked["asks"]) & {*TOPICS, *WRITES, "may", "change", "trial", "safe", "ddi"} or not asked["asks"]
    return [active["id"]] if active and about else []


def patient_ids(state: AgentState) -> list[str]:
    """Ids that an argument may take: those who are meant, else the open patient unless somebody else is named."""
    active = state.get("turn_patient") or state.get("active_patient")
    found = patients_meant(state)
    return found or ([active["id"]] if active and not known.request(state)["unclear"] else [])
