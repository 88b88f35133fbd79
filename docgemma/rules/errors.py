"""What a clinician reads when a tool fails, and what happens next: ask, skip or retry. Never the raw error.

Wording and order of the rules: v3 spec, sections 4 (node 5a), 9 and 10. The model is asked about one thing only,
whether a retry uses the same arguments, and that happens outside of here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from docgemma.errors import RETRYABLE, ErrorType
from docgemma.rules.limits import MAX_RETRIES, MAX_TOTAL_RETRIES
from docgemma.state import Clarification, Option, ToolResult
from docgemma.text.quoted import shortened

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
    "multiple_patient_matches": "I found {n} patients matching '{name}'. Which one did you mean? {list}",
    "ambiguous_drug_name": "Did you mean {options}?",
    "drug_not_in_database": "{drug} was not found in the drug database.",
    "not_permitted": "The {tool_label} could not be completed: the record system does not permit it.",
    "no_vision": "The {tool_label} could not be completed: images cannot be read by the loaded model. {header}",
    "unreadable": "The {tool_label} could not be completed: {reason}",
    "max_retries": "The {tool_label} did not respond. Nothing was checked.",
    "generic": "The {tool_label} could not be completed.",
}

# instead of "max_retries", for a write
WRITE_LOST = (
    "The record system did not respond, so it is not certain whether the entry was made. Check the chart first."
)

# asking again cannot change these, whoever asks
FINAL = frozenset({ErrorType.NOT_PERMITTED, ErrorType.NO_VISION, ErrorType.DRUG_NOT_IN_DATABASE})
# a retry may word these otherwise; their text stays true when the retries are used up
WORDING = frozenset({ErrorType.NOT_FOUND, ErrorType.INVALID_ARGS})
DRUG_FIELDS = frozenset({"drug_name", "drug_names", "medication_name"})

FIELD_NAMES = {
    "patient_id": "patient ID",
    "drug_name": "drug name",
    "drug_names": "at least two drug names",
    "medication_name": "medication name",
    "name": "patient name",
    "note_type": "type of note",
    "note_text": "text of the note",
    "query": "what to look for",
}


@dataclass(frozen=True)
class ErrorDecision:
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
    """The clinician-friendly text of a failure, always one line, never anything of the raw error.

    Args:
        error_type: a value of `ErrorType`; anything else gets the generic text.
        tool_label: what a clinician calls the tool, "Drug Safety Report".
        args: the arguments of the call; may be incomplete.
        entity_field: the argument that says what was looked for.
        details: of the `ToolError`: missing_fields, suggestions, options, entity.
    """
    kind = str(getattr(error_type, "value", error_type))
    entity = _line(details.get("entity") or args.get(entity_field)) or "this request"
    missing = list(details.get("missing_fields") or [])
    options = [_line(item.get("label")) for item in details.get("options") or []]
    suggestions = [_line(item) for item in details.get("suggestions") or []]
    if kind == "missing_required_args" and missing in ([], ["patient_id"]):
        kind = "missing_patient_id" if missing else "invalid_args"
    if kind in ("invalid_args", "not_permitted") and details.get("reason"):
        kind = "unreadable"
    if kind == "multiple_patient_matches" and not options:
        return "Multiple patients found. Which patient did you mean?"
    if kind == "ambiguous_drug_name" and not suggestions:
        return f"Which drug did you mean by {entity}?"
    return (
        ERROR_TEMPLATES.get(kind, ERROR_TEMPLATES["generic"])
        .format(
            tool_label=tool_label,
            entity=entity,
            name=entity,
            drug=entity,
            fields=", ".join(FIELD_NAMES.get(name, name.replace("_", " ")) for name in missing),
            n=len(options),
            list="; ".join(f"({number}) {label}" for number, label in enumerate(options, 1)),
            options=_either(suggestions),
            header=_line(details.get("header_text")),
            reason=_line(details.get("reason")),
        )
        .strip()
    )


def handle_error(result: ToolResult, retry_count: int, total_retries: int) -> ErrorDecision:
    """Decide about a failed call, in the order of the spec: ask first, then skip, then retry.

    Args:
        result: the failed call; its `error` is the text that `error_message` made.
        retry_count: retries of this tool so far.
        total_retries: retries of all tools in this turn so far.
    """
    kind, message = result["error_type"] or "", result["error"] or ""
    if clarification := _clarification(result):
        return ErrorDecision("ask_user", clarification["question"], clarification)
    # an id that no patient has: another try could only guess at another patient
    wrong_patient = kind == ErrorType.NOT_FOUND and bool(result["args"].get("patient_id"))
    if kind in FINAL or wrong_patient:
        return ErrorDecision("skip", message)
    if retry_count >= MAX_RETRIES or total_retries >= MAX_TOTAL_RETRIES:
        return ErrorDecision("skip", message if kind in WORDING else no_answer(result))
    down = kind == ErrorType.SERVICE_UNAVAILABLE and retry_count >= 1
    if kind not in RETRYABLE | WORDING or down:  # an error nobody knows is not retried blindly
        return ErrorDecision("skip", message)
    return ErrorDecision("retry", message)


def no_answer(result: ToolResult) -> str:
    """What a clinician reads once every retry has failed: which service is silent, and what was therefore not done."""
    label = result["tool_label"]
    if result["writes"]:
        return f"{label}: {WRITE_LOST}"
    return result.get("no_answer") or ERROR_TEMPLATES["max_retries"].format(tool_label=label)


def _clarification(result: ToolResult) -> Clarification | None:
    """The question to the clinician, where only a person can go on. `missing` names the arguments it fills."""
    details, args = result.get("details") or {}, result["args"]
    kind: Literal["patient", "drug", "missing"]
    if result["error_type"] == ErrorType.MULTIPLE_PATIENT_MATCHES:
        kind, missing, options = "patient", ["patient_id"], details.get("options") or []
    elif result["error_type"] == ErrorType.AMBIGUOUS_DRUG_NAME:
        kind, missing = "drug", [key for key in args if key in DRUG_FIELDS] or ["drug_name"]
        options = [{"id": name, "label": name} for name in details.get("suggestions") or []]
    elif result["error_type"] == ErrorType.MISSING_REQUIRED_ARGS and details.get("missing_fields"):
        kind, missing, options = "missing", list(details["missing_fields"]), []
    else:
        return None
    return Clarification(
        kind=kind, question=result["error"] or "", tool=result["tool_name"], args=dict(args), missing=missing,
        options=[Option(id=str(item["id"]), label=str(item["label"])) for item in options],
    )  # fmt: skip


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}" if names else ""


def _line(value: Any) -> str:
    """A value as part of a sentence: one line, bounded."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
    return shortened(" ".join(text.split()), 120)
