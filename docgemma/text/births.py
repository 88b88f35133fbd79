"""Dates, years and ages in a text that may say when a patient was born, and which patients they fit. No I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from docgemma.ehr.base import PatientMatch

PART = re.compile(r"\bd\.\s?o\.\s?b|\d+|[^\W\d_]+", re.IGNORECASE)
MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())
STATES = frozenset("born dob d.o.b birth birthdate birthday bday".split())
LEADS = frozenset({"date", "year"})  # date of birth
FILLERS = frozenset("on in is was the a".split()) | LEADS
ORDINALS = frozenset("st nd rd th of".split())  # no words of a date: 11th of Feb
FIRST_YEAR = 1890
CENTURIES = {4: (0,), 2: (1900, 2000)}  # "49" may be 1949 or 2049
AGE_AFTER = frozenset({"yo", "yrs", "yr", "y"})  # 77 yo
AGE_BEFORE = frozenset({"aged", "age"})  # aged 77
AGE_SPREAD = 1  # people round, and birthdays pass
Kind = Literal["stated", "date", "year", "age"]  # stated: called a birth ("born 1949")


@dataclass(frozen=True)
class Birth:
    """A place in a text that may tell a birth: `days` are its readings, ISO dates or years."""

    start: int
    end: int
    days: tuple[str, ...]
    kind: Kind


def read_births(text: str, today: date | None = None) -> list[Birth]:
    """Every birth date, year or age that the text may hold, in order. Both day-first and month-first are readings."""
    today, found, place = today or date.today(), [], 0
    pieces = [piece for piece in PART.finditer(text) if piece.group().casefold() not in ORDINALS]
    words = [piece.group().casefold().replace(" ", "") for piece in pieces]
    while place < len(pieces):
        word, here, first = words[place], pieces[place], _stated_from(text, pieces, words, place)
        start, used = pieces[place if first is None else first].start(), 1
        kind: Kind = "stated" if first is not None else "date"
        if days := _days(text, pieces[place : place + 3], today, first is not None):
            used = 3
            found.append(Birth(start, pieces[place + 2].end(), days, kind))
        elif len(word) == 4 and word.isdigit() and FIRST_YEAR <= int(word) <= today.year:
            found.append(Birth(start, here.end(), (word,), "year" if first is None else kind))
        elif len(word) <= 3 and word.isdigit() and (last := _age_until(words, place)) is not None:
            born = range(today.year - int(word) - 1 - AGE_SPREAD, today.year - int(word) + AGE_SPREAD + 1)
            found.append(Birth(here.start(), pieces[last].end(), tuple(map(str, born)), "age"))
        place += used
    return found


def fitting(matches: "Sequence[PatientMatch]", days: Sequence[str]) -> "list[PatientMatch]":
    """Those born on one of these days, or else those of whom it is not known."""
    known = [match for match in matches if match.birth_date]
    fit = [match for match in known if any(_agree(match.birth_date, day) for day in days)]
    return fit or [match for match in matches if not match.birth_date]


def _agree(known: str, day: str) -> bool:
    return known.startswith(day) or day.startswith(known)


def _stated_from(text: str, pieces: list[re.Match[str]], words: list[str], place: int) -> int | None:
    """The piece where "date of birth is the" before this place begins."""
    said = place - 1
    while said >= 0 and words[said] in FILLERS:
        said -= 1
    if said < 0 or words[said] not in STATES or "\n" in text[pieces[said].end() : pieces[place].start()]:
        return None
    while said and words[said - 1] in LEADS:
        said -= 1
    return said


def _days(text: str, pieces: list[re.Match[str]], today: date, stated: bool) -> tuple[str, ...]:
    """The ISO readings of "11/02/1949", "1949-02-11", "11th of Feb 1949", "February 11, 1949", or ()."""
    words = [piece.group().casefold() for piece in pieces]
    between = [text[left.end() : right.start()].strip().casefold() for left, right in pairwise(pieces)]
    named = [at for at, word in enumerate(words) if word[:3] in MONTHS]
    if len(words) != 3 or sum(word.isdigit() for word in words) + len(named) != 3:
        return ()
    if any(set(gap.strip("-/.,").split()) - ORDINALS for gap in between):
        return ()
    if not (stated or named) and "" in between:
        return ()  # three numbers in a row are no date
    year_first = len(words[0]) == 4 and words[0].isdigit()
    orders = [(0, 1, 2)] if year_first else [(2, 1, 0), (2, 0, 1)]  # places of year, month, day
    days = [
        _iso(words[year], century, words[month], words[day], today)
        for year, month, day in orders
        if named in ([], [month])
        for century in CENTURIES.get(len(words[year]), ())
    ]
    return tuple(dict.fromkeys(day for day in days if day))


def _iso(year: str, century: int, month: str, day: str, today: date) -> str:
    try:
        read = date(int(year) + century, int(month) if month.isdigit() else MONTHS.index(month[:3]) + 1, int(day))
    except (ValueError, OverflowError):  # no such day
        return ""
    return read.isoformat() if read <= today and read.year >= FIRST_YEAR else ""


def _age_until(words: list[str], place: int) -> int | None:
    """The piece where "77 year old" or "aged 77" ends."""
    after = words[place + 1 : place + 3]
    if after and after[0] in AGE_AFTER:
        return place + 1
    if len(after) == 2 and after[0] in ("year", "years") and after[1] in ("old", "age"):
        return place + 2
    return place if place and words[place - 1] in AGE_BEFORE else None
