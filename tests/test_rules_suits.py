"""A label's lines beside a patient's problems, kidney function and age. Unknown is never normal."""

from datetime import date

import pytest

from docgemma.rules.suits import label_conflicts
from tests.rules_help import chart_of, dictionary, measured, problem

TODAY = date(2026, 11, 22)


def conflicts(contraindications=(), warnings=(), boxed="", **given) -> list[str]:
    label = {"contraindications": list(contraindications), "warnings": list(warnings), "boxed_warning": boxed}
    return label_conflicts("metformin", label, chart_of(**given), dictionary(), TODAY)


def egfr(value: str) -> list[dict]:
    return [measured("eGFR (CKD-EPI)", value, "mL/min/1.73 m²")]


@pytest.mark.parametrize(("value", "found"), [("29", 1), ("29.9", 1), ("30", 0), ("30.0", 0), ("41", 0), ("<15", 1)])
def test_a_kidney_limit_holds_below_it(value: str, found: int) -> None:
    assert len(conflicts(["severe renal impairment (eGFR below 30)"], labs=egfr(value))) == found


def test_a_missing_egfr_is_said_not_passed_over() -> None:
    (line,) = conflicts(["eGFR below 30"])
    assert "No eGFR is recorded" in line


def test_a_value_that_is_no_number_is_not_taken_for_normal() -> None:
    assert conflicts(["eGFR below 30"], labs=egfr("see report"))


def test_an_active_problem_is_named_and_a_past_one_is_not() -> None:
    heart = "Warning", "heart failure"
    assert any(
        "Heart failure" in line for line in conflicts(warnings=[heart[1]], conditions=[problem("Heart failure")])
    )
    assert not conflicts(warnings=[heart[1]], conditions=[problem("Heart failure", active=False)])


def test_an_unrelated_problem_is_no_finding() -> None:
    assert conflicts(["history of angioedema"], ["bronchospasm"], conditions=[problem("Hypothyroidism")]) == []


def test_contraindications_come_first_and_each_line_once() -> None:
    lines = conflicts(["heart failure"] * 2, ["heart failure"], conditions=[problem("Heart failure")])
    assert len(lines) == 2 and lines[0].startswith("Contraindicated")


def test_a_line_about_a_drug_that_is_not_taken_speaks_of_somebody_else() -> None:
    text = "warfarin users with heart failure bleed more"
    assert conflicts(warnings=[text], conditions=[problem("Heart failure")]) == []
