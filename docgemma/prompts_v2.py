"""What a language model is told at the nodes that only v1 and v2 have. The rest is in prompts.py."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Optional, TypeVar, cast

from pydantic import create_model

from docgemma.llm.base import Prompt
from docgemma.prompts import Ask, earlier_results, join, last_error, situation
from docgemma.schemas import Complexity, Decomposition, Schema, ToolCall, ToolNeeds, Triage
from docgemma.state import AgentState

if TYPE_CHECKING:
    from docgemma.tools.base import Tool

COMPLEXITY_SYSTEM = """\
Classify if this clinical query needs external tools/data or can be answered directly.

DIRECT examples: "Hello", "Thank you", "What's the mechanism of action for metformin?", "Define hypertension"
COMPLEX examples: "Analyze this X-ray", "Check drug interactions for...", "Pull patient 402's records",
"Find clinical trials for TNBC"

If an image is attached, classify as COMPLEX."""

TRIAGE_SYSTEM = """\
You are a clinical decision-support assistant. Choose the route for the query.

- direct: greetings, factual questions from medical knowledge
- lookup: one obvious tool call ("check interactions between warfarin and aspirin"); name the tool and the query
- reasoning: clinical reasoning needed ("best antihypertensive for CKD stage 3 patient on amlodipine?")
- multi_step: several tools ("review chart, check interactions with new Rx, suggest alternatives")"""

DECOMPOSE_SYSTEM = """\
Split the clinician's request into at most 5 parts, each served by one tool, in the order of the work.
For each, name the tool and what to look up or enter, copied from the request.
Set requires_clarification only if a part cannot begin without something that was not said."""

CALL_SYSTEM = """\
Select the tool for the current part of the task, and say what to look up or enter, copied from the request."""

THINK_SYSTEM = """\
You are a clinical decision-support assistant. Reason step by step about the clinician's question:
what matters clinically, what is known here, and what would have to be looked up. Do not write the final answer."""

THINK_AGAIN_SYSTEM = """\
You are a clinical decision-support assistant. Continue the reasoning with what was found.
Use only these findings for anything about the patient. Do not write the final answer."""

NEEDS_SYSTEM = """\
Which look-ups does this reasoning need? At most 2; none if it needs nothing more."""

C = TypeVar("C", bound=Schema)


def ask_complexity(state: AgentState) -> Ask[Complexity]:
    return Ask("complexity_router", Prompt(user=situation(state), system=COMPLEXITY_SYSTEM), Complexity)


def ask_triage(state: AgentState, tools: Sequence["Tool"]) -> Ask[Triage]:
    names: Any = Optional[Literal[tuple(tool.name for tool in tools)]]
    schema = create_model("Triage", __base__=Triage, tool=(names, Triage.model_fields["tool"]))
    return Ask("triage", _prompt(TRIAGE_SYSTEM, tools, situation(state)), schema)


def ask_parts(state: AgentState, tools: Sequence["Tool"]) -> Ask[Decomposition]:
    return Ask(
        "decompose", _prompt(DECOMPOSE_SYSTEM, tools, situation(state)), _calls_in(Decomposition, "subtasks", tools)
    )


def ask_call(state: AgentState, tools: Sequence["Tool"], part: str) -> Ask[ToolCall]:
    """The tool and the words for one part of the work."""
    error = last_error(state, state.get("current_tool") or "") if state.get("retry_strategy") else ""
    prompt = _prompt(CALL_SYSTEM, tools, situation(state), f"Current part: {part}", earlier_results(state), error)
    return Ask("plan_tool", prompt, _call(tuple(tool.name for tool in tools)))


def ask_needs(state: AgentState, tools: Sequence["Tool"]) -> Ask[ToolNeeds]:
    prompt = _prompt(NEEDS_SYSTEM, tools, situation(state), "Reasoning:", *state["thoughts"])
    return Ask("extract_needs", prompt, _calls_in(ToolNeeds, "calls", tools))


def thinking_prompt(state: AgentState) -> Prompt:
    """Of free reasoning, sampled with `GENERATION["think"]`; the second time over what was found."""
    found = earlier_results(state)
    thoughts = ["Reasoning so far:", *state["thoughts"]] if state["thoughts"] else []
    return Prompt(user=join(situation(state), *thoughts, found), system=THINK_AGAIN_SYSTEM if found else THINK_SYSTEM)


def _prompt(system: str, tools: Sequence["Tool"], *parts: str) -> Prompt:
    listed = "\n\n".join(f"- {tool.full_description}" for tool in tools)
    return Prompt(user=join(*parts), system=f"{system}\n\nAvailable tools:\n{listed}")


@cache
def _call(names: tuple[str, ...]) -> type[ToolCall]:
    """`ToolCall` for exactly these tools."""
    closed: Any = Literal[names]
    return create_model("ToolCall", __base__=ToolCall, tool_name=(closed, ...))


def _calls_in(schema: type[C], field: str, tools: Sequence["Tool"]) -> type[C]:
    """A schema whose list of calls is closed to these tools."""
    calls: Any = list[_call(tuple(tool.name for tool in tools))]  # type: ignore[misc]
    fields: Any = {field: (calls, schema.model_fields[field])}
    return cast(type[C], create_model(schema.__name__, __base__=schema, **fields))
