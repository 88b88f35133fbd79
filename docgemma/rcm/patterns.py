"""What a policy's patterns are held against, and the verdict of what shows and refutes them. Pure.

The keys of a pattern are told in data/rcm/policies/README.md. Silence is never met, and never not met.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from docgemma.rcm.assertion import Status, status
from docgemma.rcm.dates import dates, long_ago
from docgemma.rcm.measures import Holds, counted, counts_from, holds
from docgemma.rcm.records import Verdict
from docgemma.rcm.sentences import Sentence
from docgemma.rcm.sides import sides

INHERITED = ("side", "refuted_by", "date_within_days", "planned", "stands")
PARTS = frozenset(("either", "both"))
Pattern = Mapping[str, Any]
Places = Sequence[Sequence[Sentence]]  # each as the sentences that show or refute something together


@dataclass(frozen=True)
class Finding:
    """A verdict with the sentences for it; `against` speaks for the opposite (both: a person decides)."""

    verdict: Verdict
    why: str
    quotes: tuple[Sentence, ...] = ()
    against: tuple[Sentence, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What a pattern is held against: the sentences, the side asked for, and the day of the request."""

    sentences: Sequence[Sentence]
    side: str
    today: date
    only: dict[tuple[str, int, str], frozenset[str]] = field(default_factory=dict)  # sides that a section names
    requests: frozenset[Sentence] = frozenset()  # sentences that only ask for something
    until: date | None = None  # the last day that the documents tell
    heads: Sequence[Sentence] = ()  # header lines, which say nothing but who the patient is

    def considered(self, pattern: Pattern) -> list[Sentence]:
        """The sentences that may decide: what is only asked for counts where a plan does."""
        return [one for one in self.sentences if pattern.get("planned") or one not in self.requests]

    def holds(self, sentence: Sentence, measure: Pattern, anywhere: bool = False) -> Holds:
        """Whether a number holds; what goes on "since" a day does so until the last day that the documents tell."""
        until = self.today if measure.get("ago") else self.until or self.today
        said = holds(sentence, measure, until, anywhere)
        counts = said == "unknown" and "begins" in measure
        return counts_from(sentence, measure, self.sentences, self.today) if counts else said

    def right_side(self, sentence: Sentence, pattern: Pattern, named: bool = True) -> bool:
        """Whether a sentence is of the side asked for: by its own words, else by the only side of its section.

        Args:
            named: a side must be told; "has never had an injection" speaks of both.
        """
        if not pattern.get("side") or not self.side:
            return True
        said = sides(sentence.text) or self.only.get((sentence.document, sentence.page, sentence.section), frozenset())
        wanted = {"left", "right"} if self.side == "bilateral" else {self.side}
        return wanted <= said or not (said or named)

    def recent(self, sentence: Sentence, pattern: Pattern) -> bool:
        """Whether it is new enough: by the last date in it, else by that of its visit."""
        if "date_within_days" not in pattern:
            return True
        said = [day for _, _, day in dates(sentence, self.today) if day <= self.today]
        day = max(said) if said else date.fromisoformat(sentence.day) if sentence.day else None
        return day is not None and (self.today - day).days <= int(pattern["date_within_days"])

    def newest(self, few: Sequence[Sentence], measure: Pattern) -> list[Sentence]:
        """Of the sentences with too low a number those that still count, where another has enough: 6 weeks, then 14 are
        enough of a course; a BMI of years ago is not the one of now; of what is to be long ago the latest counts."""
        if measure.get("ago") or not counted(measure["unit"]):
            return [one for one in few if measure.get("ago") or not long_ago(one, self.today)]
        return []


def leaves(pattern: Pattern) -> list[dict[str, Any]]:
    """The patterns of `either` or `both`, each with what stands beside; else the pattern itself."""
    shared = {name: pattern[name] for name in INHERITED if name in pattern}
    return [{**shared, **part} for key in PARTS & set(pattern) for part in pattern[key]] or [dict(pattern)]


def accepted(pattern: Pattern) -> tuple[Status, ...]:
    return ("affirmed", "planned", "hypothetical") if pattern.get("planned") else ("affirmed",)


def title(sentence: Sentence) -> bool:
    """Whether it is a bare heading, which says nothing alone; with a date it says that something took place."""
    return sentence.text == sentence.section and not any(char.isdigit() for char in sentence.text)


def of_a_relative(sentence: Sentence, share: float = 0.5) -> bool:
    """Whether more than a share of a sentence speaks of a relative."""
    words = sentence.words
    told = sum(status(words, at, at + 1, sentence.section) == "family" for at in range(len(words)))
    return told > share * len(words)


def decided(shows: Places, refutes: Places, why: str = "stated", stands: float = 0) -> Finding:
    """The verdict of the places that show a criterion, for which `why` is the reason, and of those that refute it.

    Affirmed here and denied there gives none, but that of a visit more than `stands` days later; what a relative had no
    later visit undoes.
    """
    if shows and refutes and not any(of_a_relative(one, share=0) for place in refutes for one in place):
        one, other = max(item.day for item in shows[0]), max(item.day for place in refutes for item in place)
        if one and other and abs((date.fromisoformat(one) - date.fromisoformat(other)).days) > stands:
            shows, refutes = (shows, []) if one > other else ([], refutes)
    if shows and refutes:
        apart = "stated and denied in different places; a person decides"
        return Finding("NOT DOCUMENTED", apart, tuple(shows[0]), tuple(refutes[0]))
    if shows:
        return Finding("MET", why, tuple(shows[0]))
    if refutes:
        return Finding("NOT MET", "the documents state the opposite", tuple(refutes[0]))
    return Finding("NOT DOCUMENTED", "nothing in the documents states it")


def joined(key: str, parts: Sequence[Finding], every: bool) -> Finding:
    """The verdict of `either` or `both`. `every`: of `either` each part must be refuted for NOT MET, else one."""
    good, bad = ([one for one in parts if one.verdict == verdict] for verdict in ("MET", "NOT MET"))
    if key == "either":
        open_ = [one for one in parts if one.verdict == "NOT DOCUMENTED"]
        apart = open_ if every else [one for one in open_ if one.against and one.quotes]
        return [*good, *apart, *bad, *parts][0]
    if len(good) < len(parts):
        return [*bad, *(one for one in parts if one.verdict != "MET")][0]
    return Finding("MET", "stated, each part", tuple(quote for one in good for quote in one.quotes))
