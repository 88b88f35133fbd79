"""A chart as plain JSON, and as the tables that `docgemma ehr show` prints."""

from collections.abc import Iterable, Iterator
from typing import Any

from docgemma.ehr import facts
from docgemma.ehr.base import Chart, Resource
from docgemma.text.words import visible

EARLIER = 2  # values before the latest, for the trend
ABNORMAL_STYLE = "bold red"
# what can end -> columns of its table
ENTRIES = {
    "allergies": {"Substance": "substance", "Reaction": "reaction", "Severity": "severity", "Recorded": "recorded"},
    "problems": {"Problem": "name", "Since": "onset", "Resolved": "resolved"},
    "medications": {"Drug": "name", "Dose": "dosage", "Since": "started", "For": "reason", "Status": "status"},
}
MEASURED = {"labs": "Laboratory", "vitals": "Vital signs", "observations": "Other observations"}
Rows = list[dict[str, str]]  # the cells of a table by the heads of their columns


def summarize(chart: Chart) -> dict[str, Any]:
    """Everything in the chart, newest first. [] means looked up, none recorded; "" means the record does not say.

    Returns:
        `patient: {"id", "name", "birth_date", "sex", "deceased"}`, `problems`, `medications`, `allergies`, `labs`,
        `vitals`, `observations`, `notes`, `immunizations`: lists of flat objects of texts and numbers. `flag` is
        high, low, critically high, ..., normal, or "" where neither laboratory nor reference range says.
    """
    patient = chart.patient
    return {
        "patient": {
            "id": patient.id,
            "name": patient.name,
            "birth_date": patient.birth_date,
            "sex": patient.sex,
            "deceased": deceased(chart.record),
        },
        "problems": [facts.condition(item) | _ended(item) for item in chart.conditions],
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
    return patient.get("deceasedDateTime") or ("yes" if patient.get("deceasedBoolean") else "")


def print_chart(chart: dict[str, Any]) -> None:
    """Print `summarize`'s JSON as a clinician reads a chart: headed tables, what is active before what is past."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    patient, console = chart["patient"], Console(highlight=False)
    born = f"born {patient['birth_date']}" if patient["birth_date"] else "date of birth not recorded"
    died = f", died {patient['deceased']}".replace("died yes", "deceased") if patient["deceased"] else ""
    console.print(Text(visible(patient["name"]), style="bold"))
    console.print(Text(visible(f"{patient['sex'] or 'sex not recorded'}, {born}{died}, ID {patient['id']}")))
    for title, rows, none in _sections(chart):
        heads = [head for head in (rows[0] if rows else ()) if any(row[head] for row in rows)]  # no empty columns
        table = Table(*heads, box=None, header_style="dim", padding=(0, 2, 0, 0))
        for row in rows:
            style = "" if row.get("Flag", "") in facts.NOT_ABNORMAL else ABNORMAL_STYLE
            table.add_row(*(Text(visible(row[head]), style=style) for head in heads))
        console.print(Text(f"\n{title}", style="bold"))
        console.print(Padding(table if rows else Text(none), (0, 0, 0, 2), expand=False))
    console.print(Text("\nNotes", style="bold"))
    for note in chart["notes"] or [{"text": "none recorded"}]:
        head = ", ".join(part for key in ("type", "date", "author") if (part := note.get(key)))
        console.print(Padding(Text(visible(f"{head}\n{note['text']}".strip())), (0, 0, 1, 2), expand=False))


def _sections(chart: dict[str, Any]) -> Iterator[tuple[str, Rows, str]]:
    """Title, rows, and what is printed where there are none."""
    none = {"problems": "none recorded as active", "medications": "none recorded as active"}
    none["allergies"] = "none recorded; that is not the same as no known allergies"
    if chart["no_known_allergies"]:
        none["allergies"] = "no known allergies (recorded as such)"
    for kind, columns in ENTRIES.items():
        yield kind.capitalize(), _rows((item for item in chart[kind] if item["active"]), columns), none[kind]
    for kind, title in MEASURED.items():
        yield title, _measured(chart[kind]), "none recorded"
    yield "Immunizations", _rows(chart["immunizations"], {"Vaccine": "name", "Date": "date"}), "none recorded"
    for kind, columns in ENTRIES.items():
        if past := _rows((item for item in chart[kind] if not item["active"]), columns):
            yield f"Past {kind}", past, ""


def _rows(items: Iterable[dict[str, Any]], columns: dict[str, str]) -> Rows:
    return [{head: str(item.get(key) or "") for head, key in columns.items()} for item in items]


def _measured(items: Iterable[dict[str, Any]]) -> Rows:
    """One row a test: the latest value, whether it is normal, and the values before it."""
    tests: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        tests.setdefault(item["name"], []).append(item)
    return [
        {
            "Name": name,
            "Latest": f"{latest['value']} {latest['unit']}".strip(),
            "Flag": latest["flag"],
            "Reference": _range(latest["low"], latest["high"]),
            "Date": latest["date"],
            "Earlier": "; ".join(f"{item['value']} ({item['date']})" for item in earlier[:EARLIER]),
        }
        for name, (latest, *earlier) in tests.items()
    ]


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{low}–{high}"
    if high is not None:
        return f"up to {high}"
    return "" if low is None else f"{low} or more"


def _ended(resource: Resource) -> dict[str, str]:
    ended = resource.get("abatementDateTime") or ""
    return {"resolved": ended[:10]} if ended else {}
