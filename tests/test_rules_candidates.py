"""Candidate narrowing: what cannot apply is gone before the model chooses."""

import pytest

from docgemma.rules.candidates import narrow
from docgemma.schemas import TOOL_ARG_SCHEMAS
from tests.rules_help import chart, dictionary, failed, patient_found, result, turn

ALL = list(TOOL_ARG_SCHEMAS)
ACTIVE = {"id": "abc-123", "name": "John Smith"}
READS = ["check_drug_safety", "search_medical_literature", "find_clinical_trials"]
WRITES = ["prescribe_medication", "add_allergy", "save_clinical_note"]
LONG = "Find patient John Smith, check his chart, and verify metformin safety"


def names(question: str, *results, **more) -> list[str]:
    return narrow(ALL, turn(question, *results, **more))


def test_an_image_tool_needs_an_image():
    assert "analyze_medical_image" not in names("What is this?")
    assert "analyze_medical_image" in narrow(ALL, turn("What is this?", image=True))


@pytest.mark.parametrize(
    ("question", "more", "offered"),
    [
        ("tell me about warfarin", {}, False),
        ("tell me about warfarin, aspirin", {}, True),
        ("and with aspirin?", {"history": [{"user": "", "assistant": "",
          "tools": [{"label": "", "args": {"drug_name": "warfarin"}, "brief": ""}]}]}, True),
    ],
)  # fmt: skip
def test_interactions_need_two_known_drugs(question, more, offered):
    assert ("check_drug_interactions" in names(question, **more)) is offered


def test_medications_of_a_chart_read_in_this_turn_count_as_known():
    state = turn("tell me about aspirin", chart("warfarin 5 mg"), active_patient=ACTIVE)
    assert "check_drug_interactions" in narrow(ALL, state)


def test_drugs_named_in_the_history_count_with_a_dictionary():
    history = [{"user": "Is warfarin safe?", "assistant": "It needs monitoring.", "tools": []}]
    state = turn("and with aspirin?", history=history)
    assert "check_drug_interactions" in narrow(ALL, state, dictionary())


def test_nothing_that_needs_a_patient_is_offered_before_one_is_known():
    assert not set(names("tell me something")) & {"get_patient_chart", *WRITES}
    assert names("Prescribe metformin 500 mg daily for John Smith") == ["search_patient"]


def test_the_chain_of_lookup_chart_and_knowledge_is_walked_by_code():
    assert names(LONG) == ["search_patient"]
    assert names(LONG, patient_found()) == ["get_patient_chart"]
    assert names(LONG, patient_found(), chart()) == ["check_drug_safety"]


def test_an_identified_patient_is_not_searched_for_again():
    assert "search_patient" not in names("tell me about abc-123")
    assert "search_patient" not in names("tell me about him", active_patient=ACTIVE)
    assert "search_patient" in names("tell me about Maria Garcia", active_patient=ACTIVE)


@pytest.mark.parametrize(
    "question",
    [
        "don't prescribe yet, just check metformin for abc-123",
        "Should I prescribe metformin to abc-123?",
        "tell me about abc-123 and metformin 500 mg",
        "is abc-123 allergic to metformin 500 mg?",
    ],
)
def test_a_write_is_offered_only_where_one_is_ordered(question):
    assert not set(names(question)) & set(WRITES)


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("pt abc-123 needs doxycycline 100mg bid", "prescribe_medication"),
        ("abc-123: heparin 5000 units q8h", "prescribe_medication"),
        ("eggs make abc-123 itch, list that", "add_allergy"),
        ("jot down for abc-123: refused breakfast", "save_clinical_note"),
    ],
)
def test_a_write_that_may_be_meant_is_left_to_the_model(question, tool):
    assert tool in names(question)


def test_an_ordered_write_stands_alone_once_the_patient_is_known():
    assert names("Prescribe metformin 500 mg daily for abc-123") == ["prescribe_medication"]
    assert names("Prescribe metformin 500 mg daily", active_patient=ACTIVE) == ["prescribe_medication"]


def test_what_is_wanted_prescribed_is_ordered():
    assert names("I want empagliflozin prescribed for abc-123: 10 mg, once daily") == ["prescribe_medication"]
    assert "prescribe_medication" in names("Given the trial data, I want empagliflozin 10 mg prescribed for abc-123")
    for other in ("does abc-123 need empagliflozin prescribed?", "I never wanted empagliflozin 10 mg prescribed"):
        assert "prescribe_medication" not in names(other)


def test_a_write_without_any_patient_goes_to_the_call_that_asks_for_one():
    assert names("Prescribe metformin 500 mg daily") == ["prescribe_medication"]


def test_two_knowledge_tools_that_are_both_missing_leave_the_choice_to_the_model():
    state = "Check metformin safety and find recruiting trials for diabetes"
    assert names(state) == ["check_drug_safety", "find_clinical_trials"]


def test_a_tool_that_has_answered_is_not_offered_again():
    done = result("check_drug_safety", {"drug_name": "metformin"})
    assert "check_drug_safety" not in names("tell me about metformin", done)
    assert "check_drug_safety" in names("tell me about metformin, aspirin", done)


def test_there_is_always_something_to_choose():
    used = [result(name) for name in ALL]
    assert names("tell me", *used, step_count=1) != []
    assert narrow(["get_patient_chart"], turn("hello")) == ["get_patient_chart"]
    assert narrow(ALL, {"user_query": ""}) != []


def test_a_search_that_found_nobody_is_not_followed_by_a_chart():
    nobody = result("search_patient", {"name": "John Smith"}, data={"patients": []}, empty=True)
    assert "get_patient_chart" not in names(LONG, nobody)
    assert "get_patient_chart" not in names(LONG, failed("search_patient", "timeout", {"name": "John Smith"}))


def test_the_tool_that_the_model_named_stays_beside_what_the_patterns_want():
    question = "Look at the attached x-ray, then find warnings of ceftriaxone"
    assert narrow(ALL, turn(question, image=True), meant="check_drug_safety") == ["check_drug_safety"]
    offered = narrow(ALL, turn(question, image=True), meant="analyze_medical_image")
    assert {"check_drug_safety", "analyze_medical_image"} <= set(offered)
    assert not set(WRITES) & set(offered)


def test_a_named_tool_that_cannot_apply_stays_out():
    assert "analyze_medical_image" not in narrow(ALL, turn("What is on the x-ray?"), meant="analyze_medical_image")
    asked = turn("Should I start warfarin 5 mg in abc-123?")
    assert "prescribe_medication" not in narrow(ALL, asked, meant="prescribe_medication")
    polite = turn("Could you get warfarin 5 mg going in abc-123?")
    assert "prescribe_medication" in narrow(ALL, polite, meant="prescribe_medication")


def test_once_a_call_was_made_only_what_is_missing_counts():
    state = turn(LONG, patient_found())
    assert narrow(ALL, state, meant="find_clinical_trials") == narrow(ALL, state)
