"""States and results for the tests of the rules: plain data, as the graph makes them."""

from functools import cache
from typing import Any

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.paths import data_file
from docgemma.reading.reader import Reader, load_reader
from docgemma.rules import known
from docgemma.state import AgentState, OrderRef, PatientRef, Request, ToolResult
from docgemma.text.drugs import DrugNames
from docgemma.tools import toolbox

LABELS = {tool.name: tool.label for tool in toolbox()}
TOOLS = toolbox()


@cache
def dictionary() -> DrugNames:
    """The real dictionary, read once for all tests."""
    return load_drug_names()


def the_reader() -> Reader:
    """The shipped reader, loaded once for all tests."""
    return load_reader(data_file("edge", "reader.npz"))


def request(*asks: str, **given: Any) -> Request:
    """What a message asks for, as the reader would have said it; the rest is empty."""
    return Request(**{**known.NOTHING, "asks": list(asks), **given})


def person(patient_id: str = "abc-123", name: str = "John Smith", search: str = "", said: str = "") -> PatientRef:
    return PatientRef(
        id=patient_id, name=name, label=f"{name}, male, born 1958-04-12", sex="male", said=said or search or patient_id,
        search=search, exact=True,
    )  # fmt: skip


def drug(name: str, how: str = "named", said: str = "", members: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"said": said or name, "name": name, "how": how, "members": list(members)}


def order(name: str, dose: str = "", frequency: str = "", *, route: str = "", notes: str = "") -> OrderRef:
    return OrderRef(said=name, drug=name, how="named", dose=dose, route=route, frequency=frequency, notes=notes)


def result(tool: str, args: dict[str, Any] | None = None, **given: Any) -> ToolResult:
    """A call that succeeded; `error_type` and `error` make it one that failed."""
    return ToolResult(
        tool_name=tool, tool_label=TOOLS[tool].label, args=args or {}, result=given.get("data", {}),
        formatted_result=given.get("text", given.get("error") or ""), error=given.get("error"),
        error_type=given.get("error_type"), details=given.get("details", {}), empty=given.get("empty", False),
        source="test", as_of=None, links=[], seconds=0.0, retries=given.get("retries", 0),
        writes=TOOLS[tool].writes, no_answer=TOOLS[tool].no_answer,
    )  # fmt: skip


def failed(tool: str, error_type: str, args: dict[str, Any] | None = None, **details: Any) -> ToolResult:
    """A failed call with the text that the tool layer makes for it."""
    from docgemma.rules.errors import error_message

    fields = {"search_patient": "name", "check_drug_safety": "drug_name", "check_drug_interactions": "drug_names"}
    text = error_message(error_type, TOOLS[tool].label, args or {}, fields.get(tool, "patient_id"), details)
    return result(tool, args, error=text, error_type=error_type, details=details)


def turn(asked: Request, *results: ToolResult, image: bool = False, **more: Any) -> AgentState:
    """A turn in progress: what is asked, and what was called so far."""
    state = AgentState(
        user_query=asked["said"], message=asked["said"], request=asked, image={"path": "image.png"} if image else None,
        tool_results=list(results), step_count=len(results), retry_count=0, total_retries=0, history=[],
    )  # fmt: skip
    state.update(more)
    return state


def patient_found(patient_id: str = "abc-123", name: str = "John Smith") -> ToolResult:
    patient = {"id": patient_id, "name": name, "label": f"{name}, male, born 1962-03-04"}
    return result(
        "search_patient", {"name": name}, data={"name": name, "patients": [patient]},
        text=f"Found patient {patient['label']}, patient ID {patient_id}.",
    )  # fmt: skip


def chart(*medications: str, patient_id: str = "abc-123", **given: Any) -> ToolResult:
    """A chart with these active medications; `given` are further keys of `chart_data`."""
    data = chart_of(*medications, patient_id=patient_id, **given)
    lines = [f"Active medication: {name}." for name in medications]
    return result("get_patient_chart", {"patient_id": patient_id}, data=data, text="\n".join(lines) or "No findings.")


def chart_of(*medications: str, patient_id: str = "abc-123", name: str = "John Smith", **given: Any) -> dict[str, Any]:
    """The data of a chart, empty but for what is given."""
    blank: dict[str, Any] = {kind: [] for kind in LISTS}
    label = f"{name}, male, born 1958-04-12"
    return {
        **blank, "no_known_allergies": False, "deceased": "", "language": "",
        "patient": {"id": patient_id, "name": name, "label": label, "sex": "male", "birth_date": "1958-04-12"},
        "medications": [taken(medication) for medication in medications], **given,
    }  # fmt: skip


LISTS = ("allergies", "conditions", "medications", "labs", "vitals", "social", "notes", "immunizations")


def taken(name: str, dosage: str = "", *, active: bool = True) -> dict[str, Any]:
    status = "active" if active else "stopped"
    return {"name": name, "dosage": dosage, "active": active, "status": status, "started": ""}


def allergic(substance: str, reaction: str = "", severity: str = "") -> dict[str, Any]:
    return {
        "substance": substance, "reaction": reaction, "severity": severity, "criticality": "", "active": True,
        "recorded": "",
    }  # fmt: skip


def measured(name: str, value: str, unit: str = "", *, flag: str = "", date: str = "2026-10-12", **more: Any) -> dict:
    return {"name": name, "value": value, "unit": unit, "flag": flag, "date": date, "earlier": [], "low": None,
            "high": None, **more}  # fmt: skip


def problem(name: str, *, active: bool = True) -> dict[str, Any]:
    return {"name": name, "active": active, "onset": "", "status": "active" if active else "resolved"}
