"""Work out from a chart what it does not record as a result: weeks of pregnancy, creatinine clearance, BMI, other
units. Pure."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from docgemma.reading.terms import measure_named
from docgemma.rules.chart_entries import Line
from docgemma.rules.patient_state import PatientState, patient_state
from docgemma.text.words import clinical, plain


def derived(measure: str, chart: Mapping[str, Any], today: date) -> str:
    """A sentence on a measure of `data/clinical/measures.yaml` that can be worked out; "" where it cannot."""
    known = {"gestational age": _weeks, "creatinine clearance": _clearance, "bmi": _bmi, "hba1c in mmol/mol": _hba1c}
    return known[measure](patient_state(chart, today)) if measure in known else ""


def in_other_unit(line: Line, said: str) -> str:
    """A result in the unit in which it is asked for, "hb in g/L?", its earlier values too; "" where none is."""
    units, item, words = clinical("units"), line.item, f" {plain(said)} "
    asked = {unit for unit, names in units["asked"].items() if any(f" {name} " in words for name in names)}
    any_unit = any(f" {name} " in words for name in units["si"])
    for row in units["converted"]:
        mine = (row["measure"], row["from"]) == (measure_named(line.name), item.get("unit"))
        if mine and (any_unit or row["to"] in asked):
            dated = [item, *(item.get("earlier") or [])]
            values = [float(f"{float(one['value']) * row['by']:.3g}") for one in dated]
            told = [f"{value:g} ({one['date']})" for value, one in zip(values, dated, strict=True)]
            return (
                f"{line.name} in {row['to']}: about {'; '.join(told)}, worked out from {row['from']} (x {row['by']})."
            )
    return ""


def _weeks(patient: PatientState) -> str:
    weeks = patient.pregnancy_weeks
    return f"About {weeks} weeks of pregnancy today, counted on from the latest note that states them." if weeks else ""


def _clearance(patient: PatientState) -> str:
    if not (cleared := patient.clearance):
        return ""
    value, unit, day = patient.results["creatinine"]
    told = f"creatinine {value:g} {unit} ({day}), age {patient.age:g}, weight {patient.weight:g} kg"
    return f"Creatinine clearance about {cleared:.0f} mL/min (Cockcroft-Gault: {told})."


def _bmi(patient: PatientState) -> str:
    height = patient.results.get("height", (0.0, "", ""))
    metres = height[0] * {"cm": 0.01, "m": 1.0, "in": 0.0254, "[in_i]": 0.0254}.get(height[1].casefold(), 0.0)
    if not metres or not patient.weight:
        return ""
    return f"BMI about {patient.weight / metres**2:.1f} kg/m² (weight {patient.weight:g} kg, height {metres:.2f} m)."


def _hba1c(patient: PatientState) -> str:
    """Source: NGSP/IFCC master equation, NGSP = 0.09148 x IFCC + 2.152 (https://ngsp.org/ifcc.asp)."""
    value, unit, day = patient.results.get("hba1c", (0.0, "", ""))
    told = f"Hemoglobin A1c about {(value - 2.152) / 0.09148:.0f} mmol/mol ({day}; from {value:g} %, master equation)."
    return told if unit == "%" else ""
