"""Node 2: does the question need a tool? One constrained call; no planning, no arguments."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.prompts import ask_intent
from docgemma.rules import known
from docgemma.rules.plan import WRITE_TOOLS, planned
from docgemma.state import AgentState


def classify_intent(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    if runtime.context.reads:  # the reader has understood the request, and the plan follows from it
        steps = planned(state)
        return {"intent": "TOOL_NEEDED" if steps else "DIRECT", "suggested_tool": steps[0].tool if steps else None}
    value, calls = runtime.context.ask(ask_intent(state))
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
