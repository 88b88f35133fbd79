"""The drug dictionary: what it knows, and what it does not call a drug."""

import pytest

from docgemma.knowledge.drug_names import DrugNames
from tests.rules_help import dictionary

COMMON_NAMES = """
acetaminophen paracetamol ibuprofen aspirin naproxen diclofenac celecoxib meloxicam indomethacin ketorolac tramadol
codeine morphine oxycodone hydrocodone hydromorphone fentanyl buprenorphine methadone pethidine meperidine naloxone
naltrexone amoxicillin ampicillin penicillin flucloxacillin piperacillin co-amoxiclav augmentin tazocin cefalexin
cephalexin cefazolin ceftriaxone cefuroxime cefepime meropenem imipenem ertapenem azithromycin clarithromycin
erythromycin doxycycline minocycline tetracycline ciprofloxacin levofloxacin moxifloxacin trimethoprim
sulfamethoxazole co-trimoxazole bactrim nitrofurantoin metronidazole clindamycin vancomycin linezolid gentamicin
tobramycin rifampicin rifampin isoniazid fluconazole itraconazole voriconazole terbinafine nystatin aciclovir
acyclovir valaciclovir valacyclovir oseltamivir tamiflu paxlovid remdesivir ivermectin hydroxychloroquine lisinopril
enalapril ramipril perindopril captopril losartan valsartan candesartan olmesartan amlodipine nifedipine diltiazem
verapamil atenolol metoprolol bisoprolol carvedilol propranolol nebivolol labetalol sotalol hydrochlorothiazide hctz
chlorthalidone chlortalidone indapamide furosemide frusemide bumetanide spironolactone eplerenone clonidine
hydralazine doxazosin tamsulosin nitroglycerin digoxin amiodarone dronedarone dofetilide flecainide adenosine
ivabradine ranolazine entresto atorvastatin simvastatin rosuvastatin pravastatin ezetimibe fenofibrate lipitor
crestor warfarin coumadin apixaban eliquis rivaroxaban xarelto dabigatran pradaxa edoxaban heparin enoxaparin
clopidogrel plavix ticagrelor prasugrel alteplase metformin glucophage glipizide glyburide glibenclamide gliclazide
glimepiride sitagliptin januvia linagliptin empagliflozin jardiance dapagliflozin farxiga forxiga canagliflozin
semaglutide ozempic wegovy liraglutide dulaglutide trulicity tirzepatide mounjaro pioglitazone insulin lantus
humalog novolog levothyroxine synthroid methimazole carbimazole propylthiouracil prednisone prednisolone
dexamethasone hydrocortisone methylprednisolone budesonide fluticasone salbutamol albuterol ventolin salmeterol
symbicort advair seretide tiotropium montelukast singulair theophylline omeprazole esomeprazole nexium lansoprazole
pantoprazole famotidine ranitidine ondansetron metoclopramide domperidone loperamide senna sertraline zoloft
fluoxetine prozac citalopram escitalopram paroxetine venlafaxine duloxetine bupropion mirtazapine trazodone
amitriptyline nortriptyline lithium valproate divalproex lamotrigine carbamazepine phenytoin dilantin levetiracetam
keppra topiramate gabapentin pregabalin lyrica phenobarbital quetiapine olanzapine risperidone aripiprazole
haloperidol clozapine alprazolam xanax lorazepam diazepam clonazepam zolpidem methylphenidate adderall donepezil
memantine levodopa sinemet sumatriptan baclofen cyclobenzaprine cetirizine loratadine fexofenadine diphenhydramine
benadryl epinephrine adrenaline epipen norepinephrine atropine methotrexate azathioprine mycophenolate ciclosporin
cyclosporine tacrolimus adalimumab humira etanercept infliximab rituximab allopurinol febuxostat colchicine
pembrolizumab keytruda nivolumab trastuzumab cisplatin paclitaxel imatinib tamoxifen letrozole estradiol
progesterone levonorgestrel testosterone alendronate denosumab sildenafil viagra tadalafil finasteride oxybutynin
propofol ketamine lidocaine lignocaine tylenol advil aleve panadol percocet vicodin keflex lasix
"""
COMMON = COMMON_NAMES.split()


def names(text: str) -> list[str]:
    return [item.text for item in dictionary().find(text)]


def test_the_dictionary_holds_at_least_five_thousand_names():
    assert len(dictionary()) >= 5000


def test_every_common_drug_is_known_by_its_american_and_its_british_name():
    assert len(COMMON) >= 300
    assert [name for name in COMMON if name not in dictionary()] == []


@pytest.mark.parametrize(
    ("name", "generic"),
    [
        ("Tylenol", "acetaminophen"), ("paracetamol", "acetaminophen"), ("salbutamol", "albuterol"),
        ("ELIQUIS", "apixaban"),
        ("Stemetil", "prochlorperazine"), ("Epilim", "valproate"), ("Priadel", "lithium"),
        ("Rigevidon", "ethinyl estradiol and levonorgestrel"),
        ("Lipitor", "atorvastatin"), ("Glucophage", "metformin"), ("adrenaline", "epinephrine"),
        ("Lasix", "furosemide"),
        ("co-trimoxazole", "sulfamethoxazole and trimethoprim"), ("metoprolol succinate", "metoprolol"),
        ("St. John’s Wort", "st john's wort"), ("insulin glargine", "insulin glargine"), ("foozle", None), ("", None),
    ],
)  # fmt: skip
def test_a_brand_leads_to_its_generic_name(name, generic):
    assert dictionary().generic(name) == generic


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Is METFORMIN safe?", ["METFORMIN"]),
        ("metformin's half-life", ["metformin"]),
        ("warfarin-induced bleeding", ["warfarin"]),
        ("St John’s wort and insulin glargine", ["St John’s wort", "insulin glargine"]),
        ("co-amoxiclav or co amoxiclav", ["co-amoxiclav", "co amoxiclav"]),
        ("sacubitril/valsartan", ["sacubitril/valsartan"]),
        ("aspirin, aspirin", ["aspirin", "aspirin"]),
        ("glafénine", ["glafénine"]),
        ("insulin. Glargine later", ["insulin", "Glargine"]),
        ("preaspirinal aspirins123 metforminx", []),
        ("", []),
        ("\x00\u200f\ufeff", []),
    ],
)
def test_whole_names_are_found_as_written_the_longest_first(text, found):
    assert names(text) == found
    assert [text[item.start : item.end] for item in dictionary().find(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "note the patient's order for water today, and start a chart record",
        "Parkinson's disease, Hodgkin lymphoma, hypertension, diabetes, asthma, gout, COPD and COVID-19",
        "insulin resistance, testosterone level and vitamin D deficiency",
        "iron deficiency, serum calcium, potassium 5.2, glucose 110, creatinine, cholesterol and oxygen",
        "a complete, clear and quick relief plan for a summer advance",
        "Camila, Dona, Ivor, Hana and Corwin",
    ],
)  # fmt: skip
def test_ordinary_words_diseases_analytes_and_given_names_are_no_drugs(text):
    assert names(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("calcium and levothyroxine", ["calcium", "levothyroxine"]),
        ("iron 325 mg daily", ["iron"]),
        ("zinc supplements", ["zinc"]),
        ("low iron, tired", []),
        ("insulin 10 units", ["insulin"]),
    ],
)
def test_a_substance_of_the_body_is_a_drug_beside_a_dose_a_form_or_another_drug(text, found):
    assert names(text) == found


@pytest.mark.parametrize(
    ("misspelt", "meant"), [("metfromin", "metformin"), ("warfrin", "warfarin"), ("tylenl", "tylenol")]
)
def test_a_misspelt_name_is_suggested_and_never_accepted(misspelt, meant):
    assert misspelt not in dictionary()
    assert dictionary().generic(misspelt) is None
    assert dictionary().suggest(misspelt)[0] == meant


@pytest.mark.parametrize("name", ["", "xy", "qqqqqqqqqq", "the patient"])
def test_nothing_is_suggested_for_what_is_nothing_like_a_drug(name):
    assert dictionary().suggest(name) == []


def test_hostile_text_of_a_megabyte_is_read_to_its_end():
    text = "warfarin'" * 50_000 + "-a" * 200_000 + " metformin"
    assert names(text)[-1] == "metformin"


def test_a_combination_consists_of_its_parts():
    drugs = DrugNames({"bactrim": "sulfamethoxazole and trimethoprim", "trimethoprim": "trimethoprim"})
    assert drugs.ingredients("Bactrim") == {"sulfamethoxazole", "trimethoprim"}
    assert drugs.ingredients("Unknown  Thing") == {"unknown thing"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("aciclovir", "acyclovir"), ("colecalciferol", "cholecalciferol"), ("etacrynic acid", "ethacrynic acid"),
        ("mesalazine", "mesalamine"), ("chlorphenamine", "chlorpheniramine"), ("hyoscine hydrobromide", "scopolamine"),
        ("alendronic acid", "alendronate"), ("beconase", "beclometasone"), ("prednisolone acetate", "prednisolone"),
    ],
)  # fmt: skip
def test_one_drug_under_its_international_and_its_united_states_name_or_salt_has_one_ingredient(one, other):
    assert dictionary().ingredients(one) == dictionary().ingredients(other)
