"""Node 1: prepare the turn. Entities by code, image findings by the vision model, answers to an open question read."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import ModelError
from docgemma.images import describe_header, read_header
from docgemma.nodes.context import Context, decided
from docgemma.nodes.spoken_of import contradicts, of_several
from docgemma.reading.drugs import link_drug, said_for
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.patients import find_people
from docgemma.reading.request import as_drug, read_request
from docgemma.reading.terms import measure_said, refers_back, said_in
from docgemma.rules import answered, clarify, described, known
from docgemma.rules.corrections import ORDER_DETAILS, adds_to_note
from docgemma.rules.follow import both, carried, ordered_after_all, recorded_before
from docgemma.rules.plan import WRITE_TOOLS
from docgemma.rules.refusal import any_rejected
from docgemma.state import RESET, ActivePatient, AgentState, Clarification, ImageRef, PatientRef, Request
from docgemma.text.drugs import ingredients
from docgemma.text.numbers import quantities
from docgemma.text.words import listed, names, plain
from docgemma.tools.images import describe_image
from docgemma.tools.records import chart_data

MAX_CHARTS = 6  # looked at to tell patients of one name apart
LOOKS_UP = frozenset([*TOPICS, "safe", "ddi", "may", "lit", "trial", "note"])
LOOSE = frozenset({"rx", "meds", "chat", "gk"})  # asks of details that an order which waits is given
BESIDE = frozenset({"labs", "vit", "imm"})  # asks beside which a drug that is not taken is considered
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
    if waiting and adds_to_note(request, state["request"]):
        request = known.replaced(request, asks=["fix"], notes=[])
    with_it = waiting or (state.get("held") and ("ddi" in request["asks"] or refers_back(message)))
    if with_it and set(request["asks"]) & {"may", "ddi"} and request["drugs"] and not request["orders"]:
        waits = [as_drug(link_drug(one["drug"], context.drugs), context.drugs) for one in state["request"]["orders"]]
        request = known.replaced(request, drugs=[*waits, *request["drugs"]])  # "does it clash with plavix?"
    others = {drug["name"] for drug in request["drugs"]} - {drug["name"] for drug in known.request(state)["drugs"]}
    if waiting and "change" in request["asks"] and not (others or request["patients"] or message.endswith("?")):
        request = known.replaced(request, asks=[*(ask for ask in request["asks"] if ask != "change"), "fix"])
    given = "rx" in request["asks"] and request["meant"] == "ordered" and request["details"].get("dose")
    loose = {*ORDER_DETAILS} & {*request["details"]} and set(request["asks"]) <= LOOSE and not message.endswith("?")
    loose = loose and waiting and bool(state["request"]["orders"])  # "take after meals"
    if waiting and (given or loose) and not (request["orders"] or others or request["patients"] or request["unclear"]):
        rest = [ask for ask in request["asks"] if ask not in (LOOSE if loose else {"rx"})]
        request = known.replaced(request, asks=[*rest, "fix"])  # "500 mg for 7 days": the card's other details stay
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
    last = _with_medicine(request, last, active, context) if last and active else last
    return _as_taken(carried(request, last, bool(active)), active, context)


def _with_medicine(request: Request, last: Request, active: ActivePatient, context: Context) -> Request:
    """The request before, with the one medicine that it was about where neither names a drug: all that the patient
    takes, or takes of a kind that was asked for. "any reason not to leave her on it" goes on with that."""
    others = [key for key in ("drugs", "orders") if request[key] or last[key]] or request["patients"]
    kinds = [kind for measure in last["measures"] for kind in said_in(measure, "medications")]
    about = not others and not request["unclear"] and len(last["patients"]) < 2 and "meds" in last["asks"]
    charted = _taken_now(known.replaced(last, patients=[]), active, context) if about else []
    taken = known.unique(item["name"] for item in charted)
    mine = [name for name in taken if not kinds or any(names(kind["match"], name) for kind in kinds)]
    drugs = [as_drug(link_drug(name, context.drugs), context.drugs) for name in mine]
    return known.replaced(last, drugs=drugs) if len(drugs) == 1 else last


def _as_taken(request: Request, active: ActivePatient | None, context: Context) -> Request:
    """The drugs; of a group beside another drug what the patient takes of it ("he's on water pills"), beside its own
    member none ("abx, micro say cipro"); an ambiguous name is the reading that is taken ("levo"). What is not taken
    though it seems so is checked ("duloxetine dose? interacts with tramadol?")."""
    taken = _taken_now(request, active, context) if request["drugs"] or len(request["orders"]) > 1 else []
    medicines, drugs = {item["name"]: ingredients(item["name"], context.drugs) for item in taken}, []
    parts_of = {drug["said"]: ingredients(drug["name"], context.drugs) for drug in request["drugs"]}
    for drug in request["drugs"]:
        group = [ingredients(name, context.drugs) for name in said_for("groups").get(drug["name"], {}).get("drugs", [])]
        others = [parts for said, parts in parts_of.items() if said != drug["said"]]
        mine = [name for name, parts in medicines.items() if parts in group]
        said = plain(drug["said"])
        also = said_for("abbreviations").get(said, {}).get("also", "")  # "pred" is prednisone of who takes that
        readings = said_for("ambiguous").get(said, {}).get("readings", [also])
        meant = [name for name in readings if ingredients(name, context.drugs) in medicines.values()]
        if drug["how"] == "unknown" and not meant:  # "?uti. nitro ok?"
            uses = said_in(request["said"], "uses")
            meant = [name for name in readings if any(name in use["drugs"] for use in uses)]
        if drug["how"] == "group" and any(parts in group for parts in others):
            drug = {**drug, "members": []}
        elif drug["how"] == "group" and mine and any(parts not in medicines.values() for parts in others):
            drug = {**drug, "members": mine, "taken": True}
        elif (drug["how"] == "unknown" or also) and len(meant) == 1:
            drug = {**drug, "name": meant[0], "generic": meant[0], "how": "short"}
        drugs.append(drug)
    checked = ["may"] if _not_taken(request, active, medicines, context) else []
    short = {drug["said"]: drug["name"] for drug in drugs if drug["how"] == "short"}
    meant_by = {said: {"said": name, "drug": name, "how": "short"} for said, name in short.items()}
    orders: list[Any] = [
        {**order, **meant_by.get(order["said"], {})}
        if order["how"] == "unknown" or short.get(order["said"], order["drug"]) != order["drug"] else order
        for order in request["orders"]
    ]  # fmt: skip
    if len(orders) > 1:
        orders = _not_had(orders, taken, context)
    return known.replaced(request, drugs=drugs, orders=orders, asks=[*request["asks"], *checked])


def _not_had(orders: list[Any], taken: list[dict[str, Any]], context: Context) -> list[Any]:
    """The orders without what is taken already in that dose, or is named without one, beside another:
    "gabapentin 300 tid is on board. i'd add amitriptyline 10 mg qhs"."""
    had = [(ingredients(item["name"], context.drugs), _amounts(str(item["dosage"]))) for item in taken]
    new = [
        order for order in orders
        if not any(parts & ingredients(order["drug"], context.drugs) and {*_amounts(order["dose"])[:1]} <= {*doses}
                   for parts, doses in had)
    ]  # fmt: skip
    return new or orders


def _amounts(dosage: str) -> list[Decimal]:
    return [item.value for item in quantities(dosage)]


def _taken_now(request: Request, active: ActivePatient | None, context: Context) -> list[dict[str, Any]]:
    """The active medicines of the only patient who is meant; none of several, or of nobody."""
    who = [patient["id"] for patient in request["patients"]] or ([active["id"]] if active else [])
    stored = context.store.chart(who[0]) if len(who) == 1 else None
    return [item for item in chart_data(stored)["medications"] if item["active"]] if stored else []


def _not_taken(
    request: Request, active: ActivePatient | None, medicines: Mapping[str, frozenset[str]], context: Context
) -> bool:
    """Whether medicines are asked for, and one that is named is not taken, where several or a dose are: "gerd -
    omeprazole or protonix?" and "hydroxyzine 25 x1?" ask whether it suits."""
    named = [ingredients(drug["name"], context.drugs) for drug in request["drugs"] if drug["how"] != "group"]
    dosed = request["details"].get("dose") or any(order["dose"] for order in request["orders"])
    how_much = any(topic.get("beside") for topic in said_in(request["said"], "label_topics"))  # "what dose of apixaban"
    words = {*plain(request["said"]).split()}
    how_much |= bool(listed("request_words", "under_way") & words)  # "tpa running, is he on an acei?"
    several = len(named) > 1 or (named and (dosed or how_much))
    who = len(request["patients"]) or bool(active)
    asks = set(request["asks"])
    told = "meds" in asks or (dosed and asks & set(TOPICS) and not asks & set(WRITES))  # "planning cipro 250 bid. gfr?"
    measured = any(measure_said(plain(drug["said"])) for drug in request["drugs"])
    measures = " ; ".join(map(plain, request["measures"]))  # "after viagra. is he on nitrates?" asks of another drug
    aside = measures and not any(plain(drug["said"]) in measures for drug in request["drugs"])
    begun = not listed("request_words", "allergy_words") & words and listed("request_words", "beginning") & words
    others = [*(["meds"] if aside else []), *(["alg"] if begun else [])]  # "saw an ad for jardiance. add it?"
    beside = bool(named and asks) and not measured and asks <= {*BESIDE, *others}
    if not (beside or (told and several)) or "may" in asks or who != 1:
        return False
    taken = frozenset[str]().union(*medicines.values())
    return not all(parts & taken for parts in named)


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
            meant = PatientRef(id=one.id, name=one.name, label=one.label, sex=one.sex, said=name, search="", exact=True)
            meant["said"] = name or (asked if question else "")
            left = [item for item in request["unclear"] if item != name]
            request = known.replaced(request, patients=[*request["patients"], meant], unclear=left)
    return request


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
    new = _as_taken(carried(known.replaced(new, said=more or ""), None, True), active, context)
    return both(request, new) if more and set(new["asks"]) & {*LOOKS_UP, *WRITES} else request
