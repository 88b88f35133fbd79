"""What is said without a model, and what is said in spite of one."""

import pytest

from docgemma.rules.fallback import NOTHING, answer_from_evidence, ensure_critical, unavailable_lines
from docgemma.rules.grounding import LABELS
from tests.rules_help import chart, dictionary, failed, result, turn

SAFETY, INTERACT = "check_drug_safety", "check_drug_interactions"
DOFETILIDE = result(
    SAFETY, {"drug_name": "Tikosyn"},
    data={"drug": "dofetilide", "asked": "Tikosyn", "brand_names": ["Tikosyn"], "has_boxed_warning": True,
          "boxed_warning": "Arrhythmia.", "contraindications": ["Long QT."]},
    text="Dofetilide has an FDA boxed warning: Arrhythmia.\nDofetilide contraindication: Long QT.\n"
         "Dofetilide is sold as Tikosyn.",
)  # fmt: skip
BLEEDING = result(
    INTERACT, {"drug_names": ["Coumadin", "aspirin", "metformin", "foozle"]},
    data={"drugs": ["warfarin", "aspirin", "metformin"], "asked": ["Coumadin", "aspirin", "metformin"],
          "interactions": [
              {"drugs": ["warfarin", "aspirin"], "severity": "major", "mechanism": "Bleeding.", "management": ""},
              {"drugs": ["aspirin", "metformin"], "severity": "minor", "mechanism": "", "management": ""}],
          "not_checked": ["foozle"]},
    text="Warfarin with aspirin: major interaction. Bleeding.\nAspirin with metformin: minor interaction.\n"
         "Foozle was not found in this source; its interactions were not checked.",
)  # fmt: skip
DOWN = "Unable to complete Drug Safety Report after multiple attempts."


@pytest.mark.parametrize(
    "state",
    [
        {}, {"user_query": ""}, turn("x"), turn("x", result(SAFETY)), turn("x", failed(SAFETY, "timeout")),
        turn("x", error_messages=["Nothing there."]), turn("x", image_findings={"formatted": "Impression: normal."}),
        turn("x", clarification={"question": "Which one?"}), turn("x", DOFETILIDE, BLEEDING, chart("warfarin")),
    ],
)  # fmt: skip
def test_the_answer_from_evidence_is_never_empty_and_never_names_a_tool(state):
    answer = answer_from_evidence(state)
    assert answer.strip()
    assert not any(name in answer for name in LABELS)


def test_without_anything_it_says_so_and_what_to_do():
    assert answer_from_evidence(turn("x")) == NOTHING


def test_critical_findings_come_first():
    answer = answer_from_evidence(turn("x", chart("metformin"), BLEEDING))
    assert answer.splitlines()[0] == "Warfarin with aspirin: major interaction. Bleeding."
    assert "Active medication: metformin." in answer


def test_an_open_question_is_the_answer():
    assert answer_from_evidence(turn("x", DOFETILIDE, clarification={"question": "Which one?"})) == "Which one?"


def test_long_evidence_is_cut_and_says_so():
    many = result("get_patient_chart", text="\n".join(f"Lab: item {number}." for number in range(40)))
    assert answer_from_evidence(turn("x", many)).endswith("26 further findings not shown.")


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        (turn("x"), []),
        (turn("x", result(SAFETY)), []),
        (turn("x", failed(SAFETY, "rate_limit")), [DOWN]),
        (turn("x", failed(SAFETY, "timeout")),
         ["The Drug Safety Report was temporarily unavailable. Please try again shortly."]),
        (turn("x", failed(SAFETY, "timeout"), failed(SAFETY, "timeout"), error_messages=[DOWN]), [DOWN]),
        (turn("x", failed(SAFETY, "timeout"), result(SAFETY)), []),
        (turn("x", failed(SAFETY, "drug_not_in_database", {"drug_name": "foozle"}), result(SAFETY, {"drug_name": "x"})),
         ["foozle was not found in the drug database."]),
    ],
)  # fmt: skip
def test_what_was_unavailable_is_listed_once_and_promises_no_retry(state, lines):
    assert unavailable_lines(state) == lines


@pytest.mark.parametrize(
    "answer",
    [
        "Dofetilide carries a boxed warning for arrhythmia and is contraindicated in long QT.",
        "Tikosyn has a black box warning; contraindicated in long QT syndromes.",
    ],
)
def test_an_answer_that_says_the_critical_things_is_left_alone(answer):
    assert ensure_critical(answer, turn("x", DOFETILIDE)) == answer


def test_a_lost_boxed_warning_and_contraindication_are_added():
    assert ensure_critical("Monitor the ECG.", turn("x", DOFETILIDE)) == (
        "Monitor the ECG.\nDofetilide has an FDA boxed warning: Arrhythmia.\nDofetilide contraindication: Long QT."
    )


def test_one_contraindication_told_does_not_hide_the_others():
    text = "Dofetilide contraindication: Long QT.\nDofetilide contraindication: Concomitant verapamil."
    data = {"drug": "dofetilide", "contraindications": ["Long QT", "Concomitant verapamil"]}
    told = "Dofetilide is contraindicated in long QT."
    lost = "\nDofetilide contraindication: Concomitant verapamil."
    assert ensure_critical(told, turn("x", result(SAFETY, data=data, text=text))) == told + lost


def test_another_drugs_boxed_warning_does_not_count():
    answer = "Amiodarone has a boxed warning and is contraindicated in shock."
    assert "Dofetilide has an FDA boxed warning" in ensure_critical(answer, turn("x", DOFETILIDE))


def test_a_lost_major_interaction_is_added_and_a_minor_one_is_not():
    answer = ensure_critical("Watch the INR.", turn("x", BLEEDING))
    assert "Warfarin with aspirin: major interaction." in answer
    assert "minor" not in answer
    assert "Foozle was not found" in answer


def test_an_interaction_told_with_the_brand_name_is_told():
    told = "Coumadin with aspirin raises the bleeding risk. Foozle was not checked."
    assert ensure_critical(told, turn("x", BLEEDING)) == told


def test_a_severity_that_nobody_ranks_counts_as_serious():
    data = {"drugs": ["a", "b"], "interactions": [{"drugs": ["a", "b"], "severity": "label warning"}]}
    assert "label warning" in ensure_critical("Fine.", turn("x", result(INTERACT, data=data, text="")))


@pytest.mark.parametrize(
    ("answer", "added"),
    [
        ("Metformin is used in diabetes.", True),
        ("The Drug Safety Report was unavailable.", False),
        ("Drug safety information could not be retrieved.", True),
        (DOWN, False),
        ("", True),
    ],
)
def test_an_outage_is_always_mentioned(answer, added):
    state = turn("x", failed(SAFETY, "timeout"), error_messages=[DOWN])
    assert (ensure_critical(answer, state) != answer) is added
    assert DOWN in ensure_critical(answer, state) or not added


def test_an_allergy_in_the_chart_against_the_drug_in_question_is_mentioned():
    allergies = ({"substance": "penicillin", "reaction": "anaphylaxis", "severity": "severe", "active": True},)
    state = turn("Is amoxicillin safe for abc-123?", chart(allergies=allergies))
    added = "Allergy to penicillin (anaphylaxis, severe): amoxicillin belongs to the same class (penicillins)."
    assert added in ensure_critical("Amoxicillin is an antibiotic.", state)
    told = "He is allergic to penicillin, so avoid amoxicillin."
    assert ensure_critical(told, state) == told


def test_a_brand_in_question_is_compared_with_the_allergy():
    allergies = ({"substance": "penicillin", "reaction": "hives", "severity": "severe", "active": True},)
    state = turn("Is Amoxil safe for abc-123?", chart(allergies=allergies))
    assert "Amoxil belongs to the same class" in ensure_critical("It is an antibiotic.", state, dictionary())


def test_a_rejected_write_is_never_silent():
    text = "Prescription: not recorded. The clinician rejected it."
    state = turn("x", result("prescribe_medication", data={"decision": "rejected"}, text=text))
    assert text in ensure_critical("Metformin was discussed.", state)
    assert ensure_critical("The order was not recorded.", state) == "The order was not recorded."


def test_a_fall_back_to_the_snapshot_is_said():
    call = result(SAFETY, data={"drug": "metformin", "has_boxed_warning": False, "fell_back": "timeout"}, text="x")
    assert "offline snapshot" in ensure_critical("Metformin is fine.", turn("x", call))


def test_a_critical_laboratory_value_is_mentioned():
    item = {"name": "Potassium", "flag": "critically high"}
    call = result(
        "get_patient_chart", data={"labs": [item]}, text="Abnormal lab: Potassium 6.9 mmol/L (critically high)."
    )
    assert "Potassium 6.9" in ensure_critical("He is well.", turn("x", call))


def test_nothing_is_added_twice():
    once = ensure_critical("Ask.", turn("x", DOFETILIDE, BLEEDING))
    assert ensure_critical(once, turn("x", DOFETILIDE, BLEEDING)) == once
