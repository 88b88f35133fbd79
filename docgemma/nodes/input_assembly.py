"""Node 1: prepare the turn. Entities by code, image findings by the vision model, answers to an open question read."""

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from docgemma.ehr.base import PatientMatch
from docgemma.errors import ModelError
from docgemma.images import describe_header, read_header
from docgemma.nodes.as_taken import as_taken, with_medicine
from docgemma.nodes.context import Context, decided
from docgemma.nodes.spoken_of import contradicts, of_several
from docgemma.reading.drugs import link_drug
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.patients import find_people
from docgemma.reading.request import as_drug, read_request
from docgemma.reading.terms import refers_back, said_in
from docgemma.rules import answered, clarify, described, known
from docgemma.rules.alarms import subject_of
from docgemma.rules.corrections import of_waiting
from docgemma.rules.follow import both, carried, ordered_after_all, recorded_before
from docgemma.rules.plan import WRITE_TOOLS
from docgemma.rules.refusal import any_rejected
from docgemma.state import RESET, ActivePatient, AgentState, Clarification, ImageRef, PatientRef, Request
from docgemma.text.words import listed, names, plain
from docgemma.tools.images import describe_image
from docgemma.tools.records import chart_data

MAX_CHARTS = 6  # looked at to tell patients of one name apart
LOOKS_UP = frozenset([*TOPICS, "safe", "ddi", "may", "lit", "trial", "note"])
NO_VISION = "An image is attached, but the loaded model cannot read images. {header}"
UNREADABLE = "An image is attached, but it could not be read this time."

NEW_TURN: dict[str, Any] = {
    "intent": None, "task_summary": "", "suggested_tool": None, "suggested_needs": None, "image_findings": None,
    "current_tool": None, "current_args": None, "proposed_none": False, "tool_results": RESET,
    "step_count": 0, "retry_count": 0, "total_retries": 0, "last_result_classification": None,
    "last_result_summary": None, "quality": RESET, "next_node": None, "retry_strategy": None,
    "error_messages": RESET, "clarification": None, "resumed": False, "final_response": None,
    "status": "answered", "grounding": {}, "unanswered": [], "reopened": None, "lead": None, "groups": [],
    "route": None, "patient_summary": "", "subtasks": [], "subtask": 0, "iterations": 0, "fault": "", "thoughts": [],
}  # fmt: skip


def assemble_input(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Start a turn, or take up the work that a clarification interrupted."""
    update = _turn(state, runtime.context)
    if (image := state.get("image")) and not update["resumed"]:
        findings = _look(image, state["message"], runtime.context)
        update["calls"] = findings.pop("calls", [])
        update["image_findings"] = findings
    return update


def detect_image(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """The same in v1 and v2, where an image is only noticed: a tool looks at it."""
    update = _turn(state, runtime.context)
    if state.get("image") and not update["resumed"]:
        update["request"] = known.replaced(update["request"], asks=known.unique([*update["request"]["asks"], "img"]))
    return update


def _turn(state: AgentState, context: Context) -> dict[str, Any]:
    if (open_question := state.get("clarification")) and (answer := _answered(state, open_question, context)):
        return _take_up(state, open_question, answer, context)
    return _begin(state, context)


def _begin(state: AgentState, context: Context) -> dict[str, Any]:
    request = understand(state["message"], state, context)
    doubt, query, active = contradicts(state, request, context), state["message"], state.get("active_patient")
    update = {**NEW_TURN, "user_query": query, "turn_patient": active, "request": request, "clarification": doubt}
    return update | {"intent": "TOOL_NEEDED" if doubt else None, "put_off": None if doubt else _put_off(state, request)}


def _put_off(state: AgentState, request: Request) -> Clarification | None:
    """The open question about an entry, with its turn, where the message asks something else of the same patient."""
    question, others = state.get("clarification"), {one["id"] for one in request["patients"]} | {*request["unclear"]}
    if not question or question["kind"] != "missing" or question["tool"] not in WRITE_TOOLS.values():
        return None
    ended = set(request["asks"]) & {*WRITES, "cancel", "change"} or request["meant"] == "refused"
    if ended or others - {question["args"].get("patient_id")}:
        return None
    worked_on = {"request": state["request"], "tool_results": state.get("tool_results") or []}
    return {**question, "turn": question.get("turn") or worked_on | {"user_query": state["user_query"]}}


def understand(message: str, state: AgentState, context: Context, waiting: bool = False) -> Request:
    """What a message asks for, completed from the conversation before it, where an entry may be `waiting`."""
    history, active, last = state.get("history") or [], state.get("active_patient"), state.get("request")
    entries = [item["args"] for item in state.get("tool_results") or [] if item["writes"] and not item["error"]]
    last = known.as_written(last, entries) if last and not waiting else last
    if waiting and not active and state["request"]["patients"]:  # the card's
        active = ActivePatient(id=state["request"]["patients"][0]["id"], name=state["request"]["patients"][0]["name"])
    request = read_request(
        message, reader=context.reader, drugs=context.drugs, store=context.store,
        before=state["message"] if waiting else history[-1]["user"] if history else "", active=active,
    )  # fmt: skip
    request = _told_apart(request, message, state, context)
    request = of_several(request, last, state) if last and not waiting else request
    noted = request["notes"] and request["meant"] == "ordered"  # "don't order anything, just save a note"
    if names(listed("request_words", "entered"), message) and not (request["orders"] or noted):  # "did it go thru?"
        asked = [ask for ask in request["asks"] if ask not in (*WRITES, "fix", "cohort")]
        about = request["measures"] or request["drugs"] or request["patients"]
        return known.replaced(request, asks=(asked if about else []) or ["chat"], meant="")
    request = of_waiting(request, state["request"]) if waiting else request
    with_it = waiting or (state.get("held") and ("ddi" in request["asks"] or refers_back(message)))
    if with_it and set(request["asks"]) & {"may", "ddi"} and request["drugs"] and not request["orders"]:
        waits = [as_drug(link_drug(one["drug"], context.drugs), context.drugs) for one in state["request"]["orders"]]
        request = known.replaced(request, drugs=[*waits, *request["drugs"]])  # "does it clash with plavix?"
    changing = any_rejected(state) and listed("request_words", "changing") & set(plain(message).split())
    altered = bool(changing) and not request["details"].get("dose")  # "change it to 25 mg" is the entry with that
    fixes = not waiting and "fix" in request["asks"] and not request["patients"]
    if fixes and (recorded_before(state) or altered):
        dosed = any(order["dose"] for order in request["orders"])
        named = any(item["substance"] for item in request["allergies"])
        whole = [*(["rx"] if dosed else []), *(["allergy"] if named else [])]  # "ondansetron 4mg tds instead"
        return known.replaced(request, asks=[*whole, "change"], meant="ordered" if whole else request["meant"])
    if "img" in request["asks"] and not state.get("image") and (request["patients"] or active):
        request = known.replaced(request, asks=[*request["asks"], "notes"])  # what was written about the picture
    if not waiting and (order := ordered_after_all(request, last)):
        return order
    last = with_medicine(request, last, active, context) if last and active else last
    told = context.drugs.find(state.get("lead") or "") if active and said_in(message, "literature") else []
    if last and told and not (request["drugs"] or request["query"] or {*last["asks"]} & {"lit", "trial"}):
        drugs = [as_drug(link_drug(one.text, context.drugs), context.drugs) for one in told]
        mine = {drug["generic"]: drug for drug in drugs}  # of the conclusion that was just given
        last = known.replaced(last, drugs=[*mine.values()], query=" ".join([*subject_of(state), *mine]))
    return as_taken(carried(request, last, bool(active)), active, context, last["said"] if last else "")


def _look(image: ImageRef, question: str, context: Context) -> dict[str, Any]:
    """What the model sees, or what the header alone tells where it cannot look. Findings are never invented."""
    if context.llm.vision:
        try:
            return describe_image(context.llm, image, question, node="input_assembly")
        except ModelError:
            return {"unread": True, "formatted": UNREADABLE}
    return {"unread": True, "formatted": NO_VISION.format(header=describe_header(read_header(image["path"])))}


def _answered(state: AgentState, question: Clarification, context: Context) -> dict[str, Any] | None:
    """The arguments that the message supplies, or None if it is a new question; beside a choice `more` that it asks."""
    missing = question["kind"] == "missing"
    message = answered.settled(state["message"]) if missing else state["message"]
    request = read_request(
        message, reader=context.reader, drugs=context.drugs, store=context.store,
        before=question["question"] if missing else "",
    )  # fmt: skip
    if clarify.asks_anew(request, question):
        return None
    if missing:
        ask = {tool: ask for ask, tool in WRITE_TOOLS.items()}.get(question["tool"], "")
        again = answered.asked_again(known.replaced(request, said=state["message"]), question, ask)
        return answered.read_missing(request, question, ask) or (again and {"again": again})
    if question["kind"] != "patient":
        return {"choice": chosen} if (chosen := clarify.read_answer(message, question)) else None
    charts = _charts([item["id"] for item in question["options"]], context)
    head, more = described.leading(message)
    if clarify.takes_back(more, question):
        return None
    who = clarify.read_answer(head, question) or described.described(head, charts, context.drugs)
    who = who or clarify.read_answer(message, question)
    return {"choice": who, "more": more} if who else None


def _charts(patients: Sequence[str], context: Context) -> dict[str, dict[str, Any]]:
    """The charts of a few patients by id."""
    return {one: chart_data(chart) for one in patients[:MAX_CHARTS] if (chart := context.store.chart(one))}


def _told_apart(request: Request, message: str, state: AgentState, context: Context) -> Request:
    """The request with each of several namesakes whom the message describes by what only their chart has; where nobody
    is named ("and the sertraline one?"), of those who were asked about, or of the open patient's namesakes."""
    active, question = state.get("active_patient"), state.get("clarification")
    asked = (question and question["args"].get("name")) or (active["name"] if active else "")
    writes = set(request["asks"]) & set(WRITES) or request["orders"] or len(request["unclear"]) > 1
    several = request["drugs"] or len((state.get("request") or request)["drugs"]) > 1  # the other one of two drugs
    told = writes or several or question or request["patients"] or request["unclear"]
    if active and not told and (turned := _other_one(request, message, active, context)):
        return turned
    for name in request["unclear"] or ([] if request["patients"] else [""]):
        said = described.description(message, name)  # "the warfarin wilson", "the warfarin one", "the namesake with AF"
        said = said or described.description(message.replace("namesake", "one"), "")
        passing = described.in_passing(message, name, request["drugs"]) if not writes and (name or question) else ""
        people = find_people(name or asked, context.store) if (said or passing) and (name or asked) else []
        charts = _charts([person.id for person in people], context) if 1 < len(people) <= MAX_CHARTS else {}
        ordered = any(plain(order["said"]) in plain(said) for order in request["orders"])  # describes nobody
        who = None if ordered else described.described(said, charts, context.drugs, bool(name or writes))
        taken = {one: {**chart, "allergies": []} for one, chart in charts.items()}  # "his codeine" is no allergy
        who = who or (described.described(passing, taken, context.drugs) if passing else None)
        one = next((person for person in people if person.id == who), None)
        if one and not clarify.other_sex(message, one.sex):
            meant = _meant(one, name or (asked if question else ""))
            left = [item for item in request["unclear"] if item != name]
            request = known.replaced(request, patients=[*request["patients"], meant], unclear=left)
    return request


def _other_one(request: Request, message: str, active: ActivePatient, context: Context) -> Request | None:
    """The request with the namesake of the open patient, where it turns to one: "no the other one, w the reflux"."""
    head, turned, behind = f" {plain(message)} ".partition(" other one ")
    if not turned or not {*head.split()} <= listed("request_words", "correcting", "turning"):
        return None
    people = [one for one in find_people(active["name"], context.store) if one.id != active["id"]]
    said = " ".join(word for word in behind.split() if word not in listed("telling", "linking"))
    told = described.described(said, _charts([one.id for one in people], context), context.drugs, False)
    mine = [one for one in people if one.id == told] or people
    alone = [_meant(one, "") for one in mine if len(mine) == 1]
    return known.replaced(request, patients=alone, unclear=[active["name"]] if len(mine) > 1 else [])


def _meant(one: PatientMatch, said: str) -> PatientRef:
    """A patient of the record as a message means them."""
    return PatientRef(id=one.id, name=one.name, label=one.label, sex=one.sex, said=said, search="", exact=True)


def _take_up(state: AgentState, question: Clarification, answer: dict[str, Any], context: Context) -> dict[str, Any]:
    update: dict[str, Any] = {
        "clarification": None, "resumed": True, "status": "answered", "final_response": None, "put_off": None,
        "error_messages": RESET, "retry_count": 0, "proposed_none": False, "retry_strategy": None,
    }  # fmt: skip
    if turn := question.get("turn"):
        update |= {**turn, "tool_results": [RESET, *turn["tool_results"]]}
    if "again" in answer:
        return {**update, "clarification": answer["again"]}
    who_is_meant = question["kind"] == "patient"
    if who := answer["choice"] if who_is_meant else answer.get("patient_id"):
        patient = context.store.patient(who)
        labels = {item["id"]: item["label"] for item in question["options"]}
        label = patient.label if patient else labels.get(who, who)
        active = ActivePatient(id=who, name=patient.name if patient else label)
        request = _joined(_settled(state, question, active, label), answer.get("more"), active, context)
        update |= {"request": request, "turn_patient": active, "active_patient": active}
    if who_is_meant:
        found = {"patients": [{"id": who, "label": label}], "chosen_by": "clinician"}
        tool, text = context.toolbox[question["tool"]], f"Patient chosen by the clinician: {label}, ID {who}."
        chosen = decided(tool, question["args"], found, text, context.store.name)
        return {**update, "tool_results": [chosen], "last_result_classification": "success_rich", "next_node": "router"}
    if question["kind"] == "drug":
        field = question["missing"][0] if question["missing"] else context.toolbox[question["tool"]].entity
        unclear = question["args"].get("drug_name")
        meant: dict[str, Any] = {"name": answer["choice"], "how": "named"}
        drugs = [drug | meant if drug["said"] == unclear else drug for drug in known.request(state)["drugs"]]
        update["request"] = known.replaced(known.request(state), drugs=drugs)
        said, asked, choice = question["args"].get(field), (question.get("entity") or "").lower(), answer["choice"]
        several = [choice if one.lower() == asked else one for one in said] if isinstance(said, list) else choice
        answer = {field: several}
    args = {**question["args"], **answer}
    return {**update, "current_tool": question["tool"], "current_args": args, "next_node": "tool_execute"}


def _settled(state: AgentState, question: Clarification, active: ActivePatient, label: str) -> Request:
    """The request, now that a person said who is meant: the name that was unclear is this patient."""
    request, name = known.request(state), active["name"]
    said = str(question["args"].get("name") or name).casefold()
    unclear = [item for item in request["unclear"] if item.casefold() not in said]
    patient = PatientRef(id=active["id"], name=name, label=label, sex="", said=name, search="", exact=True)
    others = [item for item in request["patients"] if item["id"] not in {one["id"] for one in question["options"]}]
    return known.replaced(request, patients=[*others, patient], unclear=unclear, owners={})


def _joined(request: Request, more: str | None, active: ActivePatient, context: Context) -> Request:
    """The request that was stopped, with what the answer asks beside the choice: "the 1949 one. and his inr?"."""
    asked = f"{active['name']}: {more}"  # read as if the name stood there
    new = read_request(asked, reader=context.reader, drugs=context.drugs, store=context.store, active=active)
    new = as_taken(carried(known.replaced(new, said=more or ""), None, True), active, context)
    return both(request, new) if more and set(new["asks"]) & {*LOOKS_UP, *WRITES} else request
