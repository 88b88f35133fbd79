"""The order gate against scenarios written with fresh eyes, and against each gap that an audit found."""

import pytest

from tests.order_cases import gate, grave, scenarios


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("orders")) as context:
        yield context


@pytest.mark.parametrize("name", ["hospital_pharmacist", "ward_pharmacist"])
def test_what_a_pharmacist_demands_is_shown(name, context):
    missed = []
    for case in scenarios(name):
        lines = [line.lower() for line in grave(case["patient"], case["order"], context)]
        for wanted in case["expected"]:
            if not any(word.lower() in line for word in wanted["any"] for line in lines):
                missed.append((case["id"], wanted["kind"]))
    assert not missed


@pytest.mark.parametrize("name", ["hospital_pharmacist", "ward_pharmacist"])
def test_harmless_orders_raise_few_alarms(name, context):
    harmless = [case for case in scenarios(name) if case["harmless"]]
    alarms = {case["id"]: found for case in harmless if (found := grave(case["patient"], case["order"], context))}
    assert len(harmless) == 50
    assert len(alarms) <= 2, alarms


def patient(age: float = 50, **given) -> dict:
    return {"age": age, "sex": "female", "no_known_allergies": True, "labs": {"eGFR": 90}} | given


def allergic(substance: str, reaction: str = "anaphylaxis") -> dict:
    return patient(allergies=[{"substance": substance, "reaction": reaction}])


def order(drug: str, dose: str = "", frequency: str = "once daily", notes: str = "oral") -> dict:
    return {"drug": drug, "dose": dose, "frequency": frequency, "notes": notes}


@pytest.mark.parametrize(
    ("who", "what", "says"),
    [
        # products with a slash between their ingredients
        (allergic("penicillin"), order("Unasyn"), "penicillins"),
        (allergic("penicillin"), order("Timentin"), "penicillins"),
        (allergic("amoxicillin"), order("Talicia"), "Talicia contains amoxicillin"),
        (allergic("ibuprofen"), order("Excedrin"), "NSAIDs"),
        (allergic("ibuprofen"), order("Vimovo"), "NSAIDs"),
        (allergic("doxycycline"), order("Pylera"), "tetracyclines"),
        (patient(medications=["lisinopril"]), order("Tarka"), "ACE inhibitors"),
        # allergens that name a class in the ward's words
        (allergic("cillins"), order("amoxicillin"), "penicillins"),
        (allergic("Pen VK"), order("amoxicillin"), "penicillins"),
        (allergic("beta-lactam"), order("cephalexin"), "beta-lactams"),
        # class lists
        (allergic("ceftazidime"), order("aztreonam"), "side chain"),
        (allergic("opioids"), order("butorphanol"), "opioid"),
        (allergic("acyclovir"), order("valacyclovir"), "same"),
        (allergic("risperidone"), order("paliperidone"), "same"),
        (patient(medications=["clopidogrel"]), order("prasugrel"), "duplicate"),
        (patient(medications=["gabapentin"]), order("pregabalin"), "duplicate"),
        # doses: the lowest limit that fits
        (patient(), order("ketorolac", "20 mg", "four times daily"), "above the maximum"),
        (patient(70), order("citalopram", "40 mg"), "20 mg a day"),
        (patient(problems=["Rheumatoid arthritis"]), order("tofacitinib", "10 mg", "twice daily"), "above the maximum"),
        (patient(), order("alprazolam", "3 mg", "three times daily"), "above the maximum"),
        # what a reviewer of the facts found
        (patient(), order("vincristine", "2 mg", "once weekly", "intrathecally"), "fatal if given by other routes"),
        (patient(), order("haloperidol", "50 mg", "once daily", "intramuscularly"), "above the maximum"),
        (patient(weight_kg=55), order("fondaparinux", "10 mg", "once daily", "subcutaneous for DVT"), "7.5 mg"),
        (patient(), order("warfarin", "50 mg"), "above the maximum"),
        (patient(60, weight_kg=95, problems=["Atrial fibrillation"], labs={"creatinine": 0.8}),
         order("edoxaban", "60 mg"), "95 mL/min"),
        (patient(6, weight_kg=20), order("digoxin", "1 mg"), "above the maximum"),
        (patient(), order("docetaxel", "160 mg", "once weekly", "infusion"), "every 21 days"),
        (patient(), order("morphine", "10 mg", "once", "intrathecally"), "above the maximum"),
        (patient(), order("methotrexate", "30 mg", "once weekly", "intrathecally"), "above the maximum"),
        # units
        (patient(), order("digoxin", "125 mg"), "125 mcg meant"),
        (patient(), order("levothyroxine", "88 mg"), "88 mcg meant"),
        (patient(), order("colchicine", "500 mg"), "500 mcg meant"),
        # the patient
        (patient(28, pregnant_weeks=28), order("isotretinoin", "40 mg"), "pregnan"),
        (patient(6, weight_kg=21), order("ibuprofen", "800 mg", "three times daily"), "above the maximum"),
        (patient(problems=["Asthma"]), order("propranolol", "40 mg", "twice daily"), "Asthma"),
        (patient(problems=["Cirrhosis of liver"]), order("tolvaptan", "15 mg"), "Cirrhosis"),
        (patient(problems=["Parkinson's disease"]), order("metoclopramide", "10 mg"), "Parkinson"),
        # weekly drugs
        (patient(), order("alendronate", "70 mg"), "once weekly"),
        (patient(), order("semaglutide", "1 mg", "once daily", "subcutaneous injection"), "once weekly"),
        (patient(), order("methotrexate", "15 mg"), "once weekly"),
    ],
)  # fmt: skip
def test_what_passed_without_a_word_is_shown(who, what, says, context):
    assert any(says.lower() in line.lower() for line in grave(who, what, context))


@pytest.mark.parametrize(
    ("who", "what"),
    [(allergic("gadolinium contrast"), order("iohexol")), (allergic("penicillin"), order("aztreonam"))],
)
def test_what_only_sounds_alike_is_no_alarm(who, what, context):
    assert not any(line.startswith("Allergy") for line in grave(who, what, context))


@pytest.mark.parametrize("substance", ["sulfa", "Bactrim"])
@pytest.mark.parametrize("drug", ["zonisamide", "acetazolamide", "glipizide", "Dyazide"])
def test_a_sulfa_allergy_reaches_the_drugs_whose_records_name_it(substance, drug, context):
    from docgemma.rules.drug_classes import allergy_conflict

    assert allergy_conflict(drug, substance, context.drugs)


def test_a_low_weekly_dose_of_a_three_weekly_drug_is_let_pass(context):
    assert not grave(patient(), order("docetaxel", "60 mg", "once weekly", "infusion"), context)
    assert not grave(patient(), order("docetaxel", "160 mg", "every 3 weeks", "infusion"), context)


def test_an_oral_maximum_is_not_held_against_an_infusion(context):
    assert not grave(patient(), order("methylprednisolone", "1000 mg", "once daily", "intravenously"), context)


def test_a_row_with_a_form_and_an_indication_needs_both(context):
    panic = patient(problems=["Panic disorder"])
    assert not grave(panic, order("paroxetine extended release", "75 mg"), context)
    assert grave(panic, order("paroxetine", "75 mg"), context)


def test_a_single_intramuscular_dose_is_not_held_to_the_intravenous_one(context):
    assert not grave(patient(), order("ketorolac", "60 mg", "once", "into a muscle"), context)
    assert grave(patient(), order("ketorolac", "60 mg", "once", "into a vein"), context)


def test_the_kidney_limit_of_an_indication_replaces_the_general_one(context):
    who = patient(problems=["Bacterial meningitis"], labs={"eGFR": 20})
    assert not grave(who, order("meropenem", "1 g", "every 12 hours", "intravenously"), context)
    assert grave(patient(labs={"eGFR": 20}), order("meropenem", "1 g", "every 12 hours", "intravenously"), context)
