"""v1 and v2: what a call means for its part, and what follows. Code only."""

from typing import Any, cast

from langgraph.runtime import Runtime

from docgemma.errors import RETRYABLE
from docgemma.nodes.context import Context
from docgemma.nodes.error_handler import recover
from docgemma.nodes.result_classify import judged
from docgemma.nodes.subtasks import MAX_ITERATIONS, V1_RETRIES, next_subtask, outcome, planned_subtasks
from docgemma.rules.routing import known_quality, payload_quality
from docgemma.state import AgentState, ToolResult

LEFT_OUT = "Not done, because the request has too many parts: {}. Please ask for it on its own."


def check_result(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v1: as in v2; what failed is called again as it is, at most three times."""
    update = assess_result(state, runtime)
    if update["next_node"] != "error_strategy":
        return update
    now = cast(AgentState, {**state, **update})
    return update | _after_failure(now, recover(now, lambda result: ("retry_same", []), V1_RETRIES), runtime.context)


def assess_result(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v2: the next part, the same part again, the error handler, or the end. A part without a call is done."""
    if not state.get("current_tool"):
        return _onward(state, runtime.context)
    last = state["tool_results"][-1]
    update = judged(known_quality(last) or payload_quality(last), last["formatted_result"].split("\n", 1)[0])
    now = cast(AgentState, {**state, **update})
    nodes = {"error": "error_strategy", "needs_more_action": "plan"}
    return update | ({"next_node": nodes[kind]} if (kind := outcome(now)) in nodes else _onward(now, runtime.context))


def choose_strategy(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v2: retry_same where the service failed, retry_reformulate where the query did, else skip_subtask."""
    words = state["route"] == "multi_step" and state["iterations"] < MAX_ITERATIONS and not runtime.context.reads

    def strategy(result: ToolResult) -> tuple[str | None, list[dict[str, Any]]]:
        return "retry_same" if result["error_type"] in RETRYABLE else "retry_reformulate" if words else None, []

    return _after_failure(state, recover(state, strategy), runtime.context)


def _onward(state: AgentState, context: Context) -> dict[str, Any]:
    """To the next part, or to the answer, which names the parts that a limit left out."""
    if on := next_subtask(state):
        return {**on, "next_node": "plan"}
    left = {context.toolbox[part["tool"]].label for part in planned_subtasks(state)}
    return {"next_node": "finish"} | ({"error_messages": [LEFT_OUT.format(", ".join(sorted(left)))]} if left else {})


def _after_failure(state: AgentState, failed: dict[str, Any], context: Context) -> dict[str, Any]:
    """What `recover` decided, with the way on."""
    if failed.get("clarification"):
        return {**failed, "next_node": "clarify"}
    if strategy := failed.get("retry_strategy"):
        return {**failed, "next_node": "plan" if strategy == "retry_reformulate" else "tool_execute"}
    on = _onward(state, context)
    return {**failed, **on, "error_messages": [*failed.get("error_messages", []), *on.get("error_messages", [])]}
