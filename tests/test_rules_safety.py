"""The safety gate before a write: allergies and classes, interactions, duplicates, doses; nothing passes unchecked."""

from decimal import Decimal

import pytest

from docgemma.knowledge.base import Interaction
from docgemma.rules.dosing import check_dose, times_per_day
from docgemma.rules.drug_classes import CLASSES, CROSS
from docgemma.rules.drugs import ingredients
from docgemma.rules.safety import (
    check_allergy_entry,
    check_order,
    check_order_allergies,
)
from tests.rules_help import dictionary


def allergy(substance: str, reaction: str = "hives", active: bool = True) -> dict:
    return {"substance": substance, "reaction": reaction, "severity": "severe", "active": active}


def order(medication: str = "metformin", dosage: str = "500 mg", frequency: str = "twice daily", **given) -> list[str]:
    known = {
        "allergies": [], "medications": [], "interactions": [], "max_daily_dose": "2550 mg", "no_known_allergies": True,
    } | given  # fmt: skip
    return check_order(medication, dosage, frequency, drugs=dictionary(), **known)


def test_an_order_that_nothing_speaks_against_has_no_findings():
    assert order() == []


@pytest.mark.parametrize(
    ("medication", "substance", "says"),
    [
        ("amoxicillin", "amoxicillin", "is the same drug"),
        ("Tylenol", "paracetamol", "is the same drug"),
        ("Augmentin", "Amoxicillin 500 MG Oral Capsule", "is the same drug"),
        ("amoxicillin", "penicillin", "same class (penicillins)"),
        ("Augmentin", "Penicillin V", "same class (penicillins)"),
        ("ampicillin", "PCN", "same class (penicillins)"),
        ("cephalexin", "penicillin", "caution, cross-reactivity with cephalosporins"),
        ("amoxicillin", "ceftriaxone", "caution, cross-reactivity with penicillins"),
        ("meropenem", "penicillin", "caution, cross-reactivity with carbapenems"),
        ("Bactrim", "sulfa drugs", "same class (sulfonamide antibiotics)"),
        ("celecoxib", "sulfonamides", "contraindicated after allergic reactions to sulfonamides"),
        ("hydrochlorothiazide", "sulfa", "caution, the label of thiazides"),
        ("Lasix", "sulfa", "caution, patients allergic to sulfonamides"),
        ("ibuprofen", "aspirin", "same class (NSAIDs)"),
        ("aspirin", "NSAIDs", "same class (NSAIDs)"),
        ("oxycodone", "codeine", "clarify the reaction"),
        ("enalapril", "lisinopril", "same class (ACE inhibitors)"),
        ("losartan", "ACE inhibitors", "caution, angioedema"),
        ("Entresto", "lisinopril", "sacubitril is contraindicated after angioedema"),
        ("rosuvastatin", "statins", "same class (statins)"),
        ("omnipaque", "IV contrast", "iodinated contrast media"),
        ("azithromycin", "erythromycin", "same class (macrolides)"),
        ("levofloxacin", "quinolones", "same class (fluoroquinolones)"),
        ("phenytoin", "carbamazepine", "aromatic antiepileptics"),
        ("enoxaparin", "heparin", "same class (heparins)"),
    ],
)
def test_an_allergy_to_the_drug_its_class_or_a_related_one_is_found(medication, substance, says):
    [finding] = check_order_allergies(medication, [allergy(substance)], dictionary())
    assert finding.startswith(f"Allergy to {substance} (hives, severe): ")
    assert says in finding


@pytest.mark.parametrize(
    ("medication", "substance"),
    [("metformin", "penicillin"), ("amoxicillin", "peanuts"), ("aztreonam", "penicillin"), ("warfarin", "sulfa"),
     ("acetaminophen", "ibuprofen"), ("atorvastatin", "nystatin"), ("amoxicillin", "latex")],
)  # fmt: skip
def test_an_unrelated_allergy_is_no_finding(medication, substance):
    assert check_order_allergies(medication, [allergy(substance)], dictionary()) == []


def test_a_past_allergy_is_not_an_active_one():
    assert check_order_allergies("amoxicillin", [allergy("penicillin", active=False)], dictionary()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"allergies": None}, "Allergies could not be checked: the patient's record could not be read."),
        ({"no_known_allergies": False}, "Allergies could not be checked: none are recorded"),
        ({"medications": None}, "Interactions and duplicates could not be checked"),
        ({"medications": [{"name": "aspirin"}], "interactions": None}, "Interactions of metformin with the active"),
        ({"not_checked": ["foozle"]}, "The interaction of metformin with foozle could not be checked."),
        ({"max_daily_dose": None}, "no maximum daily dose of metformin is known"),
        ({"max_daily_dose": ""}, "no maximum daily dose of metformin is known"),
        ({"frequency": "when the moon is full"}, "the frequency when the moon is full is not understood"),
        ({"frequency": "not specified"}, "no frequency is given"),
        ({"frequency": ""}, "no frequency is given"),
        ({"dosage": "1 tablet"}, "1 tablet does not compare with a maximum of 2550 mg a day"),
        ({"dosage": "500"}, "500 does not compare"),
        ({"dosage": "10 units"}, "10 units does not compare"),
        ({"medication": "foozlemab"}, "foozlemab is not a known drug name"),
        ({"medication": "metfromin"}, "Did you mean metformin"),
    ],
)
def test_what_could_not_be_checked_is_a_finding(given, says):
    assert any(says in line for line in order(**given))


def test_a_question_without_a_dose_says_nothing_of_doses():
    """Whether somebody may have a drug is asked without a dose; an order always has one: a card needs it."""
    assert not any("dose" in line for line in order(dosage=""))


def test_interactions_of_the_ordered_drug_are_listed_the_worst_first():
    found = [
        Interaction(("warfarin", "naproxen"), "major", "Not this order.", "", ""),
        Interaction(("ibuprofen", "lisinopril"), "moderate", "Less effect.", "Watch.", ""),
        Interaction(("warfarin", "ibuprofen"), "Major", "Bleeding.", "Avoid.", ""),
    ]
    active = [{"name": "Warfarin 5 MG Oral Tablet"}, {"name": "lisinopril"}]
    lines = order("Advil", "400 mg", "daily", medications=active, interactions=found, max_daily_dose="1200 mg")
    assert lines == [
        "Major interaction with warfarin: Bleeding. Avoid.",
        "Moderate interaction with lisinopril: Less effect. Watch.",
    ]


@pytest.mark.parametrize(
    ("medication", "active", "says"),
    [
        ("ibuprofen", "Advil 200 mg", "Duplicate: Advil 200 mg is active already and contains ibuprofen."),
        ("naproxen", "ibuprofen", "of the same class (NSAIDs)"),
        ("atorvastatin", "Crestor", "of the same class (statins)"),
        ("lorazepam", "diazepam", "of the same class (benzodiazepines)"),
        ("apixaban", "warfarin", "of the same class (oral anticoagulants)"),
        ("losartan", "lisinopril", "an ACE inhibitor with an angiotensin receptor blocker"),
        ("Bactrim", "trimethoprim", "contains trimethoprim"),
    ],
)
def test_duplicate_therapy_is_found_by_ingredient_and_by_class(medication, active, says):
    assert any(says in line for line in order(medication, medications=[{"name": active, "active": True}]))


def test_a_stopped_medication_is_no_duplicate():
    assert order("ibuprofen", medications=[{"name": "Advil", "active": False}], max_daily_dose="3200 mg") == []


@pytest.mark.parametrize(
    ("dosage", "frequency", "limit", "above"),
    [
        ("1 g", "twice daily", "2550 mg", False),
        ("1,000 mg", "BID", "2,000 mg", False),
        ("1,000 mg", "TID", "2,000 mg", True),
        ("850 mg", "three times daily", "2550 mg", False),
        ("851 mg", "three times daily", "2550 mg", True),
        ("500 mcg", "q12h", "1 mg", False),
        ("500-1000 mg", "every 4-6 hours", "4000 mg", True),
        ("2550 mg", "once weekly", "2550 mg", False),
        ("3000 mg", "once", "2550 mg", True),
        ("20 mg", "at bedtime", "10 mg", True),
        ("10 mg", "every other day", "5 mg", False),
    ],
)
def test_the_daily_dose_is_held_to_the_maximum(dosage, frequency, limit, above):
    found = check_dose("metformin", dosage, frequency, limit, dictionary())
    assert any("above the maximum" in line for line in found) is above
    assert not any("could not" in line for line in found)


def test_an_as_needed_dose_counts_as_if_every_one_were_taken():
    [line] = check_dose("ibuprofen", "800 mg", "every 4 hours prn", "3200 mg", dictionary())
    assert line.startswith("800 mg every 4 hours prn is 4,800 mg a day if every as-needed dose is taken")


def test_a_single_dose_above_the_maximum_is_found_though_the_frequency_is_unknown():
    lines = check_dose("metformin", "3 g", "sometimes", "2550 mg", dictionary())
    assert lines[0] == "A single dose of 3 g is above the maximum of 2550 mg a day."


@pytest.mark.parametrize(("frequency", "warned"), [("daily", True), ("once weekly", False), ("every 7 days", False)])
def test_daily_methotrexate_is_warned_about(frequency, warned):
    lines = check_dose("methotrexate", "10 mg", frequency, "30 mg", dictionary())
    assert any("daily use can be fatal" in line for line in lines) is warned


@pytest.mark.parametrize(
    ("frequency", "times"),
    [("BID", 2), ("q6h prn", 4), ("every 4-6 hours", 6), ("three times a day", 3), ("5x daily", 5), ("at bedtime", 1),
     ("every other day", Decimal("0.5")), ("once", 1), ("stat", 1), ("daily", 1), ("whenever", None), ("", None),
     ("every 0 hours", None), ("q 8 h", 3), ("twice daily with meals", 2),
     ("8-hourly", 3), ("six hourly", 4), ("0 hourly", None), ("morning and night", 2),
     ("on alternate days", Decimal("0.5")),
     ("every 4h when needed", 6), ("tid ac", 3), ("fortnightly", None)],
)  # fmt: skip
def test_doses_a_day_are_read_from_the_frequency(frequency, times):
    assert times_per_day(frequency) == times


def test_a_known_allergy_is_not_recorded_twice_unseen():
    lines = check_allergy_entry("penicillin", allergies=[allergy("Penicillins")], medications=[], drugs=dictionary())
    assert lines == ["An allergy to Penicillins is already recorded (hives, severe)."]


def test_recording_an_allergy_to_what_the_patient_takes_is_noticed():
    lines = check_allergy_entry("penicillin", allergies=[], medications=[{"name": "Amoxicillin"}], drugs=dictionary())
    assert lines == [
        "The patient takes Amoxicillin at present: "
        "Allergy to penicillin: Amoxicillin belongs to the same class (penicillins)."
    ]


def test_an_allergy_entry_that_could_not_be_compared_says_so():
    lines = check_allergy_entry("penicillin", allergies=None, medications=None, drugs=dictionary())
    assert len(lines) == 2
    assert all("could not be read" in line for line in lines)


def test_ingredients_are_found_under_strengths_and_forms():
    assert ingredients("Metformin hydrochloride 500 MG Oral Tablet", dictionary()) == {"metformin"}
    assert ingredients("Zynfoo 5 mg", dictionary()) == {"zynfoo"}
    assert ingredients("Zynfoo 5 mg", None) == {"zynfoo"}


def test_every_finding_is_one_plain_line():
    lines = order("Augmentin", "900 mg", "x", allergies=[allergy("penicillin")], medications=None, max_daily_dose="1 g")
    assert lines and all("\n" not in line and line.endswith((".", "?")) and "_" not in line for line in lines)


def test_cross_reactions_refer_to_classes_that_exist():
    names = {item.name for item in CLASSES}
    assert len(names) == len(CLASSES)
    assert {name for cross in CROSS for name in (cross.allergy, cross.order)} <= names


def test_class_members_are_lower_case_and_mostly_in_the_dictionary():
    members = {name for item in CLASSES for name in item.members}
    assert all(name == name.lower() == name.strip() for name in members)
    unknown = {name for name in members if name not in dictionary()}
    assert len(unknown) <= 0.05 * len(members), unknown
