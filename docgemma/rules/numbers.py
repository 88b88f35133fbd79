"""Numbers in a text as values with units: 1,000 is 1000, .5 is 0.5, 1 g is 1000 mg, "two weeks" is 14 days."""

import re
from dataclasses import dataclass
from decimal import Decimal

NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fourteen": 14, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "ninety": 90, "hundred": 100,
}  # fmt: skip
ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5}
# unit as written -> (unit to compare in, factor)
UNITS: dict[str, tuple[str, str]] = {
    "kg": ("mg", "1000000"), "g": ("mg", "1000"), "gram": ("mg", "1000"), "grams": ("mg", "1000"),
    "mg": ("mg", "1"), "milligram": ("mg", "1"), "milligrams": ("mg", "1"),
    "mcg": ("mg", "0.001"), "µg": ("mg", "0.001"), "μg": ("mg", "0.001"), "ug": ("mg", "0.001"),
    "microgram": ("mg", "0.001"), "micrograms": ("mg", "0.001"), "ng": ("mg", "0.000001"),
    "l": ("ml", "1000"), "dl": ("ml", "100"), "ml": ("ml", "1"), "milliliters": ("ml", "1"), "millilitres": ("ml", "1"),
    "unit": ("unit", "1"), "units": ("unit", "1"), "iu": ("unit", "1"), "u": ("unit", "1"),
    "meq": ("meq", "1"), "mmol": ("mmol", "1"), "mmhg": ("mmhg", "1"), "bpm": ("bpm", "1"), "ms": ("ms", "1"),
    "msec": ("ms", "1"), "cm": ("cm", "1"), "mm": ("cm", "0.1"), "m": ("cm", "100"),
    "%": ("%", "1"), "percent": ("%", "1"),
    "tablet": ("tablet", "1"), "tablets": ("tablet", "1"), "tab": ("tablet", "1"), "tabs": ("tablet", "1"),
    "capsule": ("capsule", "1"), "capsules": ("capsule", "1"), "puff": ("puff", "1"), "puffs": ("puff", "1"),
    "drop": ("drop", "1"), "drops": ("drop", "1"),
    "minute": ("hour", "0.0166666667"), "minutes": ("hour", "0.0166666667"), "min": ("hour", "0.0166666667"),
    "hour": ("hour", "1"), "hours": ("hour", "1"), "hr": ("hour", "1"), "hrs": ("hour", "1"), "h": ("hour", "1"),
    "day": ("hour", "24"), "days": ("hour", "24"), "week": ("hour", "168"), "weeks": ("hour", "168"),
    "month": ("month", "1"), "months": ("month", "1"), "year": ("month", "12"), "years": ("month", "12"),
}  # fmt: skip
FREQUENCIES = {  # as said -> times a day
    "once daily": "1/d", "once a day": "1/d", "one time daily": "1/d", "every day": "1/d", "qd": "1/d", "daily": "1/d",
    "od": "1/d", "once per day": "1/d", "each day": "1/d", "every 24 hours": "1/d",
    "twice daily": "2/d", "twice a day": "2/d", "two times daily": "2/d", "two times a day": "2/d", "bid": "2/d",
    "bd": "2/d", "every 12 hours": "2/d", "q12h": "2/d", "twice per day": "2/d", "2 times a day": "2/d",
    "2 times daily": "2/d",
    "three times daily": "3/d", "three times a day": "3/d", "tid": "3/d", "tds": "3/d", "every 8 hours": "3/d",
    "q8h": "3/d", "three times per day": "3/d", "3 times a day": "3/d", "3 times daily": "3/d", "thrice daily": "3/d",
    "four times daily": "4/d", "four times a day": "4/d", "qid": "4/d", "qds": "4/d", "every 6 hours": "4/d",
    "q6h": "4/d", "4 times a day": "4/d", "4 times daily": "4/d", "four times per day": "4/d",
    "every 4 hours": "6/d", "q4h": "6/d", "six times a day": "6/d", "six times daily": "6/d",
    "once weekly": "1/w", "weekly": "1/w", "once a week": "1/w", "every week": "1/w", "every 7 days": "1/w",
    "morning and night": "2/d", "morning and evening": "2/d",
    "at bedtime": "night", "qhs": "night", "nightly": "night", "at night": "night", "every night": "night",
}  # fmt: skip

_VALUE = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|0,\d+|\.\d+"
_WORDS = "|".join(NUMBER_WORDS)
_UNIT = "|".join(sorted((re.escape(unit) for unit in UNITS), key=len, reverse=True))
NUMBER = re.compile(
    rf"(?<![A-Za-z\d.,_-])(?P<value>{_VALUE})(?!\d)(?:[\s-]?(?P<unit>{_UNIT})(?![A-Za-z])(?P<per>\s?/\s?(?:kg|m2|m²))?)?"
    rf"|(?<=\d[-–/])(?P<value2>{_VALUE})(?!\d)(?:[\s-]?(?P<unit2>{_UNIT})(?![A-Za-z])(?P<per2>\s?/\s?(?:kg|m2|m²))?)?"
    rf"|\b(?P<word>{_WORDS})\b(?:[\s-](?P<unit3>{_UNIT})(?![A-Za-z]))?",
    re.IGNORECASE,
)
ROMAN_NUMBER = re.compile(r"\b(?:type|stage|class|grade|phase|factor)\s+(I{1,3}|IV|V)\b", re.IGNORECASE)
SAME_UNIT = re.compile(r"[\s,;/–-]*(?:and|or|to|through)?[\s–-]*", re.IGNORECASE)
SAID_FREQUENCY = re.compile(
    r"(?<![\w-])(?:" + "|".join(sorted(map(re.escape, FREQUENCIES), key=len, reverse=True)) + r")(?![\w-])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Quantity:
    """A number, in the unit it is compared in; `unit` is "" where none is written. `spelled`: written as a word."""

    value: Decimal
    unit: str
    spelled: bool = False


def quantities(text: str) -> list[Quantity]:
    """All numbers in a text. In "10, 20 or 40 mg" each is in mg."""
    found: list[tuple[Decimal, str, bool, int, int]] = []
    for match in NUMBER.finditer(text):
        word = match["word"]
        value = Decimal(NUMBER_WORDS[word.lower()]) if word else _decimal(match["value"] or match["value2"])
        unit = (match["unit"] or match["unit2"] or match["unit3"] or "").lower()
        per = (match["per"] or match["per2"] or "").replace(" ", "").replace("²", "2").lower()
        found.append((value, unit + per, bool(word), match.start(), match.end()))
    for at in range(len(found) - 2, -1, -1):
        value, unit, spelled, start, end = found[at]
        if not unit and not spelled and found[at + 1][1] and SAME_UNIT.fullmatch(text, end, found[at + 1][3]):
            found[at] = (value, found[at + 1][1], spelled, start, end)
    return [_quantity(value, unit, spelled) for value, unit, spelled, _start, _end in found]


def roman(text: str) -> list[Decimal]:
    """Values of roman numerals after words that take them: "type II"."""
    return [Decimal(ROMAN[match[1].upper()]) for match in ROMAN_NUMBER.finditer(text)]


def said_frequencies(text: str) -> set[str]:
    """Frequencies in one notation, "2/d" for BID and for twice a day alike; once daily is dropped beside others."""
    return {FREQUENCIES[" ".join(match.group().lower().split())] for match in SAID_FREQUENCY.finditer(text)}


def _quantity(value: Decimal, unit: str, spelled: bool) -> Quantity:
    base, slash, per = unit.partition("/")
    if not base:
        return Quantity(value.normalize(), "", spelled)
    name, factor = UNITS[base]
    return Quantity(round(value * Decimal(factor), 6).normalize(), name + slash + per, spelled)


def _decimal(text: str) -> Decimal:
    if re.fullmatch(r"0,\d+", text):
        return Decimal(text.replace(",", "."))
    return Decimal(text.replace(",", ""))
