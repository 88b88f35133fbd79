"""v1 and v2: the call of one part: which tool, which arguments, and whether they can be right."""

from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import ToolError
from docgemma.nodes.context import Context
from docgemma.nodes.subtasks import MAX_ITERATIONS
from docgemma.nodes.tool_select import COPIED, LISTS, OUTSIDE, arguments, candidates, constrain, options
from docgemma.prompts_v2 import ask_call
from docgemma.rules import known
from docgemma.rules.plan import is_repeat, missing, private, same
from docgemma.state import AgentState
from docgemma.text.words import plain
from docgemma.tools.base import Tool, validate

SHORTEST = 3  # characters of a search that says something


def plan_tool(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Choose the tool of the current part; one that only a single tool can serve needs no model. A call that was worded
    badly keeps its tool and is worded anew."""
    context, part, calls = runtime.context, state["subtasks"][state["subtask"]], list[dict[str, Any]]()
    again = state["current_tool"] if state.get("retry_strategy") else None
    name, query, tools = again or part["tool"], part["query"], candidates(state, context, part["tool"])
    if not again and query:  # a part that the plan made has none, and its tool is settled
        tools = tools if context.settings.narrowing else list(context.toolbox)
        name = name if name in {tool.name for tool in tools} else ""
    if again or (query and len(tools) > 1):
        offered = [context.toolbox[again]] if again else tools
        value, calls = context.ask(ask_call(state, offered, f"{part['tool']} {query}".strip()))
        name, query = value.tool_name, value.query
    return {**_prepared(state, name, query, context), "calls": calls}


def take_fast_path(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """The call of a part whose tool and query are known; no model is asked."""
    part = state["subtasks"][state["subtask"]] if state["subtasks"] else {"tool": "", "query": ""}
    return _prepared(state, part["tool"], part["query"], runtime.context)


def validate_call(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Whether the arguments can be right. Only a language model can correct them; else the call itself asks."""
    context, tool, args = runtime.context, runtime.context.toolbox[state["current_tool"] or ""], state["current_args"]
    fault, round_ = "", state["iterations"]
    try:
        validate(tool, args or {})
        if tool.entity in OUTSIDE and len(str((args or {})[tool.entity]).strip()) < SHORTEST:
            fault = "The search is too short."
    except ToolError as error:
        fault = context.toolbox.failed(tool.name, args or {}, error)["error"] or ""
    again = {"lookup": round_ == 1 and state["subtask"] == 0, "multi_step": round_ < MAX_ITERATIONS}
    fix = fault and again.get(state["route"] or "multi_step") and not context.reads
    return {"fault": fault, "next_node": "fix_args" if fix else "tool_execute"}


def fix_args(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask for the arguments again, told what is wrong with them: v3's stage 2."""
    calls: list[dict[str, Any]] = []
    args = arguments(state, runtime.context.toolbox[state["current_tool"] or ""], runtime.context, calls)
    return {"current_args": args, "fault": "", "iterations": state["iterations"] + 1, "calls": calls}


def _prepared(state: AgentState, name: str, query: str, context: Context) -> dict[str, Any]:
    """The call, or none where it was made already, or where a retry would only repeat the one that failed."""
    update = {"fault": "", "iterations": state["iterations"] + 1}
    args = _filled(state, context.toolbox[name], query, context) if name else {}
    repeats = state.get("retry_strategy") and same(args) == same(state["current_args"] or {})
    if not name or repeats or is_repeat(name, args, state):
        return {**update, "current_tool": None, "current_args": None, "retry_strategy": None}
    return {**update, "current_tool": name, "current_args": args}


def _filled(state: AgentState, tool: Tool, query: str, context: Context) -> dict[str, Any]:
    """Arguments of a query: those of the plan's step it speaks of, else what it names of what was said or found."""
    copies, said = not query or context.settings.copy_args, f" {plain(query)} "
    steps = [step for step in missing(state) if step.tool == tool.name] if copies else []
    if steps:
        named = [step for step in steps if any(f" {plain(str(value))} " in said for value in step.args.values())]
        return (named or steps)[0].args
    fields = {name: options(name, steps, state) for name in tool.args.model_fields if copies and name in COPIED}
    schema, args = constrain(tool.args, fields)
    for name in schema.model_fields if schema else ():
        if choices := [item for item in fields.get(name) or [] if f" {plain(str(item))} " in said]:
            args[name] = choices if name in LISTS else choices[0]
        elif name == tool.entity and name in LISTS:
            args[name] = [part.strip() for part in query.replace(" and ", ",").split(",")]
        elif name == tool.entity and not fields.get(name):
            about = (known.request(state), state.get("active_patient"))
            args[name] = private(query, *about) if name in OUTSIDE else query
    return args
