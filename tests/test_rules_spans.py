"""Copied arguments: the right value is among the options, nothing else than what was said is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.rules.spans import MAX_OPTIONS, choices, phrases
from docgemma.schemas import TOOL_ARG_SCHEMAS
from tests.rules_help import chart, dictionary, failed, patient_found, result, turn

ACTIVE = {"id": "def-456", "name": "Maria Garcia"}


@pytest.mark.parametrize(
    ("tool", "field", "question", "value"),
    [
        ("find_clinical_trials", "condition", "Find recruiting trials for stage IV non-small cell lung cancer",
         "stage IV non-small cell lung cancer"),
        ("save_clinical_note", "note_text", "Create a note for abc-123 stating slept, ate well", "slept, ate well"),
        ("save_clinical_note", "note_text", "abc-123 - note: slept well", "slept well"),
        ("save_clinical_note", "note_text", "abc-123 slept well all night - save as a nursing note",
         "slept well all night"),
        ("save_clinical_note", "note_text", "handover for abc-123, slept well. file that", "slept well"),
        ("save_clinical_note", "note_type", "note for abc-123: follow-up in two weeks", "clinical note"),
        ("save_clinical_note", "note_type", "Save a medication review note for abc-123: stop tramadol",
         "medication review note"),
        ("add_allergy", "reaction", "document severe anaphylaxis to hornet stings for abc-123", "anaphylaxis"),
        ("add_allergy", "substance", "new allergy for abc-123: peanuts → throat tightness", "peanuts"),
        ("search_patient", "name", "is Clark, David registered with us?", "Clark, David"),
        ("search_medical_literature", "query", "Evidence for ketamine in migraine, and are trials recruiting?",
         "ketamine in migraine"),
        ("find_clinical_trials", "condition", "terminated trials for Alzheimer's", "Alzheimer's"),
        ("find_clinical_trials", "condition",
         "Trials for third-line metastatic colorectal cancer with KRAS G12C mutation, please.",
         "third-line metastatic colorectal cancer with KRAS G12C mutation"),
        ("find_clinical_trials", "condition", "Trials for psychosis in Parkinson?", "psychosis in Parkinson"),
        ("find_clinical_trials", "condition", "Trials for fatigue in Crohn's disease", "fatigue in Crohn's disease"),
        ("find_clinical_trials", "condition", "Trials in Leeds", "Leeds"),  # nothing else is there
        ("search_medical_literature", "query", "papers on hyponatraemia after ecstasy use?",
         "hyponatraemia after ecstasy use"),
        ("search_medical_literature", "query", "anything on 'cough hypersensitivity syndrome'?",
         "cough hypersensitivity syndrome"),
        ("search_medical_literature", "query", "dengue outbreaks in Brazil, since 2018 please",
         "dengue outbreaks in Brazil"),
        ("save_clinical_note", "note_text", "Jot down for abc-123 'Declined statin, didn't want it'. Cheers",
         "Declined statin, didn't want it"),
        ("save_clinical_note", "note_text", "File a note under abc-123 reading: Renal opinion - AKI, stop ramipril.",
         "Renal opinion - AKI, stop ramipril."),
        ("save_clinical_note", "note_text", "Nursing note for abc-123: asked \"when can I go home?\", slept well",
         'asked "when can I go home?", slept well'),
        ("save_clinical_note", "note_text", "Please write a note in abc-123's chart that she tolerated it well",
         "she tolerated it well"),
        ("save_clinical_note", "note_text", "Make a note that abc-123 missed his appointment",
         "abc-123 missed his appointment"),
        ("save_clinical_note", "note_text", "Write a progress note for abc-123 documenting improvement in asthma",
         "improvement in asthma"),
        ("save_clinical_note", "note_text", "Can you add a nursing note to abc-123's chart? Slept, no complaints.",
         "Slept, no complaints."),
        ("save_clinical_note", "note_type", "Save a note for abc-123 that the procedure went well", "clinical note"),
        ("prescribe_medication", "frequency", "Prescribe metformin 500 mg with breakfast and dinner for abc-123",
         "with breakfast and dinner"),
        ("prescribe_medication", "frequency", "Prescribe paracetamol 1 g up to four times daily for abc-123",
         "up to four times daily"),
        ("prescribe_medication", "frequency", "Prescribe carbidopa 1 tablet at 8 am and 8 pm for abc-123",
         "at 8 am and 8 pm"),
        ("add_allergy", "reaction", "allergy: latex. reaction: rash. patient id: abc-123", "rash"),
        ("add_allergy", "reaction", "vancomycin -> red man syndrome, put it on the allergy list of abc-123",
         "red man syndrome"),
        ("add_allergy", "reaction", "Latex allergy for abc-123 please, contact dermatitis, not severe",
         "contact dermatitis"),
        ("add_allergy", "substance", "Add an allergy to penicillin V for abc-123, hives", "penicillin V"),
        ("find_clinical_trials", "condition", "Is anything recruiting in gout right now", "gout"),
        ("find_clinical_trials", "condition", "trials in gout near Boston", "gout"),
        ("find_clinical_trials", "condition", "are there trials of cancer of the pancreas", "cancer of the pancreas"),
        ("add_allergy", "reaction", "Document that abc-123 is allergic to sulfa: rash, hives and swelling of the face",
         "rash, hives and swelling of the face"),
        ("add_allergy", "reaction", "she gets hives from penicillin, log it", "hives"),
        ("add_allergy", "substance", "Add an allergy to shellfish for abc-123, hives", "shellfish"),
        ("add_allergy", "substance", "Add a penicillin allergy for abc-123", "penicillin"),
        ("search_medical_literature", "query", "Find studies on SGLT2 inhibitors in heart failure",
         "SGLT2 inhibitors in heart failure"),
        ("save_clinical_note", "note_text", "Save a progress note for def-456: BP stable. Follow up in 2 weeks.",
         "BP stable. Follow up in 2 weeks."),
        ("save_clinical_note", "note_text", "Document that the patient reports less pain",
         "the patient reports less pain"),
        ("save_clinical_note", "note_text", 'Write "BP is stable" into her chart', "BP is stable"),
        ("search_patient", "name", "look up olga petrova", "olga petrova"),
        ("check_drug_safety", "drug_name", "Check FDA warnings for foozlemab", "foozlemab"),
        ("check_drug_safety", "drug_name", "Check FDA warnings for  Dofetilide ", "Dofetilide"),
        ("prescribe_medication", "notes", "Give metformin 500 mg daily with food", "with food"),
    ],
)  # fmt: skip
def test_the_value_is_among_the_options(tool, field, question, value):
    assert value in choices(field, tool, turn(question))


@pytest.mark.parametrize(
    ("tool", "field", "question", "never"),
    [
        ("find_clinical_trials", "condition", "trials for DMD in Leeds?", "Leeds"),
        ("find_clinical_trials", "condition", "any trials near Salt Lake City for gout", "Salt Lake City"),
        ("find_clinical_trials", "condition", "Trials within reach of Bristol for her gout, please", "Bristol"),
        ("find_clinical_trials", "condition", "gout trials pls", "gout trials pls"),
        ("search_medical_literature", "query", "papers on statins in gout, if you wouldn't mind",
         "statins in gout, if you wouldn't mind"),
        ("add_allergy", "substance", "usual meds bisoprolol. Only allergy is to nitrofurantoin, hives, add it",
         "bisoprolol"),
        ("add_allergy", "substance", "Record amlodipine ankle swelling as an allergy", "amlodipine ankle swelling"),
        ("add_allergy", "substance", "she had anaphylactic shock. Wasp venom allergy on the chart",
         "anaphylactic shock"),
        ("add_allergy", "reaction", "allergy: latex. reaction: rash. patient id: abc-123", "patient id"),
        ("search_patient", "name", "is dr gordon crohn registered with us?", "gordon crohn registered"),
    ],
)  # fmt: skip
def test_what_was_said_beside_it_is_no_option(tool, field, question, never):
    found = choices(field, tool, turn(question))
    assert found and never not in found


@pytest.mark.parametrize(
    ("tool", "field", "question", "options"),
    [
        ("prescribe_medication", "dosage", "Prescribe metformin 500 mg BID for abc-123", ["500 mg"]),
        ("prescribe_medication", "dosage", "Prescribe metformin for abc-123", []),
        ("prescribe_medication", "frequency", "Prescribe metformin 500 mg q6h prn for abc-123", ["q6h prn"]),
        ("prescribe_medication", "frequency", "Prescribe metformin 500 mg for abc-123", ["not specified"]),
        ("prescribe_medication", "patient_id", "Prescribe metformin 500 mg", []),
        ("prescribe_medication", "medication_name", "Prescribe Metformin 500 mg", ["Metformin"]),
        ("find_clinical_trials", "status", "Find recruiting trials for gout", ["recruiting"]),
        ("find_clinical_trials", "status", "Find trials for gout", []),
        ("save_clinical_note", "note_text", "Create a SOAP note for abc-123. S: cough. O: clear. A: URTI. P: rest.",
         ["S: cough. O: clear. A: URTI. P: rest."]),
        ("save_clinical_note", "note_text", "Nursing note for abc-123: seen twice, noting less pain, saying he is well",
         ["seen twice, noting less pain, saying he is well"]),
        ("save_clinical_note", "note_type", "abc-123: BP 142/88, procedure planned. Save as progress note.",
         ["progress note"]),
        ("add_allergy", "severity", "a severe rash", ["severe"]),
        ("add_allergy", "severity", "a rash", []),
        ("save_clinical_note", "note_type", "Save a progress note", ["progress note"]),
        ("check_drug_interactions", "drug_names", "warfarin, aspirin and ibuprofen?",
         ["warfarin", "aspirin", "ibuprofen"]),
        ("add_allergy", "reaction", "add a latex allergy, reaction: itchy eyes, to patient abc-123", ["itchy eyes"]),
        ("check_drug_interactions", "drug_names", "interactions of warfarin", ["warfarin"]),
        ("search_patient", "name", "Find patient John Smith", ["John Smith"]),
        ("search_patient", "name", "find the patient", []),
    ],
)  # fmt: skip
def test_closed_and_identifying_values_are_exact(tool, field, question, options):
    assert choices(field, tool, turn(question)) == options


@pytest.mark.parametrize(
    ("tool", "field", "question", "foreign"),
    [
        ("find_clinical_trials", "condition", "which trials in gout were terminated", "were"),
        ("find_clinical_trials", "condition", "someone with lupus would like to join a trial", "would"),
        ("add_allergy", "reaction", "abc-123 feels dizzy on codeine, please document it", "document"),
    ],
)
def test_no_option_reaches_into_the_next_clause(tool, field, question, foreign):
    options = choices(field, tool, turn(question))
    assert options and not [option for option in options if foreign in option.split()]


def test_patient_ids_come_from_the_question_the_turn_and_the_active_patient():
    question = "Show the chart"
    assert choices("patient_id", "get_patient_chart", turn("chart of ABC-123", active_patient=ACTIVE))[0] == "abc-123"
    assert choices("patient_id", "get_patient_chart", turn(question, patient_found("p-9"))) == ["p-9"]
    assert choices("patient_id", "get_patient_chart", turn(question, active_patient=ACTIVE)) == ["def-456"]


def test_somebody_else_named_is_not_the_active_patient():
    state = turn("Show the chart of John Smith", active_patient=ACTIVE)
    assert choices("patient_id", "get_patient_chart", state) == []


def test_drugs_of_the_chart_and_the_history_are_options():
    state = turn("check interactions of aspirin with her meds", chart("warfarin", "metformin"), active_patient=ACTIVE)
    assert choices("drug_names", "check_drug_interactions", state) == ["aspirin", "warfarin", "metformin"]
    history = [{"user": "Is Xarelto safe?", "assistant": "", "tools": []}]
    assert "Xarelto" in choices("drug_name", "check_drug_safety", turn("and its dose?", history=history), dictionary())


def test_a_drug_that_was_looked_up_already_is_not_looked_up_again():
    state = turn("safety of warfarin and aspirin", result("check_drug_safety", {"drug_name": "warfarin"}))
    assert choices("drug_name", "check_drug_safety", state) == ["aspirin"]


def test_a_value_that_could_not_be_used_is_not_offered_again_while_others_are_left():
    failed_call = failed("check_drug_safety", "not_found", {"drug_name": "warfarin"})
    assert choices("drug_name", "check_drug_safety", turn("warfarin or aspirin safety", failed_call)) == ["aspirin"]
    busy = failed("check_drug_safety", "timeout", {"drug_name": "warfarin"})
    assert choices("drug_name", "check_drug_safety", turn("warfarin or aspirin safety", busy)) == [
        "warfarin",
        "aspirin",
    ]


def test_an_argument_that_nobody_listed_is_free_text():
    assert choices("something", "check_drug_safety", turn("x")) is None


@pytest.mark.parametrize(
    ("tool", "field"), [(tool, field) for tool, args in TOOL_ARG_SCHEMAS.items() for field in args.model_fields]
)
@pytest.mark.parametrize(
    "question", ["", "   ", "?", "lung " * 4000, "500 mg " * 3000, "a: b, c; d. " * 900, "\u202e\x00"]
)
def test_options_are_bounded_distinct_and_fit_their_argument(tool, field, question):
    options = choices(field, tool, turn(question))
    assert len(options) <= MAX_OPTIONS
    assert len({item.casefold() for item in options}) == len(options)
    schema = TOOL_ARG_SCHEMAS[tool].model_json_schema()["properties"][field]
    kinds = [schema, schema.get("items", {}), *schema.get("anyOf", [])]
    longest = next(kind["maxLength"] for kind in kinds if "maxLength" in kind)
    assert all(0 < len(item) <= longest and item == " ".join(item.split()) for item in options)


@given(st.text(max_size=200), st.integers(1, 6))
def test_spans_stand_in_the_text_and_are_short(text, words):
    for span in phrases(text, words):
        assert span in text
        assert len(span.split()) <= words
