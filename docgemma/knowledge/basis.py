"""The sentence of a label that supports a shipped fact, stored with the label's set id, version and date.

No sentence is better than a wrong one: a fact without a clear one has no row. Texts of labels are data and bounded.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from docgemma.knowledge.drug_rules import Row, conditions_of, doses_of
from docgemma.knowledge.label_text import clip, section, sentences
from docgemma.knowledge.openfda import Label
from docgemma.knowledge.search import vocabulary

QUOTE = 360  # characters
ENOUGH = 0.5  # of the content words of a fact that its sentence shares
STEM = 6  # letters by which words are compared: contraindicated, contraindication
DOSAGE = ("dosage_and_administration",)
# words of a row's section, and where openFDA has that section
SECTIONS = {
    "contraindication": ("contraindications", "do_not_use"),
    "boxed": ("boxed_warning",),
    "warning": ("warnings_and_cautions", "warnings"),
    "precaution": ("warnings_and_cautions", "precautions"),
    "population": ("use_in_specific_populations", "pregnancy", "pediatric_use", "geriatric_use"),
    "pregnancy": ("pregnancy", "use_in_specific_populations"),
    "lactation": ("use_in_specific_populations", "pregnancy"),
    "pediatric": ("pediatric_use", "use_in_specific_populations"),
    "geriatric": ("geriatric_use", "use_in_specific_populations"),
    "dosage": DOSAGE,
}
COMMON = frozenset("severe mild moderate adult never avoid label caution".split())  # too common to tell a condition by


def fact_key(row: Row) -> str:
    """Names a row of `conditions.jsonl` or `doses.jsonl`; an interaction is "a + b", in alphabetical order."""
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:12]


def add_drug_facts(connection: sqlite3.Connection, drug: str, labels: list[Label]) -> None:
    """Store the sentences behind the shipped conditions and doses of one drug; of several labels the first that has."""
    for kind, rows in (("condition", conditions_of(drug)), ("dose", doses_of(drug))):
        for row in rows:
            support = condition_sentence if kind == "condition" else dose_sentence
            for label in labels:
                if found := support(row, label):
                    add_basis(connection, kind, fact_key(row), drug, label, *found)
                    break


def add_basis(
    connection: sqlite3.Connection, kind: str, key: str, drug: str, label: Label, field: str, quote: str
) -> None:
    values = (kind, key, drug, label.label_id, label.version, label.effective, field, clip(quote, QUOTE))
    connection.execute("INSERT OR IGNORE INTO fact_basis VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def condition_sentence(row: Row, label: Label) -> tuple[str, str] | None:
    """(field, sentence) of the row's section that names the condition and shares the most words with the fact."""
    named = row["section"].lower()
    fields = dict.fromkeys(field for word, places in SECTIONS.items() if word in named for field in places)
    states = [_stems(words) for words in _states(row["when"])]
    says = _stems(row["says"]) - _stems(row["drug"])
    best: tuple[int, str, str] | None = None
    for field, sentence in _sentences(label, tuple(fields)):
        stems = _stems(sentence)
        shared = len(says & stems)
        if not any(state and state <= stems for state in states) or shared < max(2, ENOUGH * len(says)):
            continue
        if best is None or shared > best[0]:
            best = shared, field, sentence
    return best[1:] if best else None


def dose_sentence(row: Row, label: Label) -> tuple[str, str] | None:
    """(field, sentence) of the dosage section with the row's daily (else single) limit."""
    for key in ("max_day", "max_single", "max_day_per_kg", "max_single_per_kg"):
        if not (amount := str(row.get(key, ""))):
            continue
        number, _, unit = amount.partition(" ")
        per_kg = "/kg" if key.endswith("kg") else ""
        pattern = re.compile(rf"(?<![\d.,-]){re.escape(number)} ?{re.escape(unit + per_kg)}\b(?!/)")
        found = [item for item in _sentences(label, DOSAGE) if pattern.search(item[1].replace(",", ""))]
        limits = [item for item in found if "maximum" in item[1].lower() or "exceed" in item[1].lower()]
        if found:
            return (limits or found)[0]
    return None


def _states(when: dict[str, Any]) -> Iterator[str]:
    """The words by which a label would name the state of the patient, each on its own enough."""
    yield from when.get("chart_words", [])
    if problem := when.get("problem"):
        yield problem
    if lab := when.get("lab"):
        yield lab["name"]
    if "egfr_below" in when:
        yield from ("renal", "kidney", "creatinine clearance", "egfr", "gfr")
    if "pregnancy_weeks_from" in when or "childbearing" in when:
        yield from ("pregnancy", "pregnant", "fetal", "reproductive potential")
    if "age_below" in when:
        yield from ("pediatric", "children", "infants", "neonates", "adolescents")
    if "age_from" in when:
        yield from ("elderly", "geriatric", "older")


def _sentences(label: Label, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for field in fields:
        yield from ((field, sentence) for sentence in _cut(getattr(label, field)))


@lru_cache(maxsize=64)  # the rows of one drug ask for the same sections again and again
def _cut(parts: tuple[str, ...]) -> list[str]:
    return sentences(section(parts))


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The beginnings of the content words."""
    words = re.findall(r"[a-z][a-z0-9]+", text.lower())
    return frozenset(word[:STEM] for word in words if len(word) > 2 and word not in vocabulary().stop_words | COMMON)
