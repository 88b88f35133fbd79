"""A course of one dose and then another: one entry holds one dose, so the course stands in it as it was written."""

from collections.abc import Sequence
from itertools import pairwise

from docgemma.text.clauses import EDGES, unmarked
from docgemma.text.durations import duration
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import NUMBER_WORDS, quantities
from docgemma.text.words import listed, plain

AS_WRITTEN = "as written in the dose"
COURSE = 60  # characters of a dose on a card
TIMES = ("", "hour", "month")  # units of no dose
LONGEST = 100  # characters of an order's instructions


def two_doses(text: str) -> dict[str, str]:
    """A course of one dose and then another, "200 mg stat then 100 mg daily": one entry holds one dose, so it stands as
    it was written, a long one in the notes too, one that is too long for them is asked for; {} where it is one dose."""
    clause = text.replace(", then ", " then ").split(". ")[0].split("\n")[0]
    words = unmarked(clause, EDGES).split() if _is_course(clause) else []
    while words and plain(words[-1]) in listed("request_words", "linking", "opening", "beginning", "persons"):
        words.pop()  # "..., start her"
    told, notes = " ".join(words).rstrip(","), ""
    if len(told) > COURSE:
        first, mark, later = told.partition(" then ")
        at = max(told.rfind(", ", 0, COURSE), told.rfind("; ", 0, COURSE))
        told, notes = told[: max(at, 0)], told[at + 2 :]
        told, notes = (first, f"then {later}") if mark and len(first) <= COURSE else (told, notes)
    if len(notes) > LONGEST or (notes and not told):
        return {"dose": "", "frequency": "", "notes": ""}
    return {"dose": pointed(told), "frequency": AS_WRITTEN, "notes": pointed(notes)} if told else {}


def _is_course(clause: str) -> bool:
    """Whether a later dose differs from the first: behind "then", a second dose in its unit, "tds 1/52, bd 1/52", or
    one that is doubled each week."""
    first, then, second = clause.split(",")[0].partition(" then ")
    dose, behind = [*second.split()[:2], "", ""][:2]
    unit = next((item.unit for item in quantities(f"{dose} {behind}") if item.unit not in TIMES), "")
    often = behind[:1] in ("", "x") or times_per_day(behind) is not None or behind in listed("request_words", "linking")
    if then and any(map(str.isdigit, first)) and dose[:1].isdigit() and not duration(dose) and (unit or often):
        return True
    words, weights = clause.split(), listed("sig", "weights")
    single = listed("sig", "no_second_dose") | listed("request_words", "correcting")
    units = [
        found[-1].unit
        for at, (word, after) in enumerate(pairwise([*words, ""]))
        if word[0].isdigit() and not any(map(str.isdigit, "".join(word.split("/")[1:])))
        and (found := quantities(word if word[-1].isalpha() else f"{word} {after}"))
        and not weights & {plain(after), word.lstrip("0123456789.").casefold()}
        and not single & {plain(one) for one in words[max(at - 2, 0) : at]}
    ]  # fmt: skip
    units = units[1:] if units[:1] == [""] else units  # "Mixtard 30 12 units am 8 units pm"
    if (units and units[0] not in TIMES and units[0] in units[1:]) or _at_several_times(words, single):
        return True
    steps = clause.replace(" then ", ", ").split(", ")
    rates = [(times_per_day(step), step.split()) for step in steps]
    later = [rate for rate, step in rates[1:] if rate and (not step[1:] or duration(" ".join(step[1:])))]
    changed = any(rate != rates[0][0] for rate in later) and bool(rates[0][0])
    titrated = any(plain(a) in listed("sig", "titrating") and times_per_day(b) for a, b in pairwise(words))
    return changed or titrated


def _at_several_times(words: Sequence[str], single: frozenset[str]) -> bool:
    """Whether numbers stand each before its time of the day, "4 with breakfast, 6 with lunch", "one mane, 2 nocte"."""
    said = [plain(word) for word in words if plain(word) not in listed("sig", "units_of_schedules")]
    timed = [
        a
        for at, (a, b) in enumerate(pairwise(said))
        if (a.isdecimal() or a in NUMBER_WORDS) and not single & {*said[max(at - 2, 0) : at]}
        and (b in listed("sig", "occasions") or times_per_day(b) is not None)
    ]  # fmt: skip
    return len(timed) > 1


def pointed(text: str) -> str:
    """With a zero before each leading point: ".5 mg" is 0.5 mg, and read as 5."""
    marks = zip(f" {text}", text, f"{text} "[1:], strict=False)
    return "".join(
        "0." if (mark, left.isalnum(), right.isdigit()) == (".", False, True) else mark for left, mark, right in marks
    )
