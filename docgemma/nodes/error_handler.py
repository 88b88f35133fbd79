"""Node 5a: a failed tool. Code decides to ask, to skip or to retry; the model only says which kind of retry."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.rules.completion import missing_tools
from docgemma.rules.errors import handle_error
from docgemma.state import AgentState


def handle_failure(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    result = state["tool_results"][-1]
    decision = handle_error(result, state["retry_count"], state["total_retries"])
    if decision.action == "ask_user":
        unclear = str(result["details"].get("entity") or "")
        question = {**decision.clarification, "query": state["user_query"], "entity": unclear}
        return {"clarification": question, "next_node": "synthesize", "retry_strategy": None}
    if decision.action == "skip":
        goes_on = bool(missing_tools(state))
        return {
            "error_messages": [decision.message],
            "next_node": "tool_select" if goes_on else "synthesize",
            "retry_count": 0,
            "retry_strategy": None,
        }
    value, calls = runtime.context.ask(runtime.context.profile.retry(state, result))
    return {
        "retry_strategy": value.strategy,
        "retry_count": state["retry_count"] + 1,
        "total_retries": state["total_retries"] + 1,
        "next_node": "tool_select",
        "calls": calls,
    }
