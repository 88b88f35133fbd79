"""States and results for the tests of the rules: plain data, as the graph makes them."""

from functools import cache
from typing import Any

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.rules.drugs import DrugNames
from docgemma.rules.entities import extract
from docgemma.rules.grounding import LABELS
from docgemma.state import AgentState, ToolResult


@cache
def dictionary() -> DrugNames:
    """The real dictionary, compiled once for all tests."""
    return load_drug_names()


def result(tool: str, args: dict[str, Any] | None = None, **given: Any) -> ToolResult:
    """A call that succeeded; `error_type` and `error` make it one that failed."""
    return ToolResult(
        tool_name=tool, tool_label=LABELS[tool], args=args or {}, result=given.get("data", {}),
        formatted_result=given.get("text", given.get("error") or ""), error=given.get("error"),
        error_type=given.get("error_type"), details=given.get("details", {}), empty=given.get("empty", False),
        source="test", as_of=None, links=[], seconds=0.0, retries=given.get("retries", 0),
    )  # fmt: skip


def failed(tool: str, error_type: str, args: dict[str, Any] | None = None, **details: Any) -> ToolResult:
    """A failed call with the text that the tool layer makes for it."""
    from docgemma.rules.errors import error_message

    fields = {"search_patient": "name", "check_drug_safety": "drug_name", "check_drug_interactions": "drug_names"}
    text = error_message(error_type, LABELS[tool], args or {}, fields.get(tool, "patient_id"), details)
    return result(tool, args, error=text, error_type=error_type, details=details)


def turn(question: str, *results: ToolResult, image: bool = False, **more: Any) -> AgentState:
    """A turn in progress: the question with its entities, and what was called so far."""
    state = AgentState(
        user_query=question, extracted_entities=extract(question, dictionary(), has_image=image),
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


def chart(*medications: str, patient_id: str = "abc-123", allergies: tuple[dict, ...] = ()) -> ToolResult:
    data = {
        "patient": {"id": patient_id, "name": "John Smith", "label": "John Smith, male, born 1962-03-04"},
        "medications": [{"name": name, "dosage": "", "active": True} for name in medications],
        "allergies": list(allergies),
    }
    lines = [f"Active medication: {name}." for name in medications]
    return result("get_patient_chart", {"patient_id": patient_id}, data=data, text="\n".join(lines) or "No findings.")
