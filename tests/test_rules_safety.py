"""The safety gate before a write: allergies and classes, interactions, duplicates, doses; nothing passes unchecked."""

from decimal import Decimal

import pytest

from docgemma.knowledge.base import Interaction
from docgemma.rules.dose_check import check_dose
from docgemma.rules.order_check import (
    UNVERIFIED,
    Checked,
    check_allergy_entry,
    check_order,
    check_order_allergies,
    shown,
)
from docgemma.rules.patient_state import UNKNOWN
from docgemma.text.drugs import ingredients
from docgemma.text.frequency import times_per_day
from docgemma.text.words import clinical
from tests.rules_help import dictionary


def allergy(substance: str, reaction: str = "hives", active: bool = True) -> dict:
    return {"substance": substance, "reaction": reaction, "severity": "severe", "active": active}


def order(medication: str = "metformin", **given) -> list[str]:
    chart = {"allergies": [], "medications": [], "no_known_allergies": True} | given
    pairs = Checked(given.get("interactions", []), given.get("not_checked", []))
    readable = None not in (chart["allergies"], chart["medications"])
    return shown(check_order(medication, chart if readable else None, pairs, dictionary()))


def entry(substance: str, **chart) -> list[str]:
    return shown(check_allergy_entry(substance, chart or None, dictionary()))


def dose(medication: str, dosage: str, frequency: str, limit: str = "", rows: tuple = (), patient=UNKNOWN) -> list[str]:
    known = rows or [{"max_day": limit, "of_label": True}]
    return shown(check_dose(medication, dosage, frequency, rows=known, patient=patient))


def of_allergies(medication: str, allergies: list[dict]) -> list[str]:
    return shown(check_order_allergies(medication, allergies, dictionary()))


def test_an_order_that_nothing_speaks_against_has_no_findings():
    assert order() == []


@pytest.mark.parametrize(
    ("medication", "substance", "says"),
    [
        ("amoxicillin", "amoxicillin", "is the same drug"),
        ("Tylenol", "paracetamol", "is the same drug"),
        ("Augmentin", "Amoxicillin 500 MG Oral Capsule", "contains amoxicillin"),
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
    [finding] = of_allergies(medication, [allergy(substance)])
    assert finding.startswith(f"Allergy to {substance} (hives, severe): ")
    assert says in finding


@pytest.mark.parametrize(
    ("medication", "substance"),
    [("metformin", "penicillin"), ("aztreonam", "penicillin"), ("warfarin", "sulfa"),
     ("acetaminophen", "ibuprofen"), ("atorvastatin", "nystatin"), ("ferrous sulfate", "sulfa"),
     ("iohexol", "gadolinium contrast")],
)  # fmt: skip
def test_an_unrelated_allergy_is_no_finding(medication, substance):
    assert of_allergies(medication, [allergy(substance)]) == []


@pytest.mark.parametrize("substance", ["latex", "cats", "unknown tablet"])
def test_an_allergy_that_is_no_drug_and_no_class_is_named_as_not_compared(substance):
    assert of_allergies("amoxicillin", [allergy(substance)]) == [
        f"Could not be checked: the allergy to {substance} (no known drug or class)."
    ]


def test_a_past_allergy_is_not_an_active_one():
    assert of_allergies("amoxicillin", [allergy("penicillin", active=False)]) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"allergies": None}, "allergies (the patient's record could not be read)"),
        ({"no_known_allergies": False}, "allergies (none are recorded"),
        ({"medications": None}, "interactions and duplicates (the active medications could not be read)"),
        ({"medications": [{"name": "aspirin"}], "interactions": None}, "interactions of metformin with the active"),
        ({"not_checked": ["foozle"]}, "the interaction of metformin with foozle"),
        ({"medication": "foozlemab"}, "foozlemab is not a known drug name"),
        ({"medication": "metfromin"}, "Did you mean metformin"),
    ],
)
def test_what_could_not_be_checked_is_a_finding(given, says):
    lines = order(**given)
    assert any(says in line and ("could not be checked" in line.lower()) for line in lines)


def test_all_that_could_not_be_checked_stands_on_one_line_and_last():
    lines = order(no_known_allergies=False, medications=[{"name": "Advil"}], not_checked=["foozle", "barle"])
    assert [line for line in lines if "ould not be checked" in line] == lines[-1:]
    assert lines[-1].count(";") == 1


@pytest.mark.parametrize(
    ("dosage", "frequency", "limit", "says"),
    [
        ("500 mg", "twice daily", "", "no maximum is known"),
        ("500 mg", "when the moon is full", "2550 mg", "the frequency when the moon is full is not understood"),
        ("500 mg", "not specified", "2550 mg", "no frequency is given"),
        ("500 mg", "", "2550 mg", "no frequency is given"),
        ("1 tablet", "daily", "2550 mg", "1 tablet does not compare with 2,550 mg"),
        ("10 units", "daily", "2550 mg", "10 units does not compare"),
        ("500", "daily", "2550 mg", "The dose 500 has no unit"),
    ],
)
def test_a_dose_that_could_not_be_compared_is_a_finding(dosage, frequency, limit, says):
    assert any(says in line for line in dose("metformin", dosage, frequency, limit))


def test_interactions_of_the_ordered_drug_are_listed_the_worst_first():
    found = [
        Interaction(("warfarin", "naproxen"), "major", "Not this order.", "", ""),
        Interaction(("ibuprofen", "lisinopril"), "moderate", "Less effect.", "Watch.", ""),
        Interaction(("warfarin", "ibuprofen"), "Major", "Bleeding.", "Avoid.", ""),
    ]
    active = [{"name": "Warfarin 5 MG Oral Tablet"}, {"name": "lisinopril"}]
    lines = order("Advil", medications=active, interactions=found)
    assert lines == [
        "Major interaction with warfarin: Bleeding. Avoid.",
        "Moderate interaction with lisinopril: Less effect. Watch.",
        UNVERIFIED,
    ]


@pytest.mark.parametrize(
    ("medication", "active", "says"),
    [
        ("ibuprofen", "Advil 200 mg", "Duplicate: Advil 200 mg is already active and contains ibuprofen."),
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
    assert order("ibuprofen", medications=[{"name": "Advil", "active": False}]) == []


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
    found = dose("metformin", dosage, frequency, limit)
    assert any("above the maximum" in line for line in found) is above
    assert not any("could not" in line for line in found)


def test_an_as_needed_dose_counts_as_if_every_one_were_taken():
    line, _ = dose("ibuprofen", "800 mg", "every 4 hours prn", "3200 mg")
    assert line.startswith("800 mg every 4 hours prn is 4,800 mg a day if every as-needed dose is taken")


def test_a_single_dose_above_the_maximum_is_found_though_the_frequency_is_unknown():
    lines = dose("metformin", "3 g", "sometimes", "2550 mg")
    assert lines[0].startswith("A single dose of 3 g is above the maximum of 2,550 mg a day")


@pytest.mark.parametrize(("frequency", "warned"), [("daily", True), ("once weekly", False), ("every 7 days", False)])
def test_daily_methotrexate_is_warned_about(frequency, warned):
    lines = dose("methotrexate", "10 mg", frequency, rows=({"route": "oral", "weekly": True, "max_day": "30 mg"},))
    assert any("given once weekly" in line for line in lines) is warned


@pytest.mark.parametrize(
    ("frequency", "times"),
    [("BID", 2), ("q6h prn", 4), ("every 4-6 hours", 6), ("three times a day", 3), ("5x daily", 5), ("at bedtime", 1),
     ("every other day", Decimal("0.5")), ("once", 0), ("stat", 0), ("daily", 1), ("whenever", None), ("", None),
     ("every 0 hours", None), ("q 8 h", 3), ("twice daily with meals", 2),
     ("8-hourly", 3), ("six hourly", 4), ("0 hourly", None), ("morning and night", 2),
     ("on alternate days", Decimal("0.5")),
     ("every 4h when needed", 6), ("tid ac", 3), ("biweekly", None)],
)  # fmt: skip
def test_doses_a_day_are_read_from_the_frequency(frequency, times):
    assert times_per_day(frequency) == times


def test_a_known_allergy_is_not_recorded_twice_unseen():
    lines = entry("penicillin", allergies=[allergy("Penicillins")], medications=[])
    assert lines == ["An allergy to Penicillins is already recorded (hives, severe).", "Recorded allergies: no other."]


def test_recording_an_allergy_to_what_the_patient_takes_is_noticed():
    lines = entry("penicillin", allergies=[], medications=[{"name": "Amoxicillin"}])
    assert lines == [
        "The patient takes Amoxicillin at present: "
        "Allergy to penicillin: Amoxicillin belongs to the same class (penicillins).",
        "Recorded allergies: no other.",
    ]


def test_an_allergy_entry_that_could_not_be_compared_says_so():
    lines = entry("penicillin")
    assert lines[0].count("could not be read") == 2


def test_ingredients_are_found_under_strengths_and_forms():
    assert ingredients("Metformin hydrochloride 500 MG Oral Tablet", dictionary()) == {"metformin"}
    assert ingredients("Zynfoo 5 mg", dictionary()) == {"zynfoo"}
    assert ingredients("Zynfoo 5 mg", None) == {"zynfoo"}


def test_every_finding_is_one_plain_line():
    lines = order("Augmentin", allergies=[allergy("penicillin"), allergy("latex")], medications=None)
    assert lines and all("\n" not in line and line.endswith((".", "?")) and "_" not in line for line in lines)


def every_name() -> list[str]:
    return sorted(dictionary()._generics)


def test_every_ingredient_of_every_product_is_compared():
    """A recorded allergy to any ingredient of any product of the dictionary is told when the product is ordered."""
    missed = []
    products = [name for name in every_name() if len(dictionary().ingredients(name)) > 1]
    for name in products:
        for part in ingredients(name, dictionary()):
            if not any(said in " ".join(of_allergies(name, [allergy(part)])) for said in ("same drug", "contains ")):
                missed.append((name, part))
    assert len(products) > 300
    assert len(missed) <= 10, missed  # vaccines and peptides whose parts are no names: "types 6"


def test_every_member_of_an_allergy_class_is_reached_by_an_allergy_to_the_class():
    missed = [
        (item["name"], member)
        for item in clinical("drug_classes")["classes"]
        for member in item["members"]
        if item["said"] and not of_allergies(member, [allergy(item["said"][0])])
    ]
    assert not missed, missed[:10]


def test_cross_reactions_refer_to_classes_or_drugs_that_exist():
    lists = clinical("drug_classes")
    names = {item["name"] for item in lists["classes"]}
    members = {name for item in lists["classes"] for name in item["members"]}
    parts = {part for name in every_name() for part in dictionary().ingredients(name)}
    assert len(names) == len(lists["classes"])
    for cross in lists["cross"]:
        assert cross["source"]
        for name in (cross["allergy"], cross["order"]):
            assert name in names | members | parts, name


def test_class_members_are_lower_case_and_mostly_in_the_dictionary():
    members = {name for item in clinical("drug_classes")["classes"] for name in item["members"]}
    assert all(name == name.lower() == name.strip() for name in members)
    unknown = {name for name in members if not dictionary().find(name)}
    assert len(unknown) <= 0.05 * len(members), unknown
