"""The deterministic router (v3 spec, node 6): the model says what happened, code says what is next."""

from typing import Literal

from docgemma.errors import RETRYABLE
from docgemma.rules.plan import complete
from docgemma.rules.refusal import is_rejected
from docgemma.schemas import Quality
from docgemma.state import AgentState, ToolResult

CLOSED = ("COMPLETED", "TERMINATED", "WITHDRAWN")


def route(state: AgentState) -> Literal["error_handler", "tool_select", "synthesize"]:
    """Where the turn goes after a result was classified, after the model proposed no tool, or after a clarification."""
    if state.get("clarification"):
        return "synthesize"
    if just_failed(state):
        return "error_handler"
    return "synthesize" if complete(state) else "tool_select"


def known_quality(result: ToolResult) -> Quality | None:
    """What code knows of a result: errors, rejected entries, empty results. None: a payload, which the model judges."""
    if result["error"] or result["error_type"]:
        return "error_retryable" if result["error_type"] in RETRYABLE else "error_fatal"
    if is_rejected(result):
        return "error_fatal"  # what was asked for was not carried out; nothing failed, so nothing is handled
    return "no_results" if result["empty"] else None


def payload_quality(result: ToolResult) -> Quality:
    """How good a payload is where no model is asked: one with a caveat is partial."""
    data = result["result"]
    listed = data.get("articles") or data.get("trials") or data.get("patients") or []
    doubtful = any(item.get("demonstration") or item.get("guessed") for item in listed)
    closed = bool(data.get("trials")) and all(item["status"] in CLOSED for item in data["trials"])
    unsure = data.get("not_checked") or data.get("not_covered") or data.get("confidence", 1) < 0.5
    return "success_partial" if doubtful or closed or unsure else "success_rich"


def just_failed(state: AgentState) -> bool:
    """Whether the last thing that happened was a failed call. A call that the model misjudged as failed was not."""
    if not str(state.get("last_result_classification")).startswith("error") or state.get("proposed_none"):
        return False
    results = state.get("tool_results") or []
    return not results or bool(results[-1]["error"] or results[-1]["error_type"])
