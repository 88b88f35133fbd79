"""Which tools a question needs and when a turn is done: every row of v3 section 11, and what real questions add."""

import pytest

from docgemma.rules.completion import (
    MAX_RETRIES,
    MAX_STEPS,
    MAX_TOTAL_RETRIES,
    TASK_PATTERNS,
    is_duplicate,
    is_repeat,
    missing_tools,
    none_is_right,
    required_tools,
    task_complete,
)
from docgemma.rules.entities import extract
from tests.rules_help import chart, dictionary, failed, patient_found, result, turn

SEARCH, CHART, SAFETY, INTERACT = "search_patient", "get_patient_chart", "check_drug_safety", "check_drug_interactions"
LITERATURE, TRIALS = "search_medical_literature", "find_clinical_trials"
PRESCRIBE, ALLERGY, NOTE = "prescribe_medication", "add_allergy", "save_clinical_note"


def required(question: str, has_patient: bool = False) -> list[str]:
    return required_tools(question, extract(question, dictionary()), has_patient)


def test_the_safety_valves_have_the_values_of_the_specification():
    assert (MAX_STEPS, MAX_RETRIES, MAX_TOTAL_RETRIES) == (4, 2, 4)


def test_the_patterns_of_the_specification_are_all_there():
    spec = {
        "drug_safety": {SAFETY}, "drug_interaction": {INTERACT}, "patient_lookup_and_review": {SEARCH, CHART},
        "prescribe": {PRESCRIBE}, "literature_search": {LITERATURE}, "clinical_trial": {TRIALS},
    }  # fmt: skip
    assert {name: set(TASK_PATTERNS[name]["requires"]) for name in spec} == spec


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        # v3 section 11, keyword by keyword
        ("metformin safety", [SAFETY]), ("any warning for X?", [SAFETY]), ("boxed warning of X", [SAFETY]),
        ("what does the FDA say", [SAFETY]),
        ("interaction of X and Y", [INTERACT]), ("combining X and Y", [INTERACT]), ("X together with Y", [INTERACT]),
        ("find the patient John Smith and his chart", [SEARCH, CHART]),
        ("patient John Smith, record", [SEARCH, CHART]), ("summary for patient John Smith", [SEARCH, CHART]),
        ("prescribe lisinopril 10 mg", [PRESCRIBE]), ("start lisinopril 10 mg", [PRESCRIBE]),
        ("order lisinopril 10 mg", [PRESCRIBE]),
        ("studies on X", [LITERATURE]), ("research on X", [LITERATURE]), ("evidence for X", [LITERATURE]),
        ("literature on X", [LITERATURE]), ("PubMed for X", [LITERATURE]),
        ("trial for X", [TRIALS]), ("recruiting for X", [TRIALS]), ("experimental drugs", [TRIALS]),
    ],
)  # fmt: skip
def test_each_keyword_of_the_specification_requires_its_tools(question, tools):
    assert required(question) == tools


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("Hello, how are you?", []),
        ("What is hypertension?", []),
        ("What is an allergy?", []),
        ("Does this disorder respond to reordering?", []),
        ("What do you need in order to treat gout?", []),
        ("When did the symptoms start?", []),
        ("What was prescribed for abc-123?", [CHART]),
        ("Was metformin started?", []),
        ("What dose should I prescribe?", []),
        ("Should I start her on lisinopril?", []),
        ("Order a chest x-ray for abc-123", []),
        ("Check amoxicillin info for my patient", []),
        ("Check FDA warnings for dofetilide", [SAFETY]),
        ("Find patient John Smith, check his chart, and verify metformin safety", [SEARCH, CHART, SAFETY]),
        ("Find patient Maria Garcia and check her chart", [SEARCH, CHART]),
        ("Find patient John Smith and check his meds", [SEARCH, CHART]),
        ("Check interactions between warfarin, aspirin, and ibuprofen", [INTERACT]),
        ("warfarin and aspirin together?", [INTERACT]),
        ("Search for patient James Wilson", [SEARCH]),
        ("Look up mrs o'neil", [SEARCH]),
        ("Show the chart for abc-123", [CHART]),
        ("Open the record of patient abc-123", [CHART]),
        ("labs for abc-123", [CHART]),
        ("What's Garcia's creatinine?", [SEARCH, CHART]),
        ("What are his meds?", [CHART]),
        ("Write a note for patient abc-123", [NOTE]),
        ("Save a progress note for def-456: stable", [NOTE]),
        ("Record a penicillin allergy for patient abc-123", [ALLERGY]),
        ("Document that abc-123 is allergic to sulfa with hives", [ALLERGY]),
        ("can't tolerate lisinopril - cough. log this for abc-123", [ALLERGY]),
        ("Document hives after amoxicillin for abc-123, severe", [ALLERGY]),
        ("Prescribe metformin 500mg for abc-123", [PRESCRIBE]),
        ("I want to prescribe lisinopril 10 mg daily for abc-123", [PRESCRIBE]),
        ("Write a prescription for metformin 500 mg bid for abc-123", [PRESCRIBE]),
        ("Please order metformin 500 mg BID for John Smith", [SEARCH, PRESCRIBE]),
        ("Is it safe to prescribe ibuprofen to abc-123?", [SAFETY]),
        ("Do not prescribe anything; check warfarin warnings", [SAFETY]),
        ("Find patient John Smith, check his chart, don't order anything", [SEARCH, CHART]),
        ("Check allergies for abc-123 then prescribe amoxicillin 500 mg three times daily", [CHART, PRESCRIBE]),
        ("verify drug interactions for abc-123's medications", [CHART, INTERACT]),
        ("Find recruiting trials for melanoma", [TRIALS]),
        ("ongoing studies my patient with lupus could join", [TRIALS]),
        ("I don't want trials, I want papers on lupus", [LITERATURE]),
        ("not sure about interactions of warfarin and aspirin", [INTERACT]),
        ("warfarin, aspirin interactions and articles on bleeding", [INTERACT, LITERATURE]),
        ("progress note, abc-123 - doing well", [NOTE]),
        ("write in the record of abc-123 that family was called", [NOTE]),
        ("allergy to latex (rash) goes on abc-123's list", [ALLERGY]),
        ("ok prescribe metformin 500 mg daily for abc-123", [PRESCRIBE]),
        ("abc-123 can have ibuprofen 400 mg tid, put the order in", [PRESCRIBE]),
        ("Search PubMed for randomized controlled trials of statins", [LITERATURE]),
        ("were any antibiotics ordered for abc-123?", [CHART]),
        ("did anyone put a warning on warfarin", [SAFETY]),
        ("add amlodipine 5 mg daily to abc-123's meds", [PRESCRIBE]),
        ("Put penicillin on abc-123's allergy list, hives", [ALLERGY]),
        ("put ghi-789 on bisoprolol 2.5 mg od", [PRESCRIBE]),
        ("put the word soon on hold", []),
        ("Record: abc-123 allergic to sulfa, rash", [ALLERGY]),
        ("record iodine flushing as an allergy for abc-123", [ALLERGY]),
        ("Record of abc-123, and add a latex allergy", [CHART, ALLERGY]),
        ("new drug allergy for abc-123: codeine, itching", [ALLERGY]),
        ("document in the chart of abc-123 that consent was obtained", [NOTE]),
        ("add to abc-123's record that she lives alone", [NOTE]),
        ("Dictate a discharge summary for abc-123: recovered well", [NOTE]),
        ("Can you read me the discharge summary of abc-123", [CHART]),
        ('file "walked 20 m" as a physio note for abc-123', [NOTE]),
        ("Is abc-123 on a statin?", [CHART]),
        ("Is Ana Popescu allergic to anything?", [SEARCH, CHART]),
        ("any studies on ketamine for depression and recruiting trials?", [LITERATURE, TRIALS]),
        ("What is the status of NCT01234567?", [TRIALS]),
        ("", []),
        # what is refused, a pronoun's drug, and a question about somebody whose id is given
        ("no, don't look up interactions, just the warnings for warfarin", [SAFETY]),
        ("not trials, I'd like articles on lupus", [LITERATURE]),
        ("metformin warnings, then check it against lisinopril", [SAFETY, INTERACT]),
        ("Has anyone started abc-123 on lisinopril?", [CHART]),
    ],
)
def test_questions_without_an_active_patient(question, tools):
    assert required(question) == tools


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("What are his meds?", [CHART]),
        ("what is she taking?", [CHART]),
        ("is he allergic to anything", [CHART]),
        ("Is penicillin safe given his allergies?", [CHART, SAFETY]),
        ("Add a penicillin allergy to his chart", [ALLERGY]),
        ("she is allergic to penicillin, please document it", [ALLERGY]),
        ("note that the patient reports less pain", [NOTE]),
        ("Check his chart and prescribe amoxicillin 500 mg TID", [CHART, PRESCRIBE]),
        ("Can you start her on lisinopril 10 mg daily", [PRESCRIBE]),
        ("give him 500 mg of amoxicillin three times daily", [PRESCRIBE]),
        ("put her on metformin 500 mg bid", [PRESCRIBE]),
        ("is he to resume his warfarin", []),
        ("put the rash with amoxicillin on her allergy list", [ALLERGY]),
        ("note in his record that he lives alone", [NOTE]),
        ("refill his lisinopril", [PRESCRIBE]),
        ("don't prescribe yet, just check metformin safety", [SAFETY]),
        ("Before starting amiodarone, check interactions with her meds", [CHART, INTERACT]),
        ("Please don't start warfarin, but record his aspirin allergy with hives", [ALLERGY]),
        ("Order labs for him", []),
        ("Find patient John Smith and his chart", [CHART]),
    ],
)
def test_an_active_patient_counts_as_named(question, tools):
    assert required(question, has_patient=True) == tools


def test_what_is_required_is_missing_until_it_was_called():
    question = "Find patient John Smith, check his chart, and verify metformin safety"
    assert missing_tools(turn(question)) == [SEARCH, CHART, SAFETY]
    assert missing_tools(turn(question, patient_found())) == [CHART, SAFETY]
    assert missing_tools(turn(question, patient_found(), chart())) == [SAFETY]
    assert missing_tools(turn(question, patient_found(), chart(), result(SAFETY))) == []


def test_a_tool_that_failed_for_good_is_not_called_again_and_the_rest_goes_on():
    state = turn("Check safety of metformin and find studies on it", failed(SAFETY, "timeout"))
    assert missing_tools(state) == [LITERATURE]


def test_without_the_patient_what_needs_one_is_no_longer_missing():
    nobody = result(SEARCH, {"name": "John Smith"}, data={"patients": []}, empty=True)
    state = turn("Find patient John Smith, check his chart, and verify metformin safety", nobody)
    assert missing_tools(state) == [SAFETY]


def test_another_patient_than_the_active_one_is_searched_for():
    active = {"id": "abc-123", "name": "John Smith"}
    assert missing_tools(turn("Check Maria Garcia's chart", active_patient=active)) == [SEARCH, CHART]
    assert missing_tools(turn("Check John Smith's chart", active_patient=active)) == [CHART]
    assert missing_tools(turn("Check his chart", active_patient=active)) == [CHART]


@pytest.mark.parametrize(("steps", "done"), [(2, False), (3, False), (4, True), (5, True)])
def test_four_steps_end_the_turn_whatever_is_missing(steps, done):
    question = "Find patient John Smith, check his chart, and verify metformin safety"
    assert task_complete(turn(question, patient_found(), step_count=steps)) is done


def test_a_repeated_call_ends_the_turn():
    again = result(SAFETY, {"drug_name": "metformin"})
    state = turn("metformin safety and studies", again, result(SAFETY, {"drug_name": " METFORMIN "}))
    assert is_duplicate(state)
    assert task_complete(state)


def test_a_retry_after_a_failure_is_no_duplicate():
    args = {"drug_name": "metformin"}
    assert not is_duplicate(turn("metformin safety", failed(SAFETY, "timeout", args), result(SAFETY, args)))
    assert not is_duplicate(turn("metformin safety"))


@pytest.mark.parametrize(
    ("args", "repeats"),
    [
        ({"drug_names": ["aspirin", "Warfarin"]}, True),
        ({"drug_names": ["aspirin", "warfarin", "ibuprofen"]}, False),
        ({"drug_names": ["aspirin"]}, False),
    ],
)
def test_the_order_of_drugs_makes_no_new_call(args, repeats):
    state = turn("x", result(INTERACT, {"drug_names": ["warfarin", "aspirin"]}))
    assert is_repeat(INTERACT, args, state) is repeats
    assert not is_repeat(SAFETY, args, state)


def test_without_a_pattern_the_first_call_is_enough():
    assert not task_complete(turn("Check amoxicillin info for my patient"))
    assert task_complete(turn("Check amoxicillin info for my patient", result(SAFETY)))


def test_no_more_tools_is_believed_only_where_the_patterns_agree():
    question = "Check metformin safety and find studies on it"
    assert not none_is_right(turn(question, result(SAFETY)))
    assert not task_complete(turn(question, result(SAFETY), proposed_none=True))
    assert none_is_right(turn(question, result(SAFETY), result(LITERATURE)))
    assert task_complete(turn("What is gout?", proposed_none=True))


def test_a_model_that_insists_on_no_more_tools_cannot_loop_for_ever():
    path = ["tool_select", "tool_execute", "router", "tool_select", "router", "tool_select", "router"]
    state = turn("Check metformin safety and find studies on it", result(SAFETY), proposed_none=True, path=path)
    assert task_complete(state)
