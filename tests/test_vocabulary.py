"""How much of what clinicians type is linked: lists of helpers who had seen nothing here (data/natural/README.md)."""

import pytest

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.paths import data_file
from docgemma.reading.drugs import link_drug
from docgemma.reading.terms import measures_in, topics_in
from docgemma.text.told import spelled
from docgemma.text.words import clinical, names


def rows(name: str) -> list[list[str]]:
    lines = data_file("natural", "vocabulary", f"{name}.tsv").read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines]


def drug_is_linked(typed: str, generics: str) -> bool:
    drugs = load_drug_names()
    wanted = frozenset[str]().union(*(drugs.ingredients(part.strip()) for part in generics.split("+")))
    return bool(wanted & drugs.ingredients(link_drug(typed, drugs).name))


def measure_is_linked(typed: str, _: str) -> bool:
    return bool(measures_in(typed) or topics_in(typed))


def problems(text: str) -> set[str]:
    return {entry["name"] for entry in clinical("problems")["problems"] if names(entry["chart"], text)}


def condition_is_weighed(typed: str, full: str) -> bool:
    return not problems(full) or bool(problems(full) & problems(spelled(typed)))


@pytest.mark.parametrize(
    ("name", "linked", "least", "most"),
    [
        ("drugs", drug_is_linked, 411, 450),
        ("measures", measure_is_linked, 222, 250),
        ("conditions", condition_is_weighed, 335, 350),  # 116 of them bear on no drug that is stored
    ],
)
def test_what_is_typed_is_linked(name, linked, least, most) -> None:
    found = rows(name)
    assert len(found) == most
    assert sum(linked(typed, full) for typed, full, *_ in found) >= least
