"""A prescribed dose against the label's daily maximum. What cannot be computed is said, never passed over."""

import re
from decimal import Decimal

from docgemma.rules.drugs import DrugNames, ingredients
from docgemma.rules.numbers import NUMBER_WORDS, quantities, said_frequencies

PER_DAY = {"1/d": 1, "2/d": 2, "3/d": 3, "4/d": 4, "6/d": 6, "night": 1}
PER_WEEK = {"1/w": 1}
EVERY = re.compile(
    r"\b(?:every|q)\s?\.?(\d{1,2})(?:\s?(?:-|–|to)\s?\d{1,2})?\s?(h|hr|hrs|hours?|d|days?|w|weeks?)\b", re.IGNORECASE
)
HOURLY = re.compile(rf"\b(\d{{1,2}}|{'|'.join(NUMBER_WORDS)})[\s-]hourly\b", re.IGNORECASE)
TIMES = re.compile(
    rf"\b(\d{{1,2}}|{'|'.join(NUMBER_WORDS)})\s?(?:x|times?)\s?(?:a|per|each|/)?\s?(?:day|daily)\b", re.IGNORECASE
)
ONCE = re.compile(r"^\s*(?:once|stat|now|one[- ]time|single dose|once only|x\s?1)\W*$", re.IGNORECASE)
OTHER_DAY = re.compile(r"\b(?:every other day|alternate days|qod|every second day)\b", re.IGNORECASE)
AS_NEEDED = re.compile(r"\b(?:prn|as (?:needed|required))\b", re.IGNORECASE)


def check_dose(medication: str, dosage: str, frequency: str, max_daily_dose: str | None, drugs: DrugNames) -> list[str]:
    """The daily dose against the label's adult maximum. What cannot be computed is said, never passed over."""
    findings = []
    often = times_per_day(frequency)
    if "methotrexate" in ingredients(medication, drugs) and often is not None and often >= Decimal("0.5"):
        # Methotrexate label, boxed warning: daily instead of weekly dosing has been fatal
        findings.append(
            "Methotrexate is ordered daily; outside oncology it is given once weekly, and daily use can be fatal."
        )
    if any(map(str.isdigit, dosage)) and not any(map(str.isalpha, dosage)):
        findings.append(f"The dose {dosage} has no unit; add it before approving.")
    limit = _amount(max_daily_dose or "")
    if limit is None:
        return [*findings, f"The dose could not be checked: no maximum daily dose of {medication} is known."]
    amount, limit_text = _amount(dosage), f"{max_daily_dose} a day"
    if amount is None or amount[1] != limit[1]:
        given = dosage or "no dose"
        return [*findings, f"The dose could not be checked: {given} does not compare with a maximum of {limit_text}."]
    if often is None:
        if amount[0] > limit[0]:
            findings.append(f"A single dose of {dosage} is above the maximum of {limit_text}.")
        return [*findings, f"The daily dose could not be checked: {_unclear(frequency)}."]
    if (total := amount[0] * often) > limit[0]:
        needed = " if every as-needed dose is taken" if AS_NEEDED.search(frequency) else ""
        daily = f"{dosage} {frequency} is {_number(total)} {amount[1]} a day{needed}"
        findings.append(f"{daily}, above the maximum of {limit_text}.")
    return findings


def _unclear(frequency: str) -> str:
    given = frequency.strip()
    return "no frequency is given" if given in ("", "not specified") else f"the frequency {given} is not understood"


def times_per_day(frequency: str) -> Decimal | None:
    """Doses a day, the most that a range allows ("every 4-6 hours" is 6); None if the words are not understood."""
    if match := EVERY.search(frequency):
        count, unit = int(match[1]), match[2][0].lower()
        hours = count * {"h": 1, "d": 24, "w": 168}[unit]
        return Decimal(24) / hours if hours else None
    if match := HOURLY.search(frequency):
        return Decimal(24) / _count(match[1]) if _count(match[1]) else None
    if match := TIMES.search(frequency):
        return _count(match[1])
    if OTHER_DAY.search(frequency):
        return Decimal("0.5")
    said = said_frequencies(frequency)
    if said & set(PER_DAY):
        return Decimal(max(PER_DAY[item] for item in said if item in PER_DAY))
    if said:
        return Decimal(1) / 7
    return Decimal(1) if ONCE.match(frequency) else None


def _count(word: str) -> Decimal:
    return Decimal(word) if word.isdigit() else Decimal(NUMBER_WORDS[word.lower()])


def _amount(text: str) -> tuple[Decimal, str] | None:
    """The (largest) quantity of a dose; None where there is none, or only one without a unit."""
    found = [item for item in quantities(text) if item.unit]
    units = {item.unit for item in found} - {"hour", "month"}
    if len(units) != 1:
        return None
    unit = units.pop()
    return max(item.value for item in found if item.unit == unit), unit


def _number(value: Decimal) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
