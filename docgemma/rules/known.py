"""What a turn knows so far: patients, drugs and findings, from the request, the open patient and the results."""

from collections.abc import Iterable
from typing import Any, cast

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.state import AgentState, Request, ToolResult

DOSES = frozenset({"dose", "maximum dose"})  # topics of a label
BRIEF = 5  # words of a follow-up that goes on with the message before: "and for Souza?", "and ibuprofen?"
NOTHING = Request(
    asks=[], meant="", patients=[], unclear=[], drugs=[], orders=[], allergies=[], notes=[], corrects=False,
    details={}, measures=[], conditions=[], status="", query="", trials=[], said="", telling=[], owners={},
)  # fmt: skip


def request(state: AgentState) -> Request:
    return state.get("request") or NOTHING


def made(state: AgentState, tool: str) -> list[ToolResult]:
    """The calls of a tool that succeeded in this turn."""
    return [item for item in state.get("tool_results") or [] if item["tool_name"] == tool and not item["error"]]


def ordered(request: Request) -> list[dict[str, Any]]:
    """The drugs of a request's orders, as drugs that are named."""
    return [{"said": item["said"], "name": item["drug"], "how": item["how"]} for item in request["orders"]]


def charts(state: AgentState) -> list[ToolResult]:
    return made(state, "get_patient_chart")


def found_patients(state: AgentState) -> list[dict[str, str]]:
    """Patients that this turn's searches settled on: {"id", "name", "label"}. Two matches settle nothing."""
    listed = [item["result"].get("patients") or [] for item in made(state, "search_patient")]
    return [patients[0] for patients in listed if len(patients) == 1]


def searched_in_vain(state: AgentState) -> bool:
    """Whether somebody was looked for in this turn and nobody was found."""
    searches = [item for item in state.get("tool_results") or [] if item["tool_name"] == "search_patient"]
    return bool(searches) and not found_patients(state)


def people(state: AgentState) -> list[str]:
    """Ids of the patients who are meant, in order. Whoever the request names wins over the patient who is open, also
    where nobody of that name exists."""
    asked = request(state)
    named = unique([*(patient["id"] for patient in asked["patients"]), *(item["id"] for item in found_patients(state))])
    if named or asked["unclear"]:
        return named
    active = state.get("turn_patient") or state.get("active_patient")
    about = set(asked["asks"]) & {*TOPICS, *WRITES, "may", "change", "trial", "safe", "ddi"} or not asked["asks"]
    return [active["id"]] if active and about else []


def patient_ids(state: AgentState) -> list[str]:
    """Ids that an argument may take: those who are meant, else the open patient unless somebody else is named."""
    active = state.get("turn_patient") or state.get("active_patient")
    found = people(state)
    return found or ([active["id"]] if active and not request(state)["unclear"] else [])


def drugs(state: AgentState) -> list[str]:
    """Drugs that were asked about, as the dictionary spells them; unknown ones as typed; groups by their members."""
    named = [item for item in request(state)["drugs"] if item["how"] not in ("group", "food", "unknown")]
    opened = [member for item in request(state)["drugs"] for member in item.get("members", [])]
    return unique([*(item["name"] for item in named), *opened])


def chart_medications(state: AgentState) -> list[str]:
    """Active medications of the charts read in this turn."""
    listed = [entry for item in charts(state) for entry in item["result"].get("medications") or []]
    return unique(str(entry["name"]) for entry in listed if entry.get("active", True) and entry.get("name"))


def chart_problems(state: AgentState) -> list[str]:
    """Active problems of the charts read in this turn."""
    listed = [entry for item in charts(state) for entry in item["result"].get("conditions") or []]
    return unique(str(entry["name"]) for entry in listed if entry.get("active", True) and entry.get("name"))


def replaced(request: Request, **changes: Any) -> Request:
    """The request with some of its parts otherwise."""
    return cast(Request, {**request, **changes})


def unique(items: Iterable[Any]) -> list[Any]:
    """Without repeats, whatever their case; the first spelling stays, and the order."""
    seen: dict[str, Any] = {}
    for item in items:
        if item:
            seen.setdefault(str(item).casefold(), item)
    return list(seen.values())
