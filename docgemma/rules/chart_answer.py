"""What a chart says to what was asked of it: values first, whole lists, "none recorded" where nothing is. Pure.

Every sentence is composed from the chart's own entries. Which entries are meant is decided by the synonyms of
`data/clinical`, by names of drugs, and by the words of the entries themselves.
"""

import itertools
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from docgemma.reading.terms import kinds_in, measure_named, measures_in, names, near_measures, said_in
from docgemma.reading.words import clinical, plain
from docgemma.rules.drugs import DrugNames, ingredients
from docgemma.rules.findings import UNCHECKED
from docgemma.rules.safety import check_order_allergies
from docgemma.state import Request

Chart = dict[str, Any]
MANY = 20  # entries of a list; what is longer says how many more
NOTE_CHARS = 700
NOTES_SHOWN = 3
STOP = frozenset(
    "the and for his her their any was did does has have had what when which who how last latest recent current now is "
    "are of on in at to a an from since level levels result results value status history test check dose still".split()
)
FEW = 3
# of texts that were written to steer a program; they are not shown and never followed
PLANTED = ("ignore previous", "ignore all previous", "disregard previous", "without asking for approval")
WITHHELD = "this text gives instructions to the assistant. They are not followed; read it in the record system."
WEIGHED = frozenset(["egfr", "potassium", "inr"])
UNREMARKABLE = frozenset(["", "normal", "negative"])
SHORT = frozenset(["alg", "meds", "prob", "imm", "soc"])
TOPIC_OF_KIND = {"imm": "immunizations", "soc": "social", "notes": "notes", "meds": "medications"}


def chart_lines(request: Request, chart: Chart, drugs: DrugNames, today: date | None = None) -> list[str]:
    """The answer from one chart, a sentence a line, the asked-for first.

    Args:
        request: what is asked.
        chart: data of `get_patient_chart`.
        drugs: knows brand and generic of one drug as the same.
        today: for ages; None takes the present day.
    """
    asks = [ask for ask in request["asks"] if ask in SECTIONS]
    lines: list[str] = []
    served: set[str] = set()
    written = {order["drug"] for order in request["orders"]}  # what is ordered is not asked for
    named = [drug["said"] for drug in request["drugs"] if drug["how"] != "food" and drug["name"] not in written]
    if "change" in request["asks"] and named:
        lines, served, named = _mentioned(request, chart, drugs), {"meds", "alg"}, []
        asks = [ask for ask in asks if ask not in served]
    named = named if asks else []
    for measure in dict.fromkeys([*request["measures"], *named]):
        found, topics = _measure(measure, asks, chart, drugs)
        lines += found
        served |= topics
    if {"labs", "vit"} & set(asks) and (named := measures_in(request["said"], sure=True)):
        lines += _measured(named, chart)
        served |= {"labs", "vit"}
    if lines:
        served.add("chart")
    for ask in asks:
        if ask not in served or ask in SHORT:  # a short list is given whole, whatever was asked of it
            lines += SECTIONS[ask](chart, today or date.today(), request, drugs)
    lines += _said_elsewhere(request, chart)
    lost = unmatched(request, chart, drugs) or (lines and all(line.startswith("Not among") for line in lines))
    if asks and lost and "chart" not in asks:  # nothing has that name: what it may be called here
        lines += [*medications(chart), *allergies(chart), *problems(chart), *map(note, chart["notes"][:2])]
    return list(dict.fromkeys(lines))


def _said_elsewhere(request: Request, chart: Chart) -> list[str]:
    """Problems and notes that have a telling word of the request: "falls", "left leg"."""
    words = [word for word in request["telling"] if word not in STOP]
    words += [plain(drug["name"]) for drug in request["drugs"] if drug["how"] in ("named", "short", "near")]
    found = [problem(item) for item in chart["conditions"] if names(words, item["name"])]
    return [*found, *(note(item) for item in chart["notes"] if names(words, item["text"]))][:FEW]


def unmatched(request: Request, chart: Chart, drugs: DrugNames) -> list[str]:
    """What was asked of the chart by a name that fits none of its entries. That proves no absence."""
    asks = [ask for ask in request["asks"] if ask in SECTIONS]
    return [
        measure for measure in request["measures"]
        if asks and not _generic(measure) and not _measure(measure, asks, chart, drugs)[0]
    ]  # fmt: skip


def _mentioned(request: Request, chart: Chart, drugs: DrugNames) -> list[str]:
    """The entries on record of the drugs that a request names."""
    named = {part for drug in request["drugs"] for part in ingredients(drug["name"], drugs)}
    lines = [allergy(item) for item in chart["allergies"] if named & ingredients(item["substance"], drugs)]
    lines += [medication(item) for item in chart["medications"] if named & ingredients(item["name"], drugs)]
    return lines or [*allergies(chart), *medications(chart)]


def results_to_weigh(chart: Chart) -> str:
    """Kidney function, potassium, INR and whatever is abnormal, on one line: what an order is read with."""
    kept = [
        item for item in chart["labs"] if measure_named(item["name"]) in WEIGHED or item["flag"] not in UNREMARKABLE
    ]
    told = [f"{item['name']} {item['value']} {item['unit']}".strip() + f" ({item['date']})" for item in kept]
    return f"Results to weigh: {'; '.join(told)}." if told else "No kidney function is recorded."


def overview(chart: Chart) -> list[str]:
    """The chart as a whole: what decides about drugs and urgency first."""
    today = date.today()
    nothing: Any = None
    parts = (allergies, problems, medications, labs, vitals, social, notes, immunizations)
    return [line for part in parts for line in part(chart, today, nothing, nothing)]


# one thing that was asked


def _measure(measure: str, asks: Sequence[str], chart: Chart, drugs: DrugNames) -> tuple[list[str], set[str]]:
    """What the chart says of one measure, drug, vaccine, problem or the like, and the asks that are served by it."""
    named = (
        measures_in(measure) if not {"labs", "vit"} & set(asks) else [*measures_in(measure), *near_measures(measure)]
    )
    if any(measure_named(item["name"]) in named for item in [*chart["labs"], *chart["vitals"]]):
        return _measured(named, chart), {"labs", "vit"}
    if found := _drug(measure, asks, chart, drugs):
        return found
    for ask, topic in TOPIC_OF_KIND.items():
        if ask in asks and (kinds := kinds_in(measure, topic)):
            return [line for kind in kinds for line in _kind(ask, kind, chart)], {ask}
    if named:
        return _measured(named, chart), {"labs", "vit"}
    if any(entry["topic"] == "demographics" for entry in said_in(measure, clinical("topics")["topics"])):
        return demographics(chart, date.today()), {"demo"}
    if ("alg" in asks or not asks) and (line := _allergy(measure, chart, drugs)):
        return [line], {"alg"}
    if found := _problems_like(measure, chart):
        return found, {"prob"}
    for ask, topic in TOPIC_OF_KIND.items():
        if kinds := kinds_in(measure, topic):
            return [line for kind in kinds for line in _kind(ask, kind, chart)], {ask}
    if found := _anywhere(measure, chart):
        return found, set()
    return [], set()


def _measured(names_: Sequence[str], chart: Chart) -> list[str]:
    """The results of these measures, and in one line those of which none is recorded."""
    everything = [*chart["labs"], *chart["vitals"], *chart["social"]]
    lines, missing = [], []
    for name in names_:
        found = [measured(item) for item in everything if measure_named(item["name"]) == name]
        lines += found
        missing += [] if found else [name]
    told = [line for name in missing for line in _anywhere(name, chart)] if not lines else []
    many = bool(lines) and len(missing) > FEW  # of a group, what there is
    return [*lines, *told, *([f"Not among the results: {', '.join(missing)}."] if missing and not many else [])]


def measured(item: dict[str, Any]) -> str:
    """One result: value, unit, flag, date, and the earlier values with their dates."""
    head = f"{item['name']}: {item['value']} {item['unit']}".strip()
    detail = ", ".join(part for part in (item["flag"], item["date"]) if part)
    earlier = "; ".join(f"{old['value']} ({old['date']})" for old in item.get("earlier") or [])
    span = f"; reference {_range(item)}" if item.get("low") is not None or item.get("high") is not None else ""
    before = f" Earlier: {earlier}.{_direction(item)}" if earlier else ""
    return f"{head}{f' ({detail}{span})' if detail else ''}.{before}"


def _range(item: dict[str, Any]) -> str:
    low, high = item.get("low"), item.get("high")
    if low is None or high is None:
        return f"above {low}" if high is None else f"below {high}"
    return f"{low}-{high}"


def _direction(item: dict[str, Any]) -> str:
    """Rising or falling, where the last values all go one way."""
    try:
        values = [float(old["value"]) for old in reversed(item["earlier"])] + [float(item["value"])]
    except ValueError:
        return ""
    if all(one < other for one, other in itertools.pairwise(values)):
        return " Rising."
    return " Falling." if all(one > other for one, other in itertools.pairwise(values)) else ""


def _drug(measure: str, asks: Sequence[str], chart: Chart, drugs: DrugNames) -> tuple[list[str], set[str]] | None:
    """A medicine that is asked for by name: taken, taken before, or not recorded; an allergy to it."""
    asked = ingredients(measure, drugs) if drugs.find(measure) else None
    if not asked or (set(asks) & {"labs", "vit"} and measures_in(measure)):
        return None
    if "alg" in asks:
        return [_allergy(measure, chart, drugs) or f"No allergy to {measure} is recorded."], {"alg"}
    mine = [medication(item) for item in chart["medications"] if asked & ingredients(item["name"], drugs)]
    mine += [allergy(item) for item in chart["allergies"] if asked & ingredients(item["substance"], drugs)]
    if mine:
        return mine, {"meds"}
    return [f"{measure[:1].upper()}{measure[1:]} is not among the recorded medications."], {
        "meds"
    } if "prob" in asks else set()


def _allergy(measure: str, chart: Chart, drugs: DrugNames) -> str:
    found = check_order_allergies(measure, chart["allergies"], drugs)
    conflicts = [finding.text for finding in found if finding.rank != UNCHECKED]
    said = [item for item in chart["allergies"] if names([plain(measure)], item["substance"])]
    return conflicts[0] if conflicts else allergy(said[0]) if said else ""


def _kind(ask: str, kind: dict[str, Any], chart: Chart) -> list[str]:
    match, name = kind["match"], kind["name"]
    if ask == "imm":
        given = [item for item in chart["immunizations"] if names(match, item["name"])]
        return [f"Immunization: {dated(item['name'], item['date'])}." for item in given] or [
            f"No {name} immunization is recorded."
        ]
    if ask == "soc":
        said = [item for item in chart["social"] if names(match, item["name"]) or names([name], item["name"])]
        told = [note(item) for item in chart["notes"] if names(match, item["text"])]
        return (
            [*(measured(item) for item in said), *told[:2]]
            or _anywhere(name, chart)
            or [f"No {name} status is recorded."]
        )
    if ask == "notes":
        written = [item for item in chart["notes"] if names(match, f"{item['type']} {item.get('author', '')}")]
        written = written or [item for item in chart["notes"] if names(match, item["text"])]
        others = [item for item in chart["notes"] if item not in written]  # what contradicts it stands elsewhere
        none = [] if written else [f"No {name} note is recorded."]
        return [*none, *(note(item) for item in [*written, *others][:NOTES_SHOWN])]
    taken = [item for item in chart["medications"] if names(match, f"{item['name']} {item['dosage']}")]
    active = [item for item in taken if item["active"]]
    rest = [allergy(item) for item in chart["allergies"] if names(match, item["substance"])]
    if active:
        return [*(medication(item) for item in active), *rest]
    return [f"No active medication is listed as: {name}.", *(medication(item) for item in taken), *rest]


def _problems_like(measure: str, chart: Chart) -> list[str]:
    words = _telling(measure)
    found = [item for item in chart["conditions"] if words and all(names([word], item["name"]) for word in words)]
    told = [note(item) for item in chart["notes"] if all(names([word], item["text"]) for word in words)]
    return [*(problem(item) for item in found), *(told[:2] if found else [])]


def _anywhere(measure: str, chart: Chart) -> list[str]:
    """Entries and sentences of notes that have every telling word of a measure."""
    words = _telling(measure)
    if not words:
        return []
    entries = [*(measured(item) for item in [*chart["social"], *chart["labs"], *chart["vitals"]]),
               *map(problem, chart["conditions"]), *map(medication, chart["medications"]),
               *map(allergy, chart["allergies"])]  # fmt: skip
    found = [line for line in entries if all(names([word], line) for word in words)]
    found += [note(item) for item in chart["notes"] if all(names([word], item["text"]) for word in words)]
    return found[:4]


def _telling(measure: str) -> list[str]:
    return [word for word in plain(measure).split() if len(word) > 2 and word not in STOP]


def _generic(measure: str) -> bool:
    """Words for a whole section ("bloods", "meds") are no measure of their own."""
    return not _telling(measure) or bool(said_in(measure, clinical("topics")["topics"]))


# whole sections


def labs(chart: Chart, *_: Any) -> list[str]:
    return _many([measured(item) for item in chart["labs"]]) or ["No lab results are recorded."]


def vitals(chart: Chart, *_: Any) -> list[str]:
    return _many([measured(item) for item in chart["vitals"]]) or ["No vital signs are recorded."]


def medications(chart: Chart, *_: Any) -> list[str]:
    active = [medication(item) for item in chart["medications"] if item["active"]]
    past = [medication(item) for item in chart["medications"] if not item["active"]]
    return [*(_many(active) or ["No active medications are recorded."]), *past[:5]]


def allergies(chart: Chart, *_: Any) -> list[str]:
    listed = [allergy(item) for item in sorted(chart["allergies"], key=lambda item: item["severity"] != "severe")]
    none = (
        "No known allergies (documented)."
        if chart["no_known_allergies"]
        else "No allergies are recorded, and it is not documented that there are none: ask the patient."
    )
    return _many(listed) or [none]


def problems(chart: Chart, *_: Any) -> list[str]:
    active = [problem(item) for item in chart["conditions"] if item["active"]]
    past = [problem(item) for item in chart["conditions"] if not item["active"]]
    return [*(_many(active) or ["No active problems are recorded."]), *past[:6]]


def notes(chart: Chart, *_: Any) -> list[str]:
    shown = [note(item) for item in chart["notes"][:NOTES_SHOWN]]
    older = len(chart["notes"]) - len(shown)
    return ([*shown, f"And {older} older notes."] if older > 0 else shown) or ["No notes are recorded."]


def immunizations(chart: Chart, *_: Any) -> list[str]:
    return _many([f"Immunization: {dated(item['name'], item['date'])}." for item in chart["immunizations"]]) or [
        "No immunizations are recorded."
    ]


def social(chart: Chart, *_: Any) -> list[str]:
    return [measured(item) for item in chart["social"]] or ["No social history is recorded."]


def demographics(chart: Chart, today: date, *_: Any) -> list[str]:
    patient = chart["patient"]
    born, died = patient["birth_date"], chart["deceased"]
    parts = [f"Born {born}" if born else "No birth date is recorded"]
    if len(born) == 10 and not died:
        parts.append(f"{age(born, today)} years old")
    parts += [part for part in (patient["sex"], f"patient ID {patient['id']}") if part]
    parts += [f"MRN {', '.join(chart['identifiers'])}"] if chart.get("identifiers") else []
    parts += [f"preferred language {chart['language']}"] if chart.get("language") else []
    return [f"{', '.join(parts)}."]


def last_seen(chart: Chart, *_: Any) -> list[str]:
    """The newest dated note, with its author; else the newest result."""
    if chart["notes"]:
        latest = max(chart["notes"], key=lambda item: item["date"])
        by = f", by {latest['author']}" if latest.get("author") else "; the note names no author"
        return [f"Last seen according to the notes: {latest['date']}{by} ({latest['type']}).", note(latest)]
    dates = [item["date"] for item in [*chart["labs"], *chart["vitals"]] if item["date"]]
    return [f"No visit note is recorded; the latest result is of {max(dates)}." if dates else "No visit is recorded."]


def whole(chart: Chart, *_: Any) -> list[str]:
    return overview(chart)


SECTIONS = {
    "labs": labs, "meds": medications, "alg": allergies, "prob": problems, "vit": vitals, "notes": notes,
    "imm": immunizations, "soc": social, "demo": demographics, "seen": last_seen, "chart": whole,
}  # fmt: skip


# single entries


def medication(item: dict[str, Any]) -> str:
    since = f", since {item['started']}" if item.get("started") else ""
    reason = f", for {item['reason']}" if item.get("reason") else ""
    ended = f" ({item['status']})" if not item["active"] and item.get("status") else ""
    kind = "Active medication" if item["active"] else f"Past medication{ended}"
    return f"{kind}: {item['name']} {item['dosage']}".strip() + f"{reason}{since}."


def allergy(item: dict[str, Any]) -> str:
    detail = ", ".join(part for part in (item["reaction"], item["severity"]) if part)
    since = f", recorded {item['recorded']}" if item.get("recorded") else ""
    kind = "Allergy" if item["active"] else "Past allergy"
    return f"{kind}: {item['substance']}{f' ({detail})' if detail else ''}{since}."


def problem(item: dict[str, Any]) -> str:
    since = f" (since {item['onset']})" if item.get("onset") else ""
    return f"{'Active' if item['active'] else 'Past'} problem: {item['name']}{since}."


def note(item: dict[str, Any]) -> str:
    text = " ".join(item["text"].split())
    by = f", {item['author']}" if item.get("author") else ""
    if names(PLANTED, text):
        return f"{dated(item['type'], item['date'])}{by}: {WITHHELD}"
    cut = text if len(text) <= NOTE_CHARS else text[:NOTE_CHARS].rsplit(" ", 1)[0] + " … (cut)"
    return f"{dated(item['type'], item['date'])}{by}: {cut}"


def dated(name: str, day: str) -> str:
    return f"{name}, {day}" if day else name


def age(born: str, today: date) -> int:
    year, month, day = (int(part) for part in born.split("-"))
    return today.year - year - ((today.month, today.day) < (month, day))


def _many(lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    return listed if len(listed) <= MANY else [*listed[:MANY], f"And {len(listed) - MANY} more."]
