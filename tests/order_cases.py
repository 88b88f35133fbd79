"""Orders of `data/orders` as the gate sees them: a chart of the scenario's patient, and the findings of its order."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from docgemma.knowledge import open_knowledge
from docgemma.nodes.write_findings import order_findings
from docgemma.paths import data_file
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR
from docgemma.settings import Settings
from tests.rules_help import dictionary

TODAY = date.today()
LABS = {
    "eGFR": ("eGFR", "mL/min/1.73 m2"), "creatinine": ("Creatinine", "mg/dL"), "potassium": ("Potassium", "mmol/L"),
    "sodium": ("Sodium", "mmol/L"), "INR": ("INR", ""), "platelets": ("Platelets", "10*3/uL"), "ALT": ("ALT", "U/L"),
    "hemoglobin": ("Hemoglobin", "g/dL"), "TSH": ("TSH", "mIU/L"), "lithium": ("Lithium level", "mmol/L"),
    "digoxin": ("Digoxin level", "ng/mL"),
}  # fmt: skip


@contextmanager
def gate(home: Path) -> Iterator[SimpleNamespace]:
    """What the order gate looks things up in: the offline facts and the drug dictionary."""
    settings = Settings(home=home, sources="offline")
    knowledge = open_knowledge(settings)
    yield SimpleNamespace(knowledge=knowledge, drugs=dictionary(), settings=settings)
    knowledge.close()


def scenarios(name: str) -> list[dict[str, Any]]:
    lines = data_file("orders", f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def chart_of(patient: dict[str, Any]) -> dict[str, Any]:
    """The data of `get_patient_chart` for a scenario's patient."""
    age, day = patient["age"], TODAY.isoformat()
    born = TODAY - timedelta(days=int(age * 365.25) + (30 if age >= 1 else 0))

    def result(name: str, value: Any, unit: str) -> dict[str, Any]:
        return {"name": name, "value": str(value), "unit": unit, "date": day, "flag": "", "earlier": []}

    problems, notes = list(patient.get("problems") or []), []
    if weeks := patient.get("pregnant_weeks"):
        problems.append("Pregnancy")
        notes.append({"type": "Progress note", "date": day, "author": "", "text": f"Pregnancy, {weeks} weeks."})
    if patient.get("breastfeeding"):
        problems.append("Breastfeeding (mother)")
    named = {"id": "x", "name": "X", "label": "X"}
    return {
        "patient": named | {"birth_date": born.isoformat(), "sex": patient.get("sex", "")},
        "allergies": [
            {"substance": item["substance"], "reaction": item.get("reaction", ""), "severity": "", "active": True}
            for item in patient.get("allergies") or []
        ],
        "no_known_allergies": patient.get("no_known_allergies", False),
        "conditions": [{"name": name, "active": True} for name in problems],
        "medications": [{"name": name, "dosage": "", "active": True} for name in patient.get("medications") or []],
        "labs": [result(*_lab(name, value)) for name, value in (patient.get("labs") or {}).items()],
        "vitals": [result("Body weight", patient["weight_kg"], "kg")] if patient.get("weight_kg") else [],
        "social": [], "notes": notes, "immunizations": [], "deceased": "",
    }  # fmt: skip


def grave(patient: dict[str, Any], order: dict[str, str], context: Any) -> list[str]:
    """The findings of rank contraindicated or major."""
    args = {
        "patient_id": "x", "medication_name": order["drug"], "dosage": order.get("dose", ""),
        "frequency": order.get("frequency", ""), "notes": order.get("notes", ""),
    }  # fmt: skip
    found = order_findings(args, chart_of(patient), context)
    return [finding.text for finding in found if finding.rank in (CONTRAINDICATED, MAJOR)]


def _lab(name: str, value: Any) -> tuple[str, Any, str]:
    shown, unit = LABS.get(name, (name, ""))
    return shown, value, unit
