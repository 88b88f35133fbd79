"""Node 6: what happens next. Code only."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.rules.routing import route
from docgemma.state import AgentState


def decide_next(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    return {"next_node": route(state)}
