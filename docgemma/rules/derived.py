"""Work out from a chart what it does not record as a result: weeks of pregnancy, creatinine clearance, BMI, other
units. Pure."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from docgemma.reading.terms import measure_named
from docgemma.rules.chart_entries import Line
from docgemma.rules.patient_state import ADULT, PatientState, patient_state
from docgemma.text.words import clinical, plain

TERM = 280  # days


def derived(measure: str, chart: Mapping[str, Any], today: date) -> str:
    """A sentence on a measure of `data/clinical/measures.yaml` that can be worked out; "" where it cannot."""
    known = {"gestational age": _weeks, "creatinine clearance": _clearance, "bmi": _bmi, "hba1c in mmol/mol": _hba1c,
             "ideal body weight": _ideal}  # fmt: skip
    told = known[measure](patient_state(chart, today)) if measure in known else ""
    due = _due(chart) if told and measure == "gestational age" else None
    days = TERM - (due - today).days if due else 0
    return f"{told} By the due date {due}: {days // 7} weeks and {days % 7} days." if 0 < days <= TERM + 21 else told


def in_other_unit(line: Line, said: str) -> str:
    """A result in the unit in which it is asked for, "hb in g/L?", its earlier values too; "" where none is."""
    units, item, words = clinical("units"), line.item, f" {plain(said)} "
    asked = {unit for unit, names in units["asked"].items() if any(f" {name} " in words for name in names)}
    any_unit = any(f" {name} " in words for name in units["si"])
    for row in units["converted"]:
        mine = (row["measure"], row["from"]) == (measure_named(line.name), item.get("unit"))
        if mine and (any_unit or row["to"] in asked):
            dated = [item, *(item.get("earlier") or [])]
            values = [float(f"{float(one['value']) * row['by'] + row.get('plus', 0):.3g}") for one in dated]
            told = [f"{value:g} ({one['date']})" for value, one in zip(values, dated, strict=True)]
            how = f"x {row['by']}" + (f" + {row['plus']}" if "plus" in row else "")
            return f"{line.name} in {row['to']}: about {'; '.join(told)}, worked out from {row['from']} ({how})."
    return ""


def _weeks(patient: PatientState) -> str:
    weeks = patient.pregnancy_weeks
    return f"About {weeks} weeks of pregnancy today, counted on from the latest note that states them." if weeks else ""


def _due(chart: Mapping[str, Any]) -> date | None:
    """The due date that the newest note states; it stands for 40 weeks."""
    said = (" ".join(plain(item["text"]).split()).partition("due date ")[2][:10] for item in chart["notes"])
    with suppress(ValueError):
        return date.fromisoformat(next(filter(None, said), ""))
    return None


def _clearance(patient: PatientState) -> str:
    if not (cleared := patient.clearance):
        return ""
    value, unit, day = patient.results["creatinine"]
    told = f"creatinine {value:g} {unit} ({day}), age {patient.age:g}, weight {patient.weight:g} kg"
    return f"Creatinine clearance about {cleared:.0f} mL/min (Cockcroft-Gault: {told})."


def ideal_weight(patient: PatientState) -> float | None:
    """Ideal body weight in kg of an adult taller than 5 feet, by Devine (Drug Intell Clin Pharm 1974;8:650-655)."""
    over = _metres(patient) / 0.0254 - 60
    if over < 0 or patient.sex not in ("female", "male") or (patient.age or 0) < ADULT:
        return None
    return (45.5 if patient.sex == "female" else 50.0) + 2.3 * over


def _ideal(patient: PatientState) -> str:
    kg = ideal_weight(patient)
    return f"Ideal body weight about {kg:.0f} kg (Devine: {patient.sex}, {_metres(patient):.2f} m)." if kg else ""


def _metres(patient: PatientState) -> float:
    """Height in m; 0 if it is not recorded."""
    value, unit, _ = patient.results.get("height", (0.0, "", ""))
    return value * {"cm": 0.01, "m": 1.0, "in": 0.0254, "[in_i]": 0.0254}.get(unit.casefold(), 0.0)


def _bmi(patient: PatientState) -> str:
    metres = _metres(patient)
    if not metres or not patient.weight:
        return ""
    return f"BMI about {patient.weight / metres**2:.1f} kg/m² (weight {patient.weight:g} kg, height {metres:.2f} m)."


def _hba1c(patient: PatientState) -> str:
    """Source: NGSP/IFCC master equation, NGSP = 0.09148 x IFCC + 2.152 (https://ngsp.org/ifcc.asp)."""
    value, unit, day = patient.results.get("hba1c", (0.0, "", ""))
    told = f"Hemoglobin A1c about {(value - 2.152) / 0.09148:.0f} mmol/mol ({day}; from {value:g} %, master equation)."
    return told if unit == "%" else ""
