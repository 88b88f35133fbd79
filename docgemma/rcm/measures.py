"""Numbers that a sentence gives for a measure, as intervals: "BMI 41.3", "over 6 months", "KL grade 3-4". Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from docgemma.rcm.assertion import hits
from docgemma.rcm.dates import FIRST_YEAR, dates
from docgemma.rcm.sentences import Sentence, Word, lists, words_of
from docgemma.text.births import MONTHS
from docgemma.text.numbers import NUMBER_WORDS, ROMAN

NEAR = 8  # words between a name and its number
NEARLY = frozenset({"about", "around", "approximately", "early", "mid", "late"})  # "since about summer 2025"
BEGAN = ("in", "on", "around", "about")  # before a day: "began in spring 2024 and ever since"
THROUGH = frozenset({"to", "through", "until", "thru"})  # between the first day and the last
MONTH = 30  # days
EXACT = 3  # words of a date that tells its day
NTH = r"(\d{1,2})(?:st|nd|rd|th)?\b"
NAMED = rf"(?:{'|'.join(MONTHS)})(?:t|[a-z]*(?:ary|ch|il|e|y|st|ber))?"
DAY = rf"(?:the )?(?:{NTH}(?: of)? )?\b({NAMED})\b\.?(?: {NTH})?(?:,? (\d{{4}}))?"
DAY_RANGE = re.compile(rf"\b{DAY} ?(?:-|–| to | through | thru | until | till ) ?{DAY}", re.IGNORECASE)
SHORT_RANGE = re.compile(r"\b(\d{1,2})/(\d{1,2})\s*(?:-|–|to|through|thru|until)\s*(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})\b")
ENDLESS = Decimal("Infinity")
Holds = Literal["yes", "no", "unknown"]


class Value(NamedTuple):
    """A number at words `start` to `end`, its unit included: `low` to `high` in the unit of the policy."""

    low: Decimal
    high: Decimal
    start: int
    end: int
    loose: bool  # no end of a comparator is exact: "over 6 months"


def holds(sentence: Sentence, measure: Mapping[str, Any], today: date, anywhere: bool = False) -> Holds:
    """Whether the number that a sentence gives for a measure is on the right side of its bound.

    Args:
        measure: name, unit, at_least | at_most | above | below, bare, ago, as data/rcm/policies/README.md says.
        anywhere: the name need not be there (a language model chose the sentence).

    Returns:
        "unknown" where it gives none, or none that decides ("over 35" for at least 40).
    """
    words, unit = sentence.words, str(measure["unit"])
    found = values(sentence, unit, bool(measure.get("bare")), bool(measure.get("ago")), today)
    found = [value for value in found if not (anywhere and _age(value, words))]
    if not anywhere:
        named = hits(measure["name"], words)
        found = [value for value in found if not _apart(value, named, words, measure)]
        mine = [value for value in found if _belongs(value, named, words, unit, found)]
        found = mine if counted(unit) else [one for one in found if _now(one, mine, words)] or mine
    answers = {_decides(value, measure) for value in found}
    if measure.get("ago"):  # the latest counts
        return "no" if "no" in answers else "yes" if answers == {"yes"} else "unknown"
    if counted(unit):  # one that is enough is enough
        answers = answers - {"no"} if "yes" in answers and ("at_least" in measure or "above" in measure) else answers
    return answers.pop() if len(answers) == 1 else "unknown"


def counts_from(sentence: Sentence, measure: Mapping[str, Any], others: Sequence[Sentence], today: date) -> Holds:
    """Whether the days hold from the one date behind a word of `begins` in other sentences to the date said here."""
    begun = set[date]()
    for one in others:
        ends = [end for _, end in hits(measure["begins"], one.words)]
        begun |= {day for start, _, day in dates(one, today) if any(0 <= start - end < EXACT for end in ends)}
    days = [day for _, _, day in dates(sentence, today) if day not in begun]
    if len(begun) != 1 or len(days) != 1 or not hits(measure["name"], sentence.words):
        return "unknown"
    length = Decimal((days[0] - begun.pop()).days)
    return _decides(Value(length, length, 0, 0, False), measure)


def values(sentence: Sentence, unit: str, bare: bool, ago: bool, today: date) -> list[Value]:
    """The numbers of a sentence in a unit, without dates; with `bare` those without any unit too.

    Args:
        ago: the time since ("4 months ago", a date), not the time during.
    """
    words, data = sentence.words, lists("units")
    days = dates(sentence, today)
    found = _by_date(sentence, days, ago, today) if unit in data["days"] else []
    onset, at = any(word.text in data["onset"] for word in words), 0
    while at < len(words):
        end = next((stop for start, stop, _ in days if start <= at < stop), 0)
        value = None if end else _number(words, at, unit)
        if value is not None:
            last, end = _range(words, at, unit, value)
            if words[at].text.endswith("ty") and end == at + 2 and last < 10:  # "sixty-one"
                value = last = value + last
            if at and words[at - 1].text == "from" and not counted(unit):
                value = last  # "down from 44 to 38": 38 now
            factor, size = _unit(words, end, unit)
            since = words[end + size].text == "ago" if end + size < len(words) else False
            led = unit in data["leading"] and _leads(words, at, unit)
            under = unit == "20/" and at > 0 and words[at - 1].text == "20" and "/" in words[at].mark
            plain = (bare or not unit) and not _other_unit(words, end) and not _dash(words[at])
            if (size or led or under or plain) and not _aimed(words, at) and (since if ago else onset or not since):
                found.append(_bounded(words, at, end + size, sorted((value * factor, last * factor))))
        at = max(end, at + 1)
    return found


def _apart(value: Value, named: Sequence[tuple[int, int]], words: Sequence[Word], measure: Mapping[str, Any]) -> bool:
    """Whether a number is of a part only, by a word of `apart` that its name carries: "Supine AHI 22.4"."""
    at = max((start for start, end in named if end <= value.start), default=value.start)
    said = words[max(at - 1 - (at > 1 and not words[at - 1].mark.strip()), 0) : value.start]
    return bool(hits(measure.get("apart", ()), said))


def _aimed(words: Sequence[Word], at: int) -> bool:
    """Whether a number is a goal: "A1c goal is under 7"."""
    data = lists("units")
    while at and words[at - 1].text in data["aimed"]:
        at -= 1
    return at > 0 and words[at - 1].text in data["aims"]


def _by_date(sentence: Sentence, days: Sequence[tuple[int, int, date]], ago: bool, today: date) -> list[Value]:
    """Durations that dates give: "from 2026-04-06 to 2026-06-29", "4/6-6/12/26", "since 2026-03-09", "since 2023"; with
    `ago`, the time since."""
    words, found = sentence.words, list[Value]()
    until = date.fromisoformat(sentence.day) if sentence.day and not ago else today
    lasts = hits(lists("units")["lasting"], words) and any(word.text in lists("units")["onset"] for word in words)
    for number, (start, end, day) in enumerate(days):
        lead = next((word.text for word in reversed(words[:start]) if word.text not in NEARLY), "")
        following = days[number + 1] if number + 1 < len(days) else None
        gap = {word.text for word in words[end : following[0]]} if following else set()
        if following and following[0] - end <= 1 and gap <= THROUGH and not ago:
            months = 12 * (following[2].year - day.year) + following[2].month - day.month
            whole = MONTH * months if day.day == following[2].day == 1 else 0  # "Feb to May 2026": 3 months
            length, stop = max((following[2] - day).days, whole), following[1]
        elif ago or lead == "since" or (lead in BEGAN and lasts):
            length, stop = (until - day).days, end
        else:
            continue
        if length > 0:  # "in August 2026" is its last day as well as its first
            vague = ago and stop == end and sum(word.text != "of" for word in words[start:end]) < EXACT
            found.append(Value(Decimal(max(length - MONTH * vague, 0)), Decimal(length), start, stop, vague))
    return [*found, *_years(words, days, ago, until), *(() if ago else _short_ranges(sentence, today))]


def _years(words: Sequence[Word], days: Sequence[tuple[int, int, date]], ago: bool, until: date) -> Iterator[Value]:
    """The time since a bare year, "since 2023": from its last day or its first."""
    for at, word in enumerate(words):
        year = int(word.text) if len(word.text) == len("2026") and word.text.isdigit() else 0
        known = FIRST_YEAR <= year <= until.year and not any(start <= at < end for start, end, _ in days)
        lead = next((one.text for one in reversed(words[:at]) if one.text not in NEARLY), "")
        if known and (ago or lead == "since"):
            low = max((until - date(year, 12, 31)).days, 0)
            yield Value(Decimal(low), Decimal((until - date(year, 1, 1)).days), at, at + 1, True)


def _short_ranges(sentence: Sentence, today: date) -> Iterator[Value]:
    """Durations whose first date has no year, or both: "4/6-6/12/26", "the 4th of May through the 29th of June"."""
    text = sentence.read or sentence.text
    found = [tuple(map(int, (*one.span(), *one.groups()))) for one in SHORT_RANGE.finditer(text)]
    for one in DAY_RANGE.finditer(text):
        day, month, after, year, last_day, last_month, last_after, last_year = one.groups()
        begins, ends = int(day or after or 0), int(last_day or last_after or 0)
        if not year and bool(begins) == bool(ends) and month[0].isupper() and last_month[0].isupper():
            which, until = (MONTHS.index(name[:3].casefold()) + 1 for name in (month, last_month))
            found.append((*one.span(), which, begins, until, ends, int(last_year or today.year)))
    for at, stop, which, begins, until, ends, year in found:
        year += 2000 if year < 100 else 0
        with suppress(ValueError):  # no such day
            first, last = date(year, which, begins or 1), date(year, until, ends or 1)
            first = first if first <= last else first.replace(year=year - 1)
            inside = [number for number, word in enumerate(sentence.words) if at <= word.start < stop]
            if inside and last <= today:
                days = (last - first).days  # "Feb to May 2026": 3 months
                length = Decimal(days if begins else max(days, MONTH * round(days / MONTH)))
                yield Value(length, length, inside[0], inside[-1] + 1, False)


def _number(words: Sequence[Word], at: int, unit: str) -> Decimal | None:
    """The value of a word; a roman numeral counts behind "grade" or "class" only."""
    if unit in lists("units")["leading"] and words[at].text in ROMAN:
        return Decimal(ROMAN[words[at].text]) if _leads(words, at, unit) or _dash(words[at]) else None
    return number(words[at].text)


def _range(words: Sequence[Word], at: int, unit: str, value: Decimal) -> tuple[Decimal, int]:
    """The last number of "3-4" or "six to eight", and where the range ends."""
    place = at + 1
    if place < len(words) and (words[place].text in ("to", "or") or _dash(words[place])):
        place += words[place].text in ("to", "or")
        roman = unit in lists("units")["leading"] and place < len(words) and words[place].text in ROMAN
        if place < len(words) and unit != "20/":
            other = Decimal(ROMAN[words[place].text]) if roman else number(words[place].text)
            if other is not None and not (unit == "point" and "/" in words[place].mark):
                return other, place + 1
    return value, at + 1


def number(text: str) -> Decimal | None:
    """The value of a number in digits or as a word; None for anything else, and for a year."""
    if text in NUMBER_WORDS:
        return Decimal(NUMBER_WORDS[text])
    if not text[:1].isdigit() or (len(text) == 4 and text.isdigit() and 1900 <= int(text) <= 2100):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _decides(value: Value, measure: Mapping[str, Any]) -> Holds:
    """Hold a value against every bound. A range counts by its worse end; an open end decides only where it must."""
    answers = set()
    for key, sign in (("at_least", 1), ("above", 1), ("at_most", -1), ("below", -1)):
        if key in measure:
            bound = Decimal(str(measure[key])) * Decimal(lists("units")["days"].get(measure["unit"], "1")) * sign
            low, high = sorted((value.low * sign, value.high * sign))
            strict = key in ("above", "below")
            if low > bound or (low == bound and (not strict or value.loose)):
                answers.add("yes")
            else:
                far = high < bound or (high == bound and (strict or value.loose))
                answers.add("no" if far or not value.loose else "unknown")
    return "no" if "no" in answers else "yes" if answers == {"yes"} else "unknown"


def _now(value: Value, mine: Sequence[Value], words: Sequence[Word]) -> bool:
    """Whether a number is the one that holds now: "BMI 44 in 2024, now 38"."""
    data = lists("units")
    before = max((one.end for one in mine if one.end <= value.start), default=None)
    gap = words[before : value.start] if before is not None else ()
    between = {word.text for word in gap if word.text.isalpha() or word.text in ("%", "m2")}
    return bool(hits(data["now"], gap)) and between <= set(data["then"])


def _belongs(
    value: Value, named: Sequence[tuple[int, int]], words: Sequence[Word], unit: str, found: Sequence[Value]
) -> bool:
    """Whether a number is that of a name: close behind it with no other between, or, of a course, close before it."""
    since = value.start > 1 and words[value.start - 1].text == "since"  # "(since 2026-08-24, for low back pain)"
    for start, end in named:
        if start < value.end and value.start < end:
            return True
        first, last = (end, value.start) if end <= value.start else (value.end, start)
        between = any(first <= other.start < last for other in found)
        apart = last - first > NEAR or any(";" in word.mark for word in words[first : last + 1])
        near = not apart and not _age(value, words)
        if near and not (since and start >= value.end) and (counted(unit) or (end <= value.start and not between)):
            return True
    return False


def _age(value: Value, words: Sequence[Word]) -> bool:
    """Whether it is an age: "68-year-old", "45 y/o"."""
    return value.end < len(words) and words[value.end].text in ("old", "o")


def _bounded(words: Sequence[Word], start: int, end: int, ends: Sequence[Decimal]) -> Value:
    low, high = ends
    said = {n: " ".join(word.text for word in words[max(start - n, 0) : start]) for n in (1, 2, 3)}
    behind = " ".join(word.text for word in words[end : end + 2])
    for kind in ("at_least", "over", "at_most", "under"):
        terms = lists("units")[kind]
        if any(one in terms for one in said.values()) or (kind.startswith("at_") and behind in terms):
            most = kind in ("at_most", "under")
            return Value(Decimal(0) if most else low, high if most else ENDLESS, start, end, True)
    plus = end < len(words) and words[end].text == "+"
    return Value(low, ENDLESS if plus else high, start, end, plus)


def _unit(words: Sequence[Word], at: int, unit: str) -> tuple[Decimal, int]:
    """The factor to the unit and how many words it has behind a number; (1, 0) where it is not written."""
    days = lists("units")["days"]
    place = at + (at < len(words) and words[at].text == "+")
    for name in days if unit in days else [unit]:
        for said in _written(name):
            if tuple(word.text for word in words[place : place + len(said)]) == said:
                return Decimal(days.get(name, "1")), len(said) + place - at
    if place < len(words) - 1 and words[place].text in lists("units")["between"] and words[place].mark.isspace():
        factor, size = _unit(words, place + 1, unit)
        return factor, size + 1 if size else 0
    return Decimal(1), 0


def counted(unit: str) -> bool:
    """Whether it is of a course that one statement is enough for (12 weeks, 3 injections), and no state (BMI)."""
    return unit in lists("units")["days"] or unit in ("session", "dose", "episode")


def _other_unit(words: Sequence[Word], at: int) -> bool:
    return any(_unit(words, at, name)[1] for name in lists("units")["written"] if name != "point")


@lru_cache(maxsize=40)
def _written(unit: str) -> tuple[tuple[str, ...], ...]:
    forms = (tuple(word.text for word in words_of(str(said))) for said in lists("units")["written"].get(unit, ()))
    return tuple(sorted(forms, key=len, reverse=True))


def _leads(words: Sequence[Word], at: int, unit: str) -> bool:
    forms = {str(form) for form in lists("units")["leading"][unit]}
    return any(" ".join(word.text for word in words[max(at - n, 0) : at]) in forms for n in (1, 2, 3))


def _dash(word: Word) -> bool:
    return word.mark.strip() in ("-", "–", "—")
