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
from docgemma.knowledge.openfda import NOT_ADULT, Label
from docgemma.knowledge.search import WORD, vocabulary

QUOTE = 360  # characters
ENOUGH = 0.6  # of the content words of a fact that its sentence shares
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
SINGLE = ("single", "per dose", "each dose", "one dose")
LIMIT = ("maximum", "exceed", "up to", "no more than", "not more than")
STATES = {
    "egfr_below": ["renal", "kidney", "creatinine clearance", "egfr", "gfr"],
    "pregnancy_weeks_from": ["pregnancy", "pregnant", "fetal"],
    "childbearing": ["pregnancy", "pregnant", "fetal", "reproductive potential"],
    "age_below": ["pediatric", "children", "infants", "neonates", "adolescents"],
    "age_from": ["elderly", "geriatric", "older"],
    "weight_below_kg": ["weight", "weighing"],
}
# too common to tell what is said of a condition
COMMON = frozenset("severe mild moderate adult never avoid label caution follow monitor check watch risk".split())


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
    values = (kind, key, drug, label.known_as, label.version, label.effective, field, clip(quote, QUOTE))
    connection.execute("INSERT OR IGNORE INTO fact_basis VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def condition_sentence(row: Row, label: Label) -> tuple[str, str] | None:
    """(field, sentence) of the row's section that names the condition and shares the most words with the fact."""
    named = row["section"].lower().replace("boxed warning", "boxed")
    fields = dict.fromkeys(field for word, places in SECTIONS.items() if word in named for field in places)
    says = _stems(row["says"]) - _stems(row["drug"])
    found = [item for item in _sentences(label, tuple(fields)) if _names_state(row["when"], item[1])]
    best = max(found, key=lambda item: len(says & _stems(item[1])), default=None)
    return best if best and len(says & _stems(best[1])) >= max(2, ENOUGH * len(says)) else None


def dose_sentence(row: Row, label: Label) -> tuple[str, str] | None:
    """(field, sentence) of the dosage section that gives the row's limit as a limit, for the patients of the row."""
    limited = {key: value for key, value in row.items() if _state_words(key, value)}
    for key in ("max_day", "max_single", "max_day_per_kg", "max_single_per_kg"):
        number, _, unit = str(row.get(key, "")).lower().partition(" ")
        amount = re.compile(rf"(?<![\d.,-]){re.escape(number)} ?{re.escape(unit + '/kg' * key.endswith('kg'))}\b(?!/)")
        for field, sentence in _sentences(label, DOSAGE) if number else ():
            of_row = _names_state(limited, sentence) if limited else not NOT_ADULT.search(sentence)
            said = sentence.lower().replace(",", "")
            of_kind = key.startswith("max_single") or not any(word in said for word in SINGLE)
            if of_row and of_kind and amount.search(said) and any(word in said for word in LIMIT):
                return field, sentence
    return None


def _names_state(when: dict[str, Any], sentence: str) -> bool:
    """Whether a sentence names every state that a row is limited to, in any of its words."""
    stems = _stems(sentence)
    states = [words for key, value in when.items() if (words := _state_words(key, value))]
    return bool(states) and all(any(_stems(word) <= stems for word in words if _stems(word)) for words in states)


def _state_words(key: str, value: Any) -> list[str]:
    """The words by which a label may name a state of the patient; [] for what is none."""
    if key == "chart_words":
        return list(value)
    if key in ("problem", "for", "form"):
        return [str(value)]
    return [value["name"]] if key == "lab" else STATES.get(key, [])


def _sentences(label: Label, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(field, sentence), without those that are too long to be quoted whole: mostly tables."""
    for field in fields:
        yield from ((field, sentence) for sentence in _cut(getattr(label, field)) if len(sentence) <= QUOTE)


@lru_cache(maxsize=64)  # the rows of one drug ask for the same sections again and again
def _cut(parts: tuple[str, ...]) -> list[str]:
    return sentences(section(parts))


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The beginnings of the content words."""
    words = WORD.findall(text.lower())
    return frozenset(
        word[:STEM]
        for word in words
        if len(word) > 2 and not word.isdigit() and word not in vocabulary().stop_words | COMMON
    )
