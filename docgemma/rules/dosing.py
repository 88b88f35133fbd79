"""Hold a prescribed dose against the limits of `data/knowledge/doses.jsonl`. What cannot be computed is said. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from docgemma.rules.findings import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding
from docgemma.rules.patient_state import PatientState
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import quantities
from docgemma.text.words import clinical, plain

Row = Mapping[str, Any]
AS_NEEDED = ("prn", "as needed", "as required")
STRICT = {"age_from", "egfr_below", "weight_below_kg"}  # of a patient; such a row applies beside the others
APART = Decimal(10)  # times beyond every single dose: another unit was probably meant
LOW = Decimal(2)  # times below every single dose of an adult
SOONER = Decimal("1.2")  # doses in one interval: a day or two early is no overdose
EVERY_DAY = Decimal("0.5")  # doses a day; a weekly drug has a seventh
BETWEEN_UNITS = ("mcg", "mg", "g")


def route_of(text: str) -> str:
    """The route that an order's words name, "to the left eye" is eye; "" where none does."""
    words = set(plain(text).replace(".", "").replace("/", " ").replace(",", " ").split())
    return next((route for route, said in clinical("order_routes")["routes"].items() if words & set(said)), "")


def check_dose(
    medication: str,
    dosage: str,
    frequency: str,
    *,
    rows: Sequence[Row],
    patient: PatientState,
    said: str = "",
    max_daily_dose: str = "",
) -> list[Finding]:
    """Daily dose, single dose, unit and interval of an order against the rows that fit the patient; the lowest warns.

    Args:
        dosage, frequency: as ordered.
        rows: of the ordered drug, all routes.
        said: what else the order says: route, form, indication.
        max_daily_dose: of a label, for a drug that has no rows.
    """
    words = f"{medication} {dosage} {frequency} {said}"
    words += "".join(f" {term}" for phrase, term in clinical("order_routes")["terms"].items() if phrase in words)
    route = route_of(words) or _usual_route(rows)
    mine = [row for row in rows if row.get("route", route) == route]
    often, amount = times_per_day(frequency), _amount(dosage)
    findings = [*_weekly(medication, mine, amount, often, frequency)]
    if any(map(str.isdigit, dosage)) and not any(map(str.isalpha, dosage)) and "%" not in dosage:
        findings.append(Finding(MAJOR, f"The dose {dosage} has no unit; add it before approving."))
        return findings
    adult = patient.age is None or patient.age >= 18
    if wrong := _wrong_size(medication, dosage, amount, [row for row in mine if "single" in row], adult):
        return [*findings, wrong]
    findings += _too_low(medication, mine, amount, often, patient, words)
    mine = [row for row in mine if not {"min_day", "min_day_per_kg"} & set(row)]
    limits = _limits(mine, patient, words) if rows else _label_limit(max_daily_dose)
    if not limits:
        lacks_weight = any("age_below" in row and _young(row, patient) for row in mine) and patient.weight is None
        why = "the weight is not recorded" if lacks_weight else "no maximum is known"
        return [*findings, Finding(UNCHECKED, f"the dose of {medication} ({why})")]
    unchecked = ""
    for what, value, unit, why in limits:
        if amount is None or amount[1] != unit:
            given = dosage or "no dose"
            unchecked = f"the dose of {medication} ({given} does not compare with {_number(value)} {unit})"
        elif what == "single" and amount[0] > value:
            text = f"A single dose of {dosage} is above the maximum single dose of {_number(value)} {unit}{why}."
            findings.append(Finding(MAJOR, text))
        elif what == "day" and often is None and amount[0] > value:
            text = f"A single dose of {dosage} is above the maximum of {_number(value)} {unit} a day{why}."
            findings.append(Finding(MAJOR, text))
        elif what == "day" and often is None:
            unchecked = f"the daily dose ({_unclear(frequency)})"
        elif what == "day" and often is not None and (total := amount[0] * often) > value:
            as_needed = any(f" {word} " in f" {plain(frequency)} " for word in AS_NEEDED)
            needed = " if every as-needed dose is taken" if as_needed else ""
            daily = f"{dosage} {frequency} is {_number(total)} {unit} a day{needed}"
            findings.append(Finding(MAJOR, f"{daily}, above the maximum of {_number(value)} {unit} a day{why}."))
        elif what == "day":
            given = f"{dosage} {frequency} is {_number(total)} {unit} a day"
            text = f"{given}; the maximum is {_number(value)} {unit} a day{why}."
            findings.append(Finding(NOTE, text))
    return [*findings[:3], *([Finding(UNCHECKED, unchecked)] if unchecked else [])]


def _too_low(
    medication: str,
    rows: Iterable[Row],
    amount: tuple[Decimal, str] | None,
    often: Decimal | None,
    patient: PatientState,
    words: str,
) -> list[Finding]:
    """A daily dose below what its indication needs, unless enough of the label's reasons for less hold."""
    for row in rows:
        least = _limit(row, "day", patient, "min")
        if least is None or amount is None or often is None or amount[1] != least[1] or amount[0] * often >= least[0]:
            continue
        reasons = [_lower_for(reason, patient) for reason in row.get("less_for", [])]
        if _indicated(row["for"], words, patient) and sum(reasons) < row.get("less_from", 1):
            needed = f"{_number(least[0])} {least[1]} a day for {row['for']}"
            text = f"{_number(amount[0] * often)} {amount[1]} a day of {medication} is below the dose of {needed}."
            return [Finding(MAJOR, text)]
    return []


def _lower_for(reason: Mapping[str, Any], patient: PatientState) -> bool:
    """Whether a reason for a lower dose holds: {"age_from": 80}, {"egfr_below": 50}, {"creatinine_from": 1.5}."""
    [(key, value)] = reason.items()
    if key == "creatinine_from":
        known = patient.results.get("creatinine")
        return bool(known and known[0] >= value)
    return _applies(reason, patient)


def _usual_route(rows: Iterable[Row]) -> str:
    routes = [row["route"] for row in rows if "route" in row]
    return "oral" if "oral" in routes else routes[0] if routes else ""


def _weekly(
    medication: str, rows: Iterable[Row], amount: tuple[Decimal, str] | None, often: Decimal | None, frequency: str
) -> list[Finding]:
    """A drug, or a strength, that is given once a week and was ordered more often: it has been fatal."""
    if often is None:
        return []
    name = f"{medication[:1].upper()}{medication[1:]}"
    for row in rows:
        strictly = _reaches(amount, row.get("interval_from", ""))  # from this dose on the row's interval is a minimum
        if strictly and often * row["interval_days"] > SOONER:
            text = f"{name} in this dose is given every {row['interval_days']} days, and is ordered {frequency}."
            return [Finding(CONTRAINDICATED, text)]
        if often < EVERY_DAY:
            continue
        if row.get("weekly") or _reaches(amount, row.get("weekly_from", "")):
            text = f"{name} is given once weekly; {frequency} is an overdose, which can be fatal."
            return [Finding(CONTRAINDICATED, text)]
        if (days := row.get("interval_days", 0)) > 2:
            text = f"{name} is given every {days} days, and is ordered {frequency}."
            return [Finding(MAJOR, text)]
    return []


def _reaches(amount: tuple[Decimal, str] | None, least: str) -> bool:
    start = _amount(least)
    return bool(start and amount and amount[1] == start[1] and amount[0] >= start[0])


def _wrong_size(
    medication: str, dosage: str, amount: tuple[Decimal, str] | None, rows: Sequence[Row], adult: bool
) -> Finding | None:
    """A dose ten times beyond every single dose, with the unit that was probably meant; or one below all of them."""
    ranges = [(_amount(row["single"][0]), _amount(row["single"][1]), row["single"]) for row in rows]
    known = [(low, high, texts) for low, high, texts in ranges if low and high and amount and low[1] == amount[1]]
    if not known or amount is None or amount[0] <= 0:
        return None
    low, high = min(item[0] for item in known)[0], max(item[1] for item in known)[0]
    usual = f"single doses are {known[0][2][0]} to {known[-1][2][1]}"
    if amount[0] > high * APART or amount[0] < low / APART:
        meant = [unit for unit in BETWEEN_UNITS if _in_unit(dosage, unit, low, high)]
        hint = f" Was {dosage.split()[0].rstrip('mcgµu')} {meant[0]} meant?" if meant else ""
        return Finding(CONTRAINDICATED, f"{dosage} of {medication} is no plausible dose: {usual}.{hint}")
    if adult and amount[0] < low / LOW:
        return Finding(MODERATE, f"{dosage} of {medication} is below every usual dose: {usual}.")
    return None


def _in_unit(dosage: str, unit: str, low: Decimal, high: Decimal) -> bool:
    """Whether the number of a dose, with another unit, is one of the usual doses."""
    numbers = quantities(dosage)
    digits = "".join(char for char in dosage if char.isdigit() or char == ".")
    meant = _amount(f"{digits if numbers[0].unit else numbers[0].value} {unit}") if numbers else None
    return meant is not None and low <= meant[0] <= high


def _limits(rows: Sequence[Row], patient: PatientState, words: str) -> list[tuple[str, Decimal, str, str]]:
    """("day" or "single", value, unit, why) of the rows that fit, one a reason, the lowest of each kind first."""
    children = [row for row in rows if "age_below" in row and _young(row, patient) and _applies(row, patient)]
    fitting = children or [row for row in rows if "age_below" not in row and _applies(row, patient)]
    special = [row for row in fitting if {"for", "form"} & set(row) and _fits_order(row, words, patient)]
    told = [row for row in special if "for" in row]
    told = [row for row in told if "form" in row] or told  # "extended release for panic" before "for panic"
    mine = told or [row for row in special if "for" not in row]
    plain_rows = [row for row in fitting if not {"for", "form"} & set(row)]
    strict = [row for row in plain_rows if STRICT & set(row)]
    general = [row for row in strict if not any(_narrower(other, row) for other in mine)]
    chosen = [*(mine or [row for row in plain_rows if row not in strict]), *general]
    found: dict[tuple[str, str], tuple[str, Decimal, str, str]] = {}
    for row in chosen:
        for what in ("day", "single"):
            limit = _limit(row, what, patient)
            if limit and ((key := (what, limit[1])) not in found or limit[0] < found[key][1]):
                found[key] = (what, limit[0], limit[1], _why(row, patient))
    return list(found.values())


def _limit(row: Row, what: str, patient: PatientState, end: str = "max") -> tuple[Decimal, str] | None:
    fixed, each = _amount(row.get(f"{end}_{what}", "")), _amount(row.get(f"{end}_{what}_per_kg", ""))
    if each and patient.weight:
        weighed = each[0] * Decimal(str(patient.weight)), each[1]
        return min(weighed, fixed) if fixed and fixed[1] == each[1] else weighed
    return fixed


def _label_limit(text: str) -> list[tuple[str, Decimal, str, str]]:
    limit = _amount(text)
    return [("day", limit[0], limit[1], " of its label")] if limit else []


def _young(row: Row, patient: PatientState) -> bool:
    return patient.age is not None and row.get("age_from", 0) <= patient.age < row["age_below"]


def _applies(row: Row, patient: PatientState) -> bool:
    egfr = patient.results.get("egfr")
    if "age_from" in row and (patient.age is None or patient.age < row["age_from"]):
        return False
    if "egfr_below" in row and (egfr is None or egfr[0] >= row["egfr_below"]):
        return False
    return not ("weight_below_kg" in row and (patient.weight is None or patient.weight >= row["weight_below_kg"]))


def _narrower(special: Row, general: Row) -> bool:
    """Whether the limit of an indication or form is for at least as narrow a group of patients as a general limit."""
    older = special.get("age_from", -1) >= general["age_from"] if "age_from" in general else False
    below = (key for key in ("egfr_below", "weight_below_kg") if key in general and key in special)
    return older or any(special[key] <= general[key] for key in below)


def _fits_order(row: Row, words: str, patient: PatientState) -> bool:
    """Whether the order names the row's form, and order or problem list its indication: both, where it has both."""
    formed = "form" not in row or set(plain(row["form"]).split()) <= _forms(words)
    return formed and ("for" not in row or _indicated(row["for"], words, patient))


def _indicated(indication: str, words: str, patient: PatientState) -> bool:
    told = f" {plain(' '.join([words, *patient.problems]))}"
    telling = [word for word in plain(indication).split() if len(word) > 2]
    return bool(telling) and all(f" {word}" in told for word in telling)


def _forms(words: str) -> set[str]:
    """Words of an order, with what its short forms stand for: "XL" is extended release."""
    told = set(plain(words).replace(",", " ").split())
    return told | ({"extended", "release"} if told & {"xr", "er", "xl", "sr", "la", "cr", "mr"} else set())


def _why(row: Row, patient: PatientState) -> str:
    egfr = patient.results.get("egfr")
    parts = [f"{row['age_from']} years and older"] if "age_from" in row and "age_below" not in row else []
    parts += [f"below {row['age_below']} years"] if "age_below" in row else []
    parts += [f"with an eGFR of {egfr[0]:g}"] if "egfr_below" in row and egfr else []
    parts += [f"below {row['weight_below_kg']} kg"] if "weight_below_kg" in row else []
    parts += [f"at {patient.weight:g} kg"] if any("per_kg" in key for key in row) and patient.weight else []
    parts += [f"for {row['for']}"] if "for" in row else []
    parts += [row["note"]] if "note" in row else []
    return f" ({'; '.join(parts)})" if parts else ""


def _unclear(frequency: str) -> str:
    given = frequency.strip()
    return "no frequency is given" if given in ("", "not specified") else f"the frequency {given} is not understood"


def _amount(text: str) -> tuple[Decimal, str] | None:
    """The (largest) quantity of a dose; None where there is none, or only one without a unit."""
    found = [item for item in quantities(text) if item.unit]
    units = {item.unit for item in found} - {"hour", "month"}
    if len(units) != 1:
        return None
    unit = units.pop()
    return max(item.value for item in found if item.unit == unit), unit


def _number(value: Decimal) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")
