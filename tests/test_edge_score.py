"""How the edge model's decisions are judged."""

import pytest

from docgemma.edge.score import Mark, confusion, invented, same_args, says, table, wilson
from docgemma.knowledge.drug_names import load_drug_names


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [(96, 100, 0.9016, 0.9843), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_interval(right, total, low, high):
    assert wilson(right, total) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("expected", "got", "right"),
    [
        ({"drug_name": "Tikosyn"}, {"drug_name": "tikosyn"}, True),
        ({"drug_name": "Tikosyn"}, {"drug_name": "dofetilide"}, False),
        ({"drug_names": ["a", "b"]}, {"drug_names": ["B", "A"]}, True),
        ({"drug_names": ["a", "b"]}, {"drug_names": ["a", "b", "c"]}, False),
        ({"dosage": "500 mg"}, {"dosage": "500mg"}, True),
        ({"dosage": ["1 g", "1 g IV"]}, {"dosage": "1 g IV"}, True),
        ({"status": ["recruiting", None]}, {}, True),
        ({"status": "recruiting"}, {}, False),
        ({"query": None}, {"query": "anything"}, True),
        ({"drug_name": "a"}, {"drug_name": "a", "patient_id": "abc-123"}, False),
        ({"drug_name": "a"}, None, False),
    ],
)
def test_arguments_are_exact_up_to_case_blanks_and_accepted_forms(expected, got, right):
    assert same_args(expected, got) is right


def test_an_answer_needs_one_string_of_each_list():
    assert says("Major interaction: bleeding.", [["major", "contraindicated"], ["bleed"]])
    assert not says("Major interaction.", [["major"], ["bleed"]])


def test_invented_numbers_and_drugs_are_seen(tmp_path):
    drugs = load_drug_names(tmp_path)
    evidence = ["Metformin 500 mg twice daily for abc-123"]
    assert invented("Metformin 500 mg for abc-123", evidence, drugs) == []
    assert invented("Metformin 850 mg", evidence, drugs) == ["850"]
    assert invented("Give warfarin", evidence, drugs) == ["warfarin"]


def test_rows_count_each_capability_whole_and_by_difficulty():
    marks = [Mark("1", "intent", "easy", "A", "A", True), Mark("2", "intent", "hard", "A", "B", False)]
    rows = {(row["capability"], row["difficulty"]): (row["n"], row["right"]) for row in table(marks)}
    assert rows == {("intent", "all"): (2, 1), ("intent", "easy"): (1, 1), ("intent", "hard"): (1, 0)}
    assert confusion(marks, "intent") == [["A", "B", 1], ["A", "A", 1]]
