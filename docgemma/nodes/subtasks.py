"""v1 and v2: the parts of a request, their limits, and how sure the answer is. Pure."""

from collections import Counter
from typing import Any, Literal

from docgemma.rules import known
from docgemma.rules.plan import MAX_STEPS, missing, planned
from docgemma.rules.refusal import is_rejected
from docgemma.rules.routing import just_failed
from docgemma.state import AgentState, Subtask

MAX_SUBTASKS = 5
MAX_ITERATIONS = 3  # of one subtask: plans and corrections of its arguments
V1_RETRIES = 3  # of one tool in v1; v2 keeps to rules.errors.MAX_RETRIES

Route = Literal["direct", "lookup", "reasoning", "multi_step"]
Confidence = Literal["high", "medium", "low"]


def route_by_plan(state: AgentState) -> Route:
    """v2's route, from the plan: a drug without a plain question about it has to be thought about, and so has an order
    that is asked about."""
    steps, asks = planned(state), set(known.request(state)["asks"])
    if not steps:
        return "direct"
    if "may" in asks or (known.drugs(state) and not asks - {"chat", "gk"}):
        return "reasoning"
    return "lookup" if len(steps) == 1 else "multi_step"


def planned_subtasks(state: AgentState) -> list[Subtask]:
    """The plan's steps that are left, each as a part."""
    return [Subtask(tool=step.tool, query="") for step in missing(state)]


def next_subtask(state: AgentState) -> dict[str, Any] | None:
    """The update that goes on to the next part; None at the end, or at a limit.

    When the parts are used up, those follow that the plan still misses: safety and completeness are no model's choice.
    """
    parts = state["subtasks"]
    at = state["subtask"] + 1 if parts else 0
    if at >= len(parts):
        parts = [*parts, *planned_subtasks(state)[:1]]
    if at >= min(len(parts), MAX_SUBTASKS) or state["step_count"] >= MAX_STEPS:
        return None
    return {"subtasks": parts, "subtask": at, "iterations": 0, "retry_count": 0, "retry_strategy": None, "fault": ""}


def outcome(state: AgentState) -> Literal["success", "needs_more_action", "error"]:
    """What the last call means for its part. More is needed where the plan has another call of its tool and no later
    part is for it: the second of two drugs, trials of any status where none recruit."""
    if just_failed(state):
        return "error"
    tool = state["tool_results"][-1]["tool_name"]
    left = Counter(step.tool for step in missing(state))
    left -= Counter(part["tool"] for part in state["subtasks"][state["subtask"] + 1 :])
    return "needs_more_action" if left[tool] > 0 and state["iterations"] < MAX_ITERATIONS else "success"


def confidence(state: AgentState) -> Confidence | None:
    """v2: how sure an answer is, from what happened; None where there is no answer yet.

    high: every look-up brought what was asked. medium: something failed, was not found, partial, not answered or
    removed. low: nothing was found, or nothing was looked up and the model spoke from general knowledge.
    """
    if state.get("status") == "needs_clarification":
        return None
    tried = {(item["tool_name"], str(item["args"])): item for item in state.get("tool_results") or []}  # a retry counts
    last = [item for item in tried.values() if not is_rejected(item)]
    good = [item for item in last if not item["error"] and not item["empty"]]
    asks = set(known.request(state)["asks"])
    judged = state.get("route") == "reasoning" and "may" not in asks  # by the model: code checks orders only
    doubt = (
        judged
        or bool(state.get("unanswered") or state.get("error_messages"))
        or not (state.get("grounding") or {}).get("supported", True)
    )
    if not last:
        settled = bool(state.get("sources") or state.get("tool_results")) or asks == {"chat"}
        return "high" if settled and not doubt else "low"
    if not good:
        return "low"
    return "medium" if doubt or len(good) < len(last) or "success_partial" in state.get("quality", []) else "high"
