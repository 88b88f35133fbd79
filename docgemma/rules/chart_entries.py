"""What each entry of a chart reads like, and whole sections: whole lists, "none recorded" where nothing is. Pure."""

from collections.abc import Iterable
from datetime import date
from itertools import pairwise
from typing import Any

from docgemma.reading.terms import measure_named, names

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
UNREMARKABLE = frozenset(["", "normal", "negative"])
UNDOCUMENTED = "No allergies are recorded, and it is not documented that there are none: ask the patient."


def medication(item: Entry) -> str:
    since = f", since {item['started']}" if item.get("started") else ""
    reason = f", for {item['reason']}" if item.get("reason") else ""
    ended = f" ({item['status']})" if not item["active"] and item.get("status") else ""
    kind = "Active medication" if item["active"] else f"Past medication{ended}"
    return f"{kind}: {item['name']} {item['dosage']}".strip() + f"{reason}{since}."


def allergy(item: Entry) -> str:
    detail = ", ".join(part for part in (item["reaction"], item["severity"]) if part)
    since = f", recorded {item['recorded']}" if item.get("recorded") else ""
    kind = "Allergy" if item["active"] else "Past allergy"
    return f"{kind}: {item['substance']}{f' ({detail})' if detail else ''}{since}."


def problem(item: Entry) -> str:
    since = f" (since {item['onset']})" if item.get("onset") else ""
    return f"{'Active' if item['active'] else 'Past'} problem: {item['name']}{since}."


def immunization(item: Entry) -> str:
    return f"Immunization: {_dated(item['name'], item['date'])}."


def note(item: Entry) -> str:
    text = " ".join(item["text"].split())
    by = f", {item['author']}" if item.get("author") else ""
    if names(PLANTED, text):
        text = WITHHELD
    elif len(text) > NOTE_CHARS:
        text = text[:NOTE_CHARS].rsplit(" ", 1)[0] + " … (cut)"
    return f"{_dated(item['type'], item['date'])}{by}: {text}"


def measured(item: Entry) -> str:
    """One result: value, unit, flag, date, reference range, and the earlier values with their dates."""
    limits = _limits(item.get("low"), item.get("high"))
    reference = f"; reference {limits}" if limits else ""
    detail = ", ".join(part for part in (item["flag"], item["date"]) if part)
    earlier = "; ".join(f"{old['value']} ({old['date']})" for old in item.get("earlier") or [])
    head = f"{item['name']}: {item['value']} {item['unit']}".strip() + (f" ({detail}{reference})" if detail else "")
    return f"{head}. Earlier: {earlier}.{_direction(item)}" if earlier else f"{head}."


def _limits(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f"below {high}"
    return f"above {low}" if high is None else f"{low}-{high}"


def _direction(item: Entry) -> str:
    """Rising or falling, where the last values all go one way."""
    try:
        values = [float(old["value"]) for old in reversed(item["earlier"])] + [float(item["value"])]
    except ValueError:
        return ""
    steps = {(one < other) - (one > other) for one, other in pairwise(values)}
    if steps == {1}:
        return " Rising."
    return " Falling." if steps == {-1} else ""


def _dated(name: str, day: str) -> str:
    return f"{name}, {day}" if day else name


def age(born: str, today: date) -> int:
    year, month, day = (int(part) for part in born.split("-"))
    return today.year - year - ((today.month, today.day) < (month, day))


def section(ask: str, chart: Chart, today: date) -> list[str]:
    """What a chart says to one ask of `reading.labels.TOPICS`."""
    if ask in LISTS:
        key, line, none = LISTS[ask]
        return _many(map(line, chart[key])) or [none]
    if ask in STATES:
        key, line, none = STATES[ask]
        past = [line(item) for item in chart[key] if not item["active"]]
        return [*(_many(line(item) for item in chart[key] if item["active"]) or [none]), *past[:PAST_SHOWN]]
    if ask == "chart":
        return overview(chart)
    if ask == "alg":
        listed = _many(map(allergy, sorted(chart["allergies"], key=lambda item: item["severity"] != "severe")))
        return listed or ["No known allergies (documented)." if chart["no_known_allergies"] else UNDOCUMENTED]
    if ask == "notes":
        older = len(chart["notes"]) - NOTES_SHOWN
        more = [f"And {older} older notes."] if older > 0 else []
        return [*map(note, chart["notes"][:NOTES_SHOWN]), *more] or ["No notes are recorded."]
    return _last_seen(chart) if ask == "seen" else [_demographics(chart, today)]


def overview(chart: Chart) -> list[str]:
    """The chart as a whole: what decides about drugs and urgency first."""
    parts = ("alg", "prob", "meds", "labs", "vit", "soc", "notes", "imm")
    return [line for part in parts for line in section(part, chart, date.today())]


def results_to_weigh(chart: Chart) -> str:
    """Kidney function, potassium, INR and whatever is abnormal, on one line: what an order is read with."""
    kept = [
        item for item in chart["labs"] if measure_named(item["name"]) in WEIGHED or item["flag"] not in UNREMARKABLE
    ]
    told = [f"{item['name']} {item['value']} {item['unit']}".strip() + f" ({item['date']})" for item in kept]
    return f"Results to weigh: {'; '.join(told)}." if told else "No kidney function is recorded."


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
    return f"{', '.join(part for part in parts if part)}."


def _last_seen(chart: Chart) -> list[str]:
    """The newest dated note, with its author; else the newest result."""
    if chart["notes"]:
        latest = max(chart["notes"], key=lambda item: item["date"])
        by = f", by {latest['author']}" if latest.get("author") else "; the note names no author"
        return [f"Last seen according to the notes: {latest['date']}{by} ({latest['type']}).", note(latest)]
    dates = [item["date"] for item in [*chart["labs"], *chart["vitals"]] if item["date"]]
    return [f"No visit note is recorded; the latest result is of {max(dates)}." if dates else "No visit is recorded."]


def _many(lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    return listed if len(listed) <= MANY else [*listed[:MANY], f"And {len(listed) - MANY} more."]


LISTS = {
    "labs": ("labs", measured, "No lab results are recorded."),
    "vit": ("vitals", measured, "No vital signs are recorded."),
    "imm": ("immunizations", immunization, "No immunizations are recorded."),
    "soc": ("social", measured, "No social history is recorded."),
}
STATES = {
    "meds": ("medications", medication, "No active medications are recorded."),
    "prob": ("conditions", problem, "No active problems are recorded."),
}
