"""data/clinical: what clinicians type beside what charts, labels and the drug dictionary contain."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from docgemma.ehr.open import seed_resources
from docgemma.knowledge.drug_names import DrugNames, load_drug_names
from docgemma.text.frequency import said_frequencies
from docgemma.text.words import clinical, names

DATA = Path(__file__).parents[1] / "data"
FILES = (
    "measures", "topics", "label_topics", "drug_abbreviations", "drug_groups", "sig", "problems", "claims",
    "drug_words", "drug_names", "request_words", "units", "questions",
)  # fmt: skip
LISTS = frozenset({"said", "misspelt", "match", "chart", "label", "group", "drugs", "readings"})

# LOINC long names and Synthea's, as charts carry them -> the measure meant
CHART_NAMES = {
    "Potassium [Moles/volume] in Serum or Plasma": "potassium",
    "Potassium [Moles/volume] in Urine": "urine potassium",
    "Carbon dioxide, total [Moles/volume] in Blood": "bicarbonate",
    "Carbon dioxide [Partial pressure] in Arterial blood": "pco2",
    "Glomerular filtration rate/1.73 sq M.predicted [Volume Rate/Area] in Serum or Plasma": "egfr",
    "Urea nitrogen [Mass/volume] in Serum or Plasma": "urea",
    "Hemoglobin A1c/Hemoglobin.total in Blood": "hba1c",
    "Hemoglobin [Mass/volume] in Blood": "haemoglobin",
    "Leukocytes [#/volume] in Blood by Automated count": "white blood cells",
    "Platelets [#/volume] in Blood by Automated count": "platelets",
    "Platelet mean volume [Entitic volume] in Blood by Automated count": "mean platelet volume",
    "Erythrocyte distribution width [Entitic volume] by Automated count": "rdw",
    "INR in Platelet poor plasma by Coagulation assay": "inr",
    "Cholesterol in LDL [Mass/volume] in Serum or Plasma by Direct assay": "ldl cholesterol",
    "Low Density Lipoprotein Cholesterol": "ldl cholesterol",
    "Total Cholesterol": "total cholesterol",
    "Thyroxine (T4) free [Mass/volume] in Serum or Plasma": "free t4",
    "Thyrotropin [Units/volume] in Serum or Plasma": "tsh",
    "Natriuretic peptide.B prohormone N-Terminal [Mass/volume] in Serum or Plasma": "bnp",
    "Troponin I.cardiac [Mass/volume] in Serum or Plasma by High sensitivity method": "troponin",
    "Fibrin D-dimer FEU [Mass/volume] in Platelet poor plasma": "d-dimer",
    "Microalbumin Creatinine Ratio": "urine albumin to creatinine ratio",
    "Glucose [Mass/volume] in Urine by Test strip": "urinalysis",
    "Digoxin [Mass/volume] in Serum or Plasma": "digoxin level",
    "Vancomycin [Mass/volume] in Serum or Plasma --trough": "vancomycin level",
    "Bacteria identified in Blood by Culture": "blood culture",
    "Systolic Blood Pressure": "blood pressure",
    "Body mass index (BMI) [Ratio]": "bmi",
    "Pain severity - 0-10 verbal numeric rating [Score] - Reported": "pain score",
    "Oxygen saturation in Arterial blood by Pulse oximetry": "oxygen saturation",
    "Oral temperature": "temperature",
    "QTc interval": "qtc",
    "Left ventricular Ejection fraction": "ejection fraction",
}


@cache
def load(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((DATA / "clinical" / f"{name}.yaml").read_text(encoding="utf-8"), Loader=loader)


@pytest.fixture(scope="module")
def dictionary() -> DrugNames:
    return load_drug_names()


def entries(node: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping below a node with the path of names to it."""
    if isinstance(node, list):
        for item in node:
            yield from entries(item, at)
    elif isinstance(node, dict):
        here = f"{at}/{node.get('name') or node.get('topic') or node.get('plain') or ''}"
        yield here, node
        for key, value in node.items():
            yield from entries(value, f"{here}/{key}" if here == "/" else here)


def at_word(fragment: str, text: str) -> int | None:
    """Where a fragment begins, by the rule at the head of the files."""
    end = r"(?![a-z0-9])" if len(fragment) <= 4 else ""
    found = re.search(rf"(?<![a-z0-9]){re.escape(fragment)}{end}", text.lower())
    return found.start() if found else None


def measures_of(name: str) -> set[str]:
    """The measures whose fragment begins first in a chart's name, the longest of those."""
    found = [
        ((at, -len(fragment)), item["name"])
        for item in load("measures")["measures"]
        for fragment in item["match"]
        if (at := at_word(fragment, name)) is not None
    ]
    return {item for rank, item in found if rank == min(found)[0]}


def drugs_known() -> set[str]:
    lines = (DATA / "knowledge" / "drugs.jsonl").read_text(encoding="utf-8").splitlines()
    return {item["name"] for line in lines if "name" in (item := json.loads(line))}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_small_names_its_source_first_and_holds_lower_case_texts(name: str) -> None:
    path = DATA / "clinical" / f"{name}.yaml"
    assert path.stat().st_size < 60_000
    assert path.read_text(encoding="utf-8").startswith("source:")
    assert "https://" in load(name)["source"]
    for where, entry in entries([part for key, part in load(name).items() if key != "source"]):
        for key in LISTS & set(entry):
            items = [entry[key]] if isinstance(entry[key], str) else entry[key]
            assert items and all(isinstance(item, str) and item.strip() == item != "" for item in items), where
            assert len(items) == len(set(items)), (where, key)
            if key not in ("readings", "group"):
                assert all(item == item.lower() for item in items), (where, key)


@pytest.mark.parametrize("name", FILES)
def test_what_is_said_points_to_one_thing_unless_it_is_listed_as_ambiguous(name: str) -> None:
    data = load(name)
    said_of = [item["said"] for item in data.get("ambiguous", [])]
    ambiguous = {said for one in said_of for said in ([one] if isinstance(one, str) else one)}
    means = defaultdict(set)
    for key in set(data) - {"source", "ambiguous"}:
        for where, entry in entries(data[key]):
            said = entry.get("said", [])
            for item in [*([said] if isinstance(said, str) else said), *entry.get("misspelt", [])]:
                means[item].add((key, where))
    assert not {item: found for item, found in means.items() if len(found) > 1 and item not in ambiguous}
    if name != "sig":  # an order has its own usual reading; everywhere else the reader must be asked
        assert not ambiguous & set(means)
    for item in data.get("ambiguous", []):
        assert len(item["readings"]) > 1, item


def test_every_abbreviation_leads_to_a_drug_of_the_dictionary_and_takes_no_other_drugs_name(
    dictionary: DrugNames,
) -> None:
    drugs = load("drug_abbreviations")["drugs"]
    for item in drugs:
        assert item["name"] in dictionary, item["name"]
        for said in [*item.get("said", []), *item.get("misspelt", [])]:
            if said in dictionary:
                assert dictionary.ingredients(said) == dictionary.ingredients(item["name"]), said
    assert sum(len(item.get("said", [])) for item in drugs) >= 160


def test_every_measure_of_the_seeded_chart_belongs_to_exactly_one_entry() -> None:
    measured = {text for category in ("laboratory", "vital-signs") for text in seeded_observations(category)}
    assert len(measured) > 40
    for text in measured:
        assert len(measures_of(text)) == 1, (text, measures_of(text))
    assert len(load("measures")["measures"]) >= 140


@pytest.mark.parametrize(("chart", "measure"), CHART_NAMES.items())
def test_a_name_of_loinc_or_synthea_is_the_measure_meant(chart: str, measure: str) -> None:
    assert measures_of(chart) == {measure}


def test_every_member_of_a_group_exists() -> None:
    names = [item["name"] for item in load("measures")["measures"]]
    assert len(names) == len(set(names))
    for item in load("measures")["groups"]:
        assert set(item["group"]) <= set(names), (item["name"], set(item["group"]) - set(names))


def test_every_vaccine_and_social_entry_of_the_seeded_chart_is_found() -> None:
    vaccines = {item["vaccineCode"]["text"] for item in seed_resources() if item["resourceType"] == "Immunization"}
    kinds = {item["topic"]: item.get("kinds", []) for item in load("topics")["topics"]}
    for texts, topic in ((vaccines, "immunizations"), (seeded_observations("social-history"), "social")):
        fragments = [fragment for kind in kinds[topic] for fragment in kind["match"]]
        for text in texts:
            assert any(at_word(fragment, text) is not None for fragment in fragments), text


def seeded_observations(category: str) -> set[str]:
    """What the observations of this category in the synthetic charts are called, their components included."""
    found = [
        item
        for item in seed_resources()
        if item["resourceType"] == "Observation" and item["category"][0]["coding"][0]["code"] == category
    ]
    return {part["code"]["text"] for item in found for part in (item, *item.get("component", []))}


def test_every_drug_of_a_group_or_food_is_in_the_snapshot() -> None:
    known = drugs_known()
    for item in [*load("drug_groups")["groups"], *load("drug_groups")["foods"]]:
        assert set(item["drugs"]) <= known, (item["name"], set(item["drugs"]) - known)


def test_a_shorthand_is_as_often_as_its_words() -> None:
    for item in load("sig")["frequencies"]:
        for said in item["said"]:
            assert said_frequencies(said) <= said_frequencies(item["plain"]), said


def test_every_condition_is_named_by_charts_and_by_a_label_of_the_snapshot() -> None:
    text = (DATA / "knowledge" / "drugs.jsonl").read_text(encoding="utf-8")
    problems = load("problems")["problems"]
    assert len(problems) >= 45
    for item in problems:
        assert item["chart"], item["name"]
        assert any(at_word(fragment, text) is not None for fragment in item["label"]), item["name"]


def test_every_drug_of_a_group_is_found_among_medicines_of_that_kind() -> None:
    """Else "any antibiotics?" of somebody who takes rifampin is answered with "none is listed"."""
    (topic,) = [topic for topic in clinical("topics")["topics"] if topic["topic"] == "medications"]
    missing = {
        kind["name"]: lacking
        for kind in topic["kinds"]
        for group in clinical("drug_groups")["groups"]
        if {kind["name"], *kind.get("said", [])} & {group["name"], *group.get("said", [])}
        and (lacking := [drug for drug in group["drugs"] if not names(kind["match"], drug)])
    }
    assert missing == {}
