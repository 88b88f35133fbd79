"""The plan of a turn: what was asked, and what completeness and safety add, less what was done. Pure.

Code adds steps; it never takes one away that the model chose.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from docgemma.ehr.births import read_births
from docgemma.reading.drugs import condition_names
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.words import plain
from docgemma.rules import known
from docgemma.rules.limits import MAX_DRUGS, MAX_STEPS
from docgemma.state import ActivePatient, AgentState, OrderRef, Request, ToolResult

ABOUT_PATIENT = frozenset({*TOPICS, *WRITES, "may", "change"})
WRITE_TOOLS = {"rx": "prescribe_medication", "allergy": "add_allergy", "note": "save_clinical_note"}
NOT_SPECIFIED = "not specified"


class Step(NamedTuple):
    """One call of the plan. `ask` is what it serves. A missing argument is asked for by the call itself."""

    tool: str
    args: dict[str, Any]
    ask: str


def planned(state: AgentState) -> list[Step]:
    """Every step of the turn, in working order: who is meant, the charts, knowledge, entries."""
    request = known.request(state)
    people = known.people(state)
    steps = [*_searches(state, request), *_charts(state, request, people)]
    steps += _knowledge(state, request)
    nobody = bool(request["unclear"]) and not people
    if not nobody:
        steps += _writes(request, people[0] if people else None)
    return steps


def missing(state: AgentState) -> list[Step]:
    """Steps that were not tried in this turn, in order; after a failed one nothing is tried twice.

    Entries are counted: what a person approved or rejected may read otherwise than it was asked for, and it is not
    asked for again.
    """
    results = state.get("tool_results") or []
    tried = [(item["tool_name"], same(item["args"])) for item in results]
    made = Counter(
        item["tool_name"]
        for at, item in enumerate(results)
        if item["writes"] and not _completed(item, results[at + 1 :])
    )
    left = []
    for step in planned(state):
        if step.ask in WRITES:
            made[step.tool] -= 1
            if made[step.tool] < 0:
                left.append(step)
        elif not _tried(step, tried):
            left.append(step)
    return left


def _completed(call: ToolResult, later: Sequence[ToolResult]) -> bool:
    """Whether a call that lacked something was made again with it, so that the two are one entry."""
    return call["error_type"] == "missing_required_args" and any(
        item["tool_name"] == call["tool_name"] and call["args"].items() <= item["args"].items() for item in later
    )


def complete(state: AgentState) -> bool:
    """Whether the turn goes to its answer: nothing is missing, or the limit of calls is reached."""
    if state.get("step_count", 0) >= MAX_STEPS:
        return True
    return not missing(state) and not _suggested_left(state)


def wanted_by_model(state: AgentState) -> str | None:
    """The tool that the model named with the intent, until it ran."""
    name = state.get("suggested_tool")
    tried = {item["tool_name"] for item in state.get("tool_results") or []}
    return name if name and name not in tried and not state.get("proposed_none") else None


def _suggested_left(state: AgentState) -> bool:
    name = wanted_by_model(state)
    return bool(name) and name in runnable(state)


def runnable(state: AgentState) -> set[str]:
    """Tools that may be chosen now: the plan's, and the one that the model named, where what it needs was said.

    A write that the reader did not find plainly ordered is none of them.
    """
    names = {step.tool for step in missing(state)}
    meant, drugs = wanted_by_model(state), known.drugs(state)
    met = {
        "nothing": True, "patient": bool(known.people(state)), "no patient": not known.request(state)["patients"],
        "drug": bool(drugs), "drugs": len(drugs) > 1,
    }  # fmt: skip
    return names | {meant} if meant and met.get(state.get("suggested_needs") or "") else names


def is_repeat(name: str, args: Mapping[str, Any], state: AgentState) -> bool:
    """Whether a call that is about to be made was made in this turn, and succeeded."""
    return any(
        item["tool_name"] == name and not item["error"] and same(item["args"]) == same(args)
        for item in state.get("tool_results") or []
    )


def same(args: Mapping[str, Any]) -> str:
    """Arguments without differences that change nothing: case, blanks, the order of drugs, absent options."""

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return sorted(plain(item) for item in value)
        return " ".join(str(value).casefold().split())

    return json.dumps({key: plain(value) for key, value in sorted(args.items()) if value not in (None, "", [])})


def _searches(state: AgentState, request: Request) -> list[Step]:
    """Everybody who was named, or who is asked for; an id needs no search unless the patient is all that is asked."""
    if not set(request["asks"]) & {*ABOUT_PATIENT, "find"} and not request["patients"] and not request["unclear"]:
        return []
    only_find = set(request["asks"]) <= {"find", "chat"} and not request["measures"]
    said = [patient["search"] or (patient["said"] if only_find else "") for patient in request["patients"]]
    return [Step("search_patient", {"name": name}, "find") for name in [*said, *request["unclear"]] if name]


def _charts(state: AgentState, request: Request, people: Sequence[str]) -> list[Step]:
    """The chart is the default: one patient and anything asked beyond finding them."""
    asks = set(request["asks"])
    whom = {"change"} if people or not known.drugs(state) else set()
    about = asks & {*TOPICS, *({"may"} if people or not known.drugs(state) else ()), *whom} or (
        known.drugs(state) and asks & {"safe", "ddi"}
    )
    only_named = bool(request["patients"]) and (
        not asks - {"chat", "gk"} or (request["measures"] and not asks - {"find"})
    )
    checked = request["meant"] in ("asked", "refused", "unsure") and asks & set(WRITES)
    trial = asks & {"trial"} and request["patients"]
    if not (about or only_named or checked or trial):
        return []
    if not people:
        return (
            []
            if known.searched_in_vain(state) or request["unclear"] or not (asks & ABOUT_PATIENT)
            else [Step("get_patient_chart", {}, "chart")]
        )
    return [Step("get_patient_chart", {"patient_id": person}, "chart") for person in people]


def _knowledge(state: AgentState, request: Request) -> list[Step]:
    asks, drugs = set(request["asks"]), known.drugs(state)
    considered = [order["drug"] for order in request["orders"]] if request["meant"] in ("asked", "unsure") else []
    patient = state.get("active_patient")
    names = known.unique([*drugs, *considered])[:MAX_DRUGS]
    steps: list[Step] = []
    checked = "may" in asks or bool(considered)
    active = known.chart_medications(state)
    among = "may" in asks and not names and len(active) > 1  # "which of his medicines raises it?"
    if "ddi" in asks or (checked and names) or among or (len(names) > 1 and not asks - {"safe", "chat", "gk"}):
        together = known.unique([*names, *active])[:MAX_DRUGS]
        if len(together) > 1:
            waits = checked and known.people(state) and not known.charts(state)  # for what the chart says
            steps += [] if waits else [Step("check_drug_interactions", {"drug_names": together}, "ddi")]
    alone = "ddi" in asks and len(names) < 2 and not checked
    if "safe" in asks or checked or alone or (not asks - {"chat"} and names and not request["patients"]):
        steps += [Step("check_drug_safety", {"drug_name": name}, "safe") for name in names]
        if "safe" in asks and not names and not (asks & {*TOPICS, "may"} and known.people(state)):
            unknown = [drug["said"] for drug in request["drugs"] if drug["how"] == "unknown"]
            steps.append(Step("check_drug_safety", _said(drug_name="".join(unknown[:1])), "safe"))
    searched = "lit" in asks or "trial" in asks
    subject = private(request["query"] or request["said"], request, patient) if searched else ""
    if "lit" in asks:
        steps.append(Step("search_medical_literature", _said(query=subject), "lit"))
    if "trial" in asks or request["trials"]:
        named = [private(name, request, patient) for name in request["conditions"]]
        short = [condition_names()[word] for word in plain(request["said"]).split() if word in condition_names()]
        conditions = request["trials"] or named or short or [subject]
        steps += [
            Step("find_clinical_trials", _said(condition=name, status=request["status"]), "trial")
            for name in conditions
        ]
        found = by_tool(state.get("tool_results") or [], "find_clinical_trials")
        if request["status"] and any(item["empty"] for item in found):  # what there is of another status
            steps += [Step("find_clinical_trials", {"condition": name}, "trial") for name in conditions]
    if "img" in asks and known.entities(state)["has_image"]:
        steps.append(Step("analyze_medical_image", {"query": request["said"][:200]}, "img"))
    return steps


def _writes(request: Request, person: str | None) -> list[Step]:
    """Entries that are plainly ordered. One that is asked about, refused or unsure is never a card."""
    if request["meant"] != "ordered" or "cancel" in request["asks"]:
        return []
    who = {"patient_id": person} if person else {}
    entries = {
        "rx": [order_args(order) for order in request["orders"]],
        "allergy": [_said(**item) for item in request["allergies"]],
        "note": [_said(**item) for item in request["notes"]],
    }
    steps = []
    for ask in WRITES:
        for at, args in enumerate(entries[ask] if ask in request["asks"] else []):
            whose = request["owners"].get(ask, [])
            ids = [{"patient_id": owner} for owner in whose[at]] if at < len(whose) else [who]
            steps += [Step(WRITE_TOOLS[ask], owner | args, ask) for owner in ids]
    others = set(request["asks"]) - {*WRITES, "chat", "gk", "fix"}
    for ask in WRITES:
        if ask in request["asks"] and not any(step.ask == ask for step in steps) and not others and not steps:
            steps.append(Step(WRITE_TOOLS[ask], dict(who), ask))  # the call asks for what is missing
    return steps


def order_args(order: OrderRef) -> dict[str, Any]:
    """An order's arguments as said. An order without a frequency goes to a person with that finding, never a guess."""
    notes = "; ".join(part for part in (order["route"], order["notes"]) if part)
    return _said(
        medication_name=order["said"], dosage=order["dose"], frequency=order["frequency"] or NOT_SPECIFIED, notes=notes
    )


def private(text: str, request: Request, active: ActivePatient | None = None) -> str:
    """A query without the patient: no name, id or birth date leaves for an outside service."""
    named = [part for patient in request["patients"] for part in (patient["said"], patient["name"], patient["id"])]
    named += [*request["unclear"], *([active["name"], active["id"]] if active else [])]
    for birth in reversed(read_births(text)):
        if birth.kind in ("stated", "date"):
            text = f"{text[: birth.start].rstrip().removesuffix('born').removesuffix('DOB')} {text[birth.end :]}"
    for part in known.unique([*named, *(word for name in named for word in name.split() if len(word) > 1)]):
        text = _without(_without(text, f"{part}'s"), part)
    return " ".join(text.split())


def _without(text: str, part: str) -> str:
    at = text.casefold().find(part.casefold())
    while at >= 0:
        end = at + len(part)
        whole = not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
        text = text[:at] + text[end:] if whole else text
        at = text.casefold().find(part.casefold(), at if whole else end)
    return text


def _tried(step: Step, tried: Iterable[tuple[str, str]]) -> bool:
    wanted = same(step.args)
    if step.tool in ("check_drug_interactions", "search_medical_literature"):  # a model may word it otherwise
        return any(name == step.tool for name, _ in tried)
    return any(name == step.tool and args == wanted for name, args in tried)


def _said(**args: Any) -> dict[str, Any]:
    return {name: value for name, value in args.items() if value}


def by_tool(results: Sequence[ToolResult], name: str) -> list[ToolResult]:
    return [item for item in results if item["tool_name"] == name and not item["error"]]
