"""How often a dose is taken, as a number: "bd", "every 8 hours" and "three times a day"."""

import re
from decimal import Decimal
from functools import lru_cache

from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import clinical, phrases_in, plain

TIMES = {"1/d": 1, "2/d": 2, "3/d": 3, "4/d": 4, "6/d": 6, "night": 1}  # a day; what is left is once a week
HOURS = {"h": 1, "d": 24, "w": 168}
COUNT = rf"(\d{{1,2}}|{'|'.join(NUMBER_WORDS)})"
RATE = re.compile(  # "every 4-6 hours", "six hourly", "3 times a day"
    r"\b(?:(?:every|q)\s?\.?(\d{1,2})(?:\s?(?:-|–|to)\s?\d{1,2})?\s?(h|hr|hrs|hours?|d|days?|w|weeks?)|"
    rf"{COUNT}[\s-]hourly|{COUNT}\s?(?:x|times?)\s?(?:a|per|each|/)?\s?(?:day|daily))\b",
    re.IGNORECASE,
)
OTHER_DAY = ("every other day", "alternate days", "qod", "every second day")
ONCE = frozenset(["once", "stat", "now", "one time", "single dose", "once only", "x1", "x 1"])


def said_frequencies(text: str) -> set[str]:
    """Frequencies in one notation, "2/d" for BID and for twice a day alike."""
    return set(phrases_in(plain(text).replace("/", " "), _frequencies())[0])


def times_per_day(frequency: str) -> Decimal | None:
    """Doses a day, the most that a range allows ("every 4-6 hours" is 6); None if the words are not understood."""
    if match := RATE.search(frequency):
        every, unit, hourly, times = match.groups()
        count = Decimal(NUMBER_WORDS.get(word := (every or hourly or times).lower()) or word)
        hours = count * (HOURS[unit[0].lower()] if unit else 1)
        return count if times else Decimal(24) / hours if hours else None
    words = " ".join(plain(frequency).replace("-", " ").split()).strip(".!, ")
    if any(f" {phrase} " in f" {words} " for phrase in OTHER_DAY):
        return Decimal("0.5")
    said = [Decimal(TIMES.get(item, 0)) or Decimal(1) / 7 for item in said_frequencies(frequency)]
    return max(said) if said else Decimal(1) if words in ONCE else None


@lru_cache(maxsize=1)
def _frequencies() -> list[tuple[str, str]]:
    """What is said and how often that is, the longest first."""
    said = [(phrase, times) for times, phrases in clinical("sig")["times"].items() for phrase in phrases]
    return sorted(said, key=lambda item: -len(item[0]))
