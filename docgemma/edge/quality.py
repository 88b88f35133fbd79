"""What a perfect judge calls an invented result, given how it was made. For training texts only."""

from docgemma.edge.answers import answer
from docgemma.state import ToolResult

WRITES = frozenset({"prescribe_medication", "add_allergy", "save_clinical_note"})


def true_quality(question: str, result: ToolResult, intended: str, limit: int) -> str:
    """rich: answers the question. partial: some of it, or only with a caveat. none: nothing that bears on it."""
    tool, data = result["tool_name"], result["result"]
    if tool in WRITES:
        return "success_rich"
    if tool == "search_patient":
        return _search(data)
    if tool == "get_patient_chart":
        empty = not (data["conditions"] or data["medications"] or data["labs"] or data["allergies"])
        return "no_results" if empty else _absent(answer(question, [result], limit), "recorded in the chart")
    if tool == "check_drug_safety":
        return _absent(answer(question, [result], limit), "does not mention")
    if tool == "check_drug_interactions":
        return (
            "success_rich"
            if not data["not_checked"]
            else "success_partial"
            if data["interactions"] or data["none_listed"]
            else "no_results"
        )
    if tool == "analyze_medical_image":
        return "success_rich" if data["confidence"] >= 0.5 else "success_partial"
    found = data.get("articles", data.get("trials"))
    if not found:
        return "no_results"
    if any(item["demonstration"] for item in found):
        return "success_partial"
    if tool == "find_clinical_trials" and intended == "success_partial":
        return (
            "success_partial"
            if all(item["status"] in ("COMPLETED", "TERMINATED", "WITHDRAWN") for item in found) and _open(question)
            else "success_rich"
        )
    return intended


def _search(data: dict) -> str:
    if not data["patients"]:
        return "no_results"
    return "success_partial" if data["patients"][0]["guessed"] else "success_rich"


def _absent(text: str, mark: str) -> str:
    return (
        "success_partial"
        if mark in text and any(part.startswith(("No ", "What was found")) for part in text.split(". "))
        else "success_rich"
    )


def _open(question: str) -> bool:
    return "recruit" in question.lower() or "enrol" in question.lower()
