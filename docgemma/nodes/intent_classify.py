"""Node 2: does the question need a tool? One constrained call; no planning, no arguments."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.rules import known
from docgemma.rules.plan import WRITE_TOOLS, planned
from docgemma.state import AgentState


def classify_intent(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    context = runtime.context
    value, calls = context.ask(context.profile.intent(state, list(context.toolbox)))
    return {
        "intent": "TOOL_NEEDED" if _needs_chart(state) else value.intent,
        "task_summary": value.task_summary,
        "suggested_tool": value.suggested_tool,
        "calls": calls,
    }


def _needs_chart(state: AgentState) -> bool:
    """Whether a patient of the store is named: nothing is said of one from general knowledge."""
    tools = {step.tool for step in planned(state)}
    return bool(known.request(state)["patients"]) and bool(tools) and not tools & set(WRITE_TOOLS.values())
