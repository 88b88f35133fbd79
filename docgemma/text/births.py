"""Dates, years and ages in a text that may say when a patient was born, and which patients they fit. No I/O."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import dropwhile, pairwise, product
from typing import TYPE_CHECKING, Literal

from docgemma.text.words import listed

if TYPE_CHECKING:
    from docgemma.ehr.base import PatientMatch

PART = re.compile(r"\bd\.\s?o\.\s?b|\b(?-i:b)\.(?=\s?\d)|\d+|[^\W\d_]+", re.IGNORECASE)
MONTH_NAMES = "january february march april may june july august september october november december febuary".split()
MONTHS = tuple(name[:3] for name in MONTH_NAMES[:12])
STATES = frozenset("born dob d.o.b b. birth birthdate birthday bday".split())
LEADS = frozenset({"date", "year"})  # date of birth
FILLERS = frozenset("on in is was the a".split()) | LEADS
ORDINALS = frozenset("st nd rd th of".split())  # no words of a date: 11th of Feb
FIRST_YEAR = 1890
ORDERS = ("%Y %m %d", "%Y %b %d", "%d %m %Y", "%d %b %Y", "%m %d %Y", "%b %d %Y")
AGE_AFTER = frozenset({"yo", "yrs", "yr", "y"})  # 77 yo
YEARS = AGE_AFTER - {"yo"} | {"year", "years"}  # 77 yr old
AGE_BEFORE = frozenset({"aged", "age"})  # aged 77
COUNTED = frozenset("w wk wks week weeks weeker day days month months h hr hrs hour hours min mins".split())
SOON = timedelta(days=366)  # appointments are made so far ahead
AGE_SPREAD = 1  # people round, and birthdays pass
OLDEST, GROWN, MONTHS_AT_MOST = 110, 13, 24  # years; below, a bare number may be anything, and "18m" is months
# "temp 99F", "foley 16F", "over 30m" are no ages; "pt 55 M" is one
NO_AGE = frozenset("temp t temperature fever foley catheter fr french size ng sheath tube drain over every".split())
RATES = frozenset("sats sat spo2 hr bpm rr gcs % on".split())  # "she's 92, sats" is no age
PRONOUNS = {"she's": "female", "shes": "female", "he's": "male", "hes": "male"}
AGED = frozenset("m f yo yr yrs y y/o".split())
BEFORE_AGE = frozenset("pt patient a an my for in is aged age with".split())
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
            said = first is not None or text[: here.start()].rstrip().casefold().endswith("(b")  # "(b 1985)"
            found.append(Birth(start, here.end(), (word,), "stated" if said else "year"))
        elif len(word) == 2 and word.isdigit() and first is not None and _is_year(text, words, place):  # "born 85"
            years = (f"19{word}", f"20{word}")
            found.append(Birth(start, here.end(), tuple(year for year in years if int(year) <= today.year), kind))
        elif len(word) <= 3 and word.isdigit() and (last := _age_until(words, place)) is not None:
            born = range(today.year - int(word) - 1 - AGE_SPREAD, today.year - int(word) + AGE_SPREAD + 1)
            found.append(Birth(here.start(), pieces[last].end(), tuple(map(str, born)), "age"))
        place += used
    return found


def _is_year(text: str, words: list[str], place: int) -> bool:
    """Whether two digits behind "born" are a year: "born 85", not "born 34 weeks", "born 12/40"."""
    after, behind = words[place + 1 : place + 2], text.casefold().partition(f"born {words[place]}")[2]
    counted = after and (after[0] in COUNTED or after[0] in YEARS or after[0].isdigit())
    return words[max(place - 1, 0)] == "born" and not counted and behind[:1] not in ("/", ".", "-", "%")


def fitting(matches: "Sequence[PatientMatch]", days: Sequence[str]) -> "list[PatientMatch]":
    """Those born on one of these days, or else those of whom it is not known."""
    fit = [
        one for one in matches if any(one.birth_date.startswith(day) or day.startswith(one.birth_date) for day in days)
    ]
    return [one for one in fit if one.birth_date] or [one for one in matches if not one.birth_date]


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
    named = [at for at, word in enumerate(words) if word[2:] and any(name.startswith(word) for name in MONTH_NAMES)]
    if len(words) != 3 or sum(word.isdigit() for word in words) + len(named) != 3:
        return ()
    if any(set(gap.strip("-/.,").split()) - ORDINALS for gap in between):
        return ()
    if not (stated or named) and "" in between:
        return ()  # three numbers in a row are no date
    short = [word[:3] if word.isalpha() else word for word in words]
    lasts = [f"19{short[2]}", f"20{short[2]}"] if len(short[2]) == 2 and len(short[0]) < 4 else [short[2]]
    days = []
    for last, order in product(lasts, ORDERS):
        with suppress(ValueError):  # no such day
            days.append(datetime.strptime(f"{short[0]} {short[1]} {last}", order).date())
    if not stated and any(today < day <= today + SOON for day in days):  # "surgery 1/12/27" is nobody born in 1927
        return ()
    return tuple(dict.fromkeys(day.isoformat() for day in days if day.year >= FIRST_YEAR and day <= today))


def _age_until(words: list[str], place: int) -> int | None:
    """The piece where "77 year old" or "aged 77" ends."""
    after = words[place + 1 : place + 3]
    if len(after) == 2 and after[0] in YEARS and after[1] in ("old", "age", "o"):  # "y/o"
        return place + 2
    if after and after[0] in AGE_AFTER:
        return place + 1
    return place if place and words[place - 1] in AGE_BEFORE else None


def is_clock(text: str) -> bool:
    """Whether four digits are a time of day: "bloods 0540"."""
    return len(text) == 4 and text.isdigit() and int(text[:2]) < 24 and int(text[2:]) < 60


def is_age_and_sex(word: str) -> bool:
    """Whether a word is an age with a sex or years: "41F", "M60", "6yo", "79yr"; no "30s", "3mm"."""
    low = word.casefold()
    number = low.rstrip("abcdefghijklmnopqrstuvwxyz/")
    aged = low[:1].isdecimal() and len(number) < 4 and low[len(number) :] in AGED
    return aged or (low[:1] in ("m", "f") and 1 < len(low) < 5 and low[1:].isdecimal())


def age_and_sex(text: str) -> tuple[int | None, str]:
    """The age and the sex of somebody who is described by both: "41F", "55 M", "man 71", "lady of 67", "84 yr F",
    "she's 75"; (None, "")."""
    raw = text.split()
    words = [word.strip("(),.;:?!-") for word in raw]
    sexes = {word: sex for sex in ("female", "male") for word in (sex, sex[0], *listed("request_words", sex))}
    for at, word in enumerate(words):
        digits, before = word.strip("mfMF"), [one.casefold() for one in words[max(at - 2, 0) : at]]
        if not digits.isdecimal() or not GROWN <= int(digits) <= OLDEST or {*before} & NO_AGE:
            continue
        if digits != word and len(word) == len(digits) + 1:
            if "m" not in word or int(digits) >= MONTHS_AT_MOST:  # "18m" is months
                return int(digits), sexes[word.strip(digits).casefold()]
        elif digits == word:  # "egfr 28 female" is no age: it stands behind a mark, or beside the sex
            led = [sexes[one] for one in (before[:1] if before[1:] == ["of"] else before[1:]) if one in sexes]
            called = PRONOUNS.get(before[-1].replace("’", "'"), "") if before else ""
            behind = [one.casefold() for one in words[at + 1 : at + 4]]
            closed = raw[at][-1] in ",.;" and not {*behind[:1]} & RATES
            led += [called] if called and closed and (at == 1 or raw[at - 2][-1] in ",.;:!?") else []
            rest = list(dropwhile((YEARS | {"y/o", "old"}).__contains__, behind))
            alone = at == 0 or raw[at - 1][-1] in ",.;:(" or before[-1] in BEFORE_AGE or "old" in behind[:2]
            alone &= not any(mark in "".join(raw[at : at + len(behind) - len(rest) + 1][:-1]) for mark in ",.;")
            after = sexes.get("".join(rest[:1]), "") if alone else ""
            if led or after:
                return int(digits), (led or [after])[0]
    return None, ""


def tells_somebody(message: str) -> bool:
    """Whether somebody is described by age, sex or pregnancy: "41F", "lady of 67", "30/40", "bf mum"."""
    words, said = [word.strip("(),.;:?!-") for word in message.split()], f" {' '.join(message.casefold().split())} "
    weeks = any(word.endswith("/40") and word[:-3].replace("+", "").isdecimal() for word in words)
    aged = age_and_sex(message)[1] or any(birth.kind == "age" for birth in read_births(message))
    spelt = any(f" {phrase} " in said for phrase in listed("request_words", "somebody"))
    return bool(aged or weeks or spelt or any(map(is_age_and_sex, words)))
