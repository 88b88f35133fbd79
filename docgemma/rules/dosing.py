"""Hold a prescribed dose against the limits of `data/knowledge/doses.jsonl`. What cannot be computed is said. Pure."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding
from docgemma.rules.patient_state import PatientState
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import quantities
from docgemma.text.words import clinical, plain

Row = Mapping[str, Any]
Amount = tuple[Decimal, str]  # value, unit
AS_NEEDED = ("prn", "as needed", "as required")
STRICT = {"age_from", "egfr_below", "weight_below_kg"}  # of a patient; such a row applies beside the others
APART = Decimal(10)  # times beyond every single dose: another unit was probably meant
LOW = Decimal(2)  # times below every single dose of an adult
SOONER = Decimal("1.2")  # doses in one interval: a day or two early is no overdose
EVERY_DAY = Decimal("0.5")  # doses a day; a weekly drug has a seventh
LONG_ACTING = {"xr", "er", "xl", "sr", "la", "cr", "mr"}


class Order(NamedTuple):
    """A dose as ordered: `words` are all of the order's, `amount` is one dose, `often` doses a day, None if unclear."""

    drug: str
    dosage: str
    frequency: str
    words: str
    amount: Amount | None
    often: Decimal | None
    patient: PatientState

    def reaches(self, least: str) -> bool:
        """Whether one dose is at least this much; False where that cannot be compared."""
        start = _amount(least)
        return bool(start and self.amount and self.amount[1] == start[1] and self.amount >= start)

    def is_for(self, indication: str) -> bool:
        """Whether the order or the patient's problems name an indication."""
        told = f" {plain(' '.join([self.words, *self.patient.problems]))}"
        telling = [word for word in plain(indication).split() if len(word) > 2]
        return bool(telling) and all(f" {word}" in told for word in telling)

    def fits(self, row: Row) -> bool:
        """Whether the order names the form of a row and its indication: both, where it has both."""
        told = set(plain(self.words).replace(",", " ").split())
        told |= {"extended", "release"} if told & LONG_ACTING else set()
        formed = "form" not in row or set(plain(row["form"]).split()) <= told
        return formed and ("for" not in row or self.is_for(row["for"]))


def route_of(text: str) -> str:
    """The route that an order's words name, "to the left eye" is eye; "" where none does."""
    words = set(plain(text).replace(".", "").replace("/", " ").replace(",", " ").split())
    return next((route for route, said in clinical("order_routes")["routes"].items() if words & set(said)), "")


def check_dose(
    medication: str, dosage: str, frequency: str, *, rows: Sequence[Row], patient: PatientState, said: str = ""
) -> list[Finding]:
    """Hold daily dose, single dose, unit and interval against the rows that fit the patient; the lowest limit warns.

    Args:
        dosage, frequency: as ordered.
        rows: of the ordered drug, all routes; or {"max_day", "of_label"} of its label.
        said: what else the order says: route, form, indication.
    """
    words = f"{medication} {dosage} {frequency} {said}"
    words += "".join(f" {term}" for phrase, term in clinical("order_routes")["terms"].items() if phrase in words)
    routes = [row["route"] for row in rows if "route" in row]
    route = route_of(words) or ("oral" if "oral" in routes else next(iter(routes), ""))
    mine = [row for row in rows if row.get("route", route) == route]
    order = Order(medication, dosage, frequency, words, _amount(dosage), times_per_day(frequency), patient)
    findings = _too_often(order, mine)
    if any(map(str.isdigit, dosage)) and not any(map(str.isalpha, dosage)) and "%" not in dosage:
        return [*findings, Finding(MAJOR, f"The dose {dosage} has no unit; add it before approving.")]
    if wrong := _wrong_size(order, [row["single"] for row in mine if "single" in row]):
        return [*findings, wrong]
    findings += _too_low(order, mine)
    mine = [row for row in mine if not {"min_day", "min_day_per_kg"} & set(row)]
    limits = _limits(mine, order)
    if not limits:
        lacks_weight = any("age_below" in row and _young(row, patient) for row in mine) and patient.weight is None
        why = "the weight is not recorded" if lacks_weight else "no maximum is known"
        return [*findings, Finding(UNCHECKED, f"the dose of {medication} ({why})")]
    compared = [found for limit in limits if (found := _compared(order, *limit))]
    findings += [finding for finding in compared if finding.rank != UNCHECKED]
    return [*findings[:3], *[finding for finding in compared if finding.rank == UNCHECKED][-1:]]


def _compared(order: Order, what: str, limit: Amount, why: str) -> Finding | None:
    """What the order is against one limit, "day" or "single"; a daily dose within it is told too."""
    most, dosage = _told(limit), order.dosage
    if order.amount is None or order.amount[1] != limit[1]:
        given = f"{dosage or 'no dose'} does not compare with {most}"
        return Finding(UNCHECKED, f"the dose of {order.drug} ({given})")
    if what == "single" or order.often is None:
        maximum = f"maximum single dose of {most}" if what == "single" else f"maximum of {most} a day"
        if order.amount[0] > limit[0]:
            return Finding(MAJOR, f"A single dose of {dosage} is above the {maximum}{why}.")
        said = order.frequency.strip()
        unclear = f"the frequency {said} is not understood" if said not in ("", "not specified") else ""
        unclear = unclear or "no frequency is given"
        return Finding(UNCHECKED, f"the daily dose ({unclear})") if what == "day" else None
    total = order.amount[0] * order.often
    given = f"{dosage} {order.frequency} is {_told((total, limit[1]))} a day"
    if total <= limit[0]:
        return Finding(NOTE, f"{given}; the maximum is {most} a day{why}.")
    as_needed = any(f" {word} " in f" {plain(order.frequency)} " for word in AS_NEEDED)
    needed = " if every as-needed dose is taken" if as_needed else ""
    return Finding(MAJOR, f"{given}{needed}, above the maximum of {most} a day{why}.")


def _too_often(order: Order, rows: Sequence[Row]) -> list[Finding]:
    """A drug, or a strength, that is given once a week and was ordered more often: it has been fatal."""
    name, often, ordered = order.drug[:1].upper() + order.drug[1:], order.often or Decimal(0), order.frequency
    for row in rows:
        days = row.get("interval_days", 0)
        # from this dose on the row's interval is a minimum
        if order.reaches(row.get("interval_from", "")) and often * days > SOONER:
            text = f"{name} in this dose is given every {days} days, and is ordered {ordered}."
            return [Finding(CONTRAINDICATED, text)]
        if often >= EVERY_DAY and (row.get("weekly") or order.reaches(row.get("weekly_from", ""))):
            text = f"{name} is given once weekly; {ordered} is an overdose, which can be fatal."
            return [Finding(CONTRAINDICATED, text)]
        if often >= EVERY_DAY and days > 2:
            return [Finding(MAJOR, f"{name} is given every {days} days, and is ordered {ordered}.")]
    return []


def _wrong_size(order: Order, ranges: Sequence[Sequence[str]]) -> Finding | None:
    """A dose ten times beyond every single dose, with the unit that was probably meant; or one below all of them."""
    amount, age = order.amount, order.patient.age
    known = [(low, high) for low, high in ranges if amount and (_amount(low) or "?")[1] == amount[1]]
    if not known or amount is None or amount[0] <= 0:
        return None
    usual = f"single doses are {known[0][0]} to {known[-1][1]}"
    low, high = min(_value(low) for low, _ in known), max(_value(high) for _, high in known)
    if amount[0] > high * APART or amount[0] < low / APART:
        digits = "".join(char for char in order.dosage if char.isdigit() or char == ".")
        meant = [unit for unit in ("mcg", "mg", "g") if low <= _value(f"{digits} {unit}") <= high]
        hint = f" Was {order.dosage.split()[0].rstrip('mcgµu')} {meant[0]} meant?" if meant else ""
        return Finding(CONTRAINDICATED, f"{order.dosage} of {order.drug} is no plausible dose: {usual}.{hint}")
    if (age is None or age >= 18) and amount[0] < low / LOW:
        return Finding(MODERATE, f"{order.dosage} of {order.drug} is below every usual dose: {usual}.")
    return None


def _too_low(order: Order, rows: Sequence[Row]) -> list[Finding]:
    """A daily dose below what its indication needs, unless enough of the label's reasons for less hold."""
    for row in rows:
        least = _limit(row, "min_day", order.patient)
        if least is None or order.amount is None or order.often is None or order.amount[1] != least[1]:
            continue
        daily = order.amount[0] * order.often
        reasons = sum(_applies(reason, order.patient) for reason in row.get("less_for", []))
        if daily < least[0] and order.is_for(row["for"]) and reasons < row.get("less_from", 1):
            needed = f"{_told(least)} a day for {row['for']}"
            text = f"{_told((daily, least[1]))} a day of {order.drug} is below the dose of {needed}."
            return [Finding(MAJOR, text)]
    return []


def _limits(rows: Sequence[Row], order: Order) -> list[tuple[str, Amount, str]]:
    """("day" or "single", limit, why) of the rows that fit; of each kind and unit the lowest."""
    applying = [row for row in rows if _applies(row, order.patient)]
    children = [row for row in applying if "age_below" in row and _young(row, order.patient)]
    fitting = children or [row for row in applying if "age_below" not in row]
    general = [row for row in fitting if not {"for", "form"} & set(row)]
    strict = [row for row in general if STRICT & set(row)]
    special = [row for row in fitting if {"for", "form"} & set(row) and order.fits(row)]
    told = [row for row in special if "for" in row]
    mine = [row for row in told if "form" in row] or told or special  # "extended release for panic" before "for panic"
    chosen = mine or [row for row in general if row not in strict]
    chosen = chosen + [row for row in strict if not any(_narrower(other, row) for other in mine)]
    found: dict[tuple[str, str], tuple[str, Amount, str]] = {}
    for row in chosen:
        for what in ("day", "single"):
            if limit := _limit(row, f"max_{what}", order.patient):
                lowest = found.get((what, limit[1]))
                if lowest is None or limit[0] < lowest[1][0]:
                    found[what, limit[1]] = what, limit, _why(row, order.patient)
    return list(found.values())


def _limit(row: Row, key: str, patient: PatientState) -> Amount | None:
    fixed, each = _amount(row.get(key, "")), _amount(row.get(f"{key}_per_kg", ""))
    if each and patient.weight:
        weighed = each[0] * Decimal(str(patient.weight)), each[1]
        return min(weighed, fixed) if fixed and fixed[1] == each[1] else weighed
    return fixed


def _young(row: Row, patient: PatientState) -> bool:
    return patient.age is not None and row.get("age_from", 0) <= patient.age < row["age_below"]


def _applies(row: Row, patient: PatientState) -> bool:
    """Whether age, kidney function and weight are those that a row, or a reason for less, is for; unknown is no."""
    known: dict[str, float | None] = {name: value for name, (value, _, _) in patient.results.items()}
    known |= {"age": patient.age, "weight": patient.weight}
    values = [(key, known.get(key.split("_")[0])) for key in (*STRICT, "creatinine_from") if key in row]
    return all(value is not None and (value < row[key]) == ("_below" in key) for key, value in values)


def _narrower(special: Row, general: Row) -> bool:
    """Whether the limit of an indication or form is for at least as narrow a group of patients as a general limit."""
    older = special.get("age_from", -1) >= general["age_from"] if "age_from" in general else False
    below = (key for key in ("egfr_below", "weight_below_kg") if key in general and key in special)
    return older or any(special[key] <= general[key] for key in below)


def _why(row: Row, patient: PatientState) -> str:
    egfr, weighed = patient.results.get("egfr"), any("per_kg" in key for key in row) and patient.weight
    parts = [
        f"{row['age_from']} years and older" if "age_from" in row and "age_below" not in row else "",
        f"below {row['age_below']} years" if "age_below" in row else "",
        f"with an eGFR of {egfr[0]:g}" if "egfr_below" in row and egfr else "",
        f"below {row['weight_below_kg']} kg" if "weight_below_kg" in row else "",
        f"at {patient.weight:g} kg" if weighed else "",
        f"for {row['for']}" if "for" in row else "",
        row.get("note", ""),
    ]
    told = "; ".join(filter(None, parts))
    return " of its label" if "of_label" in row else f" ({told})" if told else ""


def _amount(text: str) -> Amount | None:
    """The (largest) quantity of a dose; None where there is none, or only one without a unit."""
    found = [item for item in quantities(text) if item.unit]
    units = {item.unit for item in found} - {"hour", "month"}
    return max((item.value, item.unit) for item in found if item.unit in units) if len(units) == 1 else None


def _value(text: str) -> Decimal:
    amount = _amount(text)
    return amount[0] if amount else Decimal(0)


def _told(amount: Amount) -> str:
    return f"{amount[0]:,.4f}".rstrip("0").rstrip(".") + f" {amount[1]}"
