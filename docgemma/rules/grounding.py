"""Grounding: what an answer says must stand in the evidence of its turn (design, decision 8).

Checked by code, sentence by sentence: drugs, numbers with their units, frequencies, ids, claims of absence and of
safety, and words that only the system's inside would use. A sentence that fails is removed and recorded; nothing is
rewritten, except that a tool's name becomes its label.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from docgemma.rules.absence import unfounded
from docgemma.rules.drug_words import DRUG_STEM
from docgemma.rules.drugs import DrugNames, fold
from docgemma.rules.ids import PATIENT_ID
from docgemma.rules.numbers import Quantity, quantities, roman, said_frequencies
from docgemma.rules.sentences import split

# "According to the openFDA database, dofetilide …": the phrase goes, the fact stays
CREDIT = re.compile(
    r"\b(?:according to|based on|as per|per|using|from|in|via)\s+(?:the\s+|our\s+)?(?:[\w.-]+\s+){0,3}?"
    r"(?:databases?|tools?|apis?|systems?|snapshots?|tool\s+(?:results?|outputs?)|search\s+results?|ehr|emr|fhir\s+\w+)"
    r"(?:\s+(?:results?|outputs?|data|search|lookup))?\s*,?\s*",
    re.IGNORECASE,
)
INSIDE = re.compile(
    r"\b(?:databases?|apis?|json|sqlite|fhir|openfda|rxnorm|rxnav|snapshot|function call|"
    r"(?:the|this|a|another) tool|tool (?:call|result|output)s?|"
    r"language model|llm|system prompt|endpoint|query parameters?|backend|server|as an ai)\b|"
    r"<unused\d+>|\b[a-z]+(?:_[a-z]+)+\b",
    re.IGNORECASE,
)
RAW_ERROR = re.compile(
    r"\btraceback\b|(?-i:\b[A-Z]\w*(?:Error|Exception)\b|\b(?:Error|Exception)\s*[:(])|"
    r"\bHTTPS?\s*(?:status\s*)?[45]\d\d\b|"
    r"\b(?:status|error)\s*code\b|\b[45]\d\d\s+(?:error|internal server|not found|bad request|"
    r"too many|service unavailable)|"
    r"[{\[]\s*\"[\w-]+\"\s*:|\bnull\b|\bNoneType\b|\bFile \"|\bECONN\w+|\berrno\b",
    re.IGNORECASE,
)
RECORD_ID = re.compile(r"(?<![\w-])(?:NCT\d{8}|DEMO-[A-Z]+-\d+|PMC\d+)(?![\w-])", re.IGNORECASE)
LIST_MARK = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•–])\s+")
UNIT_FREE = frozenset(
    {"hour", "month"}
)  # durations and ages: a bare number in the evidence may carry its unit elsewhere


@dataclass(frozen=True)
class Grounded:
    """What is left of an answer, and which sentences were taken out. `supported`: nothing was."""

    answer: str
    supported: bool
    removed: list[str] = field(default_factory=list)


def ground(answer: str, evidence: Sequence[str], drugs: DrugNames, tools: Mapping[str, str]) -> Grounded:
    """Hold an answer to the evidence of its turn.

    Args:
        answer: as the model wrote it.
        evidence: tool results, image findings, history, question, error messages; empty texts are ignored.
        drugs: finds drug names and knows brand and generic of one drug as the same.
        tools: labels by the internal names, which nobody may read.
    """
    known = _Evidence([text for text in evidence if text], drugs)
    kept: list[tuple[str, str]] = []
    removed: list[str] = []
    for sentence, gap in split(answer):
        cleaned = _without_inside(sentence, tools, known)
        if cleaned is None or not known.supports(cleaned):
            removed.append(sentence.strip())
            if kept and "\n\n" in gap and _heading(kept[-1][0]):
                kept.pop()  # nothing is left under it
            elif kept and "\n" in gap and "\n" not in kept[-1][1]:
                kept[-1] = (kept[-1][0], gap)
        elif cleaned.strip():
            kept.append((cleaned, gap))
    kept = _without_empty_headings(kept, bool(removed))
    return Grounded("".join(text + gap for text, gap in kept).strip(), not removed, removed)


class _Evidence:
    """The facts of a turn, in the forms they are compared in."""

    def __init__(self, texts: list[str], drugs: DrugNames):
        self.drugs = drugs
        self.text = "\n".join(texts)
        self.lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        self.folded = _flat(self.text)
        self.words = {fold(word) for word in re.findall(r"[^\W_]+", self.text)}
        self.quantities = set(_bare(item) for item in quantities(self.text))
        self.values = {item.value for item in quantities(self.text)} | set(roman(self.text)) | self._dates()
        self.frequencies = said_frequencies(self.text)
        mentions = drugs.find(self.text)
        self.ingredients = {part for item in mentions for part in drugs.ingredients(item.name)}
        self.ids = self._ids(self.text)
        self._named: dict[str, frozenset[str]] = {}

    def supports(self, sentence: str) -> bool:
        if _flat(LIST_MARK.sub("", sentence)) in self.folded:
            return True  # word for word
        plain = LIST_MARK.sub("", sentence)
        return (
            self._knows_drugs(plain)
            and self._knows_numbers(plain)
            and self._ids(plain) <= self.ids
            and self._knows_frequencies(plain)
            and not unfounded(plain, self.lines, self.named)
        )

    def named(self, text: str) -> frozenset[str]:
        """Generic names of the drugs in a text."""
        if text not in self._named:
            found = self.drugs.find(text)
            self._named[text] = frozenset(part for item in found for part in self.drugs.ingredients(item.name))
        return self._named[text]

    def _knows_drugs(self, sentence: str) -> bool:
        for item in self.drugs.find(sentence):
            parts = self.drugs.ingredients(item.name)
            if not all(self._has_ingredient(part) for part in parts) and not self._has_words(item.text):
                return False
        unknown = (fold(word) for word in re.findall(r"[^\W\d_]{6,}", sentence))
        return all(word in self.words or word in self.drugs or not DRUG_STEM.match(word) for word in unknown)

    def _has_ingredient(self, name: str) -> bool:
        """The drug itself, or a more specific one: "insulin" where the evidence says insulin glargine."""
        if name in self.ingredients:
            return True
        words = set(name.split())
        return any(words <= set(other.split()) for other in self.ingredients)

    def _has_words(self, name: str) -> bool:
        words = [fold(word) for word in re.findall(r"[^\W_]+", name)]
        return " ".join(words) in self.folded

    def _knows_numbers(self, sentence: str) -> bool:
        for item in quantities(RECORD_ID.sub(" ", PATIENT_ID.sub(" ", sentence))):
            if item.spelled and not item.unit:
                continue  # "two of these": a count, not a fact
            if _bare(item) in self.quantities or (not item.unit and item.value in self.values):
                continue
            if item.unit in UNIT_FREE and self._has_bare(item):
                continue
            return False
        return all(value in self.values for value in roman(sentence))

    def _has_bare(self, item: Quantity) -> bool:
        """A duration whose number stands in the evidence without any unit ("54-year-old" beside "age 54")."""
        factors = {"hour": (1, 24, 168), "month": (1, 12)}[item.unit]
        return any((item.value / factor, "") in self.quantities for factor in factors)

    def _knows_frequencies(self, sentence: str) -> bool:
        said = said_frequencies(sentence)
        return said <= self.frequencies

    def _dates(self) -> set[Decimal]:
        dates = re.findall(r"\d{4}-\d{2}(?:-\d{2})?", self.text)
        return {Decimal(int(part)) for date in dates for part in date.split("-")}

    @staticmethod
    def _ids(text: str) -> set[str]:
        return {item.lower() for item in [*PATIENT_ID.findall(text), *RECORD_ID.findall(text)]}


def _without_inside(sentence: str, tools: Mapping[str, str], known: _Evidence) -> str | None:
    """The sentence without the system's inside, or None if nothing else is left of it."""
    if RAW_ERROR.search(sentence):
        return None
    for name, label in tools.items():
        sentence = re.sub(rf"(?<!\w)[`*'\"\[(]*{re.escape(name)}(?:\(\))?[`*'\"\])]*(?!\w)", label, sentence)
    if _flat(sentence) in known.folded or not INSIDE.search(sentence):
        return sentence
    shorter = CREDIT.sub("", sentence).strip()
    if INSIDE.search(shorter) or len(shorter.split()) < 3:
        return None
    return shorter[0].upper() + shorter[1:] if sentence[:1].isupper() else shorter


def _without_empty_headings(kept: list[tuple[str, str]], any_removed: bool) -> list[tuple[str, str]]:
    """A line such as "Warnings:" goes when everything under it went."""
    if not any_removed:
        return kept
    return [
        (text, gap)
        for at, (text, gap) in enumerate(kept)
        if not (_heading(text) and (at + 1 == len(kept) or _heading(kept[at + 1][0])))
    ]


def _heading(text: str) -> bool:
    return text.rstrip("* ").endswith(":")


def _bare(item: Quantity) -> tuple[Decimal, str]:
    return item.value, item.unit


def _flat(text: str) -> str:
    """For comparing word for word: folded words, single blanks."""
    return " ".join(fold(word) for word in re.findall(r"[^\W_]+|[%<>=≥≤]|(?<=\d)[.,/-](?=\d)", text))
