"""Node 5: how good is the result? Code knows errors and empty results; the model judges a payload."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.prompts import ask_quality
from docgemma.rules.routing import known_quality, payload_quality
from docgemma.state import AgentState


def classify_result(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    result, context = state["tool_results"][-1], runtime.context
    quality = known_quality(result)
    if context.reads and quality is None:
        quality = payload_quality(result)
    if quality:
        return {
            "last_result_classification": quality,
            "last_result_summary": result["formatted_result"].split("\n", 1)[0],
            "quality": [quality],
        }
    value, calls = context.ask(ask_quality(state, result))
    return {
        "last_result_classification": value.quality,
        "last_result_summary": value.brief_summary,
        "quality": [value.quality],
        "calls": calls,
    }
