"""Read the rows of `data/knowledge/doses.jsonl`: which hold for an order and a patient, and what they allow. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from docgemma.rules.patient_state import PatientState
from docgemma.text.numbers import quantities
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import affirmed, clinical, listed, names, plain

Row = Mapping[str, Any]
Rows = Sequence[Row]
PIECES = ("tablet", "capsule")
Amount = tuple[Decimal, str]  # value, unit
STRICT = {"age_from", "egfr_below", "weight_below_kg"}  # of a patient; such a row applies beside the others
BOUNDS = STRICT | {"age_below"}
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
        bodily = names(listed("problems", "bodily"), indication)
        problems = () if any(not why[0].isdigit() for why in reasons) and not bodily else self.patient.problems
        told = f" {plain(' '.join([affirmed(self.words, ASKED), *problems]))}"
        telling = [word for word in plain(indication).split() if len(word) > 2]
        return bool(telling) and all(f" {word}" in told for word in telling)

    def fits(self, row: Row) -> bool:
        """Whether the order names the form of a row and its indication: both, where it has both."""
        told = set(plain(self.words).replace(",", " ").split())
        told |= {"extended", "release"} if told & LONG_ACTING else set()
        formed = "form" not in row or set(plain(row["form"]).split()) <= told
        return formed and ("for" not in row or self.is_for(row["for"]))


def usual_route(rows: Rows, text: str) -> str:
    """The route that a text names, else by mouth where a row is for that, but for what is injected as a rule
    ("vancomycin"), else that of the first row."""
    routes = [row["route"] for row in rows if "route" in row]
    injected = {row.get("drug") for row in rows} & listed("order_routes", "injected")
    hourly = "patch" in routes and any(unit in plain(text) for unit in listed("order_routes", "hourly"))
    return route_of(text) or (
        "patch" if hourly else "oral" if "oral" in routes and not injected else next(iter(routes), "")
    )


def route_of(text: str) -> str:
    """The route that an order's words name, "to the left eye" is eye, "by mouth for ear pain" is oral; "" where none
    does."""
    words = set(plain(with_terms(text)).replace(".", "").replace("/", " ").replace(",", " ").split())
    known = clinical("order_routes")
    words -= set(known["sites"] if words & set(known["routes"]["oral"]) else [])
    return next((route for route, said in known["routes"].items() if words & set(said)), "")


def with_terms(text: str) -> str:
    """The words of an order, and for "into a vein" the one by which rows name that."""
    folded = plain(text)
    return " ".join([text, *(term for said, term in clinical("order_routes")["terms"].items() if said in folded)])


def fitting_rows(rows: Rows, order: Order) -> list[Row]:
    """The rows that hold: of form or indication before general ones, beside them what age, kidney or weight forbid."""
    applying = [row for row in rows if applies(row, order.patient)]
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


def limit_of(row: Row, key: str, patient: PatientState) -> Amount | None:
    fixed, each = amount_in(row.get(key, "")), amount_in(row.get(f"{key}_per_kg", ""))
    if each and patient.weight:
        weighed = each[0] * Decimal(str(patient.weight)), each[1]
        return min(weighed, fixed) if fixed and fixed[1] == each[1] else weighed
    return fixed


def basis_of(row: Row, key: str, limit: Amount) -> str:
    """How a limit was obtained: the fixed one of a row, or that by weight."""
    part = key if amount_in(row.get(key, "")) == limit else f"{key}_per_kg"
    return str(row.get("basis", {}).get(part, NOT_VERIFIED))


def applies(row: Row, patient: PatientState) -> bool:
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


def outdone(row: Row, others: Iterable[Row]) -> bool:
    """Whether one of the others is for some of a row's patients only, and not for all."""
    return any(narrower(other, row) and not narrower(row, other) for other in others)


def why_of(row: Row, patient: PatientState) -> str:
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


def one_dose(dosage: str, frequency: str, rows: Rows = ()) -> Amount | None:
    """One dose of an order: its puffs where rows count puffs ("160/4.5 mcg, 2 puffs"), so many pieces of a strength
    ("2.5 mg", "8 tabs"), else what is written."""
    counts = any("puff" in row.get("max_day", "") for row in rows)
    puffs = (item for item in quantities(f"{dosage} {frequency}") if counts and item.unit == "puff")
    leads = frequency.lstrip("x× ")[:1].isdigit()  # "2 tablets" behind other words are counted in the amount already
    pieces = [item.value for item in quantities(frequency) if leads and item.unit in PIECES]
    each = amount_in(dosage)
    counted = each and len(pieces) == 1 and each[1] not in PIECES and (each[0] * pieces[0], each[1])
    return next(((item.value, item.unit) for item in puffs), counted or each)


def value_of(text: str) -> Decimal:
    amount = amount_in(text)
    return amount[0] if amount else Decimal(0)


def told_amount(amount: Amount) -> str:
    return f"{amount[0]:,.4f}".rstrip("0").rstrip(".") + f" {amount[1]}"
