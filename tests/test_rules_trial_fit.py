"""What of a trial's listed criteria a chart speaks to."""

from datetime import date

import pytest

from docgemma.rules.trial_fit import spoken_to

TODAY = date(2026, 11, 25)


def chart(born: str = "1977-11-11", sex: str = "female", problem: str = "Chronic kidney disease stage 3b") -> dict:
    conditions = [{"name": problem, "active": True}]
    return {
        "patient": {"birth_date": born, "sex": sex},
        "labs": [],
        "vitals": [],
        "conditions": conditions,
        "notes": [],
        "allergies": [],
    }


def trial(summary: str, condition: str = "Chronic kidney disease") -> dict:
    return {"id": "NCT1", "title": "A trial", "summary": summary, "conditions": [condition]}


@pytest.mark.parametrize(
    ("summary", "born", "told"),
    [
        ("Adults with albuminuria.", "1977-11-11", "age 18 or older, the patient is 49: within; "),
        ("Adults aged 40 years or older.", "1995-01-01", "age 40 or older, the patient is 31: does not fit; "),
        ("Adolescents aged 12 to 17 years.", "1977-11-11", "age 12 to 17, the patient is 49: does not fit; "),
        ("Adolescents and adults with crises.", "2013-12-01", "age 12 or older, the patient is 12: within; "),
        ("Adults.", "", "age 18 or older, the patient's is not recorded; "),
        ("Children and adults.", "1977-11-11", ""),
    ],
)  # fmt: skip
def test_the_listed_age_is_set_beside_the_patients(summary: str, born: str, told: str) -> None:
    found = spoken_to(trial(summary), chart(born), TODAY)
    assert (
        found
        == f"NCT1 beside the chart: {told}Chronic kidney disease, on the chart as Chronic kidney disease stage 3b."
    )


def test_a_trial_for_women_does_not_fit_a_man_and_a_problem_that_is_not_there_is_said_so() -> None:
    found = spoken_to(trial("Postmenopausal women.", "Breast cancer"), chart(sex="male"), TODAY)
    assert "women only, the patient is male: does not fit; Breast cancer, no active problem has this name." in found


@pytest.mark.parametrize(
    ("condition", "problem", "same"),
    [
        ("Type 1 diabetes", "Type 2 diabetes mellitus", False),
        ("Type 2 diabetes", "Type 2 diabetes mellitus", True),
        ("Heart failure with preserved ejection fraction", "HFrEF", False),
        ("Heart failure", "Heart failure with reduced ejection fraction", True),
        ("Migraine with aura", "Migraine without aura", False),
        ("Chronic kidney disease", "Acute on chronic kidney disease", True),
    ],
)
def test_a_problem_of_the_opposite_kind_is_not_the_condition_of_a_trial(condition, problem, same) -> None:
    found = spoken_to(trial("Adults.", condition), chart(problem=problem), TODAY)
    assert (f"on the chart as {problem}" in found) == same
