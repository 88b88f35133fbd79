"""Node 6: what happens next. Code only."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.rules.routing import route
from docgemma.state import AgentState


def decide_next(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    return {"next_node": "synthesize" if _stuck(state) else route(state)}


def _stuck(state: AgentState) -> bool:
    """Twice in a row nothing could be chosen: something required is missing, and no step leads there."""
    return state.get("path", [])[-3:] == ["tool_select", "router", "tool_select"]
