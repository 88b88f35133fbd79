"""The conclusion that leads an answer: drawn by code from the facts of the answer, or none. Pure."""

from collections.abc import Mapping, Sequence

from docgemma.reading.terms import measure_named, measures_in, said_in
from docgemma.rules import known
from docgemma.rules.alarms import STATED, URGENT
from docgemma.rules.chart_answer import ABSENT, UNLISTED
from docgemma.rules.chart_entries import UNREMARKABLE, result_told
from docgemma.rules.contradictions import CONTRADICTS
from docgemma.rules.dose_check import REDUCED, WITHIN
from docgemma.rules.layout import Fact
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, RECORDED_ALLERGIES, Finding
from docgemma.rules.patient_state import UNKNOWN, as_told
from docgemma.rules.refusal import UNORDERED, refusals
from docgemma.rules.typed import YOU_WROTE
from docgemma.state import AgentState, Request
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import names

VERDICTS = {CONTRAINDICATED: "Contraindicated", MAJOR: "Warning", MODERATE: "Caution"}
SHOWN_BELOW = ("Results to weigh", "Duplicate:", RECORDED_ALLERGIES)  # findings of a check; the lists below it say them
SEVERITIES = ("contraindicated", "major", "moderate", "minor")
NONE_ACTIVE = "No active medication is listed as"
MAXIMUM = " maximum adult daily dose: "  # of the label, first where it is asked for
AT_MOST = " at most, "  # of a maximum dose that was worked out for the patient
SAYS = f"label and criteria, {NOT_VERIFIED}"  # what is held of a topic that was asked about
GRAVE = (URGENT, VERDICTS[CONTRAINDICATED], VERDICTS[MAJOR], "Major interaction")
FIRST = (SAYS, AT_MOST, MAXIMUM, "interaction: ")
LIMITS = (REDUCED, WITHIN, AT_MOST)  # for what a dose is reduced, a dose within its maximum, a maximum
OPTIONS = "Checked for this patient, "  # drugs of a group that options are asked of
LISTED = frozenset({"meds", "chart", "may", "ddi", "change"})  # asks whose answer lists what is taken
AMONG = (": contraindicated interaction. ", ": major interaction. ")
FEW = 3
CONDITIONAL, IMPAIRED = "Contraindicated in ", 60  # of an interaction; eGFR below which kidneys are impaired
Checks = Mapping[tuple[str, str], Sequence[Finding]]  # (patient id, drug) -> findings of the order check
Led = tuple[Fact | None, Fact | None]


def conclusion(facts: Sequence[Fact], state: AgentState, checks: Checks) -> tuple[list[Fact], list[Fact]]:
    """The facts that lead, none where nothing can be concluded; and those that they say whole, to be left out. What
    labels say to what was asked leads too, behind what is grave."""
    lead, gone = _concluded(facts, state, checks)
    told, left = ([lead] if lead else []), ([gone] if gone else [])
    held = list({fact.text: fact for fact in reversed(facts) if SAYS in fact.title}.values())[::-1]
    first = {fact.title: fact for fact in reversed(held)}
    asked = [fact for fact in held if first[fact.title] is fact and fact not in left][:FEW]
    if not asked or refusals(known.request(state)):
        return told, left
    says = [_says(fact, fact.sentence) for fact in asked]
    grave = lead and (lead.text.startswith(GRAVE) or any(mark in lead.text for mark in FIRST))
    return [*told, *says] if grave else [*says, *told], [*asked, *left]


def _concluded(facts: Sequence[Fact], state: AgentState, checks: Checks) -> Led:
    """What can be concluded without what labels say to what was asked; and the fact that it says whole."""
    request, charts = known.request(state), known.charts(state)
    written = [item for item in state.get("tool_results") or [] if item["writes"] and not item["error"]]
    labels, pairs = (known.made(state, name) for name in ("check_drug_safety", "check_drug_interactions"))
    if len(charts) == 1 and charts[0]["result"]["deceased"]:
        return _moved(facts, "This patient is recorded as deceased")
    checked = _of_checks(facts, state, checks) if len(charts) == 1 else (None, None)
    worst = [fact for mark in AMONG for fact in facts if mark in fact.text]  # of drugs that are named, or asked of
    if len(charts) == 1 and worst and not (checked[0] and checked[0].text.startswith(GRAVE)):
        return _moved(worst, "")
    grave = checked[0] and checked[0].text.startswith((VERDICTS[CONTRAINDICATED], VERDICTS[MAJOR]))
    for first in (OPTIONS,) if grave else (URGENT, STATED, CONTRADICTS, YOU_WROTE, OPTIONS):
        if len(charts) == 1 and (told := _moved(facts, first))[0]:
            return told
    if grave:
        return checked
    absent = [fact for fact in facts if UNLISTED in fact.text] if "meds" in request["asks"] else []
    alone = len(charts) == len(absent) == len(request["drugs"]) == 1
    if alone and not (checked[0] and checked[0].text.startswith(tuple(VERDICTS.values()))):
        return _moved(absent, "")  # "and his warfarin dose", which he does not take
    if checked[0] and "may" in request["asks"]:
        return checked
    if len(charts) > 1 or not all(line.startswith(UNORDERED) for line in refusals(request)):
        return None, None
    if written:
        return _moved(facts, written[0]["formatted_result"].split("\n")[0])
    if charts:
        led = checked if checks else _of_chart(facts, request)
        limits = (fact for mark in LIMITS for fact in facts if mark in fact.text)
        led = led if led[0] else next((_moved([fact], "") for fact in limits), led)
        return led if led[0] or not (checks and request["measures"]) else _moved(facts, ABSENT)
    if len(labels) == 1 and not pairs:
        return _moved([fact for fact in facts if fact.cite], "")
    if len(pairs) != 1 or not (listed := pairs[0]["result"]["interactions"]):
        return None, None
    worst = listed[0]["severity"].lower()
    if labels and worst not in SEVERITIES[:2] and "ddi" not in request["asks"]:
        return None, None
    gravest = "; ".join(" with ".join(item["drugs"]) for item in listed if item["severity"].lower() == worst)
    kind = f"{worst.capitalize()} interaction" if worst in SEVERITIES else "Interaction in the label"
    alike = (item for item in listed if item["severity"].lower() == worst)
    advice = (f"{item.get('mechanism')} {item.get('management')}" for item in alike)
    renal = [part.rstrip(".") for text in advice for part in text.split(". ") if names(["renal"], part)]
    renal = [part for part in renal if part.startswith(CONDITIONAL)]
    kidneys = as_told(request["said"], UNKNOWN).kidneys()
    if renal and kidneys and kidneys[0] < IMPAIRED:
        return _says(facts[0], f"{renal[0]}, and {kidneys[1]} is told: {gravest}."), None
    return _says(facts[0], f"{kind}: {gravest}."), None


def _says(fact: Fact, text: str) -> Fact:
    return fact._replace(text=text, title="", alone="")


def _moved(facts: Sequence[Fact], start: str) -> Led:
    """The first fact that begins so, as it stands."""
    fact = next((fact for fact in facts if fact.sentence.startswith(start)), None)
    return (_says(fact, fact.sentence), fact) if fact else (None, None)


def _of_checks(facts: Sequence[Fact], state: AgentState, checks: Checks) -> Led:
    """The gravest finding on a drug for the patient; of several as grave, one that rests on a result."""
    found = [(item, drug) for (_, drug), findings in checks.items() for item in findings if item.rank in VERDICTS]
    urgent = (fact.text.partition(".")[0].rpartition(" of ")[2] for fact in facts if fact.text.startswith(URGENT))
    worse = [*filter(None, urgent)]  # "signs of hepatic encephalopathy": what may worsen it is grave
    now = {item.text for item, _ in found if any(subject in item.text for subject in worse)}
    found = [(item._replace(rank=min(item.rank, MAJOR)) if item.text in now else item, drug) for item, drug in found]
    single = len({drug for _, drug in checks}) == 1  # of one drug what is of the patient leads, not what else is taken
    told = ("latest", *(["the patient has"] if single else []))
    found.sort(key=lambda pair: (pair[0].rank, pair[0].text not in now, not pair[0].first.casefold().startswith(told)))
    shown = {fact.text for fact in facts}
    worst, drug = next(((item, drug) for item, drug in found if item.text + item.label in shown), (None, ""))
    if not worst:
        return None, None
    why = worst.first or worst.text
    labels = [item["result"] for item in known.made(state, "check_drug_safety") if item["result"]["drug"] == drug]
    limits = [text.rstrip(".") for data in labels for text in data["contraindications"] if names(["egfr"], text)]
    if limits and worst.rank != CONTRAINDICATED and names(["egfr"], why):
        why = f"{why.rstrip('.')}; contraindicated: {limits[0]}."
    name = known.charts(state)[0]["result"]["patient"]["name"]
    text = f"{VERDICTS[worst.rank]}: {drug} for {name}. {why[:1].upper()}{why[1:]}{worst.label}"
    alike = [fact for fact in facts if fact.text == worst.text + worst.label]  # of another drug too
    return _says(alike[0], text), next(
        (fact for fact in alike if fact.title.startswith(drug[:1].upper() + drug[1:])), None
    )


def _of_chart(facts: Sequence[Fact], request: Request) -> Led:
    """The results that were asked for; else severe allergies and what is out of range; of a whole chart what is
    critical."""
    shown = [(fact, fact.entry) for fact in facts if fact.entry and fact.text == fact.entry.short]
    results = [(fact, line) for fact, line in shown if line.ask in ("labs", "vit")]
    wanted = measures_in(" ; ".join([*request["measures"], request["said"]]))
    asked = [(fact, line) for fact, line in results if measure_named(line.name) in wanted]
    if wanted and not asked:
        none = _moved(facts, ABSENT)
        return none if none[0] and len(none[0].text.split(", ")) == len(wanted) else (None, None)
    if 0 < len(asked) <= FEW:
        return _says(asked[0][0], f"{'; '.join(result_told(line) for _, line in asked)}."), None
    for kind in (kind for measure in request["measures"] for kind in said_in(measure, "medications")):
        for start in (f"Active {kind['name']} (", NONE_ACTIVE):
            if (told := _moved(facts, start))[0]:
                return told
    severe = [(fact, line) for fact, line in shown if line.ask == "alg" and line.item["active"]]
    severe = [(fact, line) for fact, line in severe if line.item["severity"] == "severe"]
    least = "critical" if severe or "chart" in request["asks"] else ""
    off = [(fact, line) for fact, line in asked or results if line.item["flag"] not in UNREMARKABLE]
    off = [(fact, line) for fact, line in off if line.item["flag"].startswith(least)]
    more = f"; and {len(off) - FEW} more" if len(off) > FEW else ""
    allergic = [f"{line.name} ({line.item['reaction']})".removesuffix(" ()") for _, line in severe]
    parts = [f"Severe allergy: {'; '.join(allergic)}."] if severe else []
    parts += [f"Out of range: {'; '.join(result_told(line) for _, line in off[:FEW])}{more}."] if off else []
    if parts:
        return _says([*severe, *off][0][0], " ".join(parts)), None
    if not request["asks"] or set(request["asks"]) & LISTED:
        return _moved(facts, "Taken together already:")
    return None, None
