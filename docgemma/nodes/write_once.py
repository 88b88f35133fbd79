"""Give each write a key, so that it happens once: the stores create by key (`ehr/sqlite.py`, `ehr/remote.py`)."""

import hashlib

from docgemma.state import AgentState
from docgemma.tools.base import Tool


def write_key(thread: str, state: AgentState, tool: Tool) -> str:
    """The same key for the same step of the same turn, before and after a crash, whatever was edited."""
    reopened = state.get("reopened")
    results = reopened["results"] if reopened else state.get("tool_results", [])
    step = sum(1 for result in results if result["tool_name"] == tool.name and not result["error"])
    text = f"{thread}/{state['turn_id']}/{tool.name}/{step}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
