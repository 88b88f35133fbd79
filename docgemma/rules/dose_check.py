"""Hold a prescribed dose against the limits of `data/knowledge/doses.jsonl`. What cannot be computed is said. Pure."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding
from docgemma.rules.patient_state import ADULT, PatientState, told_of_adults
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import Quantity, quantities
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import affirmed, clinical, listed, plain

Row = Mapping[str, Any]
Rows = Sequence[Row]
Amount = tuple[Decimal, str]  # value, unit
AS_NEEDED = ("prn", "as needed", "as required")
LESS_FOR = {  # keys of `less_for` in words
    "age_from": "{} years or older",
    "weight_below_kg": "{:.0f} kg or less",
    "creatinine_from": "creatinine {} mg/dL or more",
    "egfr_below": "kidney function below {} mL/min",
}
STRICT = {"age_from", "egfr_below", "weight_below_kg"}  # of a patient; such a row applies beside the others
BOUNDS = STRICT | {"age_below"}
WEEK = 7
PIECES = ("tablet", "capsule")
MANY = 6  # ingredients; nobody writes the strengths of so many
APART = Decimal(10)  # times beyond every single dose: another unit was probably meant
LOW = Decimal(2)  # times below every single dose of an adult
SOONER = Decimal("1.2")  # doses in one interval: a day or two early is no overdose
ALTERNATE = Decimal("0.5")  # doses a day: on alternate days twice the daily maximum may be given, and never more
Rule = partial(Finding, basis=NOT_VERIFIED)  # what rows say beside the maxima
LONG_ACTING, ASKED = {"xr", "er", "xl", "sr", "la", "cr", "mr"}, frozenset(["if", "any"])  # "max if meningitis" asks


class Order(NamedTuple):
    """An order: `words` are all of it, `amount` is one dose, `often` doses a day: 0 for one only, None if unclear."""

    drug: str
    dosage: str
    frequency: str
    words: str
    amount: Amount | None
    often: Decimal | None
    patient: PatientState

    def reaches(self, least: str) -> bool:
        """Whether one dose is at least this much; False where that cannot be compared."""
        start = amount_in(least)
        return bool(start and self.amount and self.amount[1] == start[1] and self.amount >= start)

    def is_for(self, indication: str) -> bool:
        """Whether the order or the patient's problems name an indication."""
        reasons = plain(self.words).split(" for ")[1:] if self.drug else []  # what is ordered says what it is for
        problems = () if any(not reason[0].isdigit() for reason in reasons) else self.patient.problems
        told = f" {plain(' '.join([affirmed(self.words, ASKED), *problems]))}"
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
    words = set(plain(_with_terms(text)).replace(".", "").replace("/", " ").replace(",", " ").split())
    return next((route for route, said in clinical("order_routes")["routes"].items() if words & set(said)), "")


def _with_terms(text: str) -> str:
    """The words of an order, and for "into a vein" the one by which rows name that."""
    folded = plain(text)
    return " ".join([text, *(term for said, term in clinical("order_routes")["terms"].items() if said in folded)])


def doses_of_parts(drug: str, dosage: str, own: Rows, parts: Mapping[str, Rows]) -> list[tuple[str, str, Rows]]:
    """Name, dose and rows to hold of a combination: its own, or those of each ingredient whose amount is known; `parts`
    in the order of the name. `part` of its own rows is the ingredient that they count, without one it is the sum."""
    given = [item for item in quantities(dosage) if item.unit not in ("", "hour")]
    known = _by_part(given, parts, "/" in dosage) if len(given) == len(parts) < MANY else {}
    told = {name: f"{item.value:f} {item.unit} {name}" for name, item in known.items()}
    if not own:
        return [(f"{name} in {drug}", dose, parts[name]) for name, dose in told.items()]
    counted = amount_in("".join(own[0].get("single", [])[:1]))
    if told and counted and "part" not in own[0] and {item.unit for item in given} == {counted[1]}:
        return [(drug, f"{sum(item.value for item in given):f} {counted[1]}", own)]
    return [(drug, told.get(own[0].get("part", ""), dosage), own)]


def _by_part(given: Sequence[Quantity], parts: Mapping[str, Rows], slash: bool) -> dict[str, Quantity]:
    """The ingredients' amounts in the order of the name, in another only where that alone makes sense: "325/5 mg"."""
    orders = [dict(zip(names, given, strict=True)) for names in permutations(parts)]
    if slash and all(_is_near(item, parts[name], APART) for name, item in orders[0].items()):
        return orders[0]
    usual = (order for order in orders if all(_is_near(item, parts[name]) for name, item in order.items()))
    return next(usual, orders[0] if slash else {})  # "5-10 mg" may be a range


def _is_near(item: Quantity, rows: Rows, times: Decimal = Decimal(1)) -> bool:
    """Whether an amount is a usual single dose of an ingredient, or within so many times; true where none is known."""
    ranges = [[_value(end) for end in row["single"]] for row in rows if "single" in row]
    return not ranges or any(low / times <= item.value <= high * times for low, high in ranges)


def check_dose(
    medication: str, dosage: str, frequency: str, *, rows: Rows, patient: PatientState, said: str = ""
) -> list[Finding]:
    """Hold daily dose, single dose, unit and interval against the rows that fit the patient, of all routes or of the
    label; the lowest limit warns. `said` is what else the order says: route, form, indication."""
    words = _with_terms(f"{medication} {dosage} {frequency} {said}")
    routes = [row["route"] for row in rows if "route" in row]
    route = route_of(words) or ("oral" if "oral" in routes else next(iter(routes), ""))
    mine = [row for row in rows if row.get("route", route) == route]
    mine = told_of_adults(mine, patient)
    amount = _pieces(f"{dosage} {frequency}", mine) or amount_in(dosage)
    order = Order(medication, dosage, frequency, words, amount, times_per_day(frequency), patient)
    fitting = fitting_rows([row for row in mine if not {"min_day", "min_day_per_kg"} & set(row)], order)
    findings = _too_often(order, fitting)
    if any(map(str.isdigit, dosage)) and not any(map(str.isalpha, dosage)) and "%" not in dosage:
        return [*findings, Finding(MAJOR, f"The dose {dosage} has no unit: say which.")]
    if wrong := _wrong_size(order, [row["single"] for row in mine if "single" in row]):
        return [*findings, wrong]
    findings += [*_too_low(order, mine), *_reduced_for(order, mine)]
    limits = _limits(fitting, order)
    if order.often is None and any("max_day" in key for row in fitting for key in row):
        said = frequency.strip().removeprefix("not specified")
        why = f"the frequency {said} is not understood" if said else "no frequency is given"
        findings.append(Finding(UNCHECKED, f"the daily dose ({why})"))
    weighed = patient.weight is None and any("per_kg" in key for row in fitting for key in row)
    if patient.weight is None and plain(dosage).replace(" ", "").endswith("/kg"):
        findings.append(Finding(MAJOR, f"{dosage} cannot be worked out: no weight is recorded."))
    why = "the weight is not recorded" if weighed else "" if limits else "no maximum is known"
    unsure = [Finding(UNCHECKED, f"the dose of {medication} ({why})")] if why else []
    compared = [found._replace(basis=basis) for limit, basis in limits if (found := _compared(order, *limit))]
    findings += [found for found in compared if found.rank != NOTE or not findings]  # no "30 mg a day" of a weekly drug
    unchecked = [finding for finding in findings if finding.rank == UNCHECKED]
    return [*[finding for finding in findings if finding.rank != UNCHECKED][:3], *unchecked[-1:], *unsure]


def _compared(order: Order, what: str, limit: Amount, why: str) -> Finding | None:
    """What the order is against one limit, "day" or "single"; a daily dose within it is told too."""
    most, dosage = told_amount(limit), order.dosage
    if order.amount is None or order.amount[1] != limit[1]:
        given = f"{dosage or 'no dose'} does not compare with {most}"
        counted = order.amount and order.amount[1] in PIECES and len(quantities(dosage)) == 1
        given += ": say of which strength" if counted else ""
        return Finding(UNCHECKED, f"the dose of {order.drug} ({given})")
    if what == "single" or not order.often:
        maximum = f"maximum single dose of {most}" if what == "single" else f"maximum of {most} a day"
        above = order.amount[0] > limit[0]
        return Finding(MAJOR, f"A single dose of {dosage} is above the {maximum}{why}.") if above else None
    if order.often < ALTERNATE and order.amount[0] > limit[0] / ALTERNATE:
        return Finding(MAJOR, f"{dosage} in one day is more than twice the maximum of {most} a day{why}.")
    total = order.amount[0] * order.often
    weight = Decimal(str(order.patient.weight)) if order.patient.weight and " kg" in why else None
    each = f" ({told_amount((round(total / weight, 1), limit[1]))}/kg)" if weight else ""
    given = f"{dosage} {order.frequency} is {told_amount((total, limit[1]))} a day{each}"
    if total <= limit[0]:
        if order.often < 1:  # a weekly drug's maximum is that of one dose, which is compared by itself
            return None
        return Finding(NOTE, f"{given}; the maximum is {most} a day{why}.")
    as_needed = any(f" {word} " in f" {plain(order.frequency)} " for word in AS_NEEDED)
    needed = " if every as-needed dose is taken" if as_needed else ""
    return Finding(MAJOR, f"{given}{needed}, above the maximum of {most} a day{why}.")


def _too_often(order: Order, rows: Rows) -> list[Finding]:
    """A drug, or a strength, that is given once a week and was ordered more often: it has been fatal."""
    name, often, ordered = order.drug[:1].upper() + order.drug[1:], order.often or Decimal(0), order.frequency
    weekly = any(row.get("weekly") or order.reaches(row.get("weekly_from", "")) for row in rows)
    if weekly and often * WEEK > SOONER:
        text = f"{name} is given once weekly; {ordered} is an overdose, which can be fatal."
        return [Rule(CONTRAINDICATED, text)]
    days = max((row["interval_days"] for row in rows if order.reaches(row.get("interval_from", ""))), default=0)
    if often * days > SOONER:
        text = f"{name} in this dose is given every {days} days, and is ordered {ordered}."
        return [Rule(CONTRAINDICATED, text)]
    always = [row["interval_days"] for row in rows if "interval_days" in row and "interval_from" not in row]
    days = min(always, default=0)  # of several indications the shortest
    text = f"{name} is given every {days} days, and is ordered {ordered}."
    return [Rule(MAJOR, text)] if often * days > SOONER else []


def _wrong_size(order: Order, ranges: Sequence[Sequence[str]]) -> Finding | None:
    """A dose ten times beyond every single dose, with the unit that was probably meant; or one below all of them."""
    amount, age = order.amount, order.patient.age
    known = [(low, high) for low, high in ranges if amount and (amount_in(low) or "?")[1] == amount[1]]
    if not known or amount is None or amount[0] <= 0:
        return None
    usual = f"single doses are {known[0][0]} to {known[-1][1]}"
    low, high = min(_value(low) for low, _ in known), max(_value(high) for _, high in known)
    if amount[0] > high * APART or amount[0] < low / APART:
        digits = "".join(char for char in order.dosage if char.isdigit() or char == ".")
        meant = [unit for unit in ("mcg", "mg", "g") if low <= _value(f"{digits} {unit}") <= high]
        hint = f" Was {order.dosage.split()[0].rstrip('mcgµu')} {meant[0]} meant?" if meant else ""
        return Rule(CONTRAINDICATED, f"{order.dosage} of {order.drug} is no plausible dose: {usual}.{hint}")
    if (age is None or age >= ADULT) and amount[0] < low / LOW:
        return Rule(MODERATE, f"{order.dosage} of {order.drug} is below every usual dose: {usual}.")
    return None


def _too_low(order: Order, rows: Rows) -> list[Finding]:
    """A daily dose below what its indication needs, unless enough of the label's reasons for less hold."""
    for row in rows:
        least = limit_of(row, "min_day", order.patient)
        if least is None or order.amount is None or not order.often or order.amount[1] != least[1]:
            continue
        daily = order.amount[0] * order.often
        reasons = sum(_applies(reason, order.patient) for reason in row.get("less_for", []))
        if daily < least[0] and order.is_for(row["for"]) and reasons < row.get("less_from", 1):
            needed = f"{told_amount(least)} a day for {row['for']}"
            text = f"{told_amount((daily, least[1]))} a day of {order.drug} is below the dose of {needed}."
            return [Rule(MAJOR, text)]
    return []


def _reduced_for(order: Order, rows: Rows) -> list[Finding]:
    """For what the dose of the order's indication is reduced, and what of it is known of the patient."""
    for row in (row for row in rows if "less_for" in row and order.is_for(row["for"])):
        said = [(_applies(why, order.patient), *why.items()) for why in row["less_for"]]
        told = [(met, LESS_FOR[key].format(value)) for met, (key, value) in said]
        some = f"{row['less_from']} of" if "less_from" in row else "one of"
        mine = "; ".join(text for met, text in told if met) or "none of them, so far as is recorded"
        text = f"{order.drug} for {row['for']} is reduced with {some}: {'; '.join(text for _, text in told)}"
        return [Finding(NOTE, f"{text[:1].upper()}{text[1:]}. The patient has: {mine}.")]
    return []


def fitting_rows(rows: Rows, order: Order) -> list[Row]:
    """The rows that hold: of form or indication before general ones, beside them what age, kidney or weight forbid."""
    applying = [row for row in rows if _applies(row, order.patient)]
    age = order.patient.age
    children = [row for row in applying if age is not None and row.get("age_from", 0) <= age < row.get("age_below", 0)]
    fitting = children or [row for row in applying if "age_below" not in row]
    general = [row for row in fitting if not {"for", "form"} & set(row)]
    strict = [row for row in general if STRICT & set(row)]
    special = [row for row in fitting if {"for", "form"} & set(row) and order.fits(row)]
    told = [row for row in special if "for" in row]
    mine = [row for row in told if "form" in row] or told or special  # "extended release for panic" before "for panic"
    chosen = mine or [row for row in general if row not in strict]
    return chosen + [row for row in strict if not any(narrower(other, row) for other in mine)]


def _limits(rows: Rows, order: Order) -> list[tuple[tuple[str, Amount, str], str]]:
    """(("day" or "single", limit, why), basis) of the rows that fit: the lowest, of a group within another its own."""
    known = [
        (what, limit, row)
        for row in rows
        for what in ("day", "single")
        if (limit := limit_of(row, f"max_{what}", order.patient)) and (what == "single" or _by_day(row, order))
    ]
    found: dict[tuple[str, str], tuple[tuple[str, Amount, str], str]] = {}
    for what, limit, row in sorted(known, key=lambda item: -item[1][0]):
        others = [other for kind, (_, unit), other in known if (kind, unit) == (what, limit[1])]
        if not any(narrower(other, row) and not narrower(row, other) for other in others):
            found[what, limit[1]] = (what, limit, _why(row, order.patient)), _basis(row, f"max_{what}", limit)
    return list(found.values())


def _by_day(row: Row, order: Order) -> bool:
    """Whether a row's daily maximum is held against an order. Not where the row has a maximum for a single dose and the
    order is one dose, or a large one that the row gives every few days; and never against a loading dose."""
    if order.often and not (order.often < 1 and order.reaches(row.get("interval_from", ""))):
        return True
    loading = listed("sig", "loading") & set(plain(order.words).split())
    return not (loading or {"max_single", "max_single_per_kg"} & set(row))


def limit_of(row: Row, key: str, patient: PatientState) -> Amount | None:
    fixed, each = amount_in(row.get(key, "")), amount_in(row.get(f"{key}_per_kg", ""))
    if each and patient.weight:
        weighed = each[0] * Decimal(str(patient.weight)), each[1]
        return min(weighed, fixed) if fixed and fixed[1] == each[1] else weighed
    return fixed


def _basis(row: Row, key: str, limit: Amount) -> str:
    """How a limit was obtained: the fixed one of a row, or that by weight."""
    part = key if amount_in(row.get(key, "")) == limit else f"{key}_per_kg"
    return str(row.get("basis", {}).get(part, NOT_VERIFIED))


def _applies(row: Row, patient: PatientState) -> bool:
    """Whether age, kidney function and weight are those that a row, or a reason for less, is for; unknown is no."""
    known: dict[str, float | None] = {name: value for name, (value, _, _) in patient.results.items()}
    kidneys = patient.kidneys(row.get("by_egfr", False))
    known |= {"age": patient.age, "weight": patient.weight, "egfr": kidneys[0] if kidneys else None}
    values = [(key, known.get(key.split("_")[0])) for key in (*STRICT, "creatinine_from") if key in row]
    return all(value is not None and (value < row[key]) == ("_below" in key) for key, value in values)


def narrower(row: Row, other: Row) -> bool:
    """Whether a row is for the same patients as another, or for some of them."""
    kind = all(row.get(key) == other[key] for key in ("for", "form") if key in other)
    return kind and all(
        key in row and (row[key] >= other[key] if key == "age_from" else row[key] <= other[key])
        for key in BOUNDS & set(other)
    )


def _why(row: Row, patient: PatientState) -> str:
    kidneys = patient.kidneys(row.get("by_egfr", False))
    weighed = any("per_kg" in key for key in row) and patient.weight
    parts = [
        f"{row['age_from']} years and older" if "age_from" in row and "age_below" not in row else "",
        f"below {row['age_below']} years" if "age_below" in row else "",
        kidneys[1].removeprefix("latest ") if "egfr_below" in row and kidneys else "",
        f"below {row['weight_below_kg']} kg" if "weight_below_kg" in row else "",
        f"at {patient.weight:g} kg" if weighed else "",
        f"for {row['for']}" if "for" in row else "",
        row.get("note", ""),
    ]
    told = "; ".join(filter(None, parts))
    return " of its label" * ("of_label" in row) + (f" ({told})" if told else "")


def amount_in(text: str) -> Amount | None:
    """The (largest) quantity of a dose; None where there is none, or only one without a unit."""
    found = [item for item in quantities(text) if item.unit]
    units = {item.unit for item in found} - {"hour", "month"}
    return max((item.value, item.unit) for item in found if item.unit in units) if len(units) == 1 else None


def _pieces(text: str, rows: Rows) -> Amount | None:
    """The puffs of an order where rows count puffs, whatever each of them holds: "160/4.5 mcg, 2 puffs"."""
    counted = any("puff" in row.get("max_day", "") for row in rows)
    return next(((item.value, item.unit) for item in quantities(text) if counted and item.unit == "puff"), None)


def _value(text: str) -> Decimal:
    amount = amount_in(text)
    return amount[0] if amount else Decimal(0)


def told_amount(amount: Amount) -> str:
    return f"{amount[0]:,.4f}".rstrip("0").rstrip(".") + f" {amount[1]}"
