"""The shipped records: enough of them, each checkable, no invented one that could pass for a real study."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from docgemma.paths import data_file

KINDS = ("drugs", "interactions", "literature", "trials")
SEVERITIES = {"contraindicated", "major", "moderate", "minor"}
FDA = r"FDA label of .+, sections? .+: https://dailymed\.nlm\.nih\.gov/\S+"
SMPC = r"UK SmPC of .+, sections? .+: https://www\.medicines\.org\.uk/\S+"
WITHOUT_LABEL = {"st john's wort"}


def records(kind: str) -> list[dict]:
    lines = Path(data_file("knowledge", f"{kind}.jsonl")).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    if kind != "interactions":
        return rows
    return [row | {"drugs": [row["drugs"][0], other]} for row in rows for other in row["drugs"][1:]]


def head(kind: str) -> dict:
    return json.loads(Path(data_file("knowledge", f"{kind}.jsonl")).read_text(encoding="utf-8").splitlines()[0])


DRUGS = {item["name"]: item for item in records("drugs")}


@pytest.mark.parametrize(
    ("kind", "least"), [("drugs", 590), ("interactions", 10_000), ("literature", 300), ("trials", 25)]
)
def test_there_are_enough_records_of_each_kind(kind, least):
    assert len(records(kind)) >= least


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_says_its_source_and_a_date_that_has_been(kind):
    assert head(kind)["source"]
    assert date.fromisoformat(head(kind)["as_of"]) < date.today()


@pytest.mark.parametrize("kind", ["drugs", "interactions"])
def test_every_fact_says_where_it_can_be_checked(kind):
    for item in records(kind):
        assert re.match(rf"({FDA}|{SMPC})$", item["reference"]), item


def test_a_drug_is_listed_once_and_no_name_belongs_to_two():
    names = [name.lower() for item in records("drugs") for name in {item["name"], *item["brand_names"]}]
    names += [name for item in records("drugs") for name in item["synonyms"]]
    assert sorted(names) == sorted(set(names))


def test_every_drug_says_whether_it_has_a_boxed_warning():
    for item in DRUGS.values():
        assert item["boxed_warning"], item["name"]
        assert item["warnings"] and item["drug_classes"], item["name"]


@pytest.mark.parametrize(
    ("drug", "word"),
    [
        ("dofetilide", "torsade"), ("amiodarone", "pulmonary"), ("metformin", "lactic acidosis"),
        ("warfarin", "bleeding"), ("ibuprofen", "cardiovascular"), ("lisinopril", "fetal"),
        ("clopidogrel", "CYP2C19"), ("ciprofloxacin", "tendon"), ("sertraline", "suicidal"),
        ("clozapine", "neutropenia"), ("methadone", "QT"), ("valproate", "hepatotoxicity"),
        ("apixaban", "thrombotic"), ("levothyroxine", "obesity"), ("montelukast", "neuropsychiatric"),
        ("semaglutide", "thyroid"), ("alprazolam", "opioids"), ("haloperidol", "dementia"),
        ("lamotrigine", "rash"), ("abacavir", "HLA-B*5701"),
    ],
)  # fmt: skip
def test_the_boxed_warning_names_its_danger(drug, word):
    assert word.lower() in DRUGS[drug]["boxed_warning"].lower()


@pytest.mark.parametrize("drug", ["amlodipine", "amoxicillin", "aspirin", "simvastatin", "atorvastatin", "gabapentin",
                                  "spironolactone", "carvedilol", "canagliflozin", "omeprazole"])  # fmt: skip
def test_a_drug_without_boxed_warning_says_none(drug):
    assert DRUGS[drug]["boxed_warning"] == "none"


def test_every_pair_is_of_two_known_drugs_and_stands_once():
    pairs = [tuple(sorted(item["drugs"])) for item in records("interactions")]
    assert len(pairs) == len(set(pairs))
    for pair in pairs:
        assert len(set(pair)) == 2
        assert set(pair) <= set(DRUGS) | WITHOUT_LABEL, pair


def test_every_pair_has_severity_mechanism_and_what_to_do():
    for item in records("interactions"):
        assert item["severity"] in SEVERITIES
        assert len(item["mechanism"]) > 15 and len(item["management"]) > 10, item


@pytest.mark.parametrize(
    ("pair", "severity"),
    [
        (("dofetilide", "verapamil"), "contraindicated"), (("dofetilide", "hydrochlorothiazide"), "contraindicated"),
        (("simvastatin", "clarithromycin"), "contraindicated"), (("sildenafil", "nitroglycerin"), "contraindicated"),
        (("phenelzine", "sertraline"), "contraindicated"), (("tizanidine", "ciprofloxacin"), "contraindicated"),
        (("febuxostat", "azathioprine"), "contraindicated"), (("repaglinide", "gemfibrozil"), "contraindicated"),
        (("lisinopril", "sacubitril and valsartan"), "contraindicated"), (("ketorolac", "aspirin"), "contraindicated"),
        (("warfarin", "aspirin"), "major"), (("warfarin", "ibuprofen"), "major"), (("warfarin", "amiodarone"), "major"),
        (("clopidogrel", "omeprazole"), "major"), (("lisinopril", "spironolactone"), "major"),
        (("lithium", "ibuprofen"), "major"), (("oxycodone", "alprazolam"), "major"),
        (("digoxin", "amiodarone"), "major"),
        (("simvastatin", "amlodipine"), "major"), (("aspirin", "ibuprofen"), "moderate"),
    ],
)  # fmt: skip
def test_a_well_known_pair_has_its_severity(pair, severity):
    found = [item for item in records("interactions") if set(item["drugs"]) == set(pair)]
    assert [item["severity"] for item in found] == [severity]


def test_a_contraindication_of_a_pair_is_not_contradicted_by_the_advice():
    for item in records("interactions"):
        if item["severity"] == "contraindicated":
            assert re.search(r"do not|no nitrate|contraindicated|do not give|suspend", item["management"].lower()), item


def test_every_article_is_a_real_one_that_can_be_looked_up_and_says_where_it_was_seen():
    items = records("literature")
    for key in ("id", "title"):
        assert len({item[key].lower() for item in items}) == len(items)
    for item in items:
        pmid = re.fullmatch(r"\d{7,8}", item["id"])
        assert pmid or re.fullmatch(r"doi:10\.\d{4,}/\S+", item["id"]), item["id"]
        page = f"https://pubmed.ncbi.nlm.nih.gov/{item['id']}/" if pmid else f"https://doi.org/{item['id'][4:]}"
        assert item["url"] == page
        assert 1990 <= item["year"] <= date.today().year and item["authors"] and item["journal"]
        assert 60 < len(item["abstract"]) <= 460 and item["checked"] and len(item["keywords"]) > 4, item["id"]
        assert not item.get("demonstration") and "[Demonstration" not in item["title"]


def test_demonstration_trials_cannot_be_taken_for_real_ones():
    items = records("trials")
    assert len({item["id"] for item in items}) == len(items)
    for item in items:
        assert re.fullmatch(r"DEMO-TRIAL-\d{3}", item["id"])
        assert item["title"].startswith("[Demonstration record] ")
        assert item["demonstration"] is True
        assert item["url"] == ""


def test_demonstration_trials_hold_no_identifier_or_figure():
    text = Path(data_file("knowledge", "trials.jsonl")).read_text(encoding="utf-8")
    assert not re.search(r"NCT\s?\d|PMID|doi\.org|\b\d{7,8}\b", text)
    assert not re.search(r"\bp\s?[<=]\s?0|\bhazard ratio|\bHR \d|\b\d+(?:\.\d+)?\s?%|\bn\s?=\s?\d", text)
