"""Work out from a chart what it does not record as a result: weeks of pregnancy, creatinine clearance, BMI. Pure."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from docgemma.rules.patient_state import PatientState, patient_state


def derived(measure: str, chart: Mapping[str, Any], today: date) -> str:
    """A sentence on a measure of `data/clinical/measures.yaml` that can be worked out; "" where it cannot."""
    known = {"gestational age": _weeks, "creatinine clearance": _clearance, "bmi": _bmi, "hba1c in mmol/mol": _hba1c}
    return known[measure](patient_state(chart, today)) if measure in known else ""


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
