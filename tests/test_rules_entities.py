"""What code reads from a question: ids, names of many cultures, drugs, verbs."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.rules.entities import clean, extract
from tests.rules_help import dictionary

UUID = "f47ac10b-58cc-4372-a567-0e02b2c3d479"


def read(question: str, **more):
    return extract(question, dictionary(), **more)


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("Prescribe metformin 500mg for abc-123", ["abc-123"]),
        ("ABC-123's chart, then DEF-456.", ["abc-123", "def-456"]),
        ("abc-123 and ABC-123", ["abc-123"]),
        (f"chart of {UUID.upper()}?", [UUID]),
        ("abc‑123 with a typographic hyphen", ["abc-123"]),
        ("(abc-123)", ["abc-123"]),
        ("covid-190, sars-cov-123, covid-19", []),
        ("call 555-123-4567 or tel-555", []),
        ("abc-1234 abcd-123 ab-123 xabc-123 abc-123-4 abc_123", []),
        ("ICD-100, CPT-992", []),
        ("f47ac10b", []),
        (f"x{UUID}", []),
        (f"{UUID}0", []),
        ("", []),
    ],
)
def test_patient_ids_of_both_kinds_are_found_and_never_inside_longer_tokens(question, ids):
    assert read(question)["patient_ids"] == ids


@given(st.uuids())
def test_every_uuid_is_an_id_in_any_case(value: uuid.UUID):
    assert read(f"Show the chart of {str(value).upper()}, please")["patient_ids"] == [str(value)]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Find patient John Smith, check his chart, and verify metformin safety", ["John Smith"]),
        ("find patient john smith and check his meds", ["john smith"]),
        ("FIND PATIENT JOHN SMITH AND CHECK HIS CHART", ["JOHN SMITH"]),
        ("look up mrs o'neil", ["o'neil"]),
        ("pull up Zoë Brückner's chart", ["Zoë Brückner"]),
        ("pull up maria garcia's chart", ["maria garcia"]),
        ("Look up García, Maria", ["García, Maria"]),
        ("find García, Maria and pull her labs", ["García, Maria"]),
        ("What are Garcia's meds?", ["Garcia"]),
        ("What's Garcia's creatinine?", ["Garcia"]),
        ("Look up Garcia", ["Garcia"]),
        ("Search for patient James Wilson", ["James Wilson"]),
        ("Is metformin safe for María José de la Cruz?", ["María José de la Cruz"]),
        ("check nguyễn thị minh's labs", ["nguyễn thị minh"]),
        ("patient 张伟 needs a chart review", ["张伟"]),
        ("Find patient محمد علي and open the record", ["محمد علي"]),
        ("Document that Ahmed bin Rashid has anaphylaxis to amoxicillin", ["Ahmed bin Rashid"]),
        ("Add a penicillin allergy for Fatima al-Zahra", ["Fatima al-Zahra"]),
        ("Summarise Siobhán O'Brien's record", ["Siobhán O'Brien"]),
        ("Patient: Oluwaseun Adébáyò, DOB 1980-03-02", ["Oluwaseun Adébáyò"]),
        ("search for wang wei and get her labs", ["wang wei"]),
        ("Show me the patient named olga petrova", ["olga petrova"]),
        ("is ozempic safe in my patient mr. wilson", ["wilson"]),
        ("Write a note: Dr. House saw Mr. Jean-Luc Picard today", ["Jean-Luc Picard"]),
        ("Start lisinopril 10 mg daily in patient J. Smith", ["J. Smith"]),
        ("Prescribe John Smith Lipitor 40 mg once daily", ["John Smith"]),
        ("Does Jane Doe take Lipitor?", ["Jane Doe"]),
        ("John Smith's allergies and Mary Jones’ chart", ["John Smith", "Mary Jones"]),
        ("Find John Smith and john smith", ["John Smith"]),
    ],
)
def test_patient_names_are_found_without_titles_and_possessives(question, names):
    assert read(question)["patient_names"] == names


@pytest.mark.parametrize(
    "question",
    [
        "Hello, how are you?",
        "What is hypertension?",
        "What Is Heart Failure And How Do You Treat It",
        "Does my patient with Parkinson's disease need Hodgkin lymphoma screening?",
        "Crohn's trials near Boston",
        "What about Wilson's disease and Guillain-Barré Syndrome after Flu Vaccine?",
        "Find recruiting trials in New York for Breast Cancer",
        "find trial for Non-Small Cell Lung Cancer",
        "Search PubMed for SGLT2 inhibitors in heart failure",
        "Find Keytruda studies",
        "Look up diabetes trials",
        "look up statin myopathy in pubmed",
        "find the chart of a patient with COPD",
        "Compare Warfarin and Eliquis in Atrial Fibrillation",
        "Check interactions between Warfarin, Aspirin and Ibuprofen",
        "Check the patient's chart and yesterday's labs",
        "Dr. Smith asked me to check metformin",
        "patient Lisinopril 10 mg",
        "",
    ],
)
def test_verbs_diseases_places_drugs_and_doctors_are_no_patients(question):
    assert read(question)["patient_names"] == []


@pytest.mark.parametrize(
    ("question", "names", "drugs"),
    [
        ("patient Mary Allegra", ["Mary Allegra"], []),
        ("Prescribe Allegra 180 mg daily for patient Mary Allegra", ["Mary Allegra"], ["Allegra"]),
        ("Start Allegra 180 mg daily", [], ["Allegra"]),
    ],
)
def test_a_family_name_that_is_a_drug_stays_a_name(question, names, drugs):
    found = read(question)
    assert (found["patient_names"], found["drug_mentions"]) == (names, drugs)


def test_drugs_stand_as_written_in_order_and_once():
    found = read("Check Warfarin, aspirin and WARFARIN with co-amoxiclav")
    assert found["drug_mentions"] == ["Warfarin", "aspirin", "co-amoxiclav"]


@pytest.mark.parametrize(
    ("question", "verbs"),
    [
        ("Find patient John Smith, check his chart, and verify metformin safety", ["find", "check", "verify"]),
        ("Prescribing and documented", ["prescribe", "document"]),
        ("What is hypertension?", []),
        ("a disorder of checkers", []),
    ],
)
def test_action_verbs_are_whole_words_in_their_base_form(question, verbs):
    assert read(question)["action_verbs"] == verbs


def test_trial_ids_are_found_in_their_usual_spellings():
    question = "NCT01234567, nct 07654321 and NCT:00000001, not NCT123 or XNCT01234567"
    assert read(question)["nct_ids"] == ["NCT01234567", "NCT07654321", "NCT00000001"]


def test_an_image_is_noted_only_when_one_is_attached():
    assert read("What do you see in this X-ray?")["has_image"] is False
    assert read("", has_image=True)["has_image"] is True


def test_direction_marks_and_control_characters_change_nothing():
    plain = read("Check metformin for abc-123, patient John Smith")
    marked = read("Check met\u200fformin\x00 for abc-\u202e123, patient John\u200b Smith\ufeff")
    assert marked == plain
    assert clean("a\u200fb\x07c\u200dd\ne") == "abc\u200dd\ne"


@given(st.text(max_size=300))
def test_any_text_is_read_and_what_is_found_stands_in_it(text):
    found = read(text)
    cleaned = " ".join(clean(text).split())
    for name in [*found["drug_mentions"], *found["patient_names"]]:
        assert " ".join(name.split()) in cleaned


@pytest.mark.parametrize("piece", ["A ", "a-", "'", "John Smith's ", "1,000,", "abc-12", "((((", "warfarin ", "Ö. "])
def test_a_megabyte_of_hostile_text_is_read(piece):
    question = piece * (1_000_000 // len(piece))
    assert read(question)["has_image"] is False
