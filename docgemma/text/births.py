"""Dates, years and ages in a text that may say when a patient was born, and which patients they fit. No I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from docgemma.ehr.base import PatientMatch

PART = re.compile(r"\d+|[^\W\d_]+")
MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())
STATES = frozenset("born dob birth birthdate birthday bday".split())
FILLERS = frozenset("on in is was date of the year a".split())
ORDINALS = frozenset("st nd rd th of".split())
Part = tuple[str, int, int]  # a word or number of the text, where it begins and ends
CENTURIES = {4: (0,), 2: (1900, 2000)}  # "49" may be 1949 or 2049
AGE_AFTER = frozenset({"yo", "yrs", "yr", "y"})  # 77 yo
AGE_BEFORE = frozenset({"aged", "age"})  # aged 77
AGE_SPREAD = 1  # people round, and birthdays pass


@dataclass(frozen=True)
class Birth:
    """A place in a text that may tell a birth: `days` are its readings, ISO dates or years."""

    start: int
    end: int
    days: tuple[str, ...]
    kind: Literal["stated", "date", "year", "age"]  # stated: called a birth ("born 1949")


def read_births(text: str, today: date | None = None) -> list[Birth]:
    """Every birth date, year or age that the text may hold, in order. Both day-first and month-first are readings."""
    today, found = today or date.today(), []
    parts = [(part.group().casefold(), part.start(), part.end()) for part in PART.finditer(text)]
    place = 0
    while place < len(parts):
        birth, used = _birth(text, parts, place, today)
        if birth:
            found.append(birth)
        place += used
    return found


def fitting(matches: "Sequence[PatientMatch]", days: Sequence[str]) -> "list[PatientMatch]":
    """Those born on one of these days, or else those of whom it is not known."""
    known = [match for match in matches if match.birth_date]
    fit = [match for match in known if any(_agree(match.birth_date, day) for day in days)]
    return fit or [match for match in matches if not match.birth_date]


def _agree(known: str, day: str) -> bool:
    return known.startswith(day) or day.startswith(known)


def _birth(text: str, parts: list[Part], place: int, today: date) -> tuple[Birth | None, int]:
    """What begins at this part, and how many parts it takes."""
    first = _stated_from(text, parts, place)
    start = parts[place if first is None else first][1]
    whole = [at for at in range(place, min(place + 5, len(parts))) if parts[at][0] not in ORDINALS][:3]
    if days := _days(text, [parts[at] for at in whole], today, first is not None):
        end = parts[whole[-1]][2]
        return Birth(start, end, days, "date" if first is None else "stated"), whole[-1] + 1 - place
    word = parts[place][0]
    if not word.isdigit():
        return None, 1
    if len(word) == 4 and 1890 <= int(word) <= today.year:
        return Birth(start, parts[place][2], (word,), "year" if first is None else "stated"), 1
    if len(word) <= 3 and (end := _age_until(parts, place)):
        born = range(today.year - int(word) - 1 - AGE_SPREAD, today.year - int(word) + AGE_SPREAD + 1)
        return Birth(parts[place][1], end, tuple(map(str, born)), "age"), 1
    return None, 1


def _stated_from(text: str, parts: list[Part], place: int) -> int | None:
    """The part where "born on the" before this place begins."""
    before = place - 1
    while before >= 0 and parts[before][0] in FILLERS:
        before -= 1
    if before >= 2 and [part[0] for part in parts[before - 2 : before + 1]] == ["d", "o", "b"]:
        return before - 2
    if before < 0 or parts[before][0] not in STATES or len(text[parts[before][2] : parts[place][1]].split("\n")) > 1:
        return None
    while before and parts[before - 1][0] in {"date", "of", "year"}:
        before -= 1
    return before


def _days(text: str, parts: list[Part], today: date, stated: bool) -> tuple[str, ...]:
    """The ISO readings of "11/02/1949", "1949-02-11", "11th of Feb 1949", "February 11, 1949", or ()."""
    words = [part[0] for part in parts]
    between = [text[left[2] : right[1]].strip().casefold() for left, right in pairwise(parts)]
    gaps = {word for gap in between for word in gap.strip("-/.,").split()}
    named = [at for at, word in enumerate(words) if word[:3] in MONTHS]
    if len(words) != 3 or sum(word.isdigit() for word in words) + len(named) != 3 or not gaps <= ORDINALS:
        return ()
    if not (stated or named) and "" in between:
        return ()  # three numbers in a row are no date
    year_first = len(words[0]) == 4 and words[0].isdigit()
    orders = [(0, 1, 2)] if year_first else [(2, 1, 0), (2, 0, 1)]  # places of year, month, day
    days = [
        _iso(int(words[year]) + century, _month(words[month]), int(words[day]), today)
        for year, month, day in orders
        if named in ([], [month])
        for century in CENTURIES.get(len(words[year]), ())
    ]
    return tuple(dict.fromkeys(day for day in days if day))


def _month(word: str) -> int:
    return int(word) if word.isdigit() else MONTHS.index(word[:3]) + 1


def _iso(year: int, month: int, day: int, today: date) -> str:
    try:
        read = date(year, month, day)
    except ValueError:
        return ""
    return read.isoformat() if read <= today and year >= 1890 else ""


def _age_until(parts: list[Part], place: int) -> int:
    """Where "77 year old" or "aged 77" ends, or 0."""
    after = [part[0] for part in parts[place + 1 : place + 3]]
    if after and after[0] in AGE_AFTER:
        return parts[place + 1][2]
    if len(after) == 2 and after[0] in ("year", "years") and after[1] in ("old", "of"):
        return parts[place + 2][2]
    return parts[place][2] if place and parts[place - 1][0] in AGE_BEFORE else 0
