"""A chart as plain JSON, and as the tables that `docgemma ehr show` prints."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from docgemma.ehr import facts
from docgemma.ehr.base import Chart, Resource
from docgemma.text.quoted import as_recorded

if TYPE_CHECKING:
    from rich.console import Console

Rows = list[dict[str, Any]]
EARLIER = 2  # values before the latest, for the trend
ABNORMAL_STYLE = "bold red"
MEASURED = {
    "Name": "name", "Latest": "latest", "Flag": "flag", "Reference": "reference", "Date": "date", "Earlier": "earlier",
}  # fmt: skip
# title -> which list of the summary, and by the heads of its columns what they show
TABLES = {
    "Allergies": ("allergies", {"Substance": "substance", "Reaction": "reaction", "Severity": "severity",
                                "Recorded": "recorded"}),
    "Problems": ("problems", {"Problem": "name", "Since": "onset", "Resolved": "resolved"}),
    "Medications": ("medications", {"Drug": "name", "Dose": "dosage", "Since": "started", "For": "reason",
                                    "Status": "status"}),
    "Laboratory": ("labs", MEASURED),
    "Vital signs": ("vitals", MEASURED),
    "Other observations": ("observations", MEASURED),
    "Immunizations": ("immunizations", {"Vaccine": "name", "Date": "date"}),
}  # fmt: skip


def summarize(chart: Chart) -> dict[str, Any]:
    """Everything in the chart, newest first. [] means looked up, none recorded; "" means the record does not say.

    Returns:
        `patient: {"id", "name", "birth_date", "sex", "deceased", "language"}`, `problems`, `medications`, `allergies`,
        `labs`, `vitals`, `observations`, `notes`, `immunizations`: lists of flat objects of texts and numbers. `flag`
        is high, low, critically high, ..., normal, or "" where neither laboratory nor reference range says.
    """
    patient = {key: getattr(chart.patient, key) for key in ("id", "name", "birth_date", "sex")}
    return {
        "patient": patient | {"deceased": deceased(chart.record), "language": languages(chart.record)},
        "problems": [facts.condition(item) for item in chart.conditions],
        "medications": [facts.medication(item) for item in chart.medications],
        "allergies": [found for item in chart.allergies if (found := facts.allergy(item))],
        "no_known_allergies": any(map(facts.says_no_known_allergy, chart.allergies)),
        "labs": [facts.observation(item) for item in chart.labs],
        "vitals": [facts.observation(item) for item in chart.vitals],
        "observations": [facts.observation(item) for item in chart.observations],
        "notes": [facts.document(item) for item in chart.notes],
        "immunizations": [facts.immunization(item) for item in chart.immunizations],
    }


def deceased(patient: Resource) -> str:
    """The date of death, "yes" if only the fact is known, "" if the record does not say so."""
    return as_recorded(patient.get("deceasedDateTime") or "", "date of death") or (
        "yes" if patient.get("deceasedBoolean") else ""
    )


def languages(patient: Resource) -> str:
    """The languages that a patient is spoken to in; "" if the record does not say so."""
    spoken = (facts.concept(item.get("language")) for item in patient.get("communication", []))
    return as_recorded(", ".join(filter(None, spoken)), "language")


def print_chart(chart: dict[str, Any], console: "Console") -> None:
    """Print `summarize`'s JSON as a clinician reads a chart: headed tables, what is active before what is past."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    patient = chart["patient"]
    born = f"born {patient['birth_date']}" if patient["birth_date"] else "date of birth not recorded"
    died = f", died {patient['deceased']}".replace("died yes", "deceased") if patient["deceased"] else ""
    spoken = f", preferred language {patient['language']}" if patient["language"] else ""
    console.print(Text(patient["name"], style="bold"))
    console.print(Text(f"{patient['sex'] or 'sex not recorded'}, {born}{died}{spoken}, ID {patient['id']}"))

    def show(title: str, rows: Rows, columns: dict[str, str], none: str) -> None:
        heads = {head: key for head, key in columns.items() if any(row.get(key) for row in rows)}  # no empty columns
        table = Table(*heads, box=None, header_style="dim", padding=(0, 2, 0, 0))
        for row in rows:
            style = "" if row.get("flag", "") in facts.NOT_ABNORMAL else ABNORMAL_STYLE
            table.add_row(*(Text(str(row.get(key) or ""), style=style) for key in heads.values()))
        console.print(Text(f"\n{title}", style="bold"))
        console.print(Padding(table if rows else Text(none), (0, 0, 0, 2), expand=False))

    no_allergy = "no known allergies (recorded as such)"
    unknown = "none recorded; that is not the same as no known allergies"
    none = {"Allergies": no_allergy if chart["no_known_allergies"] else unknown}
    none |= dict.fromkeys(("Problems", "Medications"), "none recorded as active")
    for title, (kind, columns) in TABLES.items():
        rows = [row for row in chart[kind] if row.get("active", True)]
        rows = list(map(_as_row, latest(rows))) if columns is MEASURED else rows
        show(title, rows, columns, none.get(title, "none recorded"))
    for title, (kind, columns) in TABLES.items():
        if past := [row for row in chart[kind] if not row.get("active", True)]:
            show(f"Past {title.lower()}", past, columns, "")
    console.print(Text("\nNotes", style="bold"))
    for note in chart["notes"] or [{"text": "none recorded"}]:
        head = ", ".join(part for key in ("type", "date", "author") if (part := note.get(key)))
        console.print(Padding(Text(f"{head}\n{note['text']}".strip()), (0, 0, 1, 2), expand=False))


def latest(items: Iterable[dict[str, Any]]) -> Rows:
    """The first of each name, with the `earlier` two values before it: the store gives the newest first."""
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        newest = found.setdefault(item["name"], {**item, "earlier": []})
        if len(newest["earlier"]) < EARLIER and (newest["date"], newest["value"]) != (item["date"], item["value"]):
            newest["earlier"].append({"value": item["value"], "date": item["date"]})
    return list(found.values())


def _as_row(item: dict[str, Any]) -> dict[str, Any]:
    """What the table of a test shows."""
    return item | {
        "latest": f"{item['value']} {item['unit']}".strip(),
        "reference": _range(item["low"], item["high"]),
        "earlier": "; ".join(f"{before['value']} ({before['date']})" for before in item["earlier"]),
    }


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{low}–{high}"
    if high is not None:
        return f"up to {high}"
    return "" if low is None else f"{low} or more"
