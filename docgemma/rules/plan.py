"""The plan of a turn: what was asked, and what completeness and safety add, less what was done. Pure.

Code adds steps; it never takes one away that the model chose.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from docgemma.reading.drugs import said_for
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.terms import measures_in, said_in
from docgemma.rules import known
from docgemma.rules.patients_meant import patients_meant, searched_in_vain
from docgemma.state import ActivePatient, AgentState, Request, ToolResult
from docgemma.text.births import read_births
from docgemma.text.words import SHORT, clinical, listed, plain
from docgemma.text.words import names as named_in

ABOUT_PATIENT = frozenset({*TOPICS, *WRITES, "may", "change"})
WRITE_TOOLS = {"rx": "prescribe_medication", "allergy": "add_allergy", "note": "save_clinical_note"}
UNCLEAR_DRUG = "ambiguous_drug_name"
NOT_SPECIFIED, NO_LABEL = "not specified", "drug_not_in_database"
ONCE = frozenset({"check_drug_interactions", "search_medical_literature"})  # a model may word them otherwise
MAX_STEPS = 8  # distinct tool calls of a turn; a plan of several asks needs more than the four of v3 section 11
MAX_PROBLEMS = 3  # of a chart, whose trials are searched where no condition is named
MAX_DRUGS = 6  # in one interaction check


class Step(NamedTuple):
    """One call of the plan. `ask` is what it serves. A missing argument is asked for by the call itself."""

    tool: str
    args: dict[str, Any]
    ask: str


def planned(state: AgentState) -> list[Step]:
    """Every step of the turn, in working order: who is meant, the charts, knowledge, entries."""
    request = known.request(state)
    people = patients_meant(state)
    steps = [*_searches(state, request), *_charts(state, request, people), *_knowledge(state, request)]
    nobody = request["unclear"] and not people
    return steps if nobody else [*steps, *_writes(request, people[0] if people else None)]


def missing(state: AgentState) -> list[Step]:
    """Steps that were not tried in this turn, in order; after a failed one nothing is tried twice.

    Entries are counted: what a person approved or rejected may read otherwise than it was asked for, and it is not
    asked for again.
    """
    results = state.get("tool_results") or []
    tried = {_call(item["tool_name"], item["args"]) for item in results}
    written = (item for at, item in enumerate(results) if item["writes"] and not _completed(item, results[at + 1 :]))
    made = Counter(item["tool_name"] for item in written)
    left = []
    for step in planned(state):
        if step.ask in WRITES:
            made[step.tool] -= 1
            if made[step.tool] < 0:
                left.append(step)
        elif _call(step.tool, step.args) not in tried:
            left.append(step)
    return left


def _completed(call: ToolResult, later: Sequence[ToolResult]) -> bool:
    """Whether a call that lacked something, or whose drug was asked back, was made again with it: one entry."""
    unclear = {"medication_name"} if call["error_type"] == UNCLEAR_DRUG else set[str]()
    told = {name: value for name, value in call["args"].items() if name not in unclear}
    return call["error_type"] in ("missing_required_args", UNCLEAR_DRUG) and any(
        item["tool_name"] == call["tool_name"] and told.items() <= item["args"].items() for item in later
    )


def complete(state: AgentState) -> bool:
    """Whether the turn goes to its answer: nothing can run any more, or the limit of calls is reached."""
    return state.get("step_count", 0) >= MAX_STEPS or not runnable(state)


def runnable(state: AgentState) -> set[str]:
    """Tools that may be chosen now: the plan's, and the one that the model named, where what it needs was said.

    A write that the reader did not find plainly ordered is none of them.
    """
    names = {step.tool for step in missing(state)}
    meant, drugs = wanted_by_model(state), known.drugs(state)
    met = {
        "nothing": True, "patient": bool(patients_meant(state)), "no patient": not known.request(state)["patients"],
        "drug": bool(drugs), "drugs": len(drugs) > 1,
    }  # fmt: skip
    return names | {meant} if meant and met.get(state.get("suggested_needs") or "") else names


def wanted_by_model(state: AgentState) -> str | None:
    """The tool that the model named with the intent, until it ran."""
    name = state.get("suggested_tool")
    tried = {item["tool_name"] for item in state.get("tool_results") or []}
    return name if name and name not in tried and not state.get("proposed_none") else None


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
    only_find = set(request["asks"]) <= {"find", "chat"} and not request["measures"]
    said = [patient["search"] or (patient["said"] if only_find else "") for patient in request["patients"]]
    return [Step("search_patient", {"name": name}, "find") for name in [*said, *request["unclear"]] if name]


def _charts(state: AgentState, request: Request, people: Sequence[str]) -> list[Step]:
    """The chart is the default: one patient and anything asked beyond finding them."""
    asks, named, drugs = set(request["asks"]), bool(request["patients"]), known.drugs(state)
    about = bool(asks & set(TOPICS) or (drugs and asks & {"safe", "ddi"}) or ("change" in asks and people))
    about |= ("may" in asks and (bool(people) or not drugs)) or ("safe" in asks and bool(people))
    about |= not asks and bool(people)
    only_named = named and (not asks - {"chat", "gk"} or (request["measures"] and not asks - {"find"}))
    considered = request["meant"] in ("asked", "refused", "unsure") and asks & set(WRITES) and (people or not drugs)
    if not (about or only_named or considered or (named and asks & {"trial", "oos", "lit"})):
        return []
    if people:
        return [Step("get_patient_chart", {"patient_id": person}, "chart") for person in people]
    persons = listed("request_words", "persons") & set(plain(request["said"]).split())
    general = drugs and not persons and asks & ABOUT_PATIENT <= {"may"}  # "X with Y fine? only Z here"
    of_nobody = general or (drugs and "safe" in asks and (not persons or len(drugs) > 1))
    nobody = searched_in_vain(state) or request["unclear"] or not asks & ABOUT_PATIENT or of_nobody
    return [] if nobody else [Step("get_patient_chart", {}, "chart")]


def _knowledge(state: AgentState, request: Request) -> list[Step]:
    asks = set(request["asks"])
    considered = [order["drug"] for order in request["orders"]] if request["meant"] in ("asked", "unsure") else []
    names = known.unique([*known.drugs(state), *considered])[:MAX_DRUGS]
    generics = {drug["name"]: drug.get("generic") for drug in request["drugs"]}
    for added, drugs in clinical("drug_words")["additives"].items() if "ddi" not in asks else ():
        if set(drugs) & {*generics.values()}:  # "lidocaine 1% with adrenaline"
            names = [name for name in names if generics.get(name) != added]
    checked = "may" in asks or bool(considered)
    if not names and "safe" in asks:  # "what is she anticoagulated with, and its boxed warning?"
        kinds = [kind["match"] for kind in said_in(request["said"], "medications")]
        names = [name for name in known.in_charts(state, "medications") if any(named_in(kind, name) for kind in kinds)]
    steps = [*_interactions(state, request, names, checked), *_labels(state, request, names, checked)]
    literature = Step("search_medical_literature", _said(query=_subject(state, request)), "lit")
    steps += [literature] if "lit" in asks else []
    read = known.made(state, literature.tool)
    unread = "lit" in asks and read and all(item["empty"] or item["result"].get("partial") for item in read)
    if "trial" in asks or request["trials"] or (unread and {"trial", "trials"} & {*plain(request["said"]).split()}):
        steps += _trials(state, request)
        found = known.made(state, "find_clinical_trials")  # "trial for stopping at 7?": it may be published
        published = found and all(item["empty"] for item in found) and not request["patients"]
        steps += [literature] if published else []
    if "img" in asks and state.get("image"):
        steps.append(Step("analyze_medical_image", {"query": request["said"][:200]}, "img"))
    return steps


def _interactions(state: AgentState, request: Request, names: list[str], checked: bool) -> list[Step]:
    """Everything named with everything active; for a check, once the chart says what that is."""
    asks, words = set(request["asks"]), set(plain(request["said"]).split())
    taken = known.in_charts(state, "medications")  # "hydrocortisone 1% cream" is hydrocortisone
    bare = ("".join(takewhile(lambda char: not char.isdigit(), name)).strip() for name in taken)
    active = [short if short and "/" not in name else name for short, name in zip(bare, taken, strict=True)]
    levels = [name for said in request["measures"] for name in measures_in(said) if name.endswith(" level")]
    moved = bool(levels) and bool(said_in(request["said"], "moving"))
    among = ("may" in asks or moved) and not names and len(active) > 1  # "which of his medicines raises it?"
    alone = len(names) > 1 != len(request["drugs"]) and not asks - {"safe", "chat", "gk"}  # a group is one
    generics = {str(drug.get("generic", drug["name"])).casefold() for drug in request["drugs"]}
    others = (name for name in active if not {name.casefold(), name.casefold().rpartition(" ")[0]} & generics)
    together = known.unique([*names, *others])[:MAX_DRUGS]
    topics = said_in(request["said"], "label_topics")  # "antidote for dabigatran? and for apixaban": each by itself
    apart = any(topic.get("each") for topic in topics) and not listed("request_words", "together") & words
    apart &= not (checked or any(topic["name"] == "interactions" for topic in topics))
    waits = checked and patients_meant(state) and not known.charts(state)
    if len(together) < 2 or apart or waits or not ("ddi" in asks or (checked and names) or among or alone):
        return []
    return [Step("check_drug_interactions", {"drug_names": together}, "ddi")]


def _labels(state: AgentState, request: Request, names: list[str], checked: bool) -> list[Step]:
    asks = set(request["asks"])
    alone = "ddi" in asks and len(names) < 2
    only_named = not asks - {"chat"} and not request["patients"]
    unknown = [drug["said"] for drug in request["drugs"] if drug["how"] == "unknown"]
    if checked and (doubtful := [said for said in unknown if plain(said) in said_for("ambiguous")]):  # "dex" is asked
        return [Step("check_drug_safety", {"drug_name": doubtful[0]}, "safe")]
    if names:
        unread = "lit" in asks and any(item["empty"] for item in known.made(state, "search_medical_literature"))
        asked = "safe" in asks or checked or alone or only_named or unread  # "duloxetine in chronic liver dz?"
        said = {drug.get("generic") for drug in request["drugs"]}
        opened = [part for parts in unlabelled(state).values() for part in parts if part not in said]
        return [Step("check_drug_safety", {"drug_name": name}, "safe") for name in [*names, *opened] if asked]
    if "safe" not in asks or (patients_meant(state) and (asks & {*TOPICS, "may"} or not request["drugs"])):
        return []
    return [Step("check_drug_safety", _said(drug_name="".join(unknown[:1])), "safe")]


def unlabelled(state: AgentState) -> dict[str, list[str]]:
    """Combinations of which no label was found -> their ingredients, whose labels are looked up: "solpadol"."""
    tried = [item["args"] for item in state.get("tool_results") or [] if item["error_type"] == NO_LABEL]
    parts = {drug["name"]: str(drug.get("generic", "")).split(" and ") for drug in known.request(state)["drugs"]}
    whole = [name for args in tried if len(parts.get(name := args.get("drug_name", ""), [])) > 1]
    return {name: parts[name] for name in whole}


def _trials(state: AgentState, request: Request) -> list[Step]:
    """Trials of each condition that is named, else of what the chart has; of any status where the wanted has none."""
    named = [private(name, request, state.get("active_patient")) for name in request["conditions"]]
    known_as = said_for("conditions")
    short = [known_as[word]["name"] for word in plain(request["said"]).split() if word in known_as]
    problems = known.in_charts(state, "conditions")[:MAX_PROBLEMS]
    wanted = request["trials"] or named or short or problems or [_subject(state, request)]
    steps = [Step("find_clinical_trials", _said(condition=name, status=request["status"]), "trial") for name in wanted]
    found = {same(item["args"]) for item in known.made(state, "find_clinical_trials") if item["empty"]}
    none = [step.args["condition"] for step in steps if same(step.args) in found]
    begun = {word[:SHORT] for one in wanted for word in plain(one).split()}  # "meso", "residual dz" is none
    alike = [name for name in problems if begun & {word[:SHORT] for word in plain(name).split()}]
    more = (alike or problems) if len(none) == len(steps) and not request["trials"] else []
    more = known.unique([*(none if request["status"] else []), *more])
    return steps + [Step("find_clinical_trials", {"condition": name}, "trial") for name in more]


def _subject(state: AgentState, request: Request) -> str:
    """What to search for: of "on alendronate, thinking drug holiday, evidence?" the drug beside what is asked."""
    query, drugs = request["query"], [drug for drug in request["drugs"] if drug["how"] != "unknown"]
    told = any(plain(drug[key]) in plain(query) for drug in drugs for key in ("said", "name"))
    alone = told or request["trials"] or not query or request.get("studies")  # the name of a study tells all
    beside = [] if alone else [drug["name"] for drug in drugs]
    own = request["telling"] if patients_meant(state) else [request["said"]]  # somebody's message is not sent whole
    subject = " ".join([query or " ".join(request["conditions"] or own), *beside])
    return private(subject, request, state.get("active_patient"))


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
    asked = [ask for ask in WRITES if ask in request["asks"]]
    steps = []
    for ask in asked:
        whose = request["owners"].get(ask, [])
        for at, args in enumerate(entries[ask]):
            ids = [{"patient_id": owner} for owner in whose[at]] if at < len(whose) else [who]
            steps += [Step(WRITE_TOOLS[ask], owner | args, ask) for owner in ids]
    steps.sort(key=lambda step: step.ask != "allergy")  # an order behind it is checked against it
    if not steps and not set(request["asks"]) - {*WRITES, "chat", "gk", "fix"}:
        said = order_args(request["details"]) if "rx" in asked else {}
        steps = [Step(WRITE_TOOLS[ask], who | said, ask) for ask in asked[:1]]  # the call asks for what is missing
    return steps


def order_args(order: Mapping[str, Any]) -> dict[str, Any]:
    """An order's arguments as said, without a drug too. How often is asked for or left to a person, never guessed."""
    notes = "; ".join(part for part in (order.get("route"), order.get("notes")) if part)
    often = order.get("frequency") or (NOT_SPECIFIED if "said" in order else "")
    return _said(medication_name=order.get("said"), dosage=order.get("dose"), frequency=often, notes=notes)


def private(text: str, request: Request, active: ActivePatient | None = None) -> str:
    """A query without the patient: no name, id or birth date leaves for an outside service."""
    named = [part for patient in request["patients"] for part in (patient["said"], patient["name"], patient["id"])]
    named += [*request["unclear"], *([active["name"], active["id"]] if active else [])]
    parts = {word for name in named for word in _name_parts(name) if len(word) > 1}
    for birth in reversed(read_births(text)):
        if birth.kind in ("stated", "date"):
            text = f"{text[: birth.start]} {text[birth.end :]}"
    return " ".join(word for word in text.split() if not parts & _name_parts(word))


def _name_parts(text: str) -> set[str]:
    """Words of a name or id for comparing; of a double name each part: "Smith-Jones" is smith and jones too."""
    words = {word.strip("'").removesuffix("'s") for word in plain(text).replace("/", " ").split()}
    return words | {part for word in words if not any(map(str.isdigit, word)) for part in word.split("-")}


def _call(tool: str, args: Mapping[str, Any]) -> tuple[str, str]:
    return tool, "" if tool in ONCE else same(args)


def _said(**args: Any) -> dict[str, Any]:
    return {name: value for name, value in args.items() if value}
