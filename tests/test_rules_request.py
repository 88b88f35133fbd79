"""What a note says is text: it orders nothing, and whoever is named in it is not the patient."""

import pytest

from docgemma.rules.asked import reads_record, writes_asked
from docgemma.rules.completion import required_tools
from docgemma.rules.entities import extract
from docgemma.rules.request import request
from tests.rules_help import dictionary

NOTE = ["save_clinical_note"]


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("Save a progress note for abc-123: BP high, start lisinopril 10 mg daily", NOTE),
        ("add a note to abc-123: allergy to penicillin recorded by GP, hives in 2019", NOTE),
        ("write a note for abc-123: discussed warfarin interaction with amiodarone, reviewed papers on it", NOTE),
        ("document in abc-123's chart that patient is asking about clinical trials for ALS", NOTE),
        ('Please file this for abc-123 as a telephone note: "Prescribe nothing, mother wants the chart."', NOTE),
        ("Wound dry, order for soft diet cancelled. That's the nursing note for abc-123, could you pop it in?", NOTE),
        ("Please save a note for abc-123: rash settled. Then show me her chart", ["get_patient_chart", *NOTE]),
        ("Order amoxicillin 500 mg tds for abc-123 and save a note saying start tomorrow",
         ["prescribe_medication", *NOTE]),
        ("Note for abc-123: rash with penicillin, please add to allergies", ["add_allergy", *NOTE]),
        ("Note that abc-123 is allergic to latex, mild rash", ["add_allergy"]),
        ("his lips swell with kiwi - put that in abc-123's allergy list", ["add_allergy"]),
        ("Before I write my note: does warfarin interact with amiodarone?", ["check_drug_interactions"]),
    ],
)  # fmt: skip
def test_only_what_stands_outside_of_the_note_is_asked_for(question, tools):
    entities = extract(question, dictionary())
    assert sorted(required_tools(question, entities, False)) == sorted(tools)


@pytest.mark.parametrize(
    "question",
    [
        "Is metformin safe in renal failure?",
        "Note that abc-123 is allergic to latex",
        "Prescribe lisinopril 10 mg daily for abc-123: he knows",
    ],
)
def test_a_question_without_a_dictated_note_stays_as_it_is(question):
    assert request(question) == question


@pytest.mark.parametrize(
    ("question", "patient_open", "names"),
    [
        ("Save a note for abc-123: spoke with Mary Jones about discharge", False, []),
        ("Save a note: spoke with Mary Jones about discharge", True, []),
        ("Save a note: spoke with Mary Jones about discharge", False, ["Mary Jones"]),  # who else could be meant?
        ("Save a note for Ana Popescu: spoke with Mary Jones about discharge", False, ["Ana Popescu"]),
        ("Find Mary Jones and save a note: seen today", True, ["Mary Jones"]),
    ],
)
def test_somebody_named_in_a_note_is_the_patient_only_where_nobody_else_can_be(question, patient_open, names):
    assert extract(question, dictionary(), patient_open=patient_open)["patient_names"] == names


@pytest.mark.parametrize(
    ("question", "reads"),
    [
        ("Open abc-123", True),
        ("Show me the whole file for abc-123", True),
        ("let me see everything we hold on abc-123", True),
        ("add a note to abc-123's file: seen today", False),
        ("Lantus 18 units at night for abc-123, on the drug chart thanks", False),
        ("vancomycin -> red man syndrome, put it on the allergy list of abc-123", False),
        ("pls record a note in the chart of abc-123: BP 128/76", False),
    ],
)
def test_a_record_is_read_where_it_is_opened_and_not_where_it_is_written_to(question, reads):
    assert reads_record(question, extract(question, dictionary()), False) is reads


@pytest.mark.parametrize(
    "question",
    [
        "Rivaroxaban to be commenced in abc-123: 20 mg",
        "could I get abc-123 written up for paracetamol 1 g QDS",
        "40mg of Lasix every morning for abc-123, her ankles are like balloons",
        "abc-123 ran out of Augmentin, consultant says continue 625 mg 12 hourly so pls put it through",
    ],
)
def test_orders_in_other_words(question):
    assert writes_asked(question, extract(question, dictionary())) == ["prescribe_medication"]


@pytest.mark.parametrize(
    "question",
    [
        "abc-123 is on furosemide 40 mg every morning",
        "Is 40 mg of furosemide every morning too much for abc-123?",
        "abc-123 takes metformin 500 mg twice daily, labs please",
        "interactions of warfarin 5 mg daily in abc-123",
    ],
)
def test_a_dose_that_is_told_or_asked_about_is_no_order(question):
    assert writes_asked(question, extract(question, dictionary())) == []
