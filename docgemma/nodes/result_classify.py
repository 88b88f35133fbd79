"""Node 5: how good is the result? Code knows errors and empty results; the model judges a payload."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.prompts import ask_quality
from docgemma.rules.routing import known_quality, payload_quality
from docgemma.schemas import Quality
from docgemma.state import AgentState


def classify_result(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    result, context = state["tool_results"][-1], runtime.context
    quality = known_quality(result)
    if context.reads and quality is None:
        quality = payload_quality(result)
    if quality:
        return judged(quality, result["formatted_result"].split("\n", 1)[0])
    value, calls = context.ask(ask_quality(state, result))
    return {**judged(value.quality, value.brief_summary), "calls": calls}


def judged(quality: Quality, summary: str) -> dict[str, Any]:
    return {"last_result_classification": quality, "last_result_summary": summary, "quality": [quality]}
