"""Node 2: does the question need a tool? One constrained call; no planning, no arguments."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.prompts import ask_intent
from docgemma.reading.labels import WRITES
from docgemma.rules import known
from docgemma.rules.plan import Step, planned
from docgemma.state import AgentState


def classify_intent(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    context, steps = runtime.context, planned(state)

    def needs(tool: str | None) -> str | None:
        return context.toolbox[tool].needs if tool else None

    if context.reads:  # the reader has understood the request, and the plan follows from it
        tool = steps[0].tool if steps else None
        return {"intent": "TOOL_NEEDED" if steps else "DIRECT", "suggested_tool": tool, "suggested_needs": needs(tool)}
    value, calls = context.ask(ask_intent(state, list(context.toolbox)))
    return {
        "intent": "TOOL_NEEDED" if needs_record(state, steps) else value.intent,
        "task_summary": value.task_summary,
        "suggested_tool": value.suggested_tool,
        "suggested_needs": needs(value.suggested_tool),
        "calls": calls,
    }


def needs_record(state: AgentState, steps: list[Step]) -> bool:
    """Whether a patient of the store is asked about: nothing is said of them from general knowledge."""
    return bool(known.request(state)["patients"] and steps) and not any(step.ask in WRITES for step in steps)
