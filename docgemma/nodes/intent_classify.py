"""Node 2: does the question need a tool? One constrained call; no planning, no arguments."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.state import AgentState


def classify_intent(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    context = runtime.context
    value, calls = context.ask(context.profile.intent(state, list(context.toolbox)))
    return {
        "intent": value.intent,
        "task_summary": value.task_summary,
        "suggested_tool": value.suggested_tool,
        "calls": calls,
    }
