"""The answer of a turn, composed from its findings, and what of the request it does not serve. Pure.

No model writes here. Statements about a patient come from this turn's chart, "prescribed" and "recorded" from this
turn's result. The question is no evidence.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from docgemma.errors import RETRYABLE
from docgemma.reading.drugs import foods
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.terms import label_topics_in, names
from docgemma.reading.words import plain
from docgemma.rules import known
from docgemma.rules.chart_answer import (
    age,
    allergy,
    chart_lines,
    medication,
    overview,
    problem,
    results_to_weigh,
    unmatched,
)
from docgemma.rules.drugs import DrugNames, ingredients
from docgemma.rules.errors import ERROR_TEMPLATES, no_answer
from docgemma.rules.plan import by_tool
from docgemma.state import AgentState, Request, ToolResult

UNCHANGED = (
    "I cannot remove, stop or change an entry of the record: that has to be done in the record system by a person. "
    "I can prepare a note that says so, or a new entry."
)
ASK_PLAINLY = (
    "No entry was prepared, because it was not plainly ordered. To order it, say so, for example: prescribe {drug} "
    "with dose and frequency."
)
REFUSED = "No entry was prepared, as you said."
NOTHING_WAITS = "No entry is waiting for a decision."
NOBODY_CHECKED = "No patient was named, so this was not checked against a chart."
OUT_OF_SCOPE = (
    "I cannot do that. I can look up patients' charts, drug labels and interactions, literature and "
    "trials, and prepare prescriptions, allergies and notes."
)
NO_IMAGE = "No image is attached to this message."
UNNAMED = "no entry of the chart has this name"
NO_ENTRY = "No entry of the chart is called “{ask}”; what it holds on this is above."
NOT_ANSWERED = "Not answered: {ask} ({reason})."
LETTERS = 3  # of a word that tells something
WORDS = {
    "labs": "laboratory results", "meds": "medications", "alg": "allergies", "prob": "problems", "vit": "vital signs",
    "notes": "notes", "imm": "immunizations", "soc": "social history", "demo": "patient details", "seen": "last visit",
    "chart": "chart", "find": "patient search", "safe": "drug label", "ddi": "drug interactions",
    "may": "whether the drug suits the patient", "lit": "literature", "trial": "clinical trials", "img": "image",
    "rx": "prescription", "allergy": "allergy entry", "note": "note", "change": "change of an entry",
    "gk": "general question", "oos": "other request",
}  # fmt: skip


def compose(
    state: AgentState,
    drugs: DrugNames,
    checks: Mapping[tuple[str, str], Sequence[str]],
    definition: str = "",
    effects: Mapping[str, Sequence[str]] | None = None,
) -> tuple[str, list[dict[str, str]]]:
    """The answer, and {"ask", "reason"} of each part that it does not serve.

    Args:
        state: of the turn.
        checks: (patient id, drug) -> findings of the order check, the worst first.
        effects: patient id -> lines beside the chart: labels that bear on what is asked, interactions of what is taken.
        definition: what a curated definition says to a general question.
    """
    request = known.request(state)
    blocks = [
        _notices(state, request),
        *_people(state, request, drugs, checks, effects or {}),
        _knowledge(state, request, drugs),
    ]
    blocks += [_entries(state), [definition] if definition else [], unavailable(state)]
    told = plain(" ".join(line for block in blocks for line in block))
    missing = [item for item in unanswered(state, request, bool(definition), drugs) if not _told(item["ask"], told)]
    blocks.append(
        [NO_ENTRY.format(**item) if item["reason"] == UNNAMED else NOT_ANSWERED.format(**item) for item in missing]
    )
    return "\n\n".join("\n".join(known.unique(block)) for block in blocks if block), missing


def _told(ask: str, told: str) -> bool:
    """Whether a telling word of what seems unanswered stands in the answer after all."""
    words = [word for word in plain(ask).split() if len(word) > LETTERS]
    return not words or any(f" {word}" in f" {told}" for word in words)


def _notices(state: AgentState, request: Request) -> list[str]:
    """What has to be said first: refusals, corrections of spelling, what was not prepared."""
    asks, lines = set(request["asks"]), []
    if "change" in asks:
        lines.append(UNCHANGED)
    if request["meant"] == "refused":
        lines.append(REFUSED)
    elif request["meant"] in ("asked", "unsure") and asks & set(WRITES):
        drug = request["orders"][0]["drug"] if request["orders"] else "the drug"
        lines.append(ASK_PLAINLY.format(drug=drug))
    for drug in request["drugs"]:
        if drug["how"] in ("near", "short"):
            lines.append(f"{drug['said']} was read as {drug['name']}.")
        elif drug["how"] == "group":
            lines.append(
                f"{drug['said']}: looked up for {', '.join(drug['members'])}; other drugs of this group were not."
            )
    if "may" in asks and not known.people(state) and known.drugs(state):
        lines.append(NOBODY_CHECKED)
    return lines


def _people(
    state: AgentState,
    request: Request,
    drugs: DrugNames,
    checks: Mapping[tuple[str, str], Sequence[str]],
    effects: Mapping[str, Sequence[str]],
) -> list[list[str]]:
    """One block a patient: whom it is about, whether a drug suits, then what was asked of the chart."""
    blocks = []
    charts = known.charts(state)
    for item in charts:
        chart = item["result"]
        lines = [f"Patient: {chart['patient']['label']}{_aged(chart)}, patient ID {chart['patient']['id']}."]
        if chart["deceased"]:
            lines.append(f"This patient is recorded as deceased{_on(chart['deceased'])}.")
        about = [drug for patient, drug in checks if patient == chart["patient"]["id"]]
        for drug in about:
            findings = [
                line
                for line in checks[chart["patient"]["id"], drug]
                if not line.startswith(("Results to weigh", "Duplicate:"))  # shown below, and what is taken too
            ]
            lines += check_lines(drug, findings, chart)
        lines += beside_check(known.drugs(state), chart, drugs) if about else []
        lines += chart_lines(_of_chart(request, bool(about)), chart, drugs)
        alone = len(lines) == 1 and not {"trial", "lit", "ddi", "safe"} & set(request["asks"])
        lines += overview(chart) if alone else []
        blocks.append([*lines, *effects.get(chart["patient"]["id"], [])])
    seen = {item["result"]["patient"]["id"] for item in charts}
    for item in by_tool(state.get("tool_results") or [], "search_patient"):
        blocks += [[line] for line in _search_lines(item, seen, request)]
    return blocks


def _on(day: str) -> str:
    return "" if day == "yes" else f" on {day[:10]}"


def _aged(chart: Mapping[str, Any]) -> str:
    """Age in years behind the birth date, of the living."""
    born = chart["patient"]["birth_date"]
    return f" ({age(born, date.today())} years)" if len(born) == 10 and not chart["deceased"] else ""


def _of_chart(request: Request, checked: bool) -> Request:
    """The request as the chart answers it: nothing named means the whole, unless a drug is what is asked about."""
    asks = [ask for ask in request["asks"] if ask in TOPICS]
    if "chart" in asks and len(asks) > 1:
        asks.remove("chart")
    if not asks and "may" in request["asks"] and not checked:
        asks = ["meds", "alg", "prob"]
    elif not asks and request["measures"] and not checked:
        return request
    if not asks and not checked and not set(request["asks"]) & {"change", "trial", *WRITES}:
        asks = ["chart"]
    if "change" in request["asks"] and not asks:
        asks = ["meds", "alg"]
    return Request(**{**request, "asks": asks})


def check_lines(drug: str, findings: Sequence[str], chart: Mapping[str, Any]) -> list[str]:
    """Whether a drug suits a patient: each finding, and what the check does not cover. Never "safe"."""
    name = f"{drug[:1].upper()}{drug[1:]}"
    head = f"{name} for {chart['patient']['name']}: " + (
        "check these findings first." if findings else "no finding, which does not prove that it is safe."
    )
    lines = [f"- {line}" for line in findings]
    allergic = [item for item in chart["allergies"] if item["active"]]
    if allergic and not any(line.startswith("Allergy") for line in findings):
        lines.append(f"- None of the recorded allergies is known here to be to {drug} or its class.")
    return [head, *lines]


def beside_check(names: Sequence[str], chart: dict[str, Any], drugs: DrugNames) -> list[str]:
    """What a check is read with: the drugs that are taken already, allergies and active problems."""
    asked = {part for name in names for part in ingredients(name, drugs)}
    taken = [medication(item) for item in chart["medications"] if asked & ingredients(item["name"], drugs)]
    listed = [allergy(item).removeprefix("Allergy: ").rstrip(".") for item in chart["allergies"] if item["active"]]
    active = [
        problem(item).removeprefix("Active problem: ").rstrip(".") for item in chart["conditions"] if item["active"]
    ]
    none = "No known allergies (documented)." if chart["no_known_allergies"] else "No allergies are recorded."
    return [
        *taken,
        f"Recorded allergies: {'; '.join(listed)}." if listed else none,
        f"Active problems: {'; '.join(active)}." if active else "No active problems are recorded.",
        results_to_weigh(chart),
    ]


def _search_lines(item: ToolResult, seen: set[str], request: Request) -> list[str]:
    patients = item["result"].get("patients") or []
    if not patients:
        return [item["formatted_result"]]
    guessed = [line for line in item["formatted_result"].splitlines() if "closest match" in line]
    if patients[0]["id"] in seen:
        return guessed
    return item["formatted_result"].splitlines()


def _knowledge(state: AgentState, request: Request, drugs: DrugNames) -> list[str]:
    results = state.get("tool_results") or []
    lines = _foods(state, request)
    for item in by_tool(results, "check_drug_interactions"):
        if not known.charts(state) or "ddi" in request["asks"] or not known.drugs(state):
            lines += item["formatted_result"].splitlines()
    for item in by_tool(results, "check_drug_safety"):
        lines += label_lines(item, request, bool(known.charts(state)) and "safe" not in request["asks"])
    for name in ("search_medical_literature", "find_clinical_trials", "analyze_medical_image"):
        for item in by_tool(results, name):
            lines += item["formatted_result"].splitlines()
    if known.charts(state) and by_tool(results, "find_clinical_trials"):
        lines.append("Whether this patient is eligible was not judged: compare the criteria with the chart.")
    return lines


def _foods(state: AgentState, request: Request) -> list[str]:
    """Foods and habits that were named with a drug: listed as mattering for it, or not listed."""
    lines = []
    for food in (item for item in request["drugs"] if item["how"] == "food"):
        matters = {plain(name) for name in foods()[plain(food["name"])]["drugs"]}
        for item in by_tool(state.get("tool_results") or [], "check_drug_safety"):
            drug = item["result"]["drug"]
            listed = "is listed as affecting" if plain(drug) in matters else "is not listed in this source as affecting"
            proof = "" if plain(drug) in matters else ", which does not prove that it does not"
            lines.append(f"{food['said'].capitalize()} {listed} {drug}{proof}; see the label's drug interactions.")
    return lines


def label_lines(item: ToolResult, request: Request, brief: bool) -> list[str]:
    """The label: its boxed warning, what was asked of it, else its contraindications, warnings and maximum dose."""
    data, lines = item["result"], item["formatted_result"].splitlines()
    name = f"{data['drug'][:1].upper()}{data['drug'][1:]}"
    asked_as = f" (asked as {data['asked']})" if plain(data["asked"]) not in plain(data["drug"]) else ""
    boxed = "has no boxed warning on the current label."
    if data["has_boxed_warning"]:
        boxed = f"has an FDA boxed warning: {data['boxed_warning'].rstrip('.')}."
    head = f"{name}{asked_as} {boxed}"
    dose = f"No maximum daily dose of {data['drug']} is in this source."
    if data["max_daily_dose"]:
        dose = f"{name} maximum adult daily dose: {data['max_daily_dose']}."
    pairs = f"{name} interactions: {data['interactions'].rstrip('.')}." if data["interactions"] else ""
    against, warnings = data["contraindications"], data["warnings"]
    single = [f"{name} contraindication: {text.rstrip('.')}." for text in against]
    single += [*(f"{name} warning: {text.rstrip('.')}." for text in warnings), dose, pairs]
    told: list[str] = []
    for topic in [] if brief else label_topics_in(" ; ".join([*request["measures"], request["said"]])):
        found = [line for line in single if line and names(topic["match"], line)]
        absent = f"What is stored of the label of {data['drug']} does not mention {topic['name']}."
        told += found or ([] if names(topic["match"], head) else [absent])
    whole = [
        f"{name} contraindications: {'; '.join(against)}."
        if against
        else f"{name}: no contraindications are listed in this source."
    ]
    whole += [f"{name} warnings: {'; '.join(warnings)}."] if warnings else []
    rest = [*whole, *([] if brief or told else [dose, pairs])]
    fallback = [line for line in lines if line.startswith("The live service")]
    return [line for line in known.unique([head, *told, *rest, *fallback]) if line]


def _entries(state: AgentState) -> list[str]:
    """What was written, and what a person rejected."""
    lines: list[str] = []
    for item in state.get("tool_results") or []:
        if item["writes"] and not item["error"]:
            lines += item["formatted_result"].splitlines()
    return lines


def unavailable(state: AgentState) -> list[str]:
    """What could not be done in this turn, one clear line each, in the order it happened."""
    results = state.get("tool_results") or []
    done = {item["tool_name"] for item in results if not item["error"]}
    settled = "search_patient" in done  # a name that was ambiguous, and that a person settled
    lines = list(state.get("error_messages") or [])
    named = " ".join(lines)
    for item in results:
        if not item["error"] or (item["tool_name"] in done and item["error_type"] in RETRYABLE):
            continue
        if settled and item["error_type"] == "multiple_patient_matches":
            continue
        said = item["tool_label"] in named or no_answer(item["tool_label"]) in lines
        if not said and item["error"] not in lines:
            lines.append(_final(item))
    return known.unique(lines)


def _final(item: ToolResult) -> str:
    """An error's text once no retry follows: it does not promise one."""
    if item["error_type"] in RETRYABLE and "retry" in (item["error"] or ""):
        return no_answer(item["tool_label"])
    return item["error"] or ERROR_TEMPLATES["generic"].format(tool_label=item["tool_label"])


def unanswered(state: AgentState, request: Request, defined: bool, drugs: DrugNames) -> list[dict[str, str]]:
    """Each ask that nothing of this turn serves, with the reason."""
    results = [item["tool_name"] for item in state.get("tool_results") or []]
    read = set(results)
    found: list[dict[str, str]] = []

    def miss(ask: str, reason: str) -> None:
        found.append({"ask": WORDS[ask], "reason": reason})

    for ask in request["asks"]:
        if ask in TOPICS and "get_patient_chart" in read and not known.charts(state):
            miss(ask, "the chart could not be read")
        elif ask in TOPICS and "get_patient_chart" not in read and "search_patient" not in read:
            miss(ask, "no patient is known here")
        elif ask == "gk" and not defined and read:
            miss(ask, "general medical knowledge is not in the offline sources")
        elif ask == "oos" and read:
            miss(ask, "outside what this assistant does")
        elif ask == "img" and "analyze_medical_image" not in read:
            miss(ask, "no image is attached")
    for item in known.charts(state):
        for measure in unmatched(request, item["result"], drugs):
            if not set(plain(measure).split()) & set(request["telling"]):
                continue  # everyday words ("w doses"): the lists that are shown answer them
            found.append({"ask": measure, "reason": UNNAMED})
    for drug in request["drugs"]:
        if drug["how"] == "unknown":
            found.append({"ask": drug["said"], "reason": "not recognised as a drug"})
    return found
