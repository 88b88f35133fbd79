"""The dose part of the order gate, as a pharmacist tries it: an order, and the finding that it must show or not."""

import pytest

from docgemma.knowledge.drug_rules import _rows, doses_of, product_of
from docgemma.nodes.write_findings import order_findings
from docgemma.paths import data_file
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, UNCHECKED, shown
from docgemma.text.frequency import times_per_day
from tests.order_cases import chart_of, gate, grave
from tests.rules_help import dictionary


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("doses")) as context:
        yield context


def patient(age: float = 50, **given) -> dict:
    return {"age": age, "sex": "male", "no_known_allergies": True, "labs": {"eGFR": 90}, "weight_kg": 75} | given


def read(order: str) -> dict[str, str]:
    """ "drug; dose; frequency; notes" as an order."""
    drug, dose, frequency, notes = (part.strip() for part in f"{order}; ; ;".split(";")[:4])
    return {"drug": drug, "dose": dose, "frequency": frequency, "notes": notes}


def found(order: str, context, who: dict | None = None) -> list:
    said, chart = read(order), chart_of(who or patient())
    args = {"medication_name": said["drug"], "dosage": said["dose"], "frequency": said["frequency"]}
    return order_findings({"patient_id": "x", "notes": said["notes"]} | args, chart, context)


def of_dose(order: str, context, who: dict | None = None) -> list[str]:
    """The grave findings that speak of dose or interval."""
    words = ("is given", "plausible", "above the maximum", "the maximum of", "below every usual", "below the dose")
    return [line for line in grave(who or patient(), read(order), context) if any(word in line for word in words)]


@pytest.mark.parametrize(
    ("frequency", "times"),
    [
        ("twice weekly", 2 / 7),
        ("two times a week", 2 / 7),
        ("2x/week", 2 / 7),
        ("three times weekly", 3 / 7),
        ("3 times per week", 3 / 7),
        ("5 days a week", 5 / 7),
        ("Mon/Wed/Fri", 3 / 7),
        ("every Monday", 1 / 7),
        ("weekly on Monday and Thursday", 2 / 7),
        ("every 3 days", 1 / 3),
        ("every third day", 1 / 3),
        ("every 72 hours", 1 / 3),
        ("monthly", 1 / 30),
        ("every month", 1 / 30),
        ("once a month", 1 / 30),
        ("every 28 days", 1 / 28),
        ("every 4 weeks", 1 / 28),
        ("q3w", 1 / 21),
        ("every two weeks", 1 / 14),
        ("fortnightly", 1 / 14),
        ("every other week", 1 / 14),
        ("every 3 months", 1 / 90),
        ("every 6 months", 1 / 180),
        ("yearly", 1 / 365),
        ("every 365 days", 1 / 365),
        ("every morning", 1),
        ("in the morning and at bedtime", 2),
        ("for 7 days daily", 1),
        ("twice daily for 14 days every 3 weeks", 2),
        ("daily on alternate days", 1),
        ("once", 0),
        ("stat", 0),
        ("now", 0),
        ("a single dose", 0),
        ("immediately, once", 0),
        ("once before surgery", 0),
        ("loading dose", 0),
        ("once in the morning", 1),
        ("one dose a day", None),
        ("x1/day", 1),
        ("once every 3 days", 1 / 3),
        ("once, may repeat after 2 hours", None),
        ("once as needed", None),
        ("biweekly", None),
        ("bi-weekly", None),
        ("days 1, 8 and 15 every 28 days", None),
        ("single dose with meals", None),
    ],
)
def test_how_often_is_read(frequency, times):
    read = times_per_day(frequency)
    assert read == times if read is None or times is None else float(read) == pytest.approx(times)


@pytest.mark.parametrize(
    "order",
    [
        # 1: more often than a weekly drug allows
        "methotrexate; 25 mg; twice weekly; oral",
        "methotrexate; 15 mg; three times weekly; subcutaneous",
        "methotrexate; 15 mg; weekly on Monday and Thursday; oral",
        "semaglutide; 1 mg; every 3 days; subcutaneous",
        "semaglutide; 1 mg; twice a week; subcutaneous",
        "alendronate; 70 mg; twice weekly; oral",
        "dulaglutide; 1.5 mg; every other day; subcutaneous",
        # 3: the rule of a form, where the form is named
        "haloperidol decanoate; 100 mg; once weekly; intramuscular",
        "olanzapine pamoate; 300 mg; once weekly; intramuscular",
        "doxorubicin liposomal; 80 mg; once weekly; infusion",
        "zoledronic acid; 5 mg; every 6 months; infusion for osteoporosis",
        "methotrexate; 15 mg; once daily; intramuscular",
        # 7: the interval of a large dose, and every other interval
        "paclitaxel; 300 mg; once weekly; infusion",
        "paclitaxel protein-bound; 400 mg; once weekly; infusion",
        "doxorubicin; 110 mg; once weekly; infusion",
        "fentanyl; 25 mcg; once daily; patch",
        "aripiprazole; 960 mg; once monthly; intramuscular",
        "olanzapine pamoate; 405 mg; every 2 weeks; intramuscular",
        "nivolumab; 480 mg; every 2 weeks; infusion",
        "pembrolizumab; 400 mg; every 3 weeks; infusion",
        "natalizumab; 300 mg; once weekly; infusion",
        "darbepoetin alfa; 500 mcg; every 2 weeks; subcutaneous",
        "Opdivo Qvantig; 1200 mg; every 2 weeks; subcutaneous",
        "docetaxel; 60 mg; once daily; infusion",
        "denosumab; 60 mg; monthly; subcutaneous",
        "isoniazid; 900 mg; once daily; oral",
        "ergocalciferol; 50,000 units; once daily; oral",
        "mefloquine; 250 mg; once daily; oral for malaria prophylaxis",
        "onabotulinumtoxinA; 155 units; monthly; injection for migraine",
    ],
)
def test_more_often_than_a_drug_or_its_dose_allows_is_shown(order, context):
    assert any("is given" in line for line in of_dose(order, context))


@pytest.mark.parametrize(
    "order",
    [
        # 2: one dose
        "alendronate; 70 mg; once; oral",
        "semaglutide; 1 mg; stat; subcutaneous",
        "denosumab; 60 mg; once; subcutaneous",
        "methotrexate; 90 mg; once; intramuscular for ectopic pregnancy",
        "ergocalciferol; 50,000 units; once; oral",
        "docetaxel; 150 mg; once; infusion",
        "methotrexate; 15 mg; now; oral",
        "mefloquine; 1250 mg; once; for malaria",
        # 3: a rule of another form, indication, age or kidney function
        "haloperidol; 5 mg; every 6 hours; intramuscular",
        "olanzapine; 10 mg; once daily; intramuscular",
        "buprenorphine; 0.3 mg; every 6 hours; intravenous",
        "doxorubicin; 100 mg; every 14 days; infusion",
        "zoledronic acid; 4 mg; every 4 weeks; infusion for bone metastases",
        "doxorubicin; 30 mg; once weekly; infusion",
        "alendronate; 40 mg; once daily; oral for Paget disease",
        "paclitaxel; 150 mg; once weekly; infusion",
        # 6: months
        "haloperidol decanoate; 100 mg; monthly; intramuscular",
        "denosumab; 60 mg; every 6 months; subcutaneous",
        "medroxyprogesterone; 150 mg; every 3 months; intramuscular",
        "naltrexone; 380 mg; every month; intramuscular",
        "zoledronic acid; 5 mg; yearly; infusion for osteoporosis",
        "aripiprazole; 960 mg; every 2 months; intramuscular",
        # 7: at the interval of the dose
        "paclitaxel; 300 mg; every 3 weeks; infusion",
        "nivolumab; 480 mg; every 4 weeks; infusion",
        "nivolumab; 240 mg; every 2 weeks; infusion",
        "pembrolizumab; 400 mg; every 6 weeks; infusion",
        "pembrolizumab; 200 mg; every 3 weeks; infusion",
        "fentanyl; 25 mcg; every 72 hours; patch",
        "darbepoetin alfa; 60 mcg; once weekly; subcutaneous",
        "nivolumab and hyaluronidase; 600 mg; every 2 weeks; subcut",
        "natalizumab; 300 mg; every 4 weeks; infusion",
        "estradiol; 0.05 mg; twice weekly; patch",
        "etanercept; 50 mg; once weekly; subcutaneous",
        "trastuzumab and hyaluronidase; 600 mg; every 3 weeks; subcut",
        "isoniazid; 900 mg; three times weekly; oral",
        "azithromycin; 1200 mg; once weekly; oral to prevent mycobacterium avium",
        "ergocalciferol; 50,000 units; twice weekly; oral",
        "ergocalciferol; 100,000 units; once daily; oral for hypoparathyroidism",
        # 11: one dose, a loading dose, no frequency
        "clopidogrel; 300 mg; once; oral loading dose",
        "clopidogrel; 600 mg; ; oral",
        "clopidogrel; 300 mg; loading dose",
        "apixaban; 10 mg; twice daily; oral for deep vein thrombosis",
    ],
)
def test_a_right_order_raises_no_alarm_on_dose_or_interval(order, context):
    assert not of_dose(order, context)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ("zoledronic acid; 12 mg; once; infusion", "above the maximum single dose of 5 mg"),
        ("methotrexate; 100 mg; once; oral", "above the maximum single dose of 30 mg"),
        ("methotrexate; 100 mg; once weekly; oral", "above the maximum single dose of 30 mg"),
        ("clopidogrel; 900 mg; once; oral", "above the maximum single dose of 600 mg"),
        ("clopidogrel; 300 mg; once daily; oral", "above the maximum of 75 mg a day"),
        ("metformin; 10 g; once weekly; oral", "more than twice the maximum of 2,550 mg a day"),
        ("metformin; 3000 mg; once; oral", "above the maximum of 2,550 mg a day"),
        ("apixaban; 30 mg; twice daily; oral for deep vein thrombosis", "above the maximum"),
        # 4, 5, 8, 9: combinations, by what they count
        ("Ultracet; 150/325 mg; every 4 hours; oral", "150 mg tramadol every 4 hours is 900 mg a day"),
        ("Percocet; 5/1500 mg; every 4 hours; oral", "1500 mg acetaminophen every 4 hours is 9,000 mg"),
        (
            "Vytorin; 20/40 mg; once daily; oral",
            "20 mg ezetimibe once daily is 20 mg a day, above the maximum of 10 mg",
        ),
        ("Diovan HCT; 640/25 mg; once daily; oral", "640 mg valsartan"),
        ("Janumet; 500/1000 mg; twice daily; oral", "above the maximum"),
        ("Norco; 5/325 mg; every hour; oral", "5 mg hydrocodone every hour is 120 mg a day"),
        ("lisinopril and hydrochlorothiazide; 100/12.5 mg; once daily; oral", "100 mg lisinopril"),
        ("Zestoretic; 100/12.5 mg; once daily; oral", "100 mg lisinopril"),
        ("Sinemet; 25/250 mg; 10 times a day; oral", "250 mg levodopa 10 times a day is 2,500 mg"),
        ("Augmentin; 875 mg; three times daily; oral", "2,625 mg a day, above the maximum of 1,750 mg"),
        ("Augmentin; 875/125 mg; three times daily; oral", "2,625 mg a day, above the maximum of 1,750 mg"),
        ("amoxicillin-clavulanate; 1750/250 mg; once daily; oral", "above the maximum single dose of 875 mg"),
        ("Unasyn; 4/2 g; every 6 hours; intravenous", "above the maximum single dose of 3,000 mg"),
        ("Humulin N; 300 units; once daily; subcutaneous", "above the maximum single dose of 150 unit"),
        ("NPH insulin; 300 units; once daily; subcutaneous", "above the maximum single dose of 150 unit"),
        ("Herceptin Hylecta; 1200 mg; every 3 weeks; subcutaneous", "above the maximum single dose of 600 mg"),
    ],
)
def test_an_overdose_is_shown(order, says, context):
    assert any(says in line for line in of_dose(order, context)), of_dose(order, context)


@pytest.mark.parametrize(
    "order",
    [
        "Norco; 325/5 mg; every 6 hours; oral",
        "hydrocodone-acetaminophen; 5-325 mg; every 6 hours; oral",
        "Norco; 5/325 mg; every 6 hours; oral",
        "Norco; 10 mg; every 6 hours; oral",
        "Ultracet; 37.5/325 mg; every 6 hours",
        "Vytorin; 10/40 mg; once daily; oral",
        "Diovan HCT; 160/12.5 mg; once daily; oral",
        "Tribenzor; 40/10/25 mg; once daily; oral",
        "Janumet; 50/1000 mg; twice daily; oral",
        "Contrave; 8/90 mg; once daily; oral",
        "acetaminophen and codeine; 300/30 mg; every 6 hours; oral",
        "codeine with acetaminophen; 30/300 mg; every 6 hours; oral",
        "Augmentin; 875/125 mg; twice daily; oral",
        "amlodipine and benazepril; 10/40 mg; once daily; oral",
        "Bactrim; 800/160 mg; twice daily; oral",
        "Sinemet; 25/100 mg; three times daily; oral",
        "Entresto; 97/103 mg; twice daily; oral",
        "Paxlovid; 300/100 mg; twice daily; oral",
        "Unasyn; 3 g; every 6 hours; intravenous",
        "Yaz; 3/0.02 mg; once daily",
        "Unasyn; 2/1 g; every 6 hours; intravenous",
        "Zestoretic; 20/12.5 mg; twice daily; oral",
        "Humulin N; 30 units; twice daily; subcutaneous",
    ],
)
def test_a_usual_combination_is_right_and_was_checked(order, context):
    assert not of_dose(order, context)
    assert not any("dose of" in item.text for item in found(order, context) if item.rank == UNCHECKED)


@pytest.mark.parametrize(
    "order",
    [
        "Percocet; 10 mg; every 6 hours; oral",
        "codeine with acetaminophen; 30 mg; every 6 hours; oral",
        "Ultracet; 37.5 mg; every 6 hours; oral",
        "Vytorin; 40 mg; once daily; oral",
        "Diovan HCT; 160 mg; once daily; oral",
        "Tribenzor; 40 mg; once daily; oral",
        "Janumet; 50 mg; twice daily; oral",
        "Contrave; 16 mg; once daily; oral",
        "Percocet; 5-10 mg; every 6 hours; oral",
        "Tribenzor; 40/10 mg; once daily; oral",
    ],
)
def test_a_combination_whose_parts_are_not_said_could_not_be_checked_and_says_so_last(order, context):
    findings = found(order, context)
    name = read(order)["drug"]
    assert not [item for item in findings if item.rank in (CONTRAINDICATED, MAJOR) and "dose" in item.text]
    assert f"the dose of {name} (how much of each ingredient is not known)" in shown(findings)[-1]


@pytest.mark.parametrize(
    ("order", "who", "above"),
    [
        # 10: the narrowest group of patients decides
        ("pregabalin; 270 mg; twice daily; oral", patient(13, weight_kg=40), True),
        ("pregabalin; 200 mg; twice daily; oral", patient(13, weight_kg=40), False),
        ("pregabalin; 150 mg; twice daily; oral", patient(8, weight_kg=25), False),
        ("pregabalin; 180 mg; twice daily; oral", patient(8, weight_kg=25), True),
        ("amoxicillin; 100 mg; twice daily; oral", patient(0.15, weight_kg=5), True),
        ("carbamazepine; 200 mg; three times daily; oral", patient(4, weight_kg=16), True),
        ("metformin; 1000 mg; twice daily; oral", patient(labs={"eGFR": 40}), True),
    ],
)
def test_the_row_of_the_narrowest_group_decides(order, who, above, context):
    assert any("above the maximum" in line for line in of_dose(order, context, who)) is above


def test_what_is_not_said_of_the_frequency_is_told_once_and_last(context):
    lines = shown(found("clopidogrel; 300 mg; ; oral", context))
    assert lines[-1].count("the daily dose (no frequency is given)") == 1
    assert "could not be checked" in lines[-1].lower()


def test_every_combination_with_rows_is_found_by_its_name():
    products = [name for name in _rows(data_file("knowledge", "doses.jsonl")) if " and " in name]
    missed = [name for name in products if not doses_of(product_of(dictionary_parts(name)))]
    assert len(products) > 20
    assert not set(missed) - {"bictegravir and emtricitabine and tenofovir alafenamide"}  # by its label's name


def dictionary_parts(name: str) -> frozenset[str]:
    from docgemma.text.drugs import ingredients

    return ingredients(name, dictionary())


@pytest.mark.parametrize("drug", ["acetaminophen", "amoxicillin"])
def test_a_missing_weight_is_told_though_a_fixed_maximum_was_held_against_the_dose(drug, context):
    """A fixed maximum of a row by weight is that of a heavy child: within it says little of a light one."""
    light, unknown = patient(5, weight_kg=18), patient(5, weight_kg=None)
    missing = f"the dose of {drug} (the weight is not recorded)"
    texts = [[item.text for item in found(f"{drug}; 500 mg; four times daily; oral", context, who)]
             for who in (unknown, light)]  # fmt: skip
    assert missing in texts[0] and any("the maximum is 4,000 mg a day" in text for text in texts[0])
    assert missing not in texts[1]
    assert not any("weight" in item.text for item in found(f"{drug}; 500 mg; three times daily; oral", context))


@pytest.mark.parametrize(
    ("order", "puffs", "above"),
    [
        ("budesonide and formoterol; 160/4.5 mcg 2 puffs; twice daily", "4 puff a day", False),
        ("Symbicort; 160/4.5 mcg 4 puffs; twice daily", "8 puff a day", True),
        ("Symbicort; 160/4.5 mcg; 4 puffs twice daily", "8 puff a day", True),
        ("Advair Diskus; 250/50 mcg 1 puff; twice daily", "2 puff a day", False),
        ("Advair Diskus; 250/50 mcg 2 puffs; twice daily", "4 puff a day", True),
    ],
)
def test_puffs_are_counted_whatever_each_of_them_holds(order, puffs, above, context):
    lines = [item.text for item in found(order, context)]
    assert any(puffs in line for line in lines) and bool(of_dose(order, context)) is above
    assert not any("the dose of" in line for line in lines)


@pytest.mark.parametrize(
    ("drug", "problem", "rank", "says"),
    [
        ("disopyramide", "Hypokalemia", "Caution", "may be ineffective"),
        ("disopyramide", "Hypomagnesemia", "", "potassium"),
        ("dapagliflozin", "Dependence on dialysis", "Warning", "not studied by the trials"),
        ("empagliflozin", "Hemodialysis", "Warning", "not studied by the trials"),
        ("empagliflozin", "End-stage renal disease", "Caution", "may be continued until dialysis"),
        ("trimethoprim", "Folate deficiency anemia", "Contraindicated", "megaloblastic"),
        ("trimethoprim", "Folate deficiency", "Caution", "possible folate deficiency"),
        ("Bactrim", "Megaloblastic anemia due to vitamin B12 deficiency", "Warning", "where folate deficiency is"),
    ],
)
def test_facts_of_the_seventh_sample_are_as_the_label_has_them(drug, problem, rank, says, context):
    lines = shown(found(drug, context, patient(problems=[problem])))
    told = [line for line in lines if problem in line and line.startswith(("Caution", "Warning", "Contraindicated"))]
    if not rank:
        assert not any(says in line for line in told), told
        return
    assert told[0].startswith(rank) and says in told[0], lines  # nothing graver is told of it


def test_interactions_of_the_seventh_sample_are_as_the_labels_have_them(context):
    (clozapine,) = context.knowledge.interactions(["clozapine", "lorazepam"]).records
    assert clozapine.severity == "major" and "respiratory arrest" in clozapine.mechanism
    (paroxetine,) = context.knowledge.interactions(["paroxetine", "methadone"]).records
    assert "CYP2D6" in paroxetine.mechanism and "Avoid where possible" not in paroxetine.management
    (skin,) = context.knowledge.interactions(["triamcinolone", "ketoconazole"]).records
    assert "on the skin" in skin.mechanism
    doses = [context.knowledge.label(name).records[0].max_daily_dose for name in ("metformin", "nitrofurantoin")]
    assert "Fortamet 2500 mg" in doses[0] and "200 mg (Macrobid)" in doses[1]
    assert "November 2025" in context.knowledge.label("estradiol").records[0].boxed_warning


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ("tylenol; 1000 mg; four times a day", "4,000 mg a day, above the maximum of 2,000 mg a day (for cirrhosis"),
        ("cetirizine; 10 mg; daily", "10 mg a day, above the maximum of 5 mg a day (for cirrhosis"),
        ("sumatriptan; 100 mg; once", "maximum single dose of 50 mg (for cirrhosis"),
    ],
)
def test_a_limit_of_the_patients_condition_stands_in_the_place_of_the_general_one(order, says, context) -> None:
    assert any(says in line for line in of_dose(order, context, patient(problems=["Cirrhosis of liver"])))
    assert not of_dose(order, context)


def test_a_pregnancy_that_is_not_recorded_is_asked_for(context) -> None:
    def asked(order: str, **given) -> list[str]:
        who = patient(36, sex="female", **given)
        return [item.text for item in found(order, context, who) if "pregnancy is not recorded (ask)" in item.text]

    for order in ("doxycycline; 100 mg; bd", "methotrexate; 10 mg; weekly", "isotretinoin; 20 mg; od"):
        assert len(asked(order)) == 1
    assert "in pregnancy: second and third trimester: fetal tooth" in asked("doxycycline; 100 mg; bd")[0]
    assert not asked("doxycycline; 100 mg; bd", problems=["Pregnancy"]) + asked("amoxicillin; 500 mg; tds")
    assert not [item for item in found("doxycycline; 100 mg; bd", context) if "pregnan" in item.text]


def test_a_recorded_reaction_bears_on_what_must_not_follow_it(context) -> None:
    def told(order: str, substance: str, reaction: str) -> str:
        who = patient(allergies=[{"substance": substance, "reaction": reaction}])
        return "\n".join(item.text for item in found(order, context, who))

    skin = told("allopurinol; 100 mg; od", "allopurinol", "severe cutaneous reaction (HLA-B*58:01 positive)")
    assert "must not be restarted if it caused the severe skin reaction" in skin
    assert "may recur. The patient has: angioedema (recorded allergy to lisinopril)" in told(
        "candesartan; 4 mg; od", "lisinopril", "angioedema"
    )
    assert "angioedema (recorded" not in told("ramipril; 5 mg; od", "amoxicillin", "angioedema")
