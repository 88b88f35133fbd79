"""Reads one drug's label for another drug, by name and by class, and quotes what it says. Pure functions.

A label that does not name the other drug proves nothing; a sentence that denies an effect is not a finding; and a
sentence about allergy to the other drug is not one about taking both.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from docgemma.knowledge.base import DrugLabel, Interaction, LabelSection
from docgemma.knowledge.label_text import around, clip, sentences, subsections
from docgemma.knowledge.search import WORD
from docgemma.paths import data_yaml

UNGRADED = "severity not stated"  # the label names the drug without a word on how grave it is
QUOTE = 360  # characters of a quoted piece
NEAR = 240  # characters around a name within which a word on gravity belongs to it
ROW = re.compile(
    r"(?<=\s)(?!Clinical|Intervention|Impact|Recommend|Comment|Example|Management|Effect|Prevention|Mechanism)"
    r"[A-Z][\w-]+(?: [a-z]+)?:\s"
)
ENZYME = re.compile(
    r"(?:cytochrome p450 (?P<cyp>\d[a-z]\d*)|(?P<pgp>p-glycoprotein)) (?P<kind>inhibitor|inducer)", re.I
)
NO_LABEL = DrugLabel("")
ANOTHER = r"(?:other|another|additional|concomitant|multiple)\s+(?:[\w-]+\s+){0,2}"


@dataclass(frozen=True)
class Drug:
    """A drug, what labels may call it, and its own label.

    `names`: generic and as asked; `brands`: capitalised; `classes`: FDA's; `sections`: of its labels by openFDA
    field name, `contraindications`, `boxed_warning`, `drug_interactions`, ...; {} where none was read.
    """

    name: str
    names: tuple[str, ...]
    brands: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    sections: dict[str, LabelSection] = field(default_factory=dict)
    label: DrugLabel = NO_LABEL


def drug_of(name: str, label: DrugLabel, sections: dict[str, LabelSection], asked: str = "") -> Drug:
    """A drug by its label. A brand of few letters or with signs is too easily another word."""
    names = dict.fromkeys([*filter(None, [asked]), name, *name.replace(" and ", " / ").split(" / ")])
    brands = tuple(brand for brand in label.brand_names if brand.isalpha() and len(brand) > 3)
    return Drug(name, tuple(names), brands, tuple(label.drug_classes), sections, label)


@dataclass(frozen=True)
class Finding:
    """What the label of `own` says of another drug. `rank`: 0 is the gravest."""

    own: Drug
    severity: str
    rank: int
    quote: str
    management: str
    section: str  # openFDA's name of it
    by_class: str | None = None  # the class that was named, where the drug was not
    some: bool = False  # the label speaks of some members of the class, and does not say whether of this one

    @property
    def source(self) -> LabelSection:
        return self.own.sections[self.section]


def interaction(a: Drug, b: Drug) -> Interaction | None:
    """The gravest finding of both directions; both are quoted."""
    findings = read_both(a, b)
    if not findings:
        return None
    return Interaction(
        drugs=(a.name, b.name),
        severity=findings[0].severity,
        mechanism=" ".join(_quoted(item, b if item.own is a else a) for item in findings),
        management=next((item.management for item in findings if item.management), ""),
        reference=findings[0].source.reference,
        basis=findings[0].source.basis(),
    )


def read_both(a: Drug, b: Drug) -> list[Finding]:
    """What the label of either drug says of the other, at most one finding a direction, the gravest first."""
    return sorted(filter(None, (find(a, b), find(b, a))), key=_weight)


def _quoted(finding: Finding, other: Drug) -> str:
    of_class = f" of the class of {other.name} ({finding.by_class})" if finding.by_class else ""
    return f"The {finding.own.name} label says{of_class}: “{finding.quote}”"


def find(own: Drug, other: Drug) -> Finding | None:
    """The gravest thing that the label of one drug says of another, or None."""
    # the label of a combination speaks of its ingredients as itself
    itself = {*own.names, *own.label.name.split(" / ")}
    other = replace(other, names=tuple(name for name in other.names if name not in itself))
    patterns = [(name_pattern(other), None), *class_patterns(own, other)]
    found = [
        finding
        for section, source in own.sections.items()
        if any(
            pattern.search(source.text) for pattern, _ in patterns
        )  # most sections name neither: cutting them up is dear
        for part in subsections(source.text)
        for finding in _in_part(sentences(part), own, section, patterns)
    ]
    return min(found, key=_weight, default=None)


@lru_cache(maxsize=1)
def label_words() -> dict[str, Any]:
    """`label_words.yaml`, its expressions compiled, and `class_words.yaml` as "classes"."""
    words = data_yaml("knowledge", "label_words.yaml")
    ranks = [re.compile("|".join(ways), re.IGNORECASE) for ways in words["severities"]]
    general = [f"{first} {drug}" for first in words["general"] for drug in words["general_drugs"]]
    denied = re.compile("|".join(words["denied"]), re.IGNORECASE)
    classes = data_yaml("knowledge", "class_words.yaml")
    return words | {"severities": ranks, "denied": denied, "general": general, "classes": classes}


def _says(kind: str, text: str) -> bool:
    """Whether a text has one of the plain words of a kind."""
    lower = text.lower()
    return any(word in lower for word in label_words()[kind])


def _weight(finding: Finding) -> tuple[int, int, bool]:
    """Order of findings: what is said of this drug, then of some of its class, then what is not graded."""
    tier = 2 if finding.rank == len(label_words()["severities"]) else int(finding.some)
    return tier, finding.rank, finding.by_class is not None


def name_pattern(drug: Drug) -> re.Pattern[str]:
    """Whole words. Brands only as capitalised: some are ordinary words."""
    generic = [rf"(?i:{re.escape(name)})" for name in drug.names if len(name) > 2]
    brands = [f"(?:{re.escape(brand.title())}|{re.escape(brand.upper())})" for brand in drug.brands]
    return re.compile(rf"(?<![\w-])(?:{'|'.join([*generic, *brands]) or '(?!)'})(?![\w-])")


def class_patterns(own: Drug, other: Drug) -> list[tuple[re.Pattern[str], str]]:
    """A class both drugs share is that of the label's own drug, unless the label says "other NSAIDs"."""
    shared = {word for name in own.classes for word in wordings(name)}
    patterns = []
    for name in other.classes:
        for word in wordings(name):
            before = ANOTHER if word in shared else ""
            patterns.append((re.compile(rf"(?<![\w-]){before}(?:{word})(?![\w-])", re.IGNORECASE), name))
    return patterns


@lru_cache(maxsize=1024)
def wordings(class_name: str) -> list[str]:
    """Regular expressions (to be used without regard to case) for a class in a label's text.

    Inhibitors and inducers of an enzyme match without regard to strength, since the class does not state one.
    """
    name = class_name.partition("[")[0].strip().lower()
    if enzyme := ENZYME.search(name):
        target = r"P-?(?:gp|glycoprotein)" if enzyme["pgp"] else rf"CYP\s?{enzyme['cyp']}(?:4|5)?"
        kind = enzyme["kind"].lower()
        return [rf"{target}(?: enzyme)? {kind}s?", rf"{kind}s of (?:[\w,/ ]{{0,30}})?{target}"]
    found = [word for part, words in label_words()["classes"].items() if part in name for word in words]
    own = re.escape(name.removesuffix("s")).replace(r"\-", r"[-\s]?").replace(r"\ ", r"\s")
    return list(dict.fromkeys([*found, rf"{own}s?"])) if name else []


def _in_part(
    parts: list[str], own: Drug, section: str, patterns: list[tuple[re.Pattern[str], str | None]]
) -> Iterable[Finding]:
    for index, sentence in enumerate(parts):
        for pattern, by_class in patterns:
            match = pattern.search(sentence)
            finding = match and _finding(parts, index, match, own, section, by_class)
            if finding:
                yield finding
                break  # patterns are in order: by name, then by class


def _finding(
    parts: list[str], index: int, match: re.Match[str], own: Drug, section: str, by_class: str | None
) -> Finding | None:
    sentence = parts[index]
    near = _row(sentence, match)
    if section != "drug_interactions" and _says("allergy", near) and not _says("together", near):
        return None
    advice = [part for part in _following(parts, index, match.re) if grade(part)]
    advice = [part for part in advice if match.re.search(part)] or advice  # what names the drug is meant for it
    said = grade(near)
    if said is None and section == "contraindications":
        said = (0, "contraindicated")
    if not advice and denies(near) and (said is None or denies(sentence[match.end() :][:40])):
        return None
    if said is None and not advice and (sentence.count(",") >= 3 or "Table" in sentence):
        advice = [part for part in parts[:index] if grade(part) and _says("general", part)][-1:]
    grades = [item for item in (said, *map(grade, advice)) if item]
    rank, severity = min(grades, default=(len(label_words()["severities"]), UNGRADED))
    quote = around(sentence, match.start(), match.end(), QUOTE)
    management = " ".join(advice)  # "" where the quote itself says what to do
    some = bool(by_class) and _some(sentence[: match.start()])
    wording = f"{severity} for some of its class" if some else severity
    return Finding(own, wording, rank, quote, clip(management, QUOTE), section, by_class, some)


def grade(text: str) -> tuple[int, str] | None:
    """The gravest wording of a piece of text: (rank, the words themselves in lower case)."""
    for rank, pattern in enumerate(label_words()["severities"]):
        match = pattern.search(text)
        if match:
            return rank, " ".join(match[0].lower().split())
    return None


def denies(text: str) -> bool:
    """Whether a piece of text says that there is no effect."""
    return bool(label_words()["denied"].search(text))


def _following(parts: list[str], index: int, pattern: re.Pattern[str]) -> list[str]:
    """The sentences after a mention that go on about it."""
    taken = []
    for part in parts[index + 1 : index + 4]:
        if not (part.lower().startswith(tuple(label_words()["goes_on"])) or pattern.search(part)):
            break
        taken.append(part)
    return taken


def _some(before: str) -> bool:
    """Whether the words before a class, in the same clause, say that only some of its members are meant."""
    clause = before[-50:].replace(";", ".").replace(":", ".").rpartition(".")[2]
    return not set(WORD.findall(clause.lower())).isdisjoint(label_words()["some"])


def _row(sentence: str, match: re.Match[str]) -> str:
    """What is said near a mention. A table arrives as one long sentence; its rows begin with "Name:"."""
    starts = [row.start() for row in ROW.finditer(sentence) if row.start() <= match.start()]
    ends = [row.start() for row in ROW.finditer(sentence, match.end())]
    left, right = (starts or [0])[-1], (ends or [len(sentence)])[0]
    return around(sentence[left:right], match.start() - left, match.end() - left, NEAR)
