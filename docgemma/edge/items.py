"""The hand-written evaluation sets, and the states that their items stand for.

One JSON object a line in `data/edge/heldout.jsonl` (never tuned to) and `data/edge/dev.jsonl` (for choosing):

    id, kind, difficulty: "easy" | "medium" | "hard", question
    before: the user's last message; patient: {"id", "name"}, the active one; image: true   (all optional)

    kind "direct"   no tool is needed
    kind "tool"     one call: steps = [{"tool", "args"}]
    kind "several"  two or three calls in working order; found: the patient whom a search returns;
                    any_order: true where the calls that are left may come in any order
    kind "result"   results = [{"tool", "args", "payload"}] or [{"tool", "args", "error_type"}] of this turn;
                    quality: what the result is called (null: not asked); critical: the answer needs one string of
                    each inner list
    kind "retry"    call = {"tool", "args"} failed with error_type; strategy
    kind "triage"   route of the v2 graph; tool for a lookup

An argument's value is the exact text expected; a list of texts (of lists, for `drug_names`) gives several that are
right, null among them an absent one; a plain null means that any value is right.
"""

import json
import random
from typing import Any

from docgemma.edge.lexicon import Lexicon
from docgemma.edge.worlds import TOOLS, World
from docgemma.paths import data_file
from docgemma.rules.drugs import DrugNames
from docgemma.rules.entities import extract
from docgemma.rules.errors import error_message
from docgemma.state import ActivePatient, AgentState, ToolResult, Turn

Item = dict[str, Any]
ABSENT = {"get_patient_chart": {"social": [], "deceased": ""}}  # what an item's payload may leave out


def load(name: str) -> list[Item]:
    """The items of "heldout" or "dev"."""
    text = data_file("edge", f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def state_of(item: Item, drugs: DrugNames) -> AgentState:
    """The state as the first node leaves it."""
    patient = ActivePatient(**item["patient"]) if "patient" in item else None
    before = [Turn(user=item["before"], assistant="", tools=[])] if "before" in item else []
    return AgentState(
        user_query=item["question"], message=item["question"], history=before, active_patient=patient,
        turn_patient=patient, tool_results=[], step_count=0, proposed_none=False, path=[], error_messages=[],
        extracted_entities=extract(item["question"], drugs, bool(item.get("image")), bool(patient)),
    )  # fmt: skip


def one(value: Any, name: str) -> Any:
    """The first accepted value of an argument; a stand-in where anything is right."""
    if name == "drug_names" or not isinstance(value, list):
        return value if value is not None else {"note_type": "progress note", "query": "image"}.get(name)
    return value[0]


def called(args: dict[str, Any]) -> dict[str, Any]:
    """Gold arguments as a call has them."""
    return {name: chosen for name, value in args.items() if (chosen := one(value, name)) is not None}


def after(state: AgentState, item: Item, step: dict[str, Any]) -> AgentState:
    """The state once a step was done, its result invented from the item's own seed."""
    world = World(Lexicon(random.Random(f"{item['id']} {step['tool']}")))
    args = called(step["args"])
    found = item.get("found")
    hidden = {"_id": found["id"], "_name": found["name"]} if found else {}
    result = world.result(step["tool"], args | hidden, item["question"])
    result["tool_label"] = TOOLS[step["tool"]].label
    new = AgentState(**state)
    new["tool_results"] = [*state["tool_results"], result]
    new["step_count"] = state["step_count"] + 1
    new["last_result_classification"] = "success_rich"
    new["path"] = [*state["path"], "tool_select", "tool_execute", "result_classify", "router"]
    if step["tool"] == "search_patient" and found:
        new["active_patient"] = ActivePatient(**found)
    return new


def stored_result(entry: dict[str, Any]) -> ToolResult:
    """A result as the item gives it, worded by the real formatter or error template."""
    tool = TOOLS[entry["tool"]]
    failed, args = entry.get("error_type"), called(entry["args"])
    payload = ABSENT.get(entry["tool"], {}) | entry.get("payload", {})
    text = error_message(failed, tool.label, args, tool.entity, {}) if failed else tool.format(payload)
    return ToolResult(
        tool_name=tool.name, tool_label=tool.label, args=args, result=payload, formatted_result=text,
        error=text if failed else None, error_type=failed, details={}, empty=False, source=None, as_of=None, links=[],
        seconds=0.0, retries=0,
    )  # fmt: skip
