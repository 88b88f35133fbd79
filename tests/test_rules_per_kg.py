"""Doses by body weight are worked out from the chart's weight, or it is said that there is none."""

import pytest

from docgemma.rules.per_kg import NO_WEIGHT, per_kg_lines


def chart(weight):
    told = {"name": "Body weight", "value": weight, "unit": "kg", "date": "2026-11-17", "flag": "", "history": []}
    vitals = [told] if weight else []
    amoxicillin = {"name": "amoxicillin", "dosage": "800 mg twice daily", "active": True, "started": "", "reason": ""}
    rest = {"conditions": [], "notes": [], "allergies": [], "patient": {"sex": "female", "birth_date": "1980-08-14"}}
    return {"vitals": vitals, "labs": [], "medications": [amoxicillin], **rest}


@pytest.mark.parametrize(
    ("said", "told"),
    [("mg per kg per day?",
      "800 mg twice daily is 1,600 mg a day: about 76.2 mg/kg a day, 38.1 mg/kg a dose, at 21 kg."),
     ("90/kg/day, what's that per dose bid", "90 mg/kg a day is 945 mg a dose, 1,890 mg a day at 21 kg."),
     ("15 mg/kg tds", "15 mg/kg is 315 mg a dose, 945 mg a day at 21 kg."),
     ("15mg/kg per dose?", "15 mg/kg is 315 mg a dose at 21 kg."),
     ("10 mg/kg twice daily", "is 210 mg a dose, 420 mg a day"),
     ("5 mcg/kg/min", "is not worked out here"), ("his weight in kg?", "")],
)  # fmt: skip
def test_a_dose_per_kg_is_worked_out_with_the_recorded_weight(said, told):
    assert told in " ".join(per_kg_lines(said, chart(21)))
    assert per_kg_lines(said, chart(None)) == ([NO_WEIGHT] if told else [])


@pytest.mark.parametrize(
    ("kg", "told"), [(104, "By the ideal body weight, 57 kg (Devine), it would be 68.4 mg a dose."), (60, "")]
)
def test_in_obesity_the_dose_by_ideal_weight_is_told_beside_it(kg, told):
    """Devine: 45.5 kg + 2.3 kg x (165 / 2.54 - 60) = 56.9 kg."""
    mine = chart(kg)
    mine["vitals"].append({**mine["vitals"][0], "name": "Body height", "value": 165, "unit": "cm"})
    lines = per_kg_lines("1.2 mg/kg", mine)
    assert told in lines[-1] and len(lines) == (2 if told else 1)
