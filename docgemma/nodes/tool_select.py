"""Node 3: which tool, then which arguments. The plan says what must run; a language model chooses among the rest."""

from typing import Annotated, Any, Literal, Optional

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field, create_model

from docgemma.nodes.context import Context
from docgemma.prompts import ask_arguments, ask_tool
from docgemma.rules import known
from docgemma.rules.patients_meant import patient_ids
from docgemma.rules.plan import Step, is_repeat, missing, private, runnable, wanted_by_model
from docgemma.schemas import NO_TOOL, Schema
from docgemma.state import AgentState
from docgemma.tools.base import Tool

LISTS = {"drug_names": 6}  # arguments that hold several values, and how many at most
FIRST = ("find", "chart")  # asks that everything else stands on
# arguments that are copied or closed; free text (a note, a query, what to look for in an image) may be composed
COPIED = frozenset(
    "drug_name drug_names name patient_id medication_name dosage frequency notes substance severity condition "
    "status".split()
)
OUTSIDE = ("query", "condition")  # of a search at an outside service


def select_tool(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Stage 1 and stage 2; a retry keeps its tool, and its arguments too unless they were at fault."""
    context = runtime.context
    calls: list[dict[str, Any]] = []
    strategy = state.get("retry_strategy")
    if strategy == "retry_same":
        return {"current_tool": state["current_tool"], "current_args": state["current_args"], "calls": calls}
    name = (state["current_tool"] if strategy else None) or _choose(state, context, calls)
    if name == NO_TOOL:
        return _nothing_more(calls)
    args = arguments(state, context.toolbox[name], context, calls)
    if is_repeat(name, args, state):
        return _nothing_more(calls)
    return {"current_tool": name, "current_args": args, "proposed_none": False, "calls": calls}


def _nothing_more(calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"current_tool": None, "current_args": None, "proposed_none": True, "retry_strategy": None, "calls": calls}


def _choose(state: AgentState, context: Context, calls: list[dict[str, Any]]) -> str:
    """The plan's next tool, or what the model says among those that can run now."""
    steps = missing(state)
    left = [step.tool for step in steps]
    meant = wanted_by_model(state)
    possible = runnable(state)
    if not possible:
        return meant if meant and not context.toolbox[meant].writes and not state.get("tool_results") else NO_TOOL
    if context.reads or (steps and steps[0].ask in FIRST):
        return left[0] if left else NO_TOOL
    names = [tool.name for tool in context.toolbox if tool.name in possible or not context.settings.narrowing]
    allow_none = bool(state.get("tool_results")) and not state.get("proposed_none") and not left
    if len(names) == 1 and not allow_none:
        return names[0]  # a closed set of one needs no model
    value, spent = context.ask(ask_tool(state, [context.toolbox[name] for name in names], allow_none))
    calls += spent
    return value.tool_name


def candidates(state: AgentState, context: Context, *wanted: str) -> list[Tool]:
    """The tools that may run now: the plan's, and those that a model wants (any, where none is named) if what they need
    is known."""
    possible = runnable({**state, "suggested_tool": None})
    for name in wanted or context.toolbox.tools:
        possible |= runnable({**state, "suggested_tool": name, "suggested_needs": context.toolbox[name].needs})
    return [tool for tool in context.toolbox if tool.name in possible]


def may_run(name: str, state: AgentState, context: Context) -> bool:
    """Whether a model may choose this tool now."""
    return name in {tool.name for tool in candidates(state, context, name)}


def arguments(state: AgentState, tool: Tool, context: Context, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Stage 2: what code could not settle, the model fills in."""
    steps = [step for step in missing(state) if step.tool == tool.name]
    if context.reads:
        return steps[0].args if steps else state.get("current_args") or {}
    fields: dict[str, list[Any] | None] = {}
    if context.settings.copy_args:
        fields = {name: options(name, steps, state) for name in tool.args.model_fields if name in COPIED}
    schema, settled = constrain(tool.args, fields)
    if schema is None:
        return settled
    value, spent = context.ask(ask_arguments(state, tool, schema))
    calls += spent
    chosen = {key: item for key, item in value.model_dump().items() if item is not None}
    merged = {**settled, **chosen}
    request = known.request(state)
    merged |= {key: list(dict.fromkeys(merged[key])) for key in LISTS if key in merged}
    merged |= {key: private(merged[key], request, state.get("active_patient")) for key in OUTSIDE if key in merged}
    return {key: merged[key] for key in tool.args.model_fields if key in merged}


def options(field: str, steps: list[Step], state: AgentState) -> list[Any] | None:
    """The values that an argument may take, as linked or said; [] asks for it, None leaves it to be composed."""
    given = [step.args[field] for step in steps[:1] if step.args.get(field)]
    if field in LISTS:
        return given[0] if given else known.unique([*known.drugs(state), *known.in_charts(state, "medications")])
    if field == "patient_id":
        return given or patient_ids(state)
    if field in ("drug_name", "medication_name"):
        return given or known.drugs(state)
    return given or None if field in OUTSIDE else given


def constrain(
    args: type[BaseModel], options: dict[str, list[str] | None]
) -> tuple[type[BaseModel] | None, dict[str, Any]]:
    """The argument schema with copied fields closed to their options, in the same order.

    What has one option is settled by code and leaves the schema, and so does a list whose options all fit into it:
    every drug that was named is checked. A field with no option cannot be filled: it leaves the schema, so that a
    required one is asked for instead of invented.

    Returns:
        The schema that is left to the model (None if nothing is), and the settled arguments.
    """
    settled: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for name, item in args.model_fields.items():
        allowed = options.get(name)
        if allowed is None:
            left[name] = (item.annotation, item)
        elif name in LISTS:
            if len(allowed) <= LISTS[name]:
                settled[name] = list(allowed)
            else:
                several = Field(min_length=2, max_length=LISTS[name])
                left[name] = (Annotated[list[_one_of(allowed)], several], ...)  # type: ignore[misc]
        elif len(allowed) == 1:
            settled[name] = allowed[0]
        elif allowed:
            choice = _one_of(allowed)
            left[name] = (choice, ...) if item.is_required() else (Optional[choice], None)
    return (create_model(args.__name__, __base__=Schema, **left) if left else None), settled


def _one_of(options: list[str]) -> Any:
    return Literal[tuple(options)]
