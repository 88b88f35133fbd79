"""How often a dose is taken, as a number: "bd", "every 8 hours", "three times a day" and "twice weekly"."""

import re
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import clinical, listed, phrases_in, plain

DAY = Decimal(24)
HOURS = {"h": 1, "d": 24, "w": 168, "m": 720, "y": 8760}
COUNT = rf"(\d{{1,3}}|{'|'.join(NUMBER_WORDS)})"
RATE = re.compile(  # "every 4-6 hours", "every three months", "six hourly", "3 times a day", "5 days a week"
    rf"\b(?:(?:every|q)\s?\.?{COUNT}(?:\s?(?:-|–|to)\s?\d{{1,2}})?[\s-]?"
    r"(h|hr|hrs|hours?|d|days?|w|wks?|weeks?|mo|mths?|months?|y|yrs?|years?)|"
    rf"{COUNT}(?:\s?(?:-|–|to)\s?\d{{1,2}})?[\s-]hourly|{COUNT}\s?(?:x|times?|days?(?!.{{0,7}}da))\s?(?:a|per|each|every|/)?\s?"
    r"(day|daily|week|wk|month)(?:ly)?)\b",
    re.IGNORECASE,
)


def said_frequencies(text: str) -> set[str]:
    """Frequencies in one notation, "2/d" for BID and for twice a day alike."""
    return set(phrases_in(plain(text).replace("/", " "), _frequencies())[0])


def times_per_day(frequency: str) -> Decimal | None:
    """Doses a day, the most that the words allow ("every 4-6 hours" is 6); 0 for one dose only ("stat"); None if the
    words are not understood."""
    texts = (frequency, RATE.sub(";", frequency))  # "q12 weeks" is no "q12"
    words, rest = (" ".join(plain(text).replace("-", " ").replace("/", " ").split()) for text in texts)
    tokens = words.split()
    said = phrases_in(rest, _frequencies())[0]
    hours = {item for item in said if "/" not in item}  # morning and evening: twice
    rates = [_rate(*match.groups()) for match in RATE.finditer(frequency)] + [_per_day(item) for item in said]
    rates += [Decimal(len(hours))] if hours else []
    if days := sum(1 for names in clinical("sig")["weekdays"] if set(names) & set(tokens)):
        rates.append(days * DAY / HOURS["w"])
    listing = any(word == "days" and after.isdigit() for word, after in pairwise(tokens))
    if "?" in said or (rates and (0 in rates or (max(rates) < 1 and listing))):  # "days 1 and 8 of every 21 days"
        return None
    once, again = (any(f" {phrase} " in f" {words} " for phrase in listed("sig", key)) for key in ("once", "repeated"))
    return max(rates) if rates else Decimal(0) if once and not again else None


def _rate(every: str, unit: str, hourly: str, times: str, each: str) -> Decimal:
    """Doses a day of a match of RATE; 0 for "every 0 hours"."""
    count = Decimal(NUMBER_WORDS.get(word := (every or hourly or times).lower()) or word)
    hours = HOURS[(unit or each or "h")[0].lower()]
    return count * DAY / hours if times else DAY / (count * hours) if count else count


def _per_day(said: str) -> Decimal:
    """Doses a day of a notation: "2/d", "1/2w" (every 2 weeks); of "night" 1."""
    count, _, period = said.partition("/")
    return int(count) * DAY / (int(period[:-1] or 1) * HOURS[period[-1]]) if period else Decimal(1)


@lru_cache(maxsize=1)
def _frequencies() -> list[tuple[str, str]]:
    """What is said and how often that is, the longest first."""
    said = [(phrase, times) for times, phrases in clinical("sig")["times"].items() for phrase in phrases]
    return sorted(said, key=lambda item: -len(item[0]))
