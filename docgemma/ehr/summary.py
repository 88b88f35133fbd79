"""A chart as plain JSON, and as the tables that `docgemma ehr show` prints."""

from collections.abc import Iterable, Sequence
from typing import Any

from docgemma.ehr import facts
from docgemma.ehr.base import Chart, Resource
from docgemma.text.characters import visible

EARLIER = 2  # values before the latest, for the trend
ABNORMAL_STYLE = "bold red"
# what can end -> columns of its table
ENTRIES = {
    "allergies": {"Substance": "substance", "Reaction": "reaction", "Severity": "severity", "Recorded": "recorded"},
    "problems": {"Problem": "name", "Since": "onset", "Resolved": "resolved"},
    "medications": {"Drug": "name", "Dose": "dosage", "Since": "started", "For": "reason", "Status": "status"},
}
MEASURED = ("Latest", "Flag", "Reference", "Date", "Earlier")


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

    console = Console(highlight=False)

    def line(text: str, style: str = "") -> None:
        console.print(Text(visible(text), style=style))

    def section(title: str, heads: Sequence[str], rows: list[list[str]], none: str = "none recorded") -> None:
        line(f"\n{title}", "bold")
        shown = [at for at in range(len(heads)) if any(row[at] for row in rows)]  # no empty columns
        table = Table(*(heads[at] for at in shown), box=None, header_style="dim", padding=(0, 2, 0, 0))
        for row in rows:
            abnormal = "Flag" in heads and row[heads.index("Flag")] not in facts.NOT_ABNORMAL
            table.add_row(*(Text(visible(row[at]), style=ABNORMAL_STYLE if abnormal else "") for at in shown))
        console.print(Padding(table if rows else Text(none), (0, 0, 0, 2), expand=False))

    def entries(active: bool) -> None:
        for kind, columns in ENTRIES.items():
            rows = _cells([item for item in chart[kind] if item["active"] is active], columns.values())
            if active:
                section(kind.capitalize(), list(columns), rows, none[kind])
            elif rows:
                section(f"Past {kind}", list(columns), rows)

    no_allergy = "none recorded; that is not the same as no known allergies"
    none = {"allergies": "no known allergies (recorded as such)" if chart["no_known_allergies"] else no_allergy}
    none |= {"problems": "none recorded as active", "medications": "none recorded as active"}
    patient = chart["patient"]
    born = f"born {patient['birth_date']}" if patient["birth_date"] else "date of birth not recorded"
    died = f", died {patient['deceased']}".replace("died yes", "deceased") if patient["deceased"] else ""
    line(patient["name"], "bold")
    line(f"{patient['sex'] or 'sex not recorded'}, {born}{died}, ID {patient['id']}")
    entries(active=True)
    section("Laboratory", ("Test", *MEASURED), _measured(chart["labs"]))
    section("Vital signs", ("Sign", *MEASURED), _measured(chart["vitals"]))
    section("Other observations", ("Observation", *MEASURED), _measured(chart["observations"]))
    section("Immunizations", ("Vaccine", "Date"), _cells(chart["immunizations"], ("name", "date")))
    entries(active=False)
    line("\nNotes", "bold")
    for note in chart["notes"] or [{"text": "none recorded"}]:
        head = ", ".join(part for key in ("type", "date", "author") if (part := note.get(key)))
        console.print(Padding(Text(visible(f"{head}\n{note['text']}".strip())), (0, 0, 1, 2), expand=False))


def _cells(items: Iterable[dict[str, Any]], keys: Iterable[str]) -> list[list[str]]:
    keys = list(keys)
    return [[str(item.get(key) or "") for key in keys] for item in items]


def _measured(items: Iterable[dict[str, Any]]) -> list[list[str]]:
    """One row a test: the latest value, whether it is normal, and the values before it."""
    tests: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        tests.setdefault(item["name"], []).append(item)
    return [
        [
            name,
            f"{latest['value']} {latest['unit']}".strip(),
            latest["flag"],
            _range(latest["low"], latest["high"]),
            latest["date"],
            "; ".join(f"{item['value']} ({item['date']})" for item in earlier[:EARLIER]),
        ]
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
