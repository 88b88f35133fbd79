"""Grounding: what an answer says must stand in the evidence of its turn (design, decision 8).

Checked by code, sentence by sentence: drugs, numbers with their units, frequencies, ids, claims of absence and of
safety, and words that only the system's inside would use. A sentence that fails is removed and recorded; nothing is
rewritten, except that a tool's name becomes its label.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

from docgemma.rules.claims import says, unfounded
from docgemma.text.drugs import DrugNames, fold
from docgemma.text.frequency import said_frequencies
from docgemma.text.numbers import Quantity, quantities, roman
from docgemma.text.quoted import CLOSE, OPEN
from docgemma.text.words import clinical, listed, plain

# "According to the openFDA database, dofetilide …": the phrase goes, the fact stays
CREDIT = re.compile(
    r"\b(?:according to|based on|as per|per|using|from|in|via)\s+(?:the\s+|our\s+)?(?:[\w.-]+\s+){0,3}?"
    r"(?:databases?|tools?|apis?|systems?|snapshots?|tool\s+(?:results?|outputs?)|search\s+results?|ehr|emr|fhir\s+\w+)"
    r"(?:\s+(?:results?|outputs?|data|search|lookup))?\s*,?\s*",
    re.IGNORECASE,
)
# patient ids of both kinds, never inside a longer token (555-123-4567 is none); trials and articles
RECORD_ID = re.compile(
    r"(?<![\w-])(?:[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}|[a-z]{3}-[0-9]{3}|NCT\d{8}|DEMO-[A-Z]+-\d+|PMC\d+)(?![\w-])",
    re.IGNORECASE,
)
WORDS = re.compile(r"[^\W_]+|[%<>=≥≤]|(?<=\d)[.,/-](?=\d)")
LIST_MARKS = ("-", "*", "•", "–")
HTTP_ERRORS = ("4", "5")
ABBREVIATIONS = frozenset(
    "al approx b.i.d ca cf dept dr e.g ed est etc fig i.e i.v inc jr max min mr mrs ms no nr p.o prof q.d ref sr st "
    "t.i.d u.k u.s vs".split()
)
BREAK = re.compile(r"\s*\n+\s*|(?<=[.!?…])[\"'”’)\]]?\s+(?=\S)")
CLOSING = "\"'”’)]"
MIN_WORDS = 4  # fewer words may stand in an answer and in the instructions by chance
UNIT_FREE = {"hour": (1, 24, 168), "month": (1, 12)}  # a bare number in the evidence may be of one of these units


@dataclass(frozen=True)
class Grounded:
    """What is left of an answer, and which sentences were taken out. `supported`: nothing was."""

    answer: str
    supported: bool
    removed: list[str] = field(default_factory=list)


def ground(answer: str, evidence: Sequence[str], drugs: DrugNames, labels: Mapping[str, str]) -> Grounded:
    """Hold an answer to the evidence of its turn: tool results, image findings, history, question, error messages;
    `labels` are internal names, which nobody may read -> what a clinician calls the tool."""
    known = _Evidence([text for text in evidence if text], drugs)

    def supported(sentence: str) -> str | None:
        cleaned = _without_inside(sentence, labels, known)
        return cleaned if cleaned is not None and known.supports(cleaned) else None

    text, removed = _kept(answer, supported)
    return Grounded(text, not removed, removed)


def without(text: str, unwanted: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The text without the sentences that are unwanted, and those sentences."""
    return _kept(text, lambda sentence: None if unwanted(sentence) else sentence)


def _kept(text: str, check: Callable[[str], str | None]) -> tuple[str, list[str]]:
    """The text with each sentence as `check` leaves it, without those of which it is None, and those sentences."""
    kept: list[tuple[str, str]] = []
    removed: list[str] = []
    for sentence, gap in split(text):
        checked = check(sentence)
        if checked is None:
            removed.append(sentence.strip())
            if kept and "\n\n" in gap and _heading(kept[-1][0]):
                kept.pop()  # nothing is left under it
            elif kept and "\n" in gap and "\n" not in kept[-1][1]:
                kept[-1] = (kept[-1][0], gap)
        elif checked.strip():
            kept.append((checked, gap))
    if removed:  # a heading goes when everything under it went
        following = [*(sentence for sentence, _ in kept[1:]), "end:"]
        pairs = zip(kept, following, strict=False)
        kept = [item for item, after in pairs if not (_heading(item[0]) and _heading(after))]
    return "".join(sentence + gap for sentence, gap in kept).strip(), removed


class _Evidence:
    """The facts of a turn, in the forms they are compared in."""

    def __init__(self, texts: list[str], drugs: DrugNames):
        self.drugs = drugs
        text = "\n".join(texts)
        self.lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.folded = _flat(text)
        self.words = set(self.folded.split())
        self.quantities = {(item.value, item.unit) for item in quantities(text)}
        dates = [part for word in text.split() for part in word.strip(".,;()").split("-") if word[:1].isdigit()]
        self.values = {item.value for item in quantities(text)} | set(roman(text))
        self.values |= {Decimal(part) for part in dates if part.isdecimal()}
        self.frequencies = said_frequencies(text)
        self.ingredients = self.named(text)
        self.ids = _ids(text)

    def supports(self, sentence: str) -> bool:
        words = sentence.split()
        marked = bool(words) and (words[0] in LIST_MARKS or (words[0][-1] in ".)" and words[0][:-1].isdecimal()))
        said = " ".join(words[1:]) if marked else sentence
        return _flat(said) in self.folded or (  # word for word
            self._knows_drugs(said)
            and self._knows_numbers(said)
            and _ids(said) <= self.ids
            and said_frequencies(said) <= self.frequencies
            and not unfounded(said, self.lines, self.named)
        )

    def named(self, text: str) -> frozenset[str]:
        """Generic names of the drugs in a text."""
        return frozenset(part for item in self.drugs.find(text) for part in self.drugs.ingredients(item.name))

    def _knows_drugs(self, sentence: str) -> bool:
        for item in self.drugs.find(sentence):
            parts = self.drugs.ingredients(item.name)
            if not all(self._has_ingredient(part) for part in parts) and _flat(item.text) not in self.folded:
                return False
        ends = tuple(listed("drug_words", "stems"))
        unknown = [word for word in _flat(sentence).split() if len(word) > 5 and word.endswith(ends)]
        return all(word in self.words or word in self.drugs for word in unknown)

    def _has_ingredient(self, name: str) -> bool:
        """The drug itself, or a more specific one: "insulin" where the evidence says insulin glargine."""
        return any(set(name.split()) <= set(other.split()) for other in self.ingredients)

    def _knows_numbers(self, sentence: str) -> bool:
        known = [self._has(item) for item in quantities(RECORD_ID.sub(" ", sentence))]
        return all(known) and all(value in self.values for value in roman(sentence))

    def _has(self, item: Quantity) -> bool:
        """A number with its unit; a count in words ("two of these"); a duration whose number stands there without a
        unit ("54-year-old" beside "age 54")."""
        bare = not item.unit and (item.spelled or item.value in self.values)
        if bare or (item.value, item.unit) in self.quantities:
            return True
        return any((item.value / factor, "") in self.quantities for factor in UNIT_FREE.get(item.unit, ()))


def _without_inside(sentence: str, labels: Mapping[str, str], known: _Evidence) -> str | None:
    """The sentence without the system's inside, or None if nothing else is left of it."""
    lists, words = clinical("claims"), sentence.split()
    failed = any(word.rstrip(":(").endswith(("Error", "Exception")) for word in words)
    status = any(one.upper() == "HTTP" and other[:1] in HTTP_ERRORS for one, other in pairwise(words))
    if failed or status or says(sentence, lists["raw_errors"]) or '":' in sentence:
        return None
    for name, label in labels.items():
        for written in (f"`{name}()`", f"`{name}`", f"[{name}]", f"'{name}'", f'"{name}"', f"{name}()", name):
            sentence = sentence.replace(written, label)
    if _flat(sentence) in known.folded or not _inside(sentence):
        return sentence
    shorter = CREDIT.sub("", sentence).strip()
    if _inside(shorter) or len(shorter.split()) < 3:
        return None
    return shorter[0].upper() + shorter[1:] if sentence[:1].isupper() else shorter


def _inside(sentence: str) -> bool:
    told = f"{' '.join(WORDS.findall(sentence.casefold()))} "
    named = any(f" {phrase} " in f" {told}" for phrase in clinical("claims")["inside"])
    return named or "_" in sentence or "<unused" in sentence


def _heading(text: str) -> bool:
    return text.rstrip("* ").endswith(":")


def _ids(text: str) -> set[str]:
    return {item.lower() for item in RECORD_ID.findall(text)}


def _flat(text: str) -> str:
    """For comparing word for word: folded words, single blanks."""
    return " ".join(fold(word) for word in WORDS.findall(text))


def split(text: str) -> list[tuple[str, str]]:
    """Sentences (or lines) with the blanks that follow each: "".join(a + b) is the text without outer blanks."""
    text = text.strip()
    pieces, start = [], 0
    for match in BREAK.finditer(text):
        head, gap = text[start : match.start()], match.group().lstrip(CLOSING)
        if "\n" in gap or _ends(head, text[match.end()]):
            pieces.append((head + match.group()[: len(match.group()) - len(gap)], gap))
            start = match.end()
    return [*pieces, (text[start:], "")] if text[start:] else pieces


def _ends(head: str, following: str) -> bool:
    """Whether a full stop here ends a sentence, given the character that follows it."""
    if head.endswith(("!", "?")):
        return True
    last = head.split()[-1].lower().strip(f".…([{CLOSING}") if head.split() else ""
    short = last in ABBREVIATIONS or (len(last) == 1 and last.isalpha())
    return not (following.islower() or short or (last.isdigit() and head.strip(" .").isdigit()))  # a list's number


def without_instructions(answer: str, instructions: str) -> tuple[str, list[str]]:
    """The answer without sentences that stand in the instructions (the system prompt), and those sentences."""
    told, lines = plain(instructions), {plain(line) for line in instructions.splitlines()} - {""}

    def repeated(sentence: str) -> bool:
        said = plain(sentence)
        quoted = OPEN in sentence or CLOSE in sentence
        return bool(said) and not quoted and (said in lines or (len(said.split()) >= MIN_WORDS and said in told))

    return without(answer, repeated)
