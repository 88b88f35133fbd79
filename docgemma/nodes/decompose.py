"""v1 and v2: what has to be done: the parts of a request, or what a chain of reasoning needs to look up."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import StoppedError, ToolError
from docgemma.nodes.context import Context
from docgemma.nodes.subtasks import MAX_SUBTASKS, planned_subtasks
from docgemma.nodes.tool_select import candidates, may_run
from docgemma.prompts import generation
from docgemma.prompts_v2 import ask_needs, ask_parts, thinking_prompt
from docgemma.rules.direct import WHO
from docgemma.rules.errors import handle_error
from docgemma.rules.plan import missing
from docgemma.schemas import ToolCall
from docgemma.state import AgentState, Clarification, Subtask
from docgemma.tools.base import validate


def decompose(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """At most five parts; or a question back, where the first of them cannot begin."""
    context, calls = runtime.context, list[dict[str, Any]]()
    parts, unclear = planned_subtasks(state)[:MAX_SUBTASKS], context.reads
    if not context.reads:
        value, calls = context.ask(ask_parts(state, list(context.toolbox)))
        parts, unclear = _usable(value.subtasks, state, context), value.requires_clarification
    question = _question(state, context) if unclear else None
    intent = "TOOL_NEEDED" if parts or question else "DIRECT"
    return {"subtasks": parts, "clarification": question, "intent": intent, "calls": calls}


def think(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v2: reason in free text, at first about the question, then about what was found. The edge model does not."""
    context = runtime.context
    if context.reads:
        return {}

    def listen(piece: str) -> None:
        if context.stop():
            raise StoppedError("Stopped.", hint="Ask again, or ask something else.")

    done = context.llm.text(thinking_prompt(state), generation("think"), node="think", on_token=listen)
    return {"thoughts": [*state["thoughts"], done.value], "calls": [call.as_dict() for call in done.calls]}


def extract_needs(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """v2: what the reasoning needs to look up, at most two calls; the plan's steps follow (`next_subtask`)."""
    context, parts, calls = runtime.context, planned_subtasks(state)[:1], list[dict[str, Any]]()
    if not context.reads and (tools := candidates(state, context)):
        value, calls = context.ask(ask_needs(state, tools))
        parts = _usable(value.calls, state, context) or parts
    return {"subtasks": parts, "intent": "TOOL_NEEDED" if parts else "DIRECT", "calls": calls}


def _usable(calls: list[ToolCall], state: AgentState, context: Context) -> list[Subtask]:
    """The model's parts that may run; the plan's where none may. An entry that was not plainly ordered is none."""
    named = [Subtask(tool=call.tool_name, query=call.query) for call in calls]
    return [part for part in named if may_run(part["tool"], state, context)] or planned_subtasks(state)[:MAX_SUBTASKS]


def _question(state: AgentState, context: Context) -> Clarification | None:
    """The question of the first step that lacks something, or of a request in which nothing was understood."""
    steps = missing(state)
    if not steps:
        return Clarification(kind="missing", question=WHO, options=[], tool="", args={}, missing=[])
    tool = context.toolbox[steps[0].tool]
    try:
        validate(tool, steps[0].args)
    except ToolError as error:
        found = handle_error(context.toolbox.failed(tool.name, steps[0].args, error), 0, 0).clarification
        return {**found, "query": state["user_query"]} if found else None
    return None
