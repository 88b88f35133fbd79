"""Several orders, charts or labels in one request: each with its own values, none forgotten, none made up."""

import pytest

from docgemma.rules.again import asked_again
from docgemma.rules.completion import missing_tools, task_complete
from docgemma.rules.entities import extract
from docgemma.rules.orders import orders
from docgemma.rules.spans import choices
from tests.rules_help import chart, dictionary, patient_found, result, turn

TWO = "Start bisoprolol 1.25 mg od and furosemide 40 mg mane for abc-123"


def listed(question: str) -> list[tuple]:
    found = orders(question, extract(question, dictionary())["drug_mentions"])
    return [(order.drug, order.dosages[0], order.frequencies[0]) for order in found]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (TWO, [("bisoprolol", "1.25 mg", "od"), ("furosemide", "40 mg", "mane")]),
        (
            "triple therapy as follows, all bd: amoxicillin 1 g, clarithromycin 500 mg, lansoprazole 30 mg",
            [("amoxicillin", "1 g", "bd"), ("clarithromycin", "500 mg", "bd"), ("lansoprazole", "30 mg", "bd")],
        ),
        (
            "prescribe amoxicillin 500 mg tds for 7 days and ibuprofen 400 mg tds prn for abc-123",
            [("amoxicillin", "500 mg", "tds"), ("ibuprofen", "400 mg", "tds prn")],
        ),
        ("Start aspirin 75 mg and clopidogrel 75 mg, both once daily",
         [("aspirin", "75 mg", "once daily"), ("clopidogrel", "75 mg", "once daily")]),
    ],
)  # fmt: skip
def test_each_drug_of_a_list_keeps_its_own_dose_and_frequency(question, expected):
    assert listed(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "prescribe lisinopril 10 mg daily",
        "switch from ramipril 5 mg daily to losartan 50 mg daily",
        "stop amlodipine 5 mg and start losartan 50 mg od",
        "he takes metformin 500 mg bd and ramipril 5 mg od, prescribe atorvastatin 20 mg nocte",
        "interactions of warfarin 5 mg with amiodarone 200 mg",
    ],
)
def test_what_is_stopped_taken_or_asked_about_is_not_on_the_list(question):
    assert listed(question) == []


def test_the_second_order_follows_the_first_with_its_own_values():
    state = turn(TWO)
    args = ("medication_name", "dosage", "frequency")
    assert [choices(name, "prescribe_medication", state) for name in args] == [["bisoprolol"], ["1.25 mg"], ["od"]]
    state = turn(TWO, result("prescribe_medication", {"medication_name": "bisoprolol", "dosage": "1.25 mg"}))
    assert missing_tools(state) == ["prescribe_medication"] and not task_complete(state)
    assert [choices(name, "prescribe_medication", state) for name in args] == [["furosemide"], ["40 mg"], ["mane"]]
    state = turn(
        TWO, *(result("prescribe_medication", {"medication_name": name}) for name in ("bisoprolol", "furosemide"))
    )
    assert task_complete(state)


def test_two_charts_are_read_one_after_the_other():
    question = "put the charts of abc-123 and def-456 up for me"
    assert choices("patient_id", "get_patient_chart", turn(question)) == ["abc-123"]
    first = result("get_patient_chart", {"patient_id": "abc-123"}, data=chart().get("result"))
    state = turn(question, first)
    assert not task_complete(state)
    assert choices("patient_id", "get_patient_chart", state) == ["def-456"]
    assert task_complete(turn(question, first, result("get_patient_chart", {"patient_id": "def-456"})))


@pytest.mark.parametrize(
    ("question", "again"),
    [
        ("Pull the label warnings for pioglitazone and, separately, for rosiglitazone", True),
        ("boxed warning of methotrexate, and does it interact with trimethoprim?", False),
        ("boxed warning of methotrexate", False),
    ],
)
def test_two_labels_are_read_where_only_labels_are_asked_for(question, again):
    state = turn(
        question, result("check_drug_safety", {"drug_name": extract(question, dictionary())["drug_mentions"][0]})
    )
    required = ["check_drug_safety", *(["check_drug_interactions"] if "interact" in question else [])]
    assert asked_again("check_drug_safety", required, state) is again


def test_a_write_that_may_be_meant_is_left_to_the_model_before_the_turn_ends():
    question = "Nurse here: John Smith, one drop of latanoprost in each eye at bedtime, from the glaucoma clinic"
    found = patient_found()
    assert not task_complete(turn(question, found))
    assert task_complete(turn(question, found, proposed_none=True))
    assert task_complete(turn("Find John Smith", found))


def test_a_drug_that_is_only_spoken_of_gets_no_label_of_its_own():
    question = "Show the chart of abc-123 and the boxed warning of amiodarone, she also takes digoxin"
    state = turn(question, chart(), result("check_drug_safety", {"drug_name": "amiodarone"}))
    assert not asked_again("check_drug_safety", ["get_patient_chart", "check_drug_safety"], state)
