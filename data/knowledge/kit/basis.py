"""The sentence of a drug's own label that states a shipped fact: a contraindication, a warning, a maximum dose.

No sentence is better than a wrong one: a fact that none states stays "written from label knowledge, not verified".
Examples in `tests/test_knowledge_basis.py`; the words are `data/knowledge/label_words.yaml`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from docgemma.knowledge.base import LabelSection
from docgemma.knowledge.drug_rules import PARTS, Row, fact_key
from docgemma.knowledge.label_interactions import QUOTE, denies, grade, label_words
from docgemma.knowledge.label_text import sentences, subsections
from docgemma.knowledge.openfda import Label, sections_of
from docgemma.knowledge.search import WORD, vocabulary
from docgemma.text.numbers import quantities
from docgemma.text.words import clinical, names, plain

FIELDS = {  # word of a row's section -> where openFDA has it; a dose stands in the section on dosage
    "boxed": ("boxed_warning",),
    "contraindication": ("contraindications", "do_not_use"),
    "warning": ("warnings_and_cautions", "warnings"),
    "precaution": ("warnings_and_cautions", "precautions"),
}
DOSAGE = ("dosage_and_administration",)
LIMITED = ("for", "form", "part", "age_below", "age_from", "egfr_below", "weight_below_kg")  # whom a dose row is for
ENOUGH, DEMANDED = 0.75, 0.6  # of the content words of what a row says; where both say what to do
STEM = 6  # letters by which words are compared: contraindicated, contraindication


def quotes(rows: Iterable[Row], labels: list[Label]) -> Iterator[tuple[str, str]]:
    """Fact key and basis of each fact of a drug's rows that its labels state; a row of a route reads labels of that."""
    read: dict[str, dict[str, LabelSection]] = {}
    fields = list(dict.fromkeys(field for fields in (*FIELDS.values(), DOSAGE) for field in fields))
    for row in rows:
        route = row.get("route", "")
        if route not in read:
            read[route] = sections_of([label for label in labels if not route or _is_of(route, label)], fields)
        for part in (part for part in PARTS if part in row):
            if found := _quote(row, part, read[route]):
                yield fact_key(row, part), found


def _quote(row: Row, part: str, sections: dict[str, LabelSection]) -> str:
    """The basis of one fact; "" where no sentence of the sections that should state it does."""
    named = row.get("section", "").lower().replace("boxed warning", "boxed")
    fields = [field for word in FIELDS if word in named for field in FIELDS[word]] if "when" in row else DOSAGE
    for field in (field for field in dict.fromkeys(fields) if field in sections):
        for sentence in (said for text in subsections(sections[field].text) for said in sentences(text)):
            if len(sentence) <= QUOTE and states(row, part, field, sentence):
                return sections[field].basis(field, sentence)
    return ""


def states(row: Row, part: str, field: str, sentence: str) -> bool:
    """Whether a sentence of a section states a fact of a row as it stands: of the same patients, with its numbers."""
    when = row.get("when") or {key: row[key] for key in LIMITED if key in row}
    if not all(_names(key, value, sentence) for key, value in when.items()):
        return False
    if denies(sentence) or names(label_words()["unsaid"], sentence):
        return False
    if "when" not in row:
        others = [word for key, group in label_words()["others"].items() if key not in when for word in group]
        return _limits(row, part, sentence) and not names(others, sentence)
    asks, demands = grade(row["says"]), grade(sentence)  # 0 is "contraindicated", 1 "do not use"
    least = 1 if row["rank"] == "contraindicated" else asks and asks[0]
    if least is not None and field not in FIELDS["contraindication"] and (not demands or demands[0] > least):
        return False
    says = _stems(row["says"]) - _stems(row["drug"])
    numbers = {item for item in quantities(row["says"]) if item.unit}
    needed = max(min(2, len(says)), (ENOUGH if least is None else DEMANDED) * len(says))
    return numbers <= set(quantities(sentence)) and len(says & _stems(sentence)) >= needed


def _limits(row: Row, part: str, sentence: str) -> bool:
    """Whether the first amount after "maximum" or "not exceed" is the row's, a day or in one dose as the row has it."""
    words, folded = label_words(), sentence.casefold()
    single = names(words["one_dose"], sentence)
    if part.startswith("max_day") == single or not (single or names(words["daily"], sentence)):
        return False
    unit = "/kg" if part.endswith("kg") else ""
    least = quantities(f"{row[part]}{unit}")
    after = [folded.partition(word)[2] for word in words["limits"] if word in folded]
    first = [[item for item in quantities(text) if item.unit not in ("", "hour", "month")][:1] for text in after]
    return len(least) == 1 and least in first


def _names(key: str, value: Any, sentence: str) -> bool:
    """Whether a sentence names a state of the patient that a row is limited to, with its number."""
    states, words, limits = label_words()["states"], [f"{value} years"], list[float]()
    match value:
        case list():
            words = value
        case str() if key == "problem":
            words = next(item["chart"] for item in clinical("problems")["problems"] if item["name"] == value)
        case str():  # an indication, a form, an ingredient
            return key == "route" or all(names([word], sentence) for word in plain(value).split() if len(word) > 2)
        case dict():
            words, limits = [value["name"]], [value[bound] for bound in value if bound != "name"]
        case _ if f"{key} {value}" in states:
            words = states[f"{key} {value}"]
        case _ if key in states:
            words, limits = states[key], [int(value)]
    return names(words, sentence) and {float(item.value) for item in quantities(sentence)}.issuperset(limits)


def _is_of(route: str, label: Label) -> bool:
    """Whether a product is given by this route alone."""
    said = set(clinical("order_routes")["routes"][route])
    given = [set(plain(route).split()) for route in label.openfda.route]
    return bool(given) and all(words & said for words in given)


def _stems(text: str) -> frozenset[str]:
    """The beginnings of the content words, British and American alike."""
    left = vocabulary()[0] | set(label_words()["common"])
    words = WORD.findall(text.lower().replace("ae", "e").replace("oe", "e").replace("our", "or"))
    return frozenset(word[:STEM] for word in words if len(word) > 2 and not word.isdigit() and word not in left)
