"""How often a dose is taken, as a number: "bd", "every 8 hours" and "three times a day"."""

import re
from decimal import Decimal
from functools import lru_cache

from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import clinical, phrases_in, plain

PER_DAY = {"1/d": 1, "2/d": 2, "3/d": 3, "4/d": 4, "6/d": 6, "night": 1}
COUNT = rf"(\d{{1,2}}|{'|'.join(NUMBER_WORDS)})"
EVERY = re.compile(
    r"\b(?:every|q)\s?\.?(\d{1,2})(?:\s?(?:-|–|to)\s?\d{1,2})?\s?(h|hr|hrs|hours?|d|days?|w|weeks?)\b", re.IGNORECASE
)
HOURLY = re.compile(rf"\b{COUNT}[\s-]hourly\b", re.IGNORECASE)
TIMES = re.compile(rf"\b{COUNT}\s?(?:x|times?)\s?(?:a|per|each|/)?\s?(?:day|daily)\b", re.IGNORECASE)
OTHER_DAY = ("every other day", "alternate days", "qod", "every second day")
ONCE = frozenset(["once", "stat", "now", "one time", "single dose", "once only", "x1", "x 1"])


def said_frequencies(text: str) -> set[str]:
    """Frequencies in one notation, "2/d" for BID and for twice a day alike."""
    return set(phrases_in(plain(text).replace("/", " "), _frequencies())[0])


def times_per_day(frequency: str) -> Decimal | None:
    """Doses a day, the most that a range allows ("every 4-6 hours" is 6); None if the words are not understood."""
    if match := EVERY.search(frequency):
        hours = int(match[1]) * {"h": 1, "d": 24, "w": 168}[match[2][0].lower()]
        return Decimal(24) / hours if hours else None
    if match := HOURLY.search(frequency):
        return Decimal(24) / _count(match[1]) if _count(match[1]) else None
    if match := TIMES.search(frequency):
        return _count(match[1])
    words = " ".join(plain(frequency).replace("-", " ").split()).strip(".!, ")
    if any(f" {phrase} " in f" {words} " for phrase in OTHER_DAY):
        return Decimal("0.5")
    said = said_frequencies(frequency)
    if said & set(PER_DAY):
        return Decimal(max(PER_DAY[item] for item in said if item in PER_DAY))
    if said:
        return Decimal(1) / 7
    return Decimal(1) if words in ONCE else None


def _count(word: str) -> Decimal:
    return Decimal(word) if word.isdigit() else Decimal(NUMBER_WORDS[word.lower()])


@lru_cache(maxsize=1)
def _frequencies() -> list[tuple[str, str]]:
    """What is said and how often that is, the longest first."""
    said = [(phrase, times) for times, phrases in clinical("sig")["times"].items() for phrase in phrases]
    return sorted(said, key=lambda item: -len(item[0]))
