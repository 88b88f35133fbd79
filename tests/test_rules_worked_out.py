"""What is worked out for a person: maximum doses by weight, age and kidneys, and measures that no chart records."""

from datetime import date, timedelta

import pytest

from docgemma.knowledge.drug_rules import doses_of
from docgemma.rules.chart_entries import levels, to_weigh
from docgemma.rules.chart_notes import of_notes
from docgemma.rules.derived import derived
from docgemma.rules.dose_answer import maxima_for
from docgemma.rules.patient_state import UNKNOWN, as_told

TODAY = date(2026, 11, 25)


@pytest.mark.parametrize(
    ("said", "age", "weight", "egfr"),
    [
        ("max ibuprofen for a 20 kg child", None, 20, None),
        ("6yo 44 lb", 6, pytest.approx(19.96, abs=0.01), None),
        ("8 month old, 9.5kg, 15 mg/kg", pytest.approx(0.667, abs=0.001), 9.5, None),
        ("amox for 3 y/o", 3, None, None),
        ("45kg lady aged 70.", 70, 45, None),
        ("for 3 months, 5 mg/kg", None, None, None),
        ("gabapentin if eGFR 25", None, None, 25),
    ],
)
def test_weight_age_and_kidney_function_are_read_from_a_message(said, age, weight, egfr) -> None:
    patient = as_told(said, UNKNOWN)
    assert (patient.age, patient.weight) == (age, weight)
    assert patient.results.get("egfr", (None,))[0] == egfr


@pytest.mark.parametrize(
    ("drug", "said", "child", "told"),
    [
        (
            "ibuprofen", "20 kg child", True,
            ["oral, below 12 years, at 20 kg: 800 mg a day (40 mg/kg), 200 mg in one dose (10 mg/kg)"],
        ),
        ("gabapentin", "max dose if egfr 25", False, ["oral, eGFR below 30: 700 mg a day"]),
        ("meropenem", "iv max at egfr 18 (not meningitis)", False, ["injection, eGFR below 26: 1 g a day"]),
        ("meropenem", "iv max if meningitis at egfr 18", False,
         ["injection, for meningitis, eGFR below 26: 2 g a day"]),
        (
            "acetaminophen", "at 45 kg", False,
            ["oral: 4,000 mg a day, 1,000 mg in one dose",
             "injection, below 50 kg, at 45 kg: 3,375 mg a day (75 mg/kg), 675 mg in one dose (15 mg/kg)"],
        ),
        ("ibuprofen", "max dose", False, []),
        ("levothyroxine", "at 70 kg", False, ["oral: 300 mcg a day"]),
        ("tirzepatide", "45 kg", False, ["injection: 15 mg once a week"]),
        (
            "sitagliptin", "max dose if egfr 68", False,
            ["oral: 100 mg a day", "oral, eGFR below 45: 50 mg a day", "oral, eGFR below 30: 25 mg a day"],
        ),
        (
            "acetaminophen", "max in cirrhosis", False,
            ["oral, for cirrhosis: 2,000 mg a day, 1,000 mg in one dose "
             "(chronic liver disease, for a short time; other adults 4000 mg a day)"],
        ),
    ],
)  # fmt: skip
def test_a_maximum_is_worked_out_for_whom_it_is(drug, said, child, told) -> None:
    assert maxima_for(doses_of(drug), as_told(said, UNKNOWN), said, child) == told


def test_the_adult_maximum_is_never_the_answer_for_a_child_without_a_weight() -> None:
    told = maxima_for(doses_of("ibuprofen"), as_told("max dose in children", UNKNOWN), "max dose in children", True)
    assert told == ["oral, below 12 years: 2,400 mg a day, 40 mg/kg a day, 10 mg/kg in one dose"]


def chart(**parts) -> dict:
    lab = {"unit": "mg/dL", "flag": "normal", "date": "2026-11-11", "low": None, "high": None}
    return {
        "patient": {"id": "x-1", "name": "Test Person", "birth_date": "1955-06-03", "sex": "female"},
        "labs": [{**lab, "name": "Creatinine", "value": "0.9"}, {**lab, "name": "Lithium level", "value": "0.8"}],
        "vitals": [{**lab, "name": "Body weight", "value": "63", "unit": "kg"},
                   {**lab, "name": "Body height", "value": "157", "unit": "cm"}],
        "medications": [{"name": "lithium carbonate", "active": True, "dosage": "300 mg"}],
        "conditions": [], "allergies": [], "notes": [], "social": [], "immunizations": [],
        "no_known_allergies": False, "deceased": "",
    } | parts  # fmt: skip


def test_clearance_and_bmi_are_worked_out_with_what_they_rest_on() -> None:
    assert derived("creatinine clearance", chart(), TODAY) == (
        "Creatinine clearance about 57 mL/min "
        "(Cockcroft-Gault: creatinine 0.9 mg/dL (2026-11-11), age 71, weight 63 kg)."
    )
    assert derived("bmi", chart(), TODAY) == "BMI about 25.6 kg/m² (weight 63 kg, height 1.57 m)."
    assert derived("bmi", chart(vitals=[]), TODAY) == "" == derived("creatinine clearance", chart(labs=[]), TODAY)


def test_weeks_of_pregnancy_are_counted_on_from_the_note() -> None:
    note = {"type": "Prenatal visit", "date": "2026-11-17", "text": "28 weeks pregnant, all well."}
    pregnant = chart(notes=[note], conditions=[{"name": "Pregnancy", "active": True}])
    assert derived("gestational age", pregnant, TODAY).startswith("About 29 weeks of pregnancy today")
    assert derived("gestational age", pregnant, TODAY + timedelta(days=200)) == ""


def test_the_level_of_an_active_medicine_is_weighed_though_it_is_normal() -> None:
    assert [line.name for line in levels(chart())] == ["Lithium level"]
    assert "Lithium level" in [item["name"] for item in to_weigh(chart())]
    assert levels(chart(medications=[])) == []


def test_a_stated_kidney_function_is_held_against_the_drug_before_its_maximum_is_told(edge_agent) -> None:
    answer = edge_agent.ask("dapagliflozin at an egfr of 22, ok?")["answer"]
    assert answer.startswith("Caution (dapagliflozin): do not start below 25 mL/min")


def test_a_note_that_speaks_against_the_drug_stands_beside_the_order() -> None:
    notes = [
        {
            "type": "Progress note",
            "date": "2026-10-05",
            "author": "Pain clinic",
            "text": "Stable. No opioids, see 2022.",
        },
        {"type": "Progress note", "date": "2026-09-01", "author": "Pain clinic", "text": "Morphine was discussed."},
    ]
    found = of_notes({"morphine"}, chart(notes=notes))
    assert [item.text for item in found] == ["Progress note, 2026-10-05, Pain clinic: Stable. No opioids, see 2022."]
    assert of_notes({"ibuprofen"}, chart(notes=notes)) == []
