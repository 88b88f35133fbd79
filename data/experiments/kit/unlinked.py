"""What code understands of a request without a record store: a patient who is named is taken for found."""

from collections.abc import Sequence
from typing import Any

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.paths import data_file
from docgemma.reading.labels import WRITES
from docgemma.reading.reader import load_reader
from docgemma.reading.request import read_request
from docgemma.rules.plan import Step, missing
from docgemma.state import ActivePatient, AgentState, ImageRef, PatientRef, Request

MOST_CALLS = 8


def understood(
    message: str, *, before: str = "", active: ActivePatient | None = None, person: str = "somebody"
) -> Request:
    """What the reader finds; `person` is the id of whom a name means. A name beside an id is that patient."""
    reader = load_reader(data_file("edge", "reader.npz"))
    request = read_request(message, reader=reader, drugs=load_drug_names(), store=None, before=before, active=active)
    said = [text for text in request["unclear"] if text.upper() not in request["trials"]]
    ids = [text for text in said if any(map(str.isdigit, text))]
    people = [
        PatientRef(
            id=text if ids else person, name=text, label=text, said=text, search="" if ids else text, sex="", exact=True
        )
        for text in ids or said
    ]
    return {**request, "patients": people, "unclear": []}


def situation(message: str, request: Request, patient: ActivePatient | None = None, image: bool = False) -> AgentState:
    """The state as the first node leaves it."""
    return AgentState(
        user_query=message, message=message, request=request, image=ImageRef(path="") if image else None,
        active_patient=patient, turn_patient=patient, tool_results=[], step_count=0,
    )  # fmt: skip


def follow(state: AgentState, person: str = "somebody", medicines: Sequence[str] = ()) -> list[Step]:
    """Every call of the turn, each with an empty result: a chart of `medicines`, a search that finds its patient."""
    calls: list[Step] = []
    charted = [{"name": name} for name in medicines]
    while (left := missing(state)) and len(calls) < MOST_CALLS:
        calls.append(left[0])
        searched = left[0].tool == "search_patient"
        made: Any = {
            "tool_name": left[0].tool, "args": left[0].args, "error": None, "error_type": None, "empty": False,
            "writes": left[0].ask in WRITES,
            "result": {"patients": [{"id": person}]} if searched else {"medications": charted},
        }  # fmt: skip
        state = {**state, "tool_results": [*state["tool_results"], made]}
    return calls
