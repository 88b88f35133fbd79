"""What shows a criterion, without a language model: a policy's `shown_by` pattern held against sentences. Pure.

The pattern's keys are told in data/rcm/policies/README.md. Silence is never met, and never not met.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import groupby
from typing import Any

from docgemma.rcm.assertion import Status, denied_outcomes, hits, says, status
from docgemma.rcm.measures import Holds, counted, dates, holds, long_ago
from docgemma.rcm.records import Verdict
from docgemma.rcm.sentences import Sentence
from docgemma.rcm.sides import sides

INHERITED = ("side", "refuted_by", "date_within_days", "planned")
FAMILY: tuple[Status, ...] = ("family",)
PARTS = frozenset(("either", "both"))
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

    @cached_property
    def known(self) -> frozenset[Sentence]:
        """The sentences, to be looked up."""
        return frozenset(self.sentences)

    def holds(self, sentence: Sentence, measure: Mapping[str, Any], anywhere: bool = False) -> Holds:
        """Whether a number holds; what goes on "since" a day does so until the last day that the documents tell."""
        until = self.today if measure.get("ago") else self.until or self.today
        return holds(sentence, measure, until, anywhere)


def judge_pattern(pattern: Mapping[str, Any], asked: Asked) -> Finding:
    """Hold a pattern against sentences. Affirmed here and denied there at the same time gives no verdict."""
    for key in PARTS & set(pattern):
        return joined(key, [judge_pattern(part, asked) for part in leaves(pattern)])
    shows, refutes = _shown(pattern, asked), _refuted(pattern, asked)
    if pattern.get("absent"):
        shows = [[one] for one in _stated(pattern, asked, "negated")]
        refutes = [*refutes, *_stated(pattern, asked, "affirmed", *FAMILY[: bool(pattern.get("family"))])]
    return decided(shows, [[one] for one in refutes], "stated absence" if pattern.get("absent") else "stated")


def decided(shows: Places, refutes: Places, why: str = "stated") -> Finding:
    """The verdict of the places that show a criterion, for which `why` is the reason, and of those that refute it."""
    if shows and refutes and (newer := _later(shows[0], [one for place in refutes for one in place])) is not None:
        shows, refutes = (shows, []) if newer else ([], refutes)
    if shows and refutes:
        apart = "stated and denied in different places; a person decides"
        return Finding("NOT DOCUMENTED", apart, tuple(shows[0]), tuple(refutes[0]))
    if shows:
        return Finding("MET", why, tuple(shows[0]))
    if refutes:
        return Finding("NOT MET", "the documents state the opposite", tuple(refutes[0]))
    return Finding("NOT DOCUMENTED", "nothing in the documents states it")


def passes(sentence: Sentence, pattern: Mapping[str, Any], asked: Asked) -> bool:
    """Whether a sentence that a language model chose may show a criterion: affirmed, of the right side and number."""
    if PARTS & set(pattern):
        return any(passes(sentence, part, asked) for part in leaves(pattern))
    words, groups = sentence.words, [hits(group, sentence.words) for group in pattern.get("any", [])]
    beside = [*(spot for group in groups for spot in group), *denied_outcomes(words)]
    listed = bool(groups) and all(groups)
    spots = beside if listed else [(at, at + 1) for at in range(len(words))]  # in other words: all of them must stand
    kinds = {status(words, *spot, sentence.section, beside) for spot in spots}
    fits = "negated" in kinds if pattern.get("absent") else kinds <= set(_accepted(pattern))
    measured = "measure" not in pattern or asked.holds(sentence, pattern["measure"], anywhere=True) == "yes"
    return fits and measured and right_side(sentence, pattern, asked) and recent(sentence, pattern, asked)


def opposes(sentence: Sentence, pattern: Mapping[str, Any], asked: Asked) -> bool:
    """Whether a sentence that a language model chose may speak against a criterion: of the right side, and a denial, a
    refuting term or a number on the wrong side stands there."""
    if PARTS & set(pattern):
        return any(opposes(sentence, part, asked) for part in leaves(pattern))
    kinds = {status(sentence.words, at, at + 1, sentence.section) for at in range(len(sentence.words))}
    if kinds & {"family", "planned", "hypothetical"} or not right_side(sentence, pattern, asked):
        return False
    wrong = "measure" in pattern and asked.holds(sentence, pattern["measure"], anywhere=True) == "no"
    denied = ("negated" in kinds) != bool(pattern.get("absent"))
    return wrong or denied or says(sentence, pattern.get("refuted_by", ()))


def leaves(pattern: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The patterns of `either` or `both`, each with what stands beside; else the pattern itself."""
    shared = {name: pattern[name] for name in INHERITED if name in pattern}
    return [{**shared, **part} for key in PARTS & set(pattern) for part in pattern[key]] or [dict(pattern)]


def _shown(pattern: Mapping[str, Any], asked: Asked) -> list[list[Sentence]]:
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


def considered(pattern: Mapping[str, Any], asked: Asked) -> list[Sentence]:
    """The sentences that may decide: what is only asked for counts where a plan does."""
    return [one for one in asked.sentences if pattern.get("planned") or one not in asked.requests]


def _here(pattern: Mapping[str, Any], asked: Asked) -> list[Sentence]:
    return [
        one for one in considered(pattern, asked) if right_side(one, pattern, asked) and recent(one, pattern, asked)
    ]


def title(sentence: Sentence) -> bool:
    """Whether it is a bare heading, which says nothing alone; with a date it says that something took place."""
    return sentence.text == sentence.section and not any(char.isdigit() for char in sentence.text)


def _refuted(pattern: Mapping[str, Any], asked: Asked) -> list[Sentence]:
    """The sentences that state the opposite: a refuting term, a number on the wrong side, or every mention denied."""
    there = [one for one in considered(pattern, asked) if right_side(one, pattern, asked, named=False)]
    found = [one for one in there if says(one, pattern.get("refuted_by", ()))]
    measure, first = pattern.get("measure"), (pattern.get("any") or [[]])[0]
    if measure:
        near = [one for one in _here(pattern, asked) if _stands(one, measure["name"], pattern)]
        said = {one: asked.holds(one, measure) for one in near}
        few = [one for one, answer in said.items() if answer == "no"]
        found += newest(few, measure, asked) if "yes" in said.values() else few
    if first and not pattern.get("absent") and not any(_stands(one, first, pattern) for one in there):
        found += [one for one in there if _stands(one, first, pattern, ("negated",))]
    return found


def newest(few: Sequence[Sentence], measure: Mapping[str, Any], asked: Asked) -> list[Sentence]:
    """Of the sentences with too low a number those that still count, where another has enough: 6 weeks, then 14 are
    enough of a course; a BMI of years ago is not the one of now; of what is to be long ago the latest counts."""
    if measure.get("ago") or not counted(measure["unit"]):
        return [one for one in few if measure.get("ago") or not long_ago(one, asked.today)]
    return []


def _stated(pattern: Mapping[str, Any], asked: Asked, *kinds: Status) -> list[Sentence]:
    """The sentences that say it so; where relatives count, a heading "Family history" makes no difference."""
    plain = [(one, replace(one, section="") if pattern.get("family") else one) for one in _here(pattern, asked)]
    return [one for one, said in plain if all(says(said, group, kinds) for group in pattern.get("any", [[]]))]


def _stands(
    sentence: Sentence, group: Iterable[Any], pattern: Mapping[str, Any], kinds: tuple[Status, ...] = ()
) -> bool:
    if not hits(group, sentence.words):
        return False
    beside = [spot for other in pattern.get("any", []) for spot in hits(other, sentence.words)]
    return says(sentence, group, kinds or _accepted(pattern), beside)


def _accepted(pattern: Mapping[str, Any]) -> tuple[Status, ...]:
    return ("affirmed", "planned", "hypothetical") if pattern.get("planned") else ("affirmed",)


def _places(within: str, here: Sequence[Sentence]) -> list[list[Sentence]]:
    """The sentences one by one, then by section or page."""
    places, titled = [[one] for one in here], within == "section"
    key = lambda one: (one.document, one.page, one.section if titled else "")  # noqa: E731
    return places if within == "sentence" else places + [list(group) for _, group in groupby(here, key=key)]


def right_side(sentence: Sentence, pattern: Mapping[str, Any], asked: Asked, named: bool = True) -> bool:
    """Whether a sentence is of the side asked for: by its own words, else by the only side of its section.

    Args:
        named: a side must be told; "has never had an injection" speaks of both.
    """
    if not pattern.get("side") or not asked.side:
        return True
    said = sides(sentence.text) or asked.only.get((sentence.document, sentence.page, sentence.section), frozenset())
    wanted = {"left", "right"} if asked.side == "bilateral" else {asked.side}
    return wanted <= said or not (said or named)


def recent(sentence: Sentence, pattern: Mapping[str, Any], asked: Asked) -> bool:
    if "date_within_days" not in pattern:
        return True
    said = [day for _, _, day in dates(sentence, asked.today) if day <= asked.today]
    day = max(said) if said else date.fromisoformat(sentence.day) if sentence.day else None
    return day is not None and (asked.today - day).days <= int(pattern["date_within_days"])


def of_a_relative(sentence: Sentence, share: float = 0.5) -> bool:
    """Whether more than a share of a sentence speaks of a relative."""
    words = sentence.words
    told = sum(status(words, at, at + 1, sentence.section) == "family" for at in range(len(words)))
    return told > share * len(words)


def _later(shows: Sequence[Sentence], refutes: Sequence[Sentence]) -> bool | None:
    """True where what shows is of a later visit than all that refutes, False where it is older, None where unknown.

    What a relative had no later visit undoes.
    """
    if any(of_a_relative(one, share=0) for one in refutes):
        return None
    one, other = max(item.day for item in shows), max(item.day for item in refutes)
    return None if not one or not other or one == other else one > other


def joined(key: str, parts: Sequence[Finding]) -> Finding:
    good, bad = ([one for one in parts if one.verdict == verdict] for verdict in ("MET", "NOT MET"))
    if key == "either":
        return [*good, *(one for one in parts if one.against and one.quotes and one not in bad), *bad, *parts][0]
    if len(good) < len(parts):
        return [*bad, *(one for one in parts if one.verdict != "MET")][0]
    return Finding("MET", "stated, each part", tuple(quote for one in good for quote in one.quotes))
