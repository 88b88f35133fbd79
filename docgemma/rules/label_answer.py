"""What a drug's label says to what was asked of it, the asked-for first; maximum doses worked
out for the age, weight and kidneys that are known. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from docgemma.reading.terms import said_in
from docgemma.rules.chart_notes import notes_on
from docgemma.rules.conditions import check_conditions
from docgemma.rules.dose_answer import maxima_for, strength_in, told_row
from docgemma.rules.dose_rows import route_of
from docgemma.rules.grounding import split
from docgemma.rules.known import DOSES
from docgemma.rules.label_topics import held_of, label_line, limits_of
from docgemma.rules.layout import Fact, sentences
from docgemma.rules.lead import AT_MOST, MAXIMUM, SAYS
from docgemma.rules.order_check import MAJOR, UNCHECKED
from docgemma.rules.patient_state import UNKNOWN, PatientState, as_told, patient_state
from docgemma.rules.unheard import halts
from docgemma.state import Request, ToolResult
from docgemma.text.births import tells_somebody
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.said import asked_parts
from docgemma.text.told import spelled
from docgemma.text.words import listed, names, plain

NO_VOLUME = "No dose in mg was found that the strength could be held against, so no mL were worked out."
NO_STRENGTH = "No one strength (per cent, or mg in mL) is told, so no mL were worked out."
SYSTEMIC = ("oral", "injection")


def _maxima(rows: Sequence[Mapping[str, Any]], patient: PatientState, said: str, meant: str, child: bool) -> list[str]:
    """The maxima that fit; where no route is said, those of the other systemic routes that differ too."""
    own = maxima_for(rows, patient, said, child, meant)
    if not own or route_of(said):
        return own
    for route in SYSTEMIC:
        more = maxima_for([row for row in rows if row.get("route") == route], patient, said, child, meant)
        amounts = {text.partition(": ")[2] for text in own}
        own += [text for text in more if text.partition(": ")[2] not in amounts and " mL of " not in text]
    return own


def label_facts(
    item: ToolResult, request: Request, brief: bool, chart: Mapping[str, Any] | None = None, before: str = ""
) -> list[Fact]:
    """The label: what was asked of it, then its boxed warning, contraindications, warnings and maximum dose; to a dose,
    the maximum for the age, weight and kidneys known. Beside a chart (`brief`) only how and when a drug is used."""
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
    kinds = sentences([f"{called}, drug class: {', '.join(data['drug_classes'])}."] if data.get("drug_classes") else [])
    said, rows = request["said"], data.get("dose_rows", [])
    title, route = f"{name} maximum doses (dose data, {NOT_VERIFIED})", route_of(said)
    bare = " ; ".join([*request["measures"], spelled(said), before])
    bare = " ".join(word for word in bare.split() if not names([plain(word)], data["asked"]))  # "magnesium sulfate"
    topics = said_in(bare, "label_topics")
    asked = {topic["name"] for topic in topics}
    limits = [Fact(text, title) for text in limits_of(rows, asked, route, said)]
    if not most:
        more = limits or sentences([f"No maximum daily dose of {drug} is in this source."])
    if data["interactions"]:
        more.append(Fact(f"{data['interactions'].rstrip('.')}.", f"{name} interactions"))
    stating = as_told(f"{before} ; {said}", UNKNOWN)
    somebody = tells_somebody(said)  # what is told of no one is a topic of the label
    stated = stating if somebody else replace(stating, problems=())
    patient = as_told(said, patient_state(chart, date.today())) if chart else stated
    kidneys = patient.kidneys()
    lowered = [row for row in rows if kidneys and kidneys[0] < row.get("egfr_below", 0)]
    volume = listed("order_routes", "volume") & set(plain(said).split())  # "how many ml"
    dosed = asked & DOSES or stated.weight or stated.kidneys() or lowered or (volume and strength_in(said))
    meant = " ".join([*sorted(asked - DOSES), *stating.problems])  # "in hf" is "for heart failure"
    own = _maxima(rows, patient, said, meant, "children" in asked) if dosed else []
    judged = check_conditions(drug, data.get("condition_rows", []), stated, route, spelled(said)) if not chart else []
    warned = sorted((item for item in judged if item.rank != UNCHECKED), key=lambda item: item.rank)
    grave = [item.text for item in warned if item.rank <= MAJOR or not (own and asked & DOSES)]
    mine = sentences(grave) + sentences(f"{name}{AT_MOST}{text} (dose data, {NOT_VERIFIED})." for text in own)
    mine += sentences(item.text for item in warned if item.text not in grave)
    timed = [topic for topic in topics if topic.get("timed")]
    timed = [topic for topic in timed if not topic.get("alone")] or timed
    topics = [topic for topic in topics if topic in timed or not topic.get("timed")]
    if volume and not any(" mL " in text for text in own):
        mine += sentences([NO_VOLUME if strength_in(said) else NO_STRENGTH])
    fitting = [row for row in rows if row in lowered or not kidneys or "egfr_below" not in row]
    fitting_limits = [text.replace(": ", ": at most ", 1) for text in limits_of(fitting, asked, route, said)]
    table = {f"{told_row(row, row.get('route', ''), UNKNOWN)}." for row in rows} if own else set()
    first: list[Fact] = kinds if asked & {"mechanism and class", "indication"} else []
    told: list[Fact] = []
    above = " ; ".join(plain(item.text) for item in warned)
    stored = " ; ".join(map(str, [data.get("condition_rows"), *facts, *box]))
    for topic in timed if brief else topics:
        lines = [*facts, *box] if topic in timed else []
        lines += [Fact(text, title) for text in fitting_limits if lines and topic.get("doses")]
        skipped = (chart or (warned and not somebody)) and topic not in timed
        texts = [] if skipped else held_of(topic, topics, lines, data, said)
        found = [fact for fact in [*box, *facts, *more, *limits] if names(topic["match"], fact.sentence)]
        there = skipped or texts or found or (brief and topic.get("stated")) or (warned and somebody)
        texts = [text for text in texts if text not in table and plain(text.partition(" (")[0]) not in above]
        absent = not (there or (own and topic["name"] == "children") or names(topic.get("also", []), stored))
        if chart and halts(request, asked=True) and not names(topic.get("aside_said", []), bare):
            texts = [text for text in texts if not names(topic.get("aside", []), text)]  # "stop metformin?"
        about = " ; ".join(part for part, _ in asked_parts(said) if names(topic["said"], part))
        other = len(request["drugs"]) > 1 and not names([plain(data["asked"])], about)  # "hold the X, is Y ok?"
        absent = absent and not (chart and topic.get("of_drug") and other)
        texts = [f"What is stored of the label of {drug} does not mention {topic['name']}."] if absent else texts
        noted = notes_on(drug, chart)[:1] if chart and topic in timed else []
        texts = [*(" The chart says: ".join([text, *noted]) for text in texts[:1]), *texts[1:]]
        titled, before_it = f"{name}, {topic['name']} ({SAYS})", {fact.text for fact in first}
        first += [Fact(text, titled, text if absent else "") for text in texts if text not in before_it]
        told += [] if topic in timed and texts else found
    fallback = [line for line in item["formatted_result"].splitlines() if line.startswith("The live service")]
    of_some = stated.kidneys() or stating.problems  # "max dose, and at CrCl 25?"
    if mine and most and "maximum dose" in asked and of_some:
        mine += sentences([f"{name}{MAXIMUM}{most}."])
    if mine:  # computed: neither the general table nor "does not mention"
        told = [fact for fact in told if fact.title and fact not in [*more, *limits]]
    else:  # one plain answer to what was asked
        first += [fact for fact in told if not fact.title or fact == more[0]]
        limit = [word for topic in topics if topic["name"] == "maximum dose" for word in topic["match"]]
        if limit and first and not names(limit, first[0].text):
            first.sort(key=lambda fact: fact != more[0])
    shown = {fact.text for fact in first}
    told = [fact for fact in told if fact.text not in shown]
    box, facts = ([fact for fact in lines if not fact.title or label_line(fact) not in shown] for lines in (box, facts))
    general = [fact for fact in more if fact not in limits or "," not in fact.text.partition(":")[0]]
    return [*mine, *first, *told, *box, *facts, *([] if brief or told or mine else general), *sentences(fallback)]
