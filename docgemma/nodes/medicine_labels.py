"""Read the labels of a patient's medicines, and set them beside the results asked for: what may move them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from docgemma.knowledge.drug_rules import conditions_of
from docgemma.nodes.context import Context
from docgemma.nodes.interactions import label_of, standing_interactions
from docgemma.reading.labels import WRITES
from docgemma.reading.terms import measures_in, said_in
from docgemma.rules import known
from docgemma.rules.alarms import STATED, alarm_line, alarms_told
from docgemma.rules.chart_entries import notes_naming
from docgemma.rules.conditions import check_conditions
from docgemma.rules.dose_rows import route_of
from docgemma.rules.patient_state import UNKNOWN, PatientState, as_told, patient_state, stated
from docgemma.state import AgentState, Request
from docgemma.text.drugs import ingredients
from docgemma.text.told import told_weeks
from docgemma.text.words import clinical, listed, names, plain

MAX_LINES = 6
MAX_PAIRS = 4
MAX_MEDICINES = 12


def medicine_effects(state: AgentState, context: Context) -> dict[str, list[str]]:
    """Patient id -> lines beside what was asked of the chart: labels of active medicines that speak of a result or of
    stopping, and the gravest interactions among what is taken already."""
    request = known.request(state)
    asks = set(request["asks"])
    fragments, against = _of_results(request)
    stopped = [drug["name"] for drug in request["drugs"]] if "change" in asks or _halts(request) else []
    found: dict[str, list[str]] = {}
    for item in known.charts(state):
        chart = item["result"]
        active = _active(chart)
        lines = _beside(request, chart, active, fragments, context) if fragments else []
        lines += [line for name in active if fragments for line in _lines(name, fragments, context, against)]
        lines = sorted(lines, key=lambda line: "warning" in line)[:MAX_LINES]
        stops = [line for name in stopped for line in _lines(name, clinical("measure_labels")["stopping"], context)]
        found[chart["patient"]["id"]] = [
            *(_alarms(state, chart, active, context) if len(known.charts(state)) == 1 else []),
            *_situations(state, chart, active, context),
            *([f"What labels of the active medicines say: {'; '.join(lines)}."] if lines else []),
            *([f"Labels on stopping: {'; '.join(stops)}."] if stops else []),
            *standing_interactions(chart, context)[:MAX_PAIRS],
        ]
    return found


def _beside(
    request: Request, chart: dict[str, Any], active: list[str], fragments: list[str], context: Context
) -> list[str]:
    """What rules say of a result in this patient: "mirtazapine (the patient is 83 years old): hyponatremia"."""
    patient = as_told(known.told_of_one(request).get("told", ""), patient_state(chart, date.today()))
    return [
        f"{name} ({why[:1].lower()}{why[1:]}): {what}" for name in active
        for why, what in _of_patient(name, patient, context, lambda row: names(fragments, row["says"]))
    ]  # fmt: skip


def _of_patient(medicine: str, patient: PatientState, context: Context, fits: Callable[[Any], Any]) -> list[list[str]]:
    """[why, what] of each rule that fits and warns of a medicine in this patient."""
    rows = [row for name in ingredients(medicine, context.drugs) for row in conditions_of(name) if fits(row)]
    return [one.first.rstrip(".").split(": ", 1) for one in check_conditions("", rows, patient, "") if one.first]


def _alarms(state: AgentState, chart: dict[str, Any], active: list[str], context: Context) -> list[str]:
    """What the message tells of the patient and labels of what is taken, or notes, warn of. To a drug that is asked
    about next, what the message before told still belongs."""
    request = known.request(state)
    last = state.get("history", [])[-1:] if "may" in request["asks"] else []
    before = [turn["user"] for turn in last if not any(call.get("writes") for call in turn["tools"])]  # no entry's text
    told = [] if set(request["asks"]) & set(WRITES) else alarms_told("\n".join([request["said"], *before]))
    if not told or chart["deceased"]:
        return []
    patient = patient_state(chart, date.today())
    told = [alarm for alarm in told if not ("women" in alarm and patient.sex == "male")]
    drugs = {part for drug in known.drugs(state) for part in ingredients(drug, context.drugs)}
    own = [name for name in active if ingredients(name, context.drugs) & drugs] if drugs else active
    lines = []
    for alarm in (alarm for alarm in told if "problem" not in alarm or patient.has(alarm["problem"])):
        taken = own if alarm.get("own") else active
        warnings = [line for name in taken for line in _lines(name, alarm.get("match", []), context)]
        lines.append(alarm_line(alarm, warnings, chart))
    return list(filter(None, lines))


def _situations(state: AgentState, chart: dict[str, Any], active: list[str], context: Context) -> list[str]:
    """What rules and labels say of what is taken, for what is told, "lap chole on Monday"; of stopping, before too."""
    request = known.request(state)
    entered = request["meant"] == "ordered" and set(request["asks"]) & set(WRITES)
    texts = [request["said"]]
    if _halts(request):
        texts += [*(turn["user"] for turn in state.get("history", [])), *(["surgery"] * names(["before"], texts[0]))]
    texts += ["is pregnant"] * bool(told_weeks(texts[0], pregnant=False))
    told = [] if entered else stated("\n".join(texts))
    patient = replace(UNKNOWN, problems=tuple(entry["name"] for entry in told))
    fragments, lines = [fragment for entry in told for fragment in entry["label"]], []
    for medicine in active if told else []:
        found = _of_patient(medicine, patient, context, lambda row: {"problem", "chart_words"} & set(row["when"]))
        lines += [f"{medicine}: {text}" for _, text in found] or _lines(medicine, fragments, context)
    words = [word for entry in told for word in entry.get("noted", [])]
    lines = [*(text.rstrip(".") for text in notes_naming(chart, words)[:1]), *lines]
    what = " and ".join(entry["name"].partition(",")[0] for entry in told)
    return [f"{STATED}{what}): {'; '.join(lines)}. Agree it with the team that does it."] if lines else []


def _halts(request: Request) -> bool:
    return bool(listed("request_words", "halting") & {*plain(request["said"]).split()})


def _of_results(request: Request) -> tuple[list[str], list[str]]:
    """How labels name the results that are asked for: in warnings, and in contraindications."""
    asks = set(request["asks"])
    if asks & set(WRITES):
        return [], []
    asked = set(measures_in(" ; ".join([*request["measures"], request["said"]])))
    effects = [entry for entry in clinical("measure_labels")["effects"] if asked & set(entry["measures"])]
    if not (request["drugs"] and asks & {"may", "safe", "ddi"}):  # "contrast CT ok?": what is taken may speak of it
        topics = [topic for topic in said_in(request["said"], "label_topics") if topic.get("timed") or not effects]
        effects += [topic for topic in topics if topic["name"] not in clinical("measure_labels")["aside"]]
    against = [fragment for entry in effects if not entry.get("warns") for fragment in entry["match"]]
    return [fragment for entry in effects for fragment in entry["match"]], against


def _lines(medicine: str, fragments: list[str], context: Context, against: list[str] | None = None) -> list[str]:
    """One line of its label, or none: boxed warning, contraindication, warning, in this order."""
    label = label_of(medicine, context)
    if label is None:
        return []
    boxed = filter(None, (label.boxed_warning or "").split(". "))
    parts = {"boxed warning": boxed, "contraindication": label.contraindications, "warning": label.warnings}
    wanted = {"contraindication": fragments if against is None else against}
    told = ((kind, text.rstrip(".")) for kind, texts in parts.items() for text in texts
            if names(wanted.get(kind, fragments), text))  # fmt: skip
    return [f"{medicine} ({kind}): {text}" for kind, text in told][:2]


def warnings_of_taken(chart: dict[str, Any], context: Context) -> list[str]:
    """A line for each active medicine: what its label warns of, the boxed warning first."""
    swallowed = (name for name in _active(chart) if route_of(name) != "topical")  # a label is of tablets
    labels = ((name, label_of(name, context)) for name in swallowed)
    told = ((name, [label.boxed_warning or "", *label.warnings]) for name, label in labels if label)
    return [f"{name}: {'; '.join(text.rstrip('.') for text in texts if text)}." for name, texts in told if any(texts)]


def _active(chart: dict[str, Any]) -> list[str]:
    return known.unique(item["name"] for item in chart["medications"] if item["active"])[:MAX_MEDICINES]
