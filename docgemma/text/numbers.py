"""Numbers in a text as values with units: 1,000 is 1000, .5 is 0.5, 1 g is 1000 mg, "two weeks" is 14 days."""

import re
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from docgemma.text.words import clinical, plain

NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "hundred": 100,
}  # fmt: skip
ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5}
SPELLED = NUMBER_WORDS | ROMAN
COUNTED = frozenset(["type", "stage", "class", "grade", "phase", "factor"])  # a roman numeral may follow
BETWEEN = frozenset(["and", "or", "to", "through"])  # "10, 20 or 40 mg": each is in mg
MARKS = str.maketrans(dict.fromkeys(",;/-–", " "))


class Quantity(NamedTuple):
    """A number, in the unit it is compared in; `unit` is "" where none is written. `spelled`: written as a word."""

    value: Decimal
    unit: str
    spelled: bool = False


def quantities(text: str) -> list[Quantity]:
    """All numbers in a text. In "10, 20 or 40 mg" each is in mg."""
    found: list[Quantity] = []
    following: tuple[str, str, int] | None = None  # unit of the number behind, and where that begins
    for match in reversed(list(_number().finditer(text))):
        word, digits = (match["word"] or "").lower(), match["value"] or ""
        unit, per = (match["unit"] or "").lower(), (match["per"] or "").replace(" ", "").replace("²", "2").lower()
        between = text[match.end() : following[2]].casefold() if following else ""
        alone = word or not between.strip()  # "200/6 2 puffs" is of two puffs
        if following and not unit and not alone and set(between.translate(MARKS).split()) <= BETWEEN:
            unit, per, _ = following
        following = (unit, per, match.start()) if unit else None
        value = Decimal(SPELLED[word] if word else digits.replace(",", "." if digits[:2] == "0," else ""))
        name, factor = _units().get(unit, ("", Decimal(0)))
        compared = round(value * factor, 6) if name else value
        found.append(Quantity(compared.normalize(), name + per, bool(word)))
    return found[::-1]


def roman(text: str) -> list[Decimal]:
    """Values of roman numerals after words that take them: "type II"."""
    words = plain(text).split()
    return [Decimal(ROMAN[numeral]) for word, numeral in pairwise(words) if word in COUNTED and numeral in ROMAN]


@lru_cache(maxsize=1)
def _units() -> dict[str, tuple[str, Decimal]]:
    """Unit as written -> the unit to compare in, and the factor."""
    lists = clinical("units")["units"]
    return {said: (unit, Decimal(factor)) for unit, known in lists.items() for said, factor in known.items()}


@lru_cache(maxsize=1)
def _number() -> re.Pattern[str]:
    unit = "|".join(sorted((re.escape(unit) for unit in _units()), key=len, reverse=True))
    return re.compile(
        r"(?:(?:(?<![A-Za-z\d.,_-])|(?<=\d[-–/]))"
        r"(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|0,\d+|\.\d+)(?!\d)|"
        rf"\b(?P<word>{'|'.join(NUMBER_WORDS)}|i{{1,3}}(?=\s(?:tab|cap|puff|drop|amp)))\b)"
        rf"(?:[\s-]?(?P<unit>{unit})(?![A-Za-z])(?P<per>\s?/\s?(?:kg|m2|m²))?)?",
        re.IGNORECASE,
    )
