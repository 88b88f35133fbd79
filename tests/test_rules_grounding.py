"""Grounding: an answer keeps what its evidence bears out, and loses the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.rules.grounding import ground, split
from docgemma.text.numbers import quantities
from docgemma.tools import toolbox
from tests.rules_help import dictionary

TOOLS = {tool.name: tool.label for tool in toolbox()}
DOFETILIDE = """\
Dofetilide has an FDA boxed warning: To minimize the risk of induced arrhythmia, patients should be placed \
for a minimum of 3 days in a facility that can provide continuous ECG monitoring.
Dofetilide contraindication: Congenital or acquired long QT syndromes.
Dofetilide maximum adult daily dose: 1,000 mcg.
Dofetilide is sold as Tikosyn."""
PAIRS = """\
Warfarin with aspirin: major interaction. Increased bleeding risk. Monitor INR.
Warfarin with metformin: none listed in this source, which does not prove that there is none."""
CHART = """\
Patient John Smith, male, born 1962-03-04, patient ID abc-123.
Allergy: penicillin (hives, moderate).
Active medication: Lipitor 40 mg once daily.
Active medication: metformin 500 mg BID.
Lab: eGFR 28 mL/min/1.73 m2 (low, 2024-03-12).
Vital sign: Blood pressure 152/94 mmHg."""
DOWN = "The Drug Safety Report was temporarily unavailable. Please try again shortly."


def checked(answer: str, *evidence: str):
    return ground(answer, evidence, dictionary(), TOOLS)


def survives(sentence: str, *evidence: str) -> bool:
    return checked(sentence, *evidence).answer == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "Dofetilide carries an FDA boxed warning for induced arrhythmia.",
        "Patients need ECG monitoring for at least 3 days.",
        "Patients need ECG monitoring for at least three days.",
        "Patients need ECG monitoring for 72 hours.",
        "Tikosyn is contraindicated in long QT syndromes.",
        "The maximum is 1000 mcg.",
        "The maximum is 1 mg.",
        "The maximum is 1.0 mg.",
        "Two points matter here.",
    ],
)
def test_what_the_evidence_says_in_other_words_stays(sentence):
    assert survives(sentence, DOFETILIDE)


@pytest.mark.parametrize(
    "sentence",
    [
        "Amiodarone is an alternative.",
        "Consider foozlemab or quuxopril instead.",
        "The dose is 500 mcg.",
        "The maximum is 1,000 mg.",
        "Monitor for 5 days.",
        "Monitor for three weeks.",
        "The dose is 1,000 mcg BID.",
        "The risk is 12%.",
        "See NCT01234567 for details.",
        "See PMID 12345678.",
        "Give it to abc-123.",
    ],
)
def test_what_the_evidence_does_not_say_is_removed_and_recorded(sentence):
    found = checked(f"Dofetilide has a boxed warning. {sentence}", DOFETILIDE)
    assert found.answer == "Dofetilide has a boxed warning."
    assert found.removed == [sentence]
    assert not found.supported


@pytest.mark.parametrize(
    ("sentence", "stays"),
    [
        ("John Smith (abc-123) takes atorvastatin 40 mg daily.", True),
        ("He takes metformin 0.5 g twice daily.", True),
        ("He takes metformin 500 mg three times daily.", False),
        ("He takes Lipitor 80 mg daily.", False),
        ("His eGFR is 28 mL/min/1.73 m².", True),
        ("His eGFR of 28 was measured on March 12, 2024.", True),
        ("His eGFR is 82.", False),
        ("His blood pressure is 152/94 mmHg.", True),
        ("His blood pressure is 94/52 mmHg.", False),
        ("The patient is abc-124.", False),
        ("He takes Glucophage.", True),
        ("He takes insulin.", False),
    ],
)
def test_chart_values_are_held_to_the_chart(sentence, stays):
    assert survives(sentence, CHART) is stays


@pytest.mark.parametrize(
    ("evidence", "sentence", "stays"),
    [
        ("10, 20 or 40 mg", "Give 20 mg.", True),
        ("5-10 mg", "Give 5 mg.", True),
        ("1000 mg", "Give 1,000 mg.", True),
        ("0.5 mg", "Give .5 mg.", True),
        ("500 mcg", "Give 0.5 mg.", True),
        ("50%", "About 50 percent respond.", True),
        ("5 mg", "Give 5 mg/kg.", False),
        ("5 mg/kg", "Give 5 mg/kg.", True),
        ("Creatinine 1.8", "Creatinine is 1.8 mg.", False),
        ("type II diabetes", "This is type 2 diabetes.", True),
        ("phase 3", "This is a phase III trial.", True),
        ("phase 2", "This is a phase III trial.", False),
        ("aged 54", "This is a 54-year-old.", True),
        ("insulin glargine 10 units", "He takes insulin 10 units.", True),
        ("insulin", "He takes insulin glargine.", False),
        ("Entresto", "He takes sacubitril.", True),
        ("q8h", "Take it three times daily.", True),
    ],
)
def test_number_formats_units_and_names_of_one_thing_are_the_same(evidence, sentence, stays):
    assert survives(sentence, evidence) is stays


@pytest.mark.parametrize(
    ("sentence", "evidence", "stays"),
    [
        ("Dofetilide has no boxed warning.", DOFETILIDE, False),
        ("There is no black box warning.", DOFETILIDE, False),
        (
            "Metformin has no boxed warning.",
            DOFETILIDE + "\nMetformin has no boxed warning on the current label.",
            True,
        ),
        ("No boxed warning is listed for metformin.", "Metformin has no boxed warning on the current label.", True),
        ("Metformin has no boxed warning.", "Metformin is sold as Glucophage.", False),
        ("There are no contraindications.", DOFETILIDE, False),
        ("Dofetilide is generally safe.", DOFETILIDE, False),
        ("Dofetilide is not safe in long QT syndromes.", DOFETILIDE, True),
        ("There are no interactions between warfarin and aspirin.", PAIRS, False),
        ("No major interactions.", PAIRS, False),
        ("There is no interaction between warfarin and metformin.", PAIRS, False),
        ("No interaction of warfarin with metformin is listed.", PAIRS, True),
        ("Warfarin and metformin can be safely combined.", PAIRS, False),
        ("No interactions were found.", DOWN, False),
        ("He has no known allergies.", CHART, False),
        ("He has no allergies recorded.", "No allergies are recorded in the chart.", True),
        ("He has no allergies.", "No allergies are recorded in the chart.", False),
        ("He has no known allergies.", "No known allergies.", True),
        ("He takes no medications.", CHART, False),
        ("No trials were found for gout.", "No trials were found for gout.", True),
        ("There are no trials for gout.", DOWN, False),
        ("I have prescribed metformin.", CHART, False),
        ("The prescription has been saved.", "Prescription: not recorded. The clinician rejected it.", False),
        ("The prescription has been saved.", "Prescribed metformin 500 mg BID for John Smith.", True),
    ],
)
def test_absence_safety_and_finished_writes_need_evidence(sentence, evidence, stays):
    assert survives(sentence, evidence) is stays


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("According to the openFDA database, dofetilide has a boxed warning.", "Dofetilide has a boxed warning."),
        ("[check_drug_safety] reports a boxed warning.", "Drug Safety Report reports a boxed warning."),
        (
            "The `check_drug_safety()` result shows a boxed warning.",
            "The Drug Safety Report result shows a boxed warning.",
        ),
        ("The tool returned data.", ""),
        ("HTTP 503 occurred.", ""),
        ("ValueError: bad thing.", ""),
        ("Traceback (most recent call last)", ""),
        ('{"drug": "dofetilide"}', ""),
        ("The API gave status code 500.", ""),
        ("The patient_id is missing.", ""),
        ("As an AI language model I cannot say.", ""),
    ],
)
def test_the_inside_of_the_system_is_never_shown(said, left):
    assert checked(said, DOFETILIDE).answer == left


@pytest.mark.parametrize(
    "sentence",
    [
        "foozle was not found in the drug database.",
        DOWN,
        "The live service could not be reached; this is from the offline snapshot.",
    ],
)
def test_a_prepared_message_passes_word_for_word(sentence):
    assert survives(sentence, sentence)


def test_a_list_keeps_its_shape_and_loses_only_the_wrong_items():
    answer = "Warnings:\n1. Monitor for 3 days.\n2. Give 999 mg.\n3. Avoid in long QT syndromes.\n\nDoses:\n- 7 g"
    found = checked(answer, DOFETILIDE)
    assert found.answer == "Warnings:\n1. Monitor for 3 days.\n3. Avoid in long QT syndromes."
    assert found.removed == ["2. Give 999 mg.", "- 7 g"]


@pytest.mark.parametrize("answer", ["", "   ", "\n\n", "\u200f"])
def test_an_empty_answer_stays_empty(answer):
    assert checked(answer, DOFETILIDE).answer.strip("\u200f") == ""


def test_without_evidence_no_fact_survives():
    assert checked("Metformin 500 mg is fine. Hello.").answer == "Hello."


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Take 0.5 mg. Then stop.", ["Take 0.5 mg.", "Then stop."]),
        ("Dr. Smith saw J. Doe, e.g. for pain. Next!", ["Dr. Smith saw J. Doe, e.g. for pain.", "Next!"]),
        ("1. First.\n2. Second. Third.", ["1. First.", "2. Second.", "Third."]),
        ("He said (see above.) Then left.", ["He said (see above.)", "Then left."]),
        ("Is it? Yes.", ["Is it?", "Yes."]),
        ("approx. 5 mg vs. 6 mg", ["approx. 5 mg vs. 6 mg"]),
        ("", []),
    ],
)
def test_sentences_are_split_where_they_end(text, sentences):
    assert [sentence for sentence, _gap in split(text)] == sentences


@given(st.text(alphabet=" .!?\n\"'()aBc19,:-", max_size=120))
def test_splitting_loses_nothing(text):
    assert "".join(sentence + gap for sentence, gap in split(text)) == text.strip()


@given(
    st.lists(
        st.sampled_from([*DOFETILIDE.splitlines(), *PAIRS.splitlines(), *CHART.splitlines()]), min_size=1, max_size=6
    )
)
def test_evidence_itself_is_always_supported(lines):
    answer = "\n".join(lines)
    assert checked(answer, DOFETILIDE, PAIRS, CHART).answer == answer


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=5), st.sampled_from(["mg", "mcg", "days", "%", ""]))
def test_no_number_survives_that_the_evidence_lacks(values, unit):
    answer = " ".join(
        f"Number {number} is {value} {unit}.".replace(" .", ".") for number, value in enumerate(values, 1000000)
    )
    kept = checked(answer.replace("Number 1", "Number "), DOFETILIDE).answer
    known = {item.value for item in quantities(DOFETILIDE)} | {3, 1000}
    assert {item.value for item in quantities(kept)} <= known


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_answer_is_checked_twice_with_the_same_outcome(answer, evidence):
    once = checked(answer, evidence)
    assert checked(once.answer, evidence).answer == once.answer


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_name_survives(name):
    assert name not in checked(f"I called {name} for you. [{name}] Done.", f"{name} was called").answer
