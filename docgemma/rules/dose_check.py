"""Hold a prescribed dose against the limits of `data/knowledge/doses.jsonl`. What cannot be computed is said. Pure."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import permutations

from docgemma.rules.dose_rows import (
    PIECES,
    Amount,
    Order,
    Row,
    Rows,
    amount_in,
    applies,
    basis_of,
    fitting_rows,
    limit_of,
    one_dose,
    outdone,
    route_of,
    told_amount,
    usual_route,
    value_of,
    why_of,
    with_terms,
)
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding
from docgemma.rules.patient_state import ADULT, PatientState, told_of_adults
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import Quantity, quantities
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import listed, names, plain

WITHIN = "; the maximum is "  # of a dose that is not above it
AS_NEEDED = ("prn", "as needed", "as required")
LESS_FOR = {  # keys of `less_for` in words
    "age_from": "{} years or older",
    "weight_below_kg": "{:.0f} kg or less",
    "creatinine_from": "creatinine {} mg/dL or more",
    "egfr_below": "kidney function below {} mL/min",
}
WEEK = 7
REACH = 6  # words behind "max"
MANY = 6  # ingredients; nobody writes the strengths of so many
REDUCED = " is reduced with "
APART = Decimal(10)  # times beyond every single dose: another unit was probably meant
LOW = Decimal(2)  # times below every single dose of an adult
SOONER = Decimal("1.2")  # doses in one interval: a day or two early is no overdose
ALTERNATE = Decimal("0.5")  # doses a day: on alternate days twice the daily maximum may be given, and never more
Rule = partial(Finding, basis=NOT_VERIFIED)  # what rows say beside the maxima


def doses_of_parts(drug: str, dosage: str, own: Rows, parts: Mapping[str, Rows]) -> list[tuple[str, str, Rows]]:
    """Name, dose and rows to hold of a combination: its own, or those of each ingredient whose amount is known; `parts`
    in the order of the name. `part` of its own rows is the ingredient that they count, without one it is the sum."""
    given = [item for item in quantities(dosage) if item.unit not in ("", "hour")]
    part = own[0].get("totals", {}).get(f"{given[0].value:f}") if own and len(given) == 1 else None
    if part:  # "co-amoxiclav 625 mg" is 500 mg of amoxicillin
        return [(drug, part, own)]
    known = _by_part(given, parts, "/" in dosage) if len(given) == len(parts) < MANY else {}
    known = known or _of_pieces(f"{drug} {dosage}", parts)
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


def _of_pieces(text: str, parts: Mapping[str, Rows]) -> dict[str, Quantity]:
    """The ingredients' amounts in so many tablets of a strength with a stroke, in the order of the name: "30/500 2
    tabs"; {} where that makes no sense."""
    strokes = [word.split("/") for word in text.split() if word.count("/") == len(parts) - 1 and word[:1].isdigit()]
    each = [quantities(part) for part in strokes[0]] if len(strokes) == 1 else []
    counts = [item.value for item in quantities(text) if item.unit in PIECES]
    if len(counts) != 1 or not each or not all(len(found) == 1 and found[0].unit in ("", "mg") for found in each):
        return {}
    single = [found[0]._replace(unit="mg") for found in each]
    fits = all(_is_near(item, rows, LOW) for item, rows in zip(single, parts.values(), strict=True))
    amounts = [item._replace(value=(item.value * counts[0]).normalize()) for item in single]
    return dict(zip(parts, amounts, strict=True)) if fits else {}


def _is_near(item: Quantity, rows: Rows, times: Decimal = Decimal(1)) -> bool:
    """Whether an amount is a usual single dose of an ingredient, or within so many times; true where none is known."""
    ranges = [[value_of(end) for end in row["single"]] for row in rows if "single" in row]
    return not ranges or any(low / times <= item.value <= high * times for low, high in ranges)


def check_dose(
    medication: str, dosage: str, frequency: str, *, rows: Rows, patient: PatientState, said: str = ""
) -> list[Finding]:
    """Hold daily dose, single dose, unit and interval against the rows that fit the patient, of all routes or of the
    label; the lowest limit warns. `said` is what else the order says: route, form, indication."""
    words = with_terms(f"{medication} {dosage} {frequency} {said}")
    route = usual_route(rows, words)
    mine = [row for row in rows if row.get("route", route) == route]
    mine = told_of_adults(mine, patient)
    amount = one_dose(dosage, frequency, mine)
    order = Order(medication, dosage, frequency, words, amount, times_per_day(frequency), patient)
    fitting = fitting_rows([row for row in mine if not {"min_day", "min_day_per_kg"} & set(row)], order)
    findings = _too_often(order, fitting)
    if any(map(str.isdigit, dosage)) and not any(map(str.isalpha, dosage)) and "%" not in dosage:
        return [*findings, Finding(MAJOR, f"The dose {dosage} has no unit: say which."), *reduced_for(order, mine)]
    if rows and route == "oral" and all(row.get("route") == "injection" for row in rows):
        text = f"Every stored dose of {medication} is injected; by mouth is no route of it: check."
        return [*findings, Rule(MAJOR, text)]
    if wrong := _wrong_size(order, [row["single"] for row in mine if "single" in row]):
        return [*findings, wrong]
    findings += [*_too_low(order, mine), *reduced_for(order, mine)]
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
    more = [row for row in mine if "for" in row and row not in fitting]
    others = [row for row in rows if row not in mine and "route" in row and not route_of(words)]
    most = min((limit[1][0] for limit, _ in limits if limit[0] == "day"), default=Decimal(0))
    allowed, compared = _allowed_for(order, more, most), list[Finding]()
    for limit, basis in limits:
        if found := _compared(order, *limit):
            besides = (allowed if " a day" in found.text else "") + _by_other_routes(others, order, limit)
            compared.append(found._replace(basis=basis, text=found.text + (besides if found.rank == MAJOR else "")))
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
    total, capped = order.amount[0] * order.often, _written_most(order)
    written = f", at most {told_amount((capped, limit[1]))} a day as written," if capped and capped < total else ""
    total = min(total, capped) if capped else total
    weight = order.patient.weight or 0
    weighed = weight and f"at {weight:g} kg" in why
    each = f" ({told_amount((round(total / Decimal(str(weight)), 1), limit[1]))}/kg)" if weighed else ""
    given = f"{dosage} {order.frequency}{written} is {told_amount((total, limit[1]))} a day{each}"
    if total <= limit[0]:
        if order.often < 1:  # a weekly drug's maximum is that of one dose, which is compared by itself
            return None
        return Finding(NOTE, f"{given}{WITHIN}{most} a day{why}.")
    as_needed = any(f" {word} " in f" {plain(order.frequency)} " for word in AS_NEEDED)
    needed = " if every as-needed dose is taken" if as_needed else ""
    return Finding(MAJOR, f"{given}{needed}, above the maximum of {most} a day{why}.")


def _written_most(order: Order) -> Decimal | None:
    """The most of a day that an order itself says, "max 400 mg/24h"; None where it says none."""
    words = ["", *order.words.replace("/", " ").split()]
    behind = [words[at : at + REACH] for at, word in enumerate(words, 1) if plain(word) in listed("sig", "capping")]
    daily = [" ".join(span) for span in behind if names(listed("sig", "of_a_day"), " ".join(span))]
    unit = order.amount[1] if order.amount else ""
    return next((item.value for span in daily for item in quantities(span)[:1] if item.unit == unit), None)


def _allowed_for(order: Order, rows: Rows, most: Decimal) -> str:
    """That the rows of another indication allow a daily dose above the maximum, up to twice of it."""
    daily = order.amount[0] * order.often if order.amount and order.often else Decimal(0)
    limits = [(limit, row.get("note", "")) for row in rows if (limit := limit_of(row, "max_day", order.patient))]
    enough = [(limit, note) for limit, note in limits if 0 < daily <= limit[0] <= 2 * most]
    if not enough:
        return ""
    limit, note = min(enough)
    return (
        f" For another indication up to {told_amount(limit)} a day{f' ({note})' if note else ''}: say what it is for."
    )


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
    low, high = min(value_of(low) for low, _ in known), max(value_of(high) for _, high in known)
    if amount[0] > high * APART or amount[0] < low / APART:
        digits = "".join(char for char in order.dosage if char.isdigit() or char == ".")
        meant = [unit for unit in ("mcg", "mg", "g") if low <= value_of(f"{digits} {unit}") <= high]
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
        reasons = sum(applies(reason, order.patient) for reason in row.get("less_for", []))
        if daily < least[0] and order.is_for(row["for"]) and reasons < row.get("less_from", 1):
            needed = f"{told_amount(least)} a day for {row['for']}"
            text = f"{told_amount((daily, least[1]))} a day of {order.drug} is below the dose of {needed}."
            return [Rule(MAJOR, text)]
    return []


def reduced_for(order: Order, rows: Rows) -> list[Finding]:
    """For what the dose of the order's indication is reduced, and what of it is known of the patient."""
    for row in (row for row in rows if "less_for" in row and order.is_for(row["for"])):
        said = [(applies(why, order.patient), *why.items()) for why in row["less_for"]]
        told = [(met, LESS_FOR[key].format(value)) for met, (key, value) in said]
        some = f"{row['less_from']} of" if "less_from" in row else "one of"
        mine = "; ".join(text for met, text in told if met) or "none of them, so far as is recorded"
        text = f"{order.drug} for {row['for']}{REDUCED}{some}: {'; '.join(text for _, text in told)}"
        return [Finding(NOTE, f"{text[:1].upper()}{text[1:]}. The patient has: {mine}.")]
    return []


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
        if not outdone(row, (other for kind, (_, unit), other in known if (kind, unit) == (what, limit[1]))):
            found[what, limit[1]] = (what, limit, why_of(row, order.patient)), basis_of(row, f"max_{what}", limit)
    return list(found.values())


def _by_other_routes(rows: Rows, order: Order, limit: tuple[str, Amount, str]) -> str:
    """The higher limits of other routes, where an order names none: "injection 30 mg"."""
    told = []
    for route in dict.fromkeys(row["route"] for row in rows):
        fitting = fitting_rows([row for row in rows if row["route"] == route], order)
        higher = [most for (what, most, _), _ in _limits(fitting, order) if (what, most[1]) == (limit[0], limit[1][1])]
        told += [f"{route} {told_amount(most)}" for most in higher if most > limit[1]]
    return f" No route is given; of others the maximum is: {', '.join(told)}." if told else ""


def _by_day(row: Row, order: Order) -> bool:
    """Whether a row's daily maximum is held against an order. Not where the row has a maximum for a single dose and the
    order is one dose, or a large one that the row gives every few days; and never against a loading dose."""
    if order.often and not (order.often < 1 and order.reaches(row.get("interval_from", ""))):
        return True
    loading = listed("sig", "loading") & set(plain(order.words).split())
    return not (loading or {"max_single", "max_single_per_kg"} & set(row))
