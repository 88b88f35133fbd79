"""What a clinician reads when a tool fails, and what happens next: ask, skip or retry. Never the raw error. Pure.

Wording and order of the rules: v3 spec, sections 4 (node 5a), 9 and 10. A model is asked only whether a retry uses the
same arguments (`nodes/error_handler.py`).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from docgemma.errors import RETRYABLE, ErrorType
from docgemma.rules.clarify import ask_back
from docgemma.state import Clarification, ToolResult
from docgemma.text.quoted import shortened

MAX_RETRIES = 2  # of one tool
MAX_TOTAL_RETRIES = 4  # of all tools in one turn
ERROR_TEMPLATES: dict[str, str] = {
    "timeout": "The {tool_label} was temporarily unavailable. Please try again shortly.",
    "not_found": "No results were found for {entity} in the {tool_label}.",
    "invalid_args": "The request to {tool_label} could not be completed — additional information is needed.",
    "rate_limit": "The {tool_label} is temporarily busy. The system will retry automatically.",
    "server_error": "The {tool_label} experienced a temporary error. The system will retry automatically.",
    "service_unavailable": "{tool_label} is currently unavailable.",
    "invalid_response": "The {tool_label} gave an answer that could not be read. The system will retry automatically.",
    "missing_required_args": "I need more information: {fields}",
    "missing_patient_id": "I need a patient ID to proceed. Could you provide one? A name or a birth date will do.",
    "multiple_patient_matches": "I found {n} patients matching '{entity}'. Which one did you mean? {list}",
    "several_patients": "Multiple patients found. Which patient did you mean?",
    "ambiguous_drug_name": "Did you mean {suggestions}?",
    "unclear_drug_name": "Which drug did you mean by {entity}?",
    "drug_not_in_database": "{entity} was not found in the drug database, so the {tool_label} did not check it.",
    "not_permitted": "The {tool_label} could not be completed: the record system does not permit it.",
    "no_vision": "The {tool_label} could not be completed: images cannot be read by the loaded model. {header}",
    "unreadable": "The {tool_label} could not be completed: {reason}",
    "generic": "The {tool_label} could not be completed.",
}
WRITE_LOST = (
    "The record system did not respond, so it is not certain whether the entry was made. Check the chart first."
)
# asking again cannot change these, whoever asks
FINAL = frozenset({ErrorType.NOT_PERMITTED, ErrorType.NO_VISION, ErrorType.DRUG_NOT_IN_DATABASE})
# a retry may word these otherwise; their text stays true when the retries are used up
WORDING = frozenset({ErrorType.NOT_FOUND, ErrorType.INVALID_ARGS})
FIELD_NAMES = {
    "patient_id": "patient ID", "drug_names": "at least two drug names", "name": "patient name",
    "note_type": "type of note", "note_text": "text of the note", "query": "what to look for",
}  # fmt: skip


class ErrorDecision(NamedTuple):
    """What to do about a failed call. `message` is for the clinician; a clarification comes with `ask_user`."""

    action: Literal["ask_user", "skip", "retry"]
    message: str
    clarification: Clarification | None = None


def error_message(
    error_type: ErrorType | str,
    tool_label: str,
    args: Mapping[str, Any],
    entity_field: str,
    details: Mapping[str, Any],
) -> str:
    """The clinician-friendly text of a failure, always one line, never anything of the raw error."""
    told = ("missing_fields", "options", "suggestions")
    missing, options, suggestions = (list(details.get(key) or []) for key in told)
    kind = str(error_type)
    if kind == "missing_required_args" and missing in ([], ["patient_id"]):
        kind = "missing_patient_id" if missing else "invalid_args"
    if kind in ("invalid_args", "not_permitted") and details.get("reason"):
        kind = "unreadable"
    if kind == "multiple_patient_matches" and not options:
        kind = "several_patients"
    if kind == "ambiguous_drug_name" and not suggestions:
        kind = "unclear_drug_name"
    text = ERROR_TEMPLATES.get(kind, ERROR_TEMPLATES["generic"]).format(
        tool_label=tool_label,
        entity=_line(details.get("entity") or args.get(entity_field)) or "this request",
        fields=", ".join(FIELD_NAMES.get(name, name.replace("_", " ")) for name in missing),
        n=len(options),
        list="; ".join(f"({number}) {_line(item.get('label'))}" for number, item in enumerate(options, 1)),
        suggestions=" or ".join(filter(None, [", ".join(map(_line, suggestions[:-1])), *map(_line, suggestions[-1:])])),
        header=_line(details.get("header_text")),
        reason=_line(details.get("reason"), 300),
    )
    return text.strip()


def handle_error(result: ToolResult, retry_count: int, total_retries: int, most: int = MAX_RETRIES) -> ErrorDecision:
    """Decide about a failed call, in the order of the spec: ask first, then skip, then retry."""
    kind, message = result["error_type"] or "", result["error"] or ""
    if clarification := ask_back(result):
        return ErrorDecision("ask_user", message, clarification)
    # an id that no patient has: another try could only guess at another patient
    wrong_patient = kind == ErrorType.NOT_FOUND and bool(result["args"].get("patient_id"))
    if kind in FINAL or wrong_patient:
        return ErrorDecision("skip", message)
    if retry_count >= most or total_retries >= MAX_TOTAL_RETRIES:
        return ErrorDecision("skip", message if kind in WORDING else no_answer(result))
    down = kind == ErrorType.SERVICE_UNAVAILABLE and retry_count >= 1
    known = kind in RETRYABLE | WORDING  # an error nobody knows is not retried blindly
    return ErrorDecision("retry" if known and not down else "skip", message)


def no_answer(result: ToolResult) -> str:
    """What a clinician reads once every retry has failed: which service is silent, and what was therefore not done."""
    label = result["tool_label"]
    if result["writes"]:
        return f"{label}: {WRITE_LOST}"
    return result.get("no_answer") or f"The {label} did not respond. Nothing was checked."


def _line(value: Any, most: int = 120) -> str:
    """A value as part of a sentence: one line, bounded."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
    return shortened(" ".join(text.split()), most)
