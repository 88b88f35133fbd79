"""Node 2: does the question need a tool? One constrained call; no planning, no arguments."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.reading.labels import WRITES
from docgemma.rules import known
from docgemma.rules.plan import planned
from docgemma.state import AgentState


def classify_intent(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    context = runtime.context
    value, calls = context.ask(context.profile.intent(state, list(context.toolbox)))
    return {
        "intent": "TOOL_NEEDED" if _needs_chart(state) else value.intent,
        "task_summary": value.task_summary,
        "suggested_tool": value.suggested_tool,
        "suggested_needs": context.toolbox[value.suggested_tool].needs if value.suggested_tool else None,
        "calls": calls,
    }


def _needs_chart(state: AgentState) -> bool:
    """Whether a patient of the store is named: nothing is said of one from general knowledge."""
    steps = planned(state)
    return bool(known.request(state)["patients"] and steps) and not any(step.ask in WRITES for step in steps)
