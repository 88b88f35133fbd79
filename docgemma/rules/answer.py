"""The answer of a turn, composed from its findings, and what of the request it does not serve. Pure.

No model writes here. Statements about a patient come from this turn's chart, "prescribed" and "recorded" from this
turn's result. The question is no evidence.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from docgemma.errors import RETRYABLE
from docgemma.reading.drugs import said_for
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.terms import refers_back, said_in, topics_in
from docgemma.rules import known
from docgemma.rules.alarms import STATED, URGENT
from docgemma.rules.chart_answer import chart_lines, of_drugs
from docgemma.rules.chart_entries import SECTIONS, age, lines_of, overview, to_weigh
from docgemma.rules.chart_rest import ALSO, HEADS, rest_of_chart
from docgemma.rules.clarify import other_sex
from docgemma.rules.contradictions import contradictions
from docgemma.rules.errors import ERROR_TEMPLATES, no_answer
from docgemma.rules.label_answer import label_facts
from docgemma.rules.layout import Answer, Fact, number, of_chart, sentences, unique
from docgemma.rules.lead import SHOWN_BELOW, Checks, conclusion
from docgemma.rules.medicines_told import medicine_lines
from docgemma.rules.order_check import NO_RULES, OF_CLASS, Finding, shown
from docgemma.rules.patients_meant import patients_meant
from docgemma.rules.per_kg import per_kg_lines
from docgemma.rules.plan import unlabelled
from docgemma.rules.refusal import ABILITIES, UNORDERED, refusals
from docgemma.rules.told_allergies import allergy_lines
from docgemma.rules.trial_fit import spoken_to
from docgemma.rules.typed import typed_lines
from docgemma.rules.unanswered import NO_SUCH_DRUG, unserved
from docgemma.rules.waiting import entered_before
from docgemma.state import AgentState, PatientRef, Request, ToolResult
from docgemma.text.drugs import DrugNames
from docgemma.text.words import names, phrases_in, plain

NOTHING_WAITS = "No entry is waiting for a decision."
NO_DRUG = "No drug was recognised in this request, so none was checked: write its full name."
NOBODY_CHECKED = "No patient was named, so this was not checked against a chart."
OUT_OF_SCOPE = f"I cannot do that. {ABILITIES}"
NO_IMAGE = "No image is attached to this message: attach it and ask again."
NOT_JUDGED = "Whether this patient is eligible was not judged: compare the criteria with the chart."
Effects = Mapping[str, Sequence[str]]  # patient id -> lines
MOST_CHARTS = 2  # whose rest is told
SHORTENED = "The rest of this chart is not shown here: ask for it by name."


def compose(
    state: AgentState, drugs: DrugNames, checks: Checks, definition: str = "", effects: Effects | None = None
) -> Answer:
    """The answer, led by what can be concluded, and what it does not serve."""
    request = known.request(state)
    written = [item for item in state.get("tool_results") or [] if item["writes"] and not item["error"]]
    blocks = [
        sentences(_notices(state, request)),
        *(_patient(item, state, drugs, checks, (effects or {})) for item in known.charts(state)),
        *([fact] for fact in _searches(state)),
        _knowledge(state, request, drugs),
        sentences(line for item in written for line in item["formatted_result"].splitlines()),
        sentences([definition] if definition else []),
        sentences(unavailable(state, checks)),
    ]
    blocks = unique([*blocks, *_rest(state, Answer(None, blocks, []).plain)])
    front, gone = conclusion([fact for block in blocks for fact in block], state, checks)
    lead = next(iter(front), None)
    blocks = unique([front[1:], *([fact for fact in block if fact not in gone] for block in blocks)])
    missing, lines = unserved(state, request, Answer(lead, blocks, []).plain, bool(definition))
    unknown = [line for line in lines if NO_SUCH_DRUG in line]  # what was not checked stands before what was
    lines = [line for line in lines if line not in unknown]
    return Answer(lead, unique([sentences(unknown), *blocks, sentences(lines)]), missing)


def _rest(state: AgentState, told: str) -> list[list[Fact]]:
    """What the charts hold beside the answer, each under its heading; of a third the allergies."""
    charts, blocks = known.charts(state), []
    for at, item in enumerate(charts):
        title = f"{ALSO} of {item['result']['patient']['name']}" if len(charts) > 1 else ALSO
        lines = rest_of_chart(known.request(state), item["result"], told)
        if at >= MOST_CHARTS and lines:
            lines = [*(line for line in lines if line.startswith((HEADS["alg"], "No "))), SHORTENED]
        blocks.append([Fact(line, title, cite=number(item, state)) for line in lines])
    return blocks


def _notices(state: AgentState, request: Request) -> list[str]:
    """What has to be said first: refusals, corrections of spelling, what was not prepared."""
    lines = [*entered_before(state), *refusals(request)]
    if any(item["result"]["deceased"] for item in known.charts(state)):  # nobody is told how to order for the dead
        lines = [line for line in lines if not line.startswith(UNORDERED)]
    for one in request["patients"] if len(request["patients"]) == 1 else []:
        words = other_sex(request["said"], one["sex"], one["said"], "note" in request["asks"])
        lines += [f"{one['name']} is recorded as {one['sex']}; the message says “{min(words)}”."] if words else []
    lines += [f"{one['said']} was read as {one['name']}." for one in request["patients"] if _respelt(one)]
    opened = unlabelled(state).items()
    lines += [f"{name}: no label of its own; looked up by its parts ({', '.join(parts)})." for name, parts in opened]
    for drug in request["drugs"]:
        if drug["how"] in ("near", "short"):
            lines.append(f"{drug['said']} was read as {drug['name']}.")
        elif drug["how"] == "group" and not said_in(request["said"], "options"):
            members, taken = ", ".join(drug["members"]), drug.get("taken")
            rest = "these are what the patient takes" if taken else "other drugs of this group were not"
            lines += [f"{drug['said']}: looked up for {members}; {rest}."] if members else []
    may, image = "may" in request["asks"], "img" in request["asks"] and not known.made(state, "analyze_medical_image")
    lines += [NO_IMAGE] if image and not state.get("image") else []
    lines += [NOBODY_CHECKED] if may and not patients_meant(state) and known.drugs(state) else []
    dosed = request["details"].keys() & {"dose", "frequency", "route"} and not (request["drugs"] or request["orders"])
    return [*lines, *([NO_DRUG] if may and dosed else [])]


def _respelt(one: PatientRef) -> bool:
    """Whether a name is typed in another way than it is recorded, and is no beginning of it: "Smyth"."""
    parts = plain(one["name"]).split()
    return not one["exact"] and not all(
        any(part.startswith(said) for part in parts) for said in plain(one["said"]).split()
    )


def _patient(item: ToolResult, state: AgentState, drugs: DrugNames, checks: Checks, effects: Effects) -> list[Fact]:
    """Whom it is about, whether a drug suits, then what was asked of the chart."""
    chart = item["result"]
    request, patient, died = known.request(state), chart["patient"], chart["deceased"]
    born = patient["birth_date"]
    years = f" ({age(born, date.today())} years)" if len(born) == 10 and not died else ""
    lines = [*typed_lines(request, chart, date.today()), *medicine_lines(request, chart, drugs)]
    lines += per_kg_lines(request["said"], chart, [drug.get("generic", drug["name"]) for drug in request["drugs"]])
    lines.append(f"Patient: {patient['label']}{years}, patient ID {patient['id']}.")
    if died:
        day = "" if died == "yes" else f" on {died[:10]}"
        other = " If another one is meant, give a name and birth date." if request["drugs"] or request["orders"] else ""
        lines.append(f"This patient is recorded as deceased{day}.{other}")
    cite = number(item, state)
    checked: list[Fact] = []
    for drug in (drug for person, drug in checks if person == patient["id"]):
        title = f"{drug[:1].upper()}{drug[1:]} for {patient['name']}"
        found = of_chart(check_lines(drug, checks[patient["id"], drug], chart), item, cite)
        checked += [_cited(fact, state)._replace(title=title) for fact in found]
    rest = beside_check(known.drugs(state), chart, drugs) if checked else []
    rest += chart_lines(_of_chart(request, bool(checked)), chart, drugs)
    alone = len(lines + rest) == 1 and not {"trial", "lit", "ddi", "safe"} & set(request["asks"])
    told = effects.get(patient["id"], [])
    urgent = [*(line for line in told if line.startswith((URGENT, STATED))), *contradictions(chart, rest)]
    rest += [*(overview(chart) if alone else []), *told]
    return [*of_chart([*urgent, *lines], item, cite), *checked, *of_chart(rest, item, cite)]


def _cited(fact: Fact, state: AgentState) -> Fact:
    """A finding with the source that it rests on: the interactions that were looked up, else an entry of the chart."""
    if " interaction with " not in fact.text and ": nothing is listed (" not in fact.text:
        return fact._replace(cite=fact.cite if fact.entry else 0)
    pairs = known.made(state, "check_drug_interactions")
    return fact._replace(cite=number(pairs[0], state) if pairs else 0, entry=None)


def _of_chart(request: Request, checked: bool) -> Request:
    """The request as the chart answers it: nothing named means the whole, unless a drug is what is asked about."""
    asks = [ask for ask in request["asks"] if ask in TOPICS]
    others = set(request["asks"])
    if asks:
        whole = [ask for ask in SECTIONS if "chart" in asks and SECTIONS[ask][0] in topics_in(request["said"])]
        asks = known.unique([*(ask for ask in asks if ask != "chart"), *whole]) or asks  # "summarise his notes"
    elif "may" in others and not checked:
        asks = ["meds", "alg", "prob"]
    elif "change" in others:
        asks = ["change", "meds", "alg"]
    elif not checked and not others & {"trial", "oos", "lit", *WRITES}:
        asks = ["chart"]
    return known.replaced(request, asks=asks)


def check_lines(drug: str, found: Sequence[Finding], chart: Mapping[str, Any]) -> list[str]:
    """Whether a drug suits a patient: each finding, and what the check does not cover. Never "safe"."""
    # results and what is taken too are shown below
    findings = [line for line in shown(found) if not line.startswith(SHOWN_BELOW)]
    lines = findings or ["no finding, which does not prove that it is safe."]
    allergic = any(item["active"] for item in chart["allergies"])
    if allergic and not any(line.startswith("Allergy") or NO_RULES in line for line in findings):
        lines = [*lines, f"No recorded allergy is known to be to {drug} or its class."]
    return lines


def beside_check(names: Sequence[str], chart: dict[str, Any], drugs: DrugNames) -> list[str]:
    """What a check is read with: the drugs that are taken already, allergies, active problems and results."""
    taken = [line.text for line in of_drugs(names, chart, drugs, "meds")]
    kinds = (lines_of(chart, ask) for ask in ("alg", "prob"))
    allergies, problems = ([line.text for line in lines if line.item["active"]] for lines in kinds)
    weighed = to_weigh(chart)
    results = [line.text for line in lines_of(chart, "labs") if line.item in weighed]
    none = "No known allergies (documented)." if chart["no_known_allergies"] else "No allergies are recorded."
    return [
        *taken,
        *(allergies or [none]),
        *(problems or ["No active problems are recorded."]),
        *(results or ["No kidney function is recorded."]),
    ]


def _searches(state: AgentState) -> list[Fact]:
    """Who was found, unless the chart is shown; that a name was spelt otherwise is always said."""
    seen = {item["result"]["patient"]["id"] for item in known.charts(state)}
    facts: list[Fact] = []
    for item in known.made(state, "search_patient"):
        patients, told = item["result"].get("patients") or [], item["formatted_result"].splitlines()
        shown = bool(patients) and patients[0]["id"] in seen
        told = [line for line in told if not shown or "closest match" in line]
        facts += sentences(told, number(item, state))
    return facts


def _knowledge(state: AgentState, request: Request, drugs: DrugNames) -> list[Fact]:
    facts = sentences(_foods(state, request))
    charts = known.charts(state)
    facts += sentences([] if charts else allergy_lines(request["said"], known.drugs(state), drugs))
    if not charts or "ddi" in request["asks"] or not known.drugs(state):
        for item in known.made(state, "check_drug_interactions"):
            facts += sentences(item["formatted_result"].splitlines(), number(item, state))
    else:
        facts += [fact for item in known.made(state, "check_drug_interactions") for fact in _among(item, state)]
    for item in known.made(state, "check_drug_safety"):
        brief = bool(charts) and "safe" not in request["asks"]
        told = label_facts(item, request, brief, charts[0]["result"] if len(charts) == 1 else None, _before(state))
        facts += [fact._replace(cite=number(item, state)) for fact in told]
    for name in ("search_medical_literature", "find_clinical_trials", "analyze_medical_image"):
        for item in known.made(state, name):
            facts += sentences(item["formatted_result"].splitlines(), number(item, state))
    trials = [trial for item in known.made(state, "find_clinical_trials") for trial in item["result"]["trials"]]
    if len(charts) == 1:
        facts += sentences(spoken_to(trial, charts[0]["result"], date.today()) for trial in trials)
    return [*facts, *sentences([NOT_JUDGED] if charts and trials else [])]


def _among(item: ToolResult, state: AgentState) -> list[Fact]:
    """Interactions between drugs that were named, none of which may be taken yet: "vanc load, and what zosyn dose"."""
    named = {plain(str(drug.get("generic", drug["name"]))) for drug in known.request(state)["drugs"]}
    pairs = (pair for pair in item["result"]["interactions"] if {*map(plain, pair["drugs"])} <= named)
    says = ": {severity} interaction. {mechanism} {management}"
    told = (" with ".join(pair["drugs"]) + says.format(**pair) for pair in pairs)
    return sentences((f"{text[:1].upper()}{text[1:]}" for text in told), number(item, state))


def _before(state: AgentState) -> str:
    """What was asked before a short message that names nothing but a drug: "and ibuprofen?"."""
    history = state.get("history") or []
    said = known.request(state)["said"]
    return history[-1]["user"] if history and len(said.split()) <= known.BRIEF and refers_back(said) else ""


def _foods(state: AgentState, request: Request) -> list[str]:
    """Foods and habits that were named with a drug: listed as mattering for it, with what is held on it, or not."""
    lines, foods = [], said_for("foods")
    marked = [plain(item["said"]) for item in request["drugs"] if item["how"] == "food"]
    phrases = sorted(((name, name) for name in foods), key=lambda pair: -len(pair[0]))
    said, _ = phrases_in(plain(request["said"]), phrases)
    for food in dict.fromkeys([*marked, *said]):
        matters, problem = {plain(name) for name in foods[food]["drugs"]}, foods[food].get("problem", "")
        for label in (item["result"] for item in known.made(state, "check_drug_safety")):
            texts = [*label["warnings"], *label["contraindications"], label["interactions"]]
            own = [f": {text.rstrip('.')}" for text in texts if names([food], text)]
            listed = plain(label["drug"]) in matters or bool(own)
            says = "is listed as affecting" if listed else "is not listed in this source as affecting"
            proof = "" if listed else ", which does not prove that it does not"
            held = [f": {row['says']}" for row in label["condition_rows"] if row["when"].get("problem") == problem]
            told = (held or own or [foods[food].get("says", "; see the label's drug interactions")])[0]
            if listed or food in marked:
                lines.append(f"{food.capitalize()} {says} {label['drug']}{proof}{told}.")
    return lines


def unavailable(state: AgentState, checks: Checks) -> list[str]:
    """What could not be done in this turn, one clear line each, in the order it happened."""
    results = state.get("tool_results") or []
    done = {item["tool_name"] for item in results if not item["error"]}
    by_class = (drug for (_, drug), found in checks.items() if any(OF_CLASS in item.text for item in found))
    opened = tuple(f"{name} was not found" for name in (*unlabelled(state), *by_class))
    lines = [line for line in state.get("error_messages") or [] if not line.startswith(opened)]
    for item in results:
        retried = item["tool_name"] in done and item["error_type"] in RETRYABLE
        # a name that was ambiguous, and that a person settled; what an entry lacked, and was asked back
        settled = "search_patient" in done and item["error_type"] == "multiple_patient_matches"
        settled |= item["writes"] and item["error_type"] == "missing_required_args"
        said = no_answer(item) in lines
        if item["error"] and not (retried or settled or said or item["error"].startswith(opened)):
            lines.append(_final(item))
    return known.unique(lines)


def _final(item: ToolResult) -> str:
    """An error's text once no retry follows: it does not promise one."""
    if item["error_type"] in RETRYABLE and "retry" in (item["error"] or ""):
        return no_answer(item)
    return item["error"] or ERROR_TEMPLATES["generic"].format(tool_label=item["tool_label"])
