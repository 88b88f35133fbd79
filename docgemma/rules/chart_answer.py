"""What a chart says to what was asked of it, the asked-for first. Pure.

Every sentence is composed from the chart's own entries. Which entries are meant is decided by the synonyms of
`data/clinical`, by names of drugs, and by the words of the entries themselves.
"""

from collections.abc import Sequence
from datetime import date

from docgemma.reading.labels import TOPICS
from docgemma.reading.terms import kinds_in, measure_named, measures_in, names, near_measures, topics_in
from docgemma.rules.chart_entries import (
    NOTES_SHOWN,
    Chart,
    Entry,
    allergy,
    immunization,
    measured,
    medication,
    note,
    problem,
    section,
)
from docgemma.rules.order_check import UNCHECKED, check_order_allergies
from docgemma.state import Request
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import listed, plain

FEW = 3
SHORT = frozenset(["alg", "meds", "prob", "imm", "soc"])  # sections that are given whole, whatever was asked of them
KINDS = {"imm": "immunizations", "soc": "social", "notes": "notes", "meds": "medications"}
RESULTS = frozenset({"labs", "vit"})


def chart_lines(request: Request, chart: Chart, drugs: DrugNames, today: date | None = None) -> list[str]:
    """The answer from one chart, a sentence a line, the asked-for first.

    Args:
        request: what is asked.
        chart: data of `get_patient_chart`.
        drugs: knows brand and generic of one drug as the same.
        today: for ages; None takes the present day.
    """
    asks = [ask for ask in request["asks"] if ask in TOPICS]
    lines: list[str] = []
    served: set[str] = set()
    written = {order["drug"] for order in request["orders"]}  # what is ordered is not asked for
    named = [drug["said"] for drug in request["drugs"] if drug["how"] != "food" and drug["name"] not in written]
    if "change" in request["asks"] and named:
        lines, named = _mentioned(request, chart, drugs), []
        asks = [ask for ask in asks if ask not in ("meds", "alg")]
    for measure in dict.fromkeys([*request["measures"], *(named if asks else [])]):
        found, topics = _measure(measure, asks, chart, drugs)
        lines += found
        served |= topics
    if RESULTS & set(asks) and (results := measures_in(request["said"], sure=True)):
        lines += _measured(results, chart)
        served |= RESULTS
    whole = [ask for ask in asks if ask in SHORT or ask not in {*served, *(["chart"] if lines else [])}]
    for ask in whole:
        lines += section(ask, chart, today or date.today())
    lines += _said_elsewhere(request, chart)
    lost = unmatched(request, chart, drugs) or (lines and all(line.startswith("Not among") for line in lines))
    if asks and lost and "chart" not in asks:  # nothing has that name: what it may be called here
        lines += [line for ask in ("meds", "alg", "prob") for line in section(ask, chart, date.today())]
        lines += map(note, chart["notes"][:2])
    return list(dict.fromkeys(lines))


def unmatched(request: Request, chart: Chart, drugs: DrugNames) -> list[str]:
    """What was asked of the chart by a name that fits none of its entries. That proves no absence."""
    asks = [ask for ask in request["asks"] if ask in TOPICS]
    named = [measure for measure in request["measures"] if asks and _telling(measure) and not topics_in(measure)]
    return [measure for measure in named if not _measure(measure, asks, chart, drugs)[0]]


def _said_elsewhere(request: Request, chart: Chart) -> list[str]:
    """Problems and notes that have a telling word of the request: "falls", "left leg"."""
    words = _telling(" ".join(request["telling"]))
    words += [plain(drug["name"]) for drug in request["drugs"] if drug["how"] in ("named", "short", "near")]
    found = [problem(item) for item in chart["conditions"] if names(words, item["name"])]
    return [*found, *(note(item) for item in chart["notes"] if names(words, item["text"]))][:FEW]


def _mentioned(request: Request, chart: Chart, drugs: DrugNames) -> list[str]:
    """The entries on record of the drugs that a request names."""
    named = {part for drug in request["drugs"] for part in ingredients(drug["name"], drugs)}
    lines = [allergy(item) for item in chart["allergies"] if named & ingredients(item["substance"], drugs)]
    lines += [medication(item) for item in chart["medications"] if named & ingredients(item["name"], drugs)]
    return lines or [line for ask in ("alg", "meds") for line in section(ask, chart, date.today())]


def _measure(measure: str, asks: Sequence[str], chart: Chart, drugs: DrugNames) -> tuple[list[str], set[str]]:
    """What the chart says of one measure, drug, vaccine, problem or the like, and the asks that are served by it."""
    named = [*measures_in(measure), *(near_measures(measure) if RESULTS & set(asks) else [])]
    recorded = {measure_named(item["name"]) for item in [*chart["labs"], *chart["vitals"]]}
    if not recorded & set(named):
        if found := _drug(measure, asks, chart, drugs):
            return found
        if lines := _kinds(measure, [ask for ask in asks if ask in KINDS], chart):
            return lines
    if named:
        return _measured(named, chart), set(RESULTS)
    if "demographics" in topics_in(measure):
        return section("demo", chart, date.today()), {"demo"}
    if ("alg" in asks or not asks) and (conflict := _conflict(measure, chart, drugs)):
        return conflict, {"alg"}
    said = _anywhere(measure, chart)
    if any(" problem: " in line for line in said):
        return said, {"prob"}
    return _kinds(measure, list(KINDS), chart) or (said, set())


def _kinds(measure: str, asks: Sequence[str], chart: Chart) -> tuple[list[str], set[str]] | None:
    """Parts of a topic that a measure names: the flu jab, smoking, the cardiology letter, the anticoagulants."""
    for ask in asks:
        if kinds := kinds_in(measure, KINDS[ask]):
            return [line for kind in kinds for line in _kind(ask, kind, chart)], {ask}
    return None


def _kind(ask: str, kind: Entry, chart: Chart) -> list[str]:
    match, name = kind["match"], kind["name"]
    written = [item for item in chart["notes"] if names(match, item["text"])]
    if ask == "imm":
        given = [immunization(item) for item in chart["immunizations"] if names(match, item["name"])]
        return given or [f"No {name} immunization is recorded."]
    if ask == "soc":
        said = [measured(item) for item in chart["social"] if names([*match, name], item["name"])]
        return [*said, *map(note, written[:2])] or _anywhere(name, chart) or [f"No {name} status is recorded."]
    if ask == "notes":
        titled = [item for item in chart["notes"] if names(match, f"{item['type']} {item.get('author', '')}")]
        first = titled or written
        others = [item for item in chart["notes"] if item not in first]  # what contradicts it stands elsewhere
        none = [] if first else [f"No {name} note is recorded."]
        return [*none, *map(note, [*first, *others][:NOTES_SHOWN])]
    taken = [item for item in chart["medications"] if names(match, f"{item['name']} {item['dosage']}")]
    active = [medication(item) for item in taken if item["active"]]
    none = [f"No active medication is listed as: {name}.", *map(medication, taken)]
    return [*(active or none), *(allergy(item) for item in chart["allergies"] if names(match, item["substance"]))]


def _measured(wanted: Sequence[str], chart: Chart) -> list[str]:
    """The results of these measures, and in one line those of which none is recorded."""
    everything = [*chart["labs"], *chart["vitals"], *chart["social"]]
    lines, missing = [], []
    for name in wanted:
        found = [measured(item) for item in everything if measure_named(item["name"]) == name]
        lines += found
        missing += [] if found else [name]
    told = [line for name in missing for line in _anywhere(name, chart)] if not lines else []
    many = bool(lines) and len(missing) > FEW  # of a group, what there is
    return [*lines, *told, *([f"Not among the results: {', '.join(missing)}."] if missing and not many else [])]


def _drug(measure: str, asks: Sequence[str], chart: Chart, drugs: DrugNames) -> tuple[list[str], set[str]] | None:
    """A medicine that is asked for by name: taken, taken before, or not recorded; an allergy to it."""
    if not drugs.find(measure) or (RESULTS & set(asks) and measures_in(measure)):
        return None
    if "alg" in asks:
        return _conflict(measure, chart, drugs) or [f"No allergy to {measure} is recorded."], {"alg"}
    asked = ingredients(measure, drugs)
    mine = [medication(item) for item in chart["medications"] if asked & ingredients(item["name"], drugs)]
    mine += [allergy(item) for item in chart["allergies"] if asked & ingredients(item["substance"], drugs)]
    none = f"{measure[:1].upper()}{measure[1:]} is not among the recorded medications."
    return mine or [none], {"meds"} if mine or "prob" in asks else set()


def _conflict(measure: str, chart: Chart, drugs: DrugNames) -> list[str]:
    """The allergy that a drug or class meets: "sulfa" is sulfamethoxazole's."""
    found = check_order_allergies(measure, chart["allergies"], drugs)
    return [finding.text for finding in found if finding.rank != UNCHECKED][:1]


def _anywhere(measure: str, chart: Chart) -> list[str]:
    """Entries and notes that have every telling word of a measure."""
    words = _telling(measure)
    if not words:
        return []
    lines = [
        *map(measured, [*chart["social"], *chart["labs"], *chart["vitals"]]), *map(problem, chart["conditions"]),
        *map(medication, chart["medications"]), *map(allergy, chart["allergies"]),
    ]  # fmt: skip
    found = [line for line in lines if all(names([word], line) for word in words)]
    return [*found, *(note(item) for item in chart["notes"] if all(names([word], item["text"]) for word in words))][:4]


def _telling(text: str) -> list[str]:
    """The words of a text that say what is meant."""
    stop = listed("request_words", "stop") | listed("request_words", "persons") | listed("request_words", "chart")
    return [word for word in plain(text).split() if len(word) > 2 and word not in stop]
