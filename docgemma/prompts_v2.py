"""What a language model is told at the nodes that only v1 and v2 have. The rest is in prompts.py."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import create_model

from docgemma.llm.base import Prompt
from docgemma.prompts import Ask, closed, earlier_results, join, last_error, situation, system
from docgemma.schemas import Complexity, Decomposition, Schema, ToolCall, ToolNeeds, Triage
from docgemma.state import AgentState

if TYPE_CHECKING:
    from docgemma.tools.base import Tool

C = TypeVar("C", bound=Schema)


def ask_complexity(state: AgentState) -> Ask[Complexity]:
    return Ask("complexity_router", Prompt(user=situation(state), system=system("complexity_router")), Complexity)


def ask_triage(state: AgentState, tools: Sequence["Tool"]) -> Ask[Triage]:
    schema = closed(Triage, "tool", [tool.name for tool in tools])
    return Ask("triage", _prompt("triage", tools, situation(state)), schema)


def ask_parts(state: AgentState, tools: Sequence["Tool"]) -> Ask[Decomposition]:
    return Ask("decompose", _prompt("decompose", tools, situation(state)), _calls_in(Decomposition, "subtasks", tools))


def ask_call(state: AgentState, tools: Sequence["Tool"], part: str) -> Ask[ToolCall]:
    """The tool and the words for one part of the work."""
    error = last_error(state, state.get("current_tool") or "") if state.get("retry_strategy") else ""
    prompt = _prompt("plan_tool", tools, situation(state), f"Current part: {part}", earlier_results(state), error)
    return Ask("plan_tool", prompt, closed(ToolCall, "tool_name", [tool.name for tool in tools]))


def ask_needs(state: AgentState, tools: Sequence["Tool"]) -> Ask[ToolNeeds]:
    prompt = _prompt("extract_needs", tools, situation(state), "Reasoning:", *state["thoughts"])
    return Ask("extract_needs", prompt, _calls_in(ToolNeeds, "calls", tools))


def thinking_prompt(state: AgentState) -> Prompt:
    """Of free reasoning, sampled as `think` is; the second time over what was found."""
    found = earlier_results(state)
    thoughts = ["Reasoning so far:", *state["thoughts"]] if state["thoughts"] else []
    return Prompt(user=join(situation(state), *thoughts, found), system=system("think_again" if found else "think"))


def _prompt(node: str, tools: Sequence["Tool"], *parts: str) -> Prompt:
    listed = "\n\n".join(f"- {tool.full_description}" for tool in tools)
    return Prompt(user=join(*parts), system=f"{system(node)}\n\nAvailable tools:\n{listed}")


def _calls_in(schema: type[C], field: str, tools: Sequence["Tool"]) -> type[C]:
    """A schema whose list of calls is closed to these tools."""
    calls: Any = list[closed(ToolCall, "tool_name", [tool.name for tool in tools])]  # type: ignore[misc]
    fields: Any = {field: (calls, schema.model_fields[field])}
    return cast(type[C], create_model(schema.__name__, __base__=schema, **fields))
