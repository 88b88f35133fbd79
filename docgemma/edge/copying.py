"""What copying does to arguments: the same calls of a hand-written set with the copy constraint on and off."""

import time
from dataclasses import dataclass
from typing import Any

from docgemma.edge import items
from docgemma.edge.prompts import EdgeProfile
from docgemma.edge.score import plain, same_args
from docgemma.errors import ModelError
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import LLM
from docgemma.nodes import tool_select
from docgemma.nodes.context import Context
from docgemma.settings import Settings
from docgemma.tools import toolbox

IDENTIFYING = ("drug_name", "drug_names", "name", "patient_id", "medication_name", "dosage", "substance")


@dataclass(frozen=True)
class Made:
    """The arguments of one call, and what they cost. `values`: identifying ones; `invented`: those said nowhere."""

    item: str
    tool: str
    exact: bool
    invented: list[str]
    values: int
    unparsed: bool
    calls: int
    tokens: int
    seconds: float


def compare(llm: LLM, settings: Settings, *, name: str = "heldout", calls: int | None = None) -> list[list[Made]]:
    """The arguments copied, and written freely by the same model, which then settles nothing by code.

    Args:
        calls: how many, evenly spread over the set; None takes all.
    """
    contexts = [_context(llm, settings, copied) for copied in (True, False)]
    asked = steps(name)
    asked = asked[:: max(len(asked) // calls, 1)][:calls] if calls else asked
    made: list[list[Made]] = [[], []]
    for number, call in enumerate(asked):
        for place in (0, 1) if number % 2 else (1, 0):
            made[place].append(fill(contexts[place], *call))
    return made


def steps(name: str) -> list[tuple[items.Item, Any, dict[str, Any]]]:
    """(item, state, step) of every call of a set, the state as the graph has it by then."""
    drugs, found = load_drug_names(), []
    for item in (item for item in items.load(name) if item["kind"] in ("tool", "several")):
        state = items.state_of(item, drugs)
        for step in item["steps"]:
            found.append((item, state, step))
            state = items.after(state, item, step)
    return found


def fill(context: Context, item: items.Item, state: Any, step: dict[str, Any]) -> Made:
    """One call through the graph's own node."""
    calls: list[dict[str, Any]] = []
    start = time.perf_counter()
    try:
        got, unparsed = tool_select._arguments(state, context.toolbox[step["tool"]], context, calls), False
    except ModelError:
        got, unparsed = {}, True
    seconds = time.perf_counter() - start
    values = [value for name in IDENTIFYING if got.get(name) for value in _as_list(got[name])]
    known = _said(item, state)
    invented = [value for value in values if plain(value) not in known]
    tokens = sum(call["completion_tokens"] for call in calls)
    exact = not unparsed and same_args(step["args"], got)
    return Made(item["id"], step["tool"], exact, invented, len(values), unparsed, len(calls), tokens, seconds)


def _said(item: items.Item, state: Any) -> str:
    """Everything that a value can have been copied from, without blanks and case."""
    texts = [state["user_query"], item.get("before", ""), *item.get("patient", {}).values()]
    return plain(" ".join([*texts, *(result["formatted_result"] for result in state["tool_results"])]))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _context(llm: LLM, settings: Settings, copied: bool) -> Context:
    return Context(
        llm=llm, profile=EdgeProfile(), toolbox=toolbox(), store=None, knowledge=None, drugs=load_drug_names(),
        settings=settings.model_copy(update={"copy_args": copied}), thread="copying",
    )  # fmt: skip
