"""v1 and v2: is a tool needed, and which route does the question take? Code decides from the plan on the edge model."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.nodes.context import Context
from docgemma.nodes.intent_classify import needs_record
from docgemma.nodes.subtasks import planned_subtasks, route_by_plan
from docgemma.nodes.tool_select import may_run
from docgemma.prompts_v2 import ask_complexity, ask_triage
from docgemma.rules.patients_meant import patient_ids
from docgemma.rules.plan import planned
from docgemma.state import AgentState, Subtask


def classify_complexity(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v1: direct or complex. An image, or a patient of the store, is always complex."""
    steps, context = planned(state), runtime.context
    if context.reads:
        return _routed("complex" if steps else "direct")
    value, calls = context.ask(ask_complexity(state))
    complex_ = value.complexity == "complex" or state.get("image") or needs_record(state, steps)
    return {**_routed("complex" if complex_ else "direct"), "task_summary": value.reasoning, "calls": calls}


def triage(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v2: one of four routes; for a look-up the tool and its query, where the model may choose that tool."""
    context, by_plan = runtime.context, route_by_plan(state)
    if context.reads:
        return {**_routed(by_plan), "subtasks": planned_subtasks(state)[:1] if by_plan == "lookup" else []}
    value, calls = context.ask(ask_triage(state, list(context.toolbox)))
    route = value.route
    if route == "direct" and (state.get("image") or needs_record(state, planned(state))):
        route = by_plan  # nothing is said of them from general knowledge
    parts: list[Subtask] = []
    if route == "lookup":
        own = [Subtask(tool=value.tool, query=value.query or "")] if value.tool else []
        parts = own if value.tool and may_run(value.tool, state, context) else planned_subtasks(state)[:1]
        route = "lookup" if parts else "direct"  # there is nothing to look up
    return {**_routed(route), "subtasks": parts, "calls": calls}


def assemble_context(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v2: the summary of the patient who is meant, for the prompts. Evidence is only what this turn's tools return."""
    if runtime.context.reads or not (who := patient_ids(state)):
        return {}
    context = runtime.context
    chart = context.toolbox.call("get_patient_chart", {"patient_id": who[0]}, context.tool_context(state))
    return {"patient_summary": chart["formatted_result"]}  # of an outage: that the record could not be read


def _routed(route: str) -> dict[str, Any]:
    return {"route": route, "intent": "DIRECT" if route == "direct" else "TOOL_NEEDED"}
