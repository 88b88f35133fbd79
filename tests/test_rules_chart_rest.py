"""What the chart holds beside the answer: everything that is not told, once, and what is not recorded at all."""

from docgemma.rules.chart_rest import rest_of_chart
from tests.rules_help import chart, measured, request


def rest(asked=None, told="", **entries) -> list[str]:
    return rest_of_chart(asked or request("labs"), chart(**entries)["result"], told)


def test_what_is_told_already_is_not_told_again() -> None:
    labs = [measured("Sodium", "131", "mmol/L", flag="low"), measured("Potassium", "4.1", "mmol/L")]
    [line] = [line for line in rest(told="Potassium: 4.1 mmol/L (normal).", labs=labs) if line.startswith("Results")]
    assert "Sodium 131 mmol/L" in line and "low" in line and "Potassium" not in line


def test_out_of_range_comes_first_and_what_is_cut_is_counted() -> None:
    labs = [measured(f"Test {number}", str(number)) for number in range(12)]
    labs[11] |= {"flag": "high"}
    [line] = [line for line in rest(labs=labs) if line.startswith("Results")]
    assert line.startswith("Results: Test 11 11") and line.endswith("and 4 more.")


def test_unknown_allergies_are_never_told_as_none() -> None:
    lines = rest()
    assert any("it is not documented that there are none" in line for line in lines)
    assert any(line.startswith("Nothing is recorded under: ") and "allergies" not in line for line in lines)


def test_who_a_patient_is_needs_no_chart() -> None:
    assert rest(request("demo")) == []
