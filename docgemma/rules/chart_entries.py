"""The entries of a chart as sentences, and its sections: whole lists, "none recorded" where nothing is. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from docgemma.reading.terms import measure_named
from docgemma.text.quoted import shortened
from docgemma.text.words import clinical, names, plain

Chart = dict[str, Any]
Entry = dict[str, Any]
MANY = 20  # entries of a list; what is longer says how many more
PAST_SHOWN = 5
NOTES_SHOWN = 3
NOTE_CHARS = 700
# of texts that were written to steer a program; they are not shown and never followed
PLANTED = ("ignore previous", "ignore all previous", "disregard previous", "without asking for approval")
WITHHELD = "this text gives instructions to the assistant. They are not followed; read it in the record system."
WEIGHED = frozenset(["egfr", "potassium", "inr"])
COURSES = {"day": 1, "week": 7, "month": 31}  # days at most
UNREMARKABLE = frozenset(["", "normal", "negative"])
UNDOCUMENTED = "No allergies are recorded, and it is not documented that there are none: ask the patient."


class Line(NamedTuple):
    """One entry of a chart: the topic that it belongs to, what it is called, its data, its sentence, and what is left
    of the sentence under the heading `title`."""

    ask: str
    name: str
    item: Entry
    text: str
    title: str
    short: str


def lines_of(chart: Chart, *asks: str) -> list[Line]:
    """The entries of these topics, of each what is active and what is severe first."""
    found = []
    for ask in asks:
        key, sentence, _, heading = SECTIONS[ask]
        for item in sorted(
            chart[key], key=lambda item: (not item.get("active", True), item.get("severity", "severe") != "severe")
        ):
            name = item.get("substance") or item.get("name") or f"{item.get('type', '')} {item.get('author', '')}"
            past = "" if item.get("active", True) else f"Past {heading.removeprefix('Active ').casefold()}"
            title, short = past or heading, sentence(item)
            found.append(Line(ask, name, item, short if ask in NAMED else f"{title}: {short}", title, short))
    return found


def section(ask: str, chart: Chart, today: date) -> list[str]:
    """What a chart says to one ask of `reading.labels.TOPICS`."""
    if ask == "chart":
        return overview(chart)
    if ask == "seen":
        return _last_seen(chart)
    if ask == "demo":
        return [_demographics(chart, today)]
    if ask == "alg" and not chart["allergies"] and chart["no_known_allergies"]:
        return ["No known allergies (documented)."]
    listed = lines_of(chart, ask)
    current = [line.text for line in listed if ask == "alg" or line.item.get("active", True)]
    most = NOTES_SHOWN if ask == "notes" else MANY
    more = [f"And {len(current) - most} more."] if len(current) > most else []
    past = [line.text for line in listed if line.text not in current][:PAST_SHOWN]
    return [*(repeated(chart) if ask == "meds" else []), *(current[:most] or [SECTIONS[ask][2]]), *more, *past]


def repeated(chart: Chart) -> list[str]:
    """Active orders that stand more than once with the same dose."""
    orders = Counter(f"{item['name']} {item['dosage']}".strip() for item in chart["medications"] if item["active"])
    return [f"Ordered {count} times, the same each time: {order}." for order, count in orders.items() if count > 1]


def overview(chart: Chart) -> list[str]:
    """The chart as a whole: what decides about drugs and urgency first."""
    return [line for ask in SECTIONS for line in section(ask, chart, date.today())]


def levels(chart: Chart) -> list[Line]:
    """The results that are named by an active medicine: "Lithium" of lithium carbonate, "Digoxin level" of digoxin."""
    taken = [item["name"] for item in chart["medications"] if item["active"]]
    return [
        line
        for line in lines_of(chart, "labs")
        if any(names([line.name.split()[0].casefold()], name) for name in taken)
    ]


def to_weigh(chart: Chart, reasons: Sequence[str] = ()) -> list[Entry]:
    """The results that an order is read with: eGFR, potassium, INR, drug levels, whatever is abnormal and what follows
    the problems that it is for; else the creatinine."""
    named = [(measure_named(item["name"]), item) for item in chart["labs"]]
    drugs = [line.item for line in levels(chart)]
    follow = {*WEIGHED, *followed(reasons)}
    weighed = [item for name, item in named if name in follow or item["flag"] not in UNREMARKABLE or item in drugs]
    return weighed or [item for name, item in named if name == "creatinine"]


def notes_naming(chart: Chart, fragments: Sequence[str]) -> list[str]:
    """The notes in which one of these words stands, the newest first."""
    return [line.text for line in lines_of(chart, "notes") if names(fragments, line.item["text"])]


def followed(problems: Sequence[str]) -> set[str]:
    """The measures by which these problems are followed: TSH of hypothyroidism."""
    known = [item for item in clinical("problems")["problems"] if any(names(item["chart"], name) for name in problems)]
    return {measure for item in known for measure in item.get("followed", [])}


def brief(item: Entry) -> str:
    """One result with its date: "INR 3.1 (2026-11-13)"."""
    unit = "" if item["unit"] == item["name"] else item["unit"]  # INR 2.6 INR
    return f"{item['name']} {item['value']} {unit}".strip() + f" ({item['date']})" * bool(item["date"])


def result_told(line: Line, today: date | None = None) -> str:
    """One result with its date, how long ago that is, its flag and where it is going."""
    told = brief(line.item)
    if (days := days_since(line.item["date"], today or date.today())) > 1:
        told = f"{told.removesuffix(')')}, {days} days ago)"
    return ", ".join(filter(None, [told, line.item["flag"], direction(line.item).casefold()]))


def results_to_weigh(chart: Chart, reasons: Sequence[str] = ()) -> str:
    """The results that an order is read with, on one line."""
    told = [brief(item) for item in to_weigh(chart, reasons)]
    return f"Results to weigh: {'; '.join(told)}." if told else "No kidney function is recorded."


def days_since(day: str, today: date) -> int:
    """Days since an ISO date; 0 where only a month or a year is known."""
    return (today - date.fromisoformat(day)).days if len(day) == 10 else 0


def age(born: str, today: date) -> int:
    year, month, day = (int(part) for part in born.split("-"))
    return today.year - year - ((today.month, today.day) < (month, day))


def _medication(item: Entry) -> str:
    since = f", since {item['started']}" if item.get("started") else ""
    reason = f", for {item['reason']}" if item.get("reason") else ""
    ended = _run_out(item) if item["active"] else f" ({item['status']})" if item.get("status") else ""
    return f"{item['name']} {item['dosage']}".strip() + f"{reason}{since}{ended}."


def _run_out(item: Entry) -> str:
    """When a course "for 7 days" ends by its first day and length, or that it has, though it is listed as active."""
    _, _, length = plain(item["dosage"]).partition(" for ")
    count, unit, *_ = [*length.split(), "", ""]
    days = COURSES.get(unit.removesuffix("s"), 0) * int(count) if count.isdigit() else 0
    if not days or len(item.get("started", "")) != 10:
        return ""
    end = date.fromisoformat(item["started"]) + timedelta(days - 1)
    if end >= date.today():
        return f" (its {count} {unit} end about {end}, if no day was missed)"
    return f" (its {count} {unit} ended on {end}; still listed as active)"


def _allergy(item: Entry) -> str:
    since = f", recorded {item['recorded']}" if item.get("recorded") else ""
    return f"{item['substance']}{_in_brackets(item['reaction'], item['severity'])}{since}."


def _problem(item: Entry) -> str:
    dates = [f"{word} {item[key]}" for word, key in (("since", "onset"), ("resolved", "resolved")) if item.get(key)]
    return f"{item['name']}{_in_brackets(*dates)}."


def _immunization(item: Entry) -> str:
    return f"{_joined(item['name'], item['date'])}."


def _note(item: Entry) -> str:
    text = WITHHELD if names(PLANTED, item["text"]) else shortened(item["text"], NOTE_CHARS)
    return f"{_joined(item['type'], item['date'], item.get('author', ''))}: {text}"


def _measured(item: Entry) -> str:
    """One result: value, unit, flag, date, reference range, and the earlier values with their dates."""
    low, high = item.get("low"), item.get("high")
    limits = f"{low}-{high}" if None not in (low, high) else f"below {high}" if low is None else f"above {low}"
    reference = f"; reference {limits}" if (low, high) != (None, None) else ""
    detail = _joined(item["flag"], item["date"])
    unit = "" if item["unit"] == item["name"] else item["unit"]
    head = f"{item['name']}: {item['value']} {unit}".strip() + (f" ({detail}{reference})" if detail else "")
    earlier = "; ".join(f"{old['value']} ({old['date']})" for old in item.get("earlier") or [])
    going = direction(item)
    return f"{head}. Earlier: {earlier}.{f' {going}.' if going else ''}" if earlier else f"{head}."


def direction(item: Entry) -> str:
    """ "Rising" or "Falling", where the last values all go one way."""
    values = [point["value"] for point in trend(item)]
    steps = {(one < other) - (one > other) for one, other in pairwise(values)}
    return "Rising" if steps == {1} else "Falling" if steps == {-1} else ""


def trend(item: Entry) -> list[dict[str, Any]]:
    """The values of one result as numbers, {"value", "date"}, the oldest first; [] for fewer than two, or a text."""
    told = [*reversed(item.get("earlier") or []), item]
    try:
        points = [{"value": float(one["value"]), "date": one["date"]} for one in told]
    except ValueError:
        return []
    return points if len(points) > 1 and all(isfinite(point["value"]) for point in points) else []


def _demographics(chart: Chart, today: date) -> str:
    patient = chart["patient"]
    born = patient["birth_date"]
    parts = [
        f"Born {born}" if born else "No birth date is recorded",
        f"{age(born, today)} years old" if len(born) == 10 and not chart["deceased"] else "",
        patient["sex"],
        f"patient ID {patient['id']}" if patient["id"] else "",
        f"MRN {', '.join(chart['identifiers'])}" if chart.get("identifiers") else "",
        f"preferred language {chart['language']}" if chart.get("language") else "",
    ]
    return f"{_joined(*parts)}."


def _last_seen(chart: Chart) -> list[str]:
    """The newest dated note, with its author; else the newest result."""
    if chart["notes"]:
        latest = max(chart["notes"], key=lambda item: item["date"])
        by = f", by {latest['author']}" if latest.get("author") else "; the note names no author"
        return [f"Last seen according to the notes: {latest['date']}{by} ({latest['type']}).", _note(latest)]
    dates = [item["date"] for item in [*chart["labs"], *chart["vitals"]] if item["date"]]
    return [f"No visit note is recorded; the latest result is of {max(dates)}." if dates else "No visit is recorded."]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _in_brackets(*parts: str) -> str:
    return f" ({_joined(*parts)})" if any(parts) else ""


NAMED = frozenset(["labs", "vit", "soc", "notes"])  # topics whose entries begin with their own name
# topic -> its key in the chart, how an entry reads, what is said where none is, heading; in the order of an overview
SECTIONS = {
    "alg": ("allergies", _allergy, UNDOCUMENTED, "Allergies"),
    "prob": ("conditions", _problem, "No active problems are recorded.", "Active problems"),
    "meds": ("medications", _medication, "No active medications are recorded.", "Active medications"),
    "labs": ("labs", _measured, "No lab results are recorded.", "Laboratory results"),
    "vit": ("vitals", _measured, "No vital signs are recorded.", "Vital signs"),
    "soc": ("social", _measured, "No social history is recorded.", "Social history"),
    "notes": ("notes", _note, "No notes are recorded.", "Notes"),
    "imm": ("immunizations", _immunization, "No immunizations are recorded.", "Immunizations"),
}
