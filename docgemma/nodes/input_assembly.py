"""Node 1: prepare the turn. Entities by code, image findings by the vision model, answers to an open question read."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import ModelError
from docgemma.images import describe_header, read_header
from docgemma.nodes.context import Context
from docgemma.rules import clarify
from docgemma.rules.entities import extract
from docgemma.state import RESET, AgentState, Clarification, ImageRef, ToolResult
from docgemma.tools.images import describe_image

NAME_CHARS = 80  # a longer message is no name
NO_VISION = "An image is attached, but the loaded model cannot read images. {header}"
UNREADABLE = "An image is attached, but it could not be read this time."

NEW_TURN: dict[str, Any] = {
    "intent": None, "task_summary": "", "suggested_tool": None, "image_findings": None,
    "current_tool": None, "current_args": None, "proposed_none": False, "tool_results": RESET,
    "step_count": 0, "retry_count": 0, "total_retries": 0, "last_result_classification": None,
    "last_result_summary": None, "quality": RESET, "next_node": None, "retry_strategy": None,
    "error_messages": RESET, "clarification": None, "resumed": False, "final_response": None,
    "status": "answered", "grounding": {},
}  # fmt: skip


def assemble_input(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Start a turn, or take up the work that a clarification interrupted."""
    if (open_question := state.get("clarification")) and (
        answer := _answered(state["message"], open_question, runtime.context)
    ):
        return _take_up(open_question, answer, runtime.context)
    return _begin(state, runtime.context)


def _begin(state: AgentState, context: Context) -> dict[str, Any]:
    image = state.get("image")
    update = {
        **NEW_TURN,
        "user_query": state["message"],
        "turn_patient": state.get("active_patient"),
        "extracted_entities": extract(
            state["message"], context.drugs, image is not None, bool(state.get("active_patient"))
        ),
    }
    if image:
        findings = _look(image, state["message"], context)
        update["calls"] = findings.pop("calls", [])
        update["image_findings"] = findings
    return update


def _look(image: ImageRef, question: str, context: Context) -> dict[str, Any]:
    """What the model sees, or what the header alone tells where it cannot look. Findings are never invented."""
    if context.llm.vision:
        try:
            return describe_image(context.llm, image, question, node="input_assembly")
        except ModelError:
            return {"unread": True, "formatted": UNREADABLE}
    return {"unread": True, "formatted": NO_VISION.format(header=describe_header(read_header(image["path"])))}


def _answered(message: str, question: Clarification, context: Context) -> dict[str, Any] | None:
    """The arguments that the message supplies, or None if it is a new question."""
    if question["kind"] == "missing":
        return clarify.read_missing(message, question) or _by_name(message, question, context)
    chosen = clarify.read_answer(message, question)
    return {"choice": chosen} if chosen else None


def _by_name(message: str, question: Clarification, context: Context) -> dict[str, Any] | None:
    """A patient's name instead of the id that was asked for, if it is one patient's and spelt as on record."""
    if question["missing"] != ["patient_id"] or len(message) > NAME_CHARS:
        return None
    found = [match for match in context.store.search_patients(message) if not match.guessed]
    return {"patient_id": found[0].id} if len(found) == 1 else None


def _take_up(question: Clarification, answer: dict[str, Any], context: Context) -> dict[str, Any]:
    update: dict[str, Any] = {
        "clarification": None, "resumed": True, "status": "answered", "final_response": None,
        "error_messages": RESET, "retry_count": 0, "proposed_none": False, "retry_strategy": None,
    }  # fmt: skip
    if question["kind"] == "patient":
        patient = context.store.patient(answer["choice"])
        chosen = next((item for item in question["options"] if item["id"] == answer["choice"]), None)
        label = patient.label if patient else (chosen or {"label": answer["choice"]})["label"]
        name = patient.name if patient else label
        return {
            **update,
            "active_patient": {"id": answer["choice"], "name": name},
            "tool_results": [_identified(question, answer["choice"], label, context)],
            "last_result_classification": "success_rich",
            "next_node": "router",
        }
    field = question["missing"][0] if question["missing"] else context.toolbox[question["tool"]].entity
    given = {field: answer["choice"]} if question["kind"] == "drug" else answer
    if question["kind"] == "drug" and isinstance(question["args"].get(field), list):
        given = {field: _replaced(question, answer["choice"])}
    return {
        **update,
        "current_tool": question["tool"],
        "current_args": {**question["args"], **given},
        "next_node": "tool_execute",
    }


def _replaced(question: Clarification, choice: str) -> list[str]:
    """The list of drugs with the ambiguous one replaced."""
    unclear = (question.get("entity") or "").lower()
    drugs = next(value for value in question["args"].values() if isinstance(value, list))
    return [choice if drug.lower() == unclear else drug for drug in drugs]


def _identified(question: Clarification, patient_id: str, label: str, context: Context) -> ToolResult:
    """The search, as the clinician completed it."""
    tool = context.toolbox[question["tool"]]
    return ToolResult(
        tool_name=tool.name, tool_label=tool.label, args=question["args"],
        result={"patients": [{"id": patient_id, "label": label}], "chosen_by": "clinician"},
        formatted_result=f"Patient chosen by the clinician: {label}, ID {patient_id}.",
        error=None, error_type=None, details={}, empty=False, source=context.store.name, as_of=None, links=[],
        seconds=0.0, retries=0,
    )  # fmt: skip
