"""A chart as plain JSON, for `docgemma ehr show`."""

from typing import Any

from docgemma.ehr import facts as read
from docgemma.ehr.base import Chart
from docgemma.ehr.fhir import Resource


def summarize(chart: Chart) -> dict[str, Any]:
    """Everything in the chart, newest first. [] means looked up, none recorded; "" means the record does not say.

    Returns:
        `patient: {"id", "name", "birth_date", "sex", "deceased"}`, `problems`, `medications`, `allergies`, `labs`,
        `vitals`, `observations`, `notes`, `immunizations`: lists of flat objects of texts and numbers. `flag` is
        high, low, critically high, ..., normal, or "" where neither laboratory nor reference range says.
    """
    return {
        "patient": _patient(chart),
        "problems": [read.condition(item) | _ended(item) for item in chart.conditions],
        "medications": [read.medication(item) for item in chart.medications],
        "allergies": [found for item in chart.allergies if (found := read.allergy(item))],
        "no_known_allergies": any(map(read.says_no_known_allergy, chart.allergies)),
        "labs": [read.observation(item) for item in chart.labs],
        "vitals": [read.observation(item) for item in chart.vitals],
        "observations": [read.observation(item) for item in chart.observations],
        "notes": [read.document(item) for item in chart.notes],
        "immunizations": [read.immunization(item) for item in chart.immunizations],
    }


def deceased(patient: Resource) -> str:
    """The date of death, "yes" if only the fact is known, "" if the record does not say so."""
    return patient.get("deceasedDateTime") or ("yes" if patient.get("deceasedBoolean") else "")


def _patient(chart: Chart) -> dict[str, Any]:
    match = chart.patient
    return {
        "id": match.id,
        "name": match.name,
        "birth_date": match.birth_date,
        "sex": match.sex,
        "deceased": deceased(chart.record),
    }


def _ended(resource: Resource) -> dict[str, str]:
    ended = resource.get("abatementDateTime") or ""
    return {"resolved": ended[:10]} if ended else {}
