"""What shows a criterion by the terms of its policy: a `shown_by` pattern held against sentences. Pure.

The keys of a pattern are told in data/rcm/policies/README.md. Silence is never met, and never not met.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from typing import Any

from docgemma.rcm.assertion import Status, denied_outcomes, hits, says, status
from docgemma.rcm.dates import dates, long_ago
from docgemma.rcm.measures import Holds, counted, counts_from, holds
from docgemma.rcm.records import Verdict
from docgemma.rcm.sentences import Sentence
from docgemma.rcm.sides import sides

INHERITED = ("side", "refuted_by", "date_within_days", "planned", "stands")
PARTS = frozenset(("either", "both"))
FAMILY: tuple[Status, ...] = ("family",)
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


def judge_pattern(pattern: Pattern, asked: Asked) -> Finding:
    """Hold a pattern against sentences. Affirmed here and denied there at the same time gives no verdict."""
    for key in PARTS & set(pattern):
        return joined(key, [judge_pattern(part, asked) for part in leaves(pattern)], every=False)
    shows, refutes = _shown(pattern, asked), _refuted(pattern, asked)
    if pattern.get("absent"):
        shows = [[one] for one in _stated(pattern, asked, "negated")]
        refutes = [*refutes, *_stated(pattern, asked, "affirmed", *FAMILY[: bool(pattern.get("family"))])]
    why = "stated absence" if pattern.get("absent") else "stated"
    return decided(shows, [[one] for one in refutes], why, pattern.get("stands", 0))


def bears_out(verdict: Verdict, sentence: Sentence, pattern: Pattern, asked: Asked) -> bool:
    """Whether a sentence that a language model chose may decide so: of the right side; for MET affirmed, recent and
    with the number, for NOT MET with a denial, a refuting term or a number on the wrong side."""
    if PARTS & set(pattern):
        return any(bears_out(verdict, sentence, part, asked) for part in leaves(pattern))
    words, beside = sentence.words, denied_outcomes(sentence.words) if verdict == "MET" else []
    kinds = {status(words, at, at + 1, sentence.section, beside) for at in range(len(words))}
    if not asked.right_side(sentence, pattern) or kinds - {"affirmed", "negated", *accepted(pattern)}:
        return False
    number = asked.holds(sentence, pattern["measure"], anywhere=True) if "measure" in pattern else ""
    denied = ("negated" in kinds) != bool(pattern.get("absent"))
    if verdict == "NOT MET":
        return denied or number == "no" or says(sentence, pattern.get("refuted_by", ()))
    return not denied and number in ("", "yes") and asked.recent(sentence, pattern)


def _shown(pattern: Pattern, asked: Asked) -> list[list[Sentence]]:
    """The places that show a pattern, each as its sentences: of each group a term that stands, and the number."""
    there = _here(pattern, asked)
    good = [{one for one in there if _stands(one, group, pattern)} for group in pattern.get("any", [])]
    if measure := pattern.get("measure"):
        named = [one for one in there if _stands(one, measure["name"], pattern)]
        good.append({one for one in named if asked.holds(one, measure) == "yes"})
    found = []
    for place in _places(pattern.get("within", "sentence"), there) if good and all(good) else ():
        wanted = [[one for one in place if one in group] for group in good]
        if all(wanted):
            chosen = sorted({sentences[0] for sentences in wanted}, key=lambda one: (title(one), place.index(one)))
            if not all(map(title, chosen)):
                found.append(chosen)
    return found


def _here(pattern: Pattern, asked: Asked) -> list[Sentence]:
    there = asked.considered(pattern)
    return [one for one in there if asked.right_side(one, pattern) and asked.recent(one, pattern)]


def _refuted(pattern: Pattern, asked: Asked) -> list[Sentence]:
    """The sentences that state the opposite: a refuting term, a number on the wrong side, or every mention denied."""
    there = [one for one in asked.considered(pattern) if asked.right_side(one, pattern, named=False)]
    # under a plan too: a heading may run on over the next page, "smokes half a pack a day"
    found = [one for one in there if says(one, pattern.get("refuted_by", ()), ("affirmed", "planned"))]
    measure, first = pattern.get("measure"), (pattern.get("any") or [[]])[0]
    if measure:
        near = [one for one in _here(pattern, asked) if _stands(one, measure["name"], pattern)]
        said = {one: asked.holds(one, measure) for one in near}
        few = [one for one, answer in said.items() if answer == "no"]
        found += asked.newest(few, measure) if "yes" in said.values() else few
    if first and not pattern.get("absent") and not any(_stands(one, first, pattern) for one in there):
        found += [one for one in there if _stands(one, first, pattern, ("negated",))]
    return found


def _stated(pattern: Pattern, asked: Asked, *kinds: Status) -> list[Sentence]:
    """The sentences that say it so; where relatives count, a heading "Family history" makes no difference."""
    there = [one for one in _here(pattern, asked) if not hits(pattern.get("unless", ()), one.words)]
    plain = [(one, replace(one, section="") if pattern.get("family") else one) for one in there]
    return [one for one, said in plain if all(says(said, group, kinds) for group in pattern.get("any", [[]]))]


def _stands(sentence: Sentence, group: Iterable[Any], pattern: Pattern, kinds: tuple[Status, ...] = ()) -> bool:
    if not hits(group, sentence.words):
        return False
    beside = [spot for other in pattern.get("any", []) for spot in hits(other, sentence.words)]
    return says(sentence, group, kinds or accepted(pattern), beside)


def _places(within: str, here: Sequence[Sentence]) -> list[list[Sentence]]:
    """The sentences one by one, then by section, page or document."""
    places, size = [[one] for one in here], {"section": 3, "page": 2, "document": 1}.get(within, 0)
    key = lambda one: (one.document, one.page, one.section)[:size]  # noqa: E731
    return places + [list(group) for _, group in groupby(here, key=key)] if size else places
