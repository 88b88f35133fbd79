"""What a drug's label says to what was asked of it, the asked-for first; maximum doses worked
out for the age, weight and kidneys that are known. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from docgemma.reading.terms import said_in
from docgemma.rules.conditions import check_conditions
from docgemma.rules.dose_answer import maxima_for
from docgemma.rules.dose_check import route_of
from docgemma.rules.grounding import split
from docgemma.rules.known import DOSES
from docgemma.rules.layout import Fact, sentences
from docgemma.rules.lead import AT_MOST
from docgemma.rules.order_check import UNCHECKED
from docgemma.rules.patient_state import UNKNOWN, as_told, patient_state
from docgemma.state import Request, ToolResult
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import names, plain


def label_facts(
    item: ToolResult, request: Request, brief: bool, chart: Mapping[str, Any] | None = None, before: str = ""
) -> list[Fact]:
    """The label: its boxed warning, what was asked of it, then its contraindications, warnings and maximum dose. A
    plain answer to what was asked comes first; to a dose, the maximum for the age, weight and kidneys known."""
    data = item["result"]
    drug, most = data["drug"], data["max_daily_dose"]
    name = f"{drug[:1].upper()}{drug[1:]}"
    called = f"{name} (asked as {data['asked']})" if plain(data["asked"]) not in plain(drug) else name
    box = [Fact(text, f"{called} FDA boxed warning") for text, _ in split(f"{data['boxed_warning'].rstrip('.')}.")]
    box[0] = box[0]._replace(alone=f"{called} has an FDA boxed warning: {box[0].text}")
    if not data["has_boxed_warning"]:
        box = sentences([f"{called} has no boxed warning ({data['basis']})."])
    against = [Fact(f"{text.rstrip('.')}.", f"{name} contraindications") for text in data["contraindications"]]
    facts = against or sentences([f"{name}: no contraindications are listed in this source."])
    facts += [Fact(f"{text.rstrip('.')}.", f"{name} warnings") for text in data["warnings"]]
    more = [Fact(f"{most}.", f"{name} maximum adult daily dose")] if most else []
    title, route = f"{name} maximum doses (dose data, {NOT_VERIFIED})", route_of(request["said"])
    held = [text for text in data.get("max_doses", []) if not route or text.startswith(route)]
    limits = [Fact(f"{text}.", title) for text in held or data.get("max_doses", [])]
    if not most:
        more = limits or sentences([f"No maximum daily dose of {drug} is in this source."])
    if data["interactions"]:
        more.append(Fact(f"{data['interactions'].rstrip('.')}.", f"{name} interactions"))
    told: list[Fact] = []
    topics = said_in(" ; ".join([*request["measures"], request["said"], before]), "label_topics")
    asked = {topic["name"] for topic in topics}
    stated = as_told(f"{before} ; {request['said']}", UNKNOWN)
    patient = as_told(request["said"], patient_state(chart, date.today())) if chart else stated
    dosed = asked & DOSES or stated.weight or stated.results
    own = maxima_for(data.get("dose_rows", []), patient, request["said"], "children" in asked) if dosed else []
    judged = check_conditions(drug, data.get("condition_rows", []), stated, route, request["said"]) if not chart else []
    warned = [item.text for item in judged if item.rank != UNCHECKED]
    mine = sentences(warned) + sentences(f"{name}{AT_MOST}{text} (dose data, {NOT_VERIFIED})." for text in own)
    several = len(topics) > 1 and not brief
    first = [fact for fact in facts if several and all(names(topic["match"], fact.sentence) for topic in topics)]
    for topic in [] if brief else topics:
        held = [] if chart or warned else _of_topic(topic, data.get("condition_rows", []))
        first += [Fact(text, f"{name}, {topic['name']} (US label and criteria, {NOT_VERIFIED})") for text in held]
        found = [fact for fact in [*facts, *more, *limits] if names(topic["match"], fact.sentence)]
        absent = f"What is stored of the label of {drug} does not mention {topic['name']}."
        boxed = any(names(topic["match"], fact.sentence) for fact in box)
        told += found or ([] if boxed or held else sentences([absent]))
    fallback = [line for line in item["formatted_result"].splitlines() if line.startswith("The live service")]
    if mine:  # computed: neither the general table nor "does not mention"
        told = [fact for fact in told if fact.title and fact not in [*more, *limits]]
    if not mine:  # one plain answer to what was asked
        first += [fact for fact in told if not fact.title or fact == more[0]]
    general = [fact for fact in more if fact not in limits or "," not in fact.text.partition(":")[0]]
    return [*mine, *first, *box, *told, *facts, *([] if brief or told or mine else general), *sentences(fallback)]


def _of_topic(topic: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What conditions say of a topic: "below 30 mL/min: ineffective and toxic (Contraindications; Beers 2023)."."""
    about, told = {topic["name"], *topic.get("rows", [])}, []
    for row in sorted(rows, key=lambda row: -row["when"].get("egfr_below", 0)):
        least = str(row["when"].get("egfr_below", ""))
        if about & {*row["when"], row["when"].get("problem")}:
            bound = f"eGFR below {least}: " if least not in row["says"] else ""
            told.append(f"{bound}{row['says']} ({row['section']}).")
    return told
