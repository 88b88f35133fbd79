"""Read the medicines that a CDS Hooks request drafts, as the order check takes them: name, one dose, how often."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from docgemma.api.cds_data import (
    SHAPE,
    HookRequest,
    check_owner,
    entries_of,
    is_readable,
    kind,
    medications,
    named,
    reference,
)
from docgemma.api.problems import Problem
from docgemma.ehr import facts
from docgemma.ehr.base import Resource
from docgemma.text.numbers import quantities
from docgemma.tools.untrusted import clean_text

ORDERS = 50  # medicines in one request
NAME_CHARS = 200
PIECES = ("tablet", "capsule", "")  # counted out by the strength in the name
TIMES = ("hour", "month")
HOURS = {"h": 1, "d": 24, "wk": 168}


@dataclass(frozen=True)
class Draft:
    """A drafted medicine; `doses`: (one dose, how often, the instruction's words), [] where the order says none."""

    reference: str
    name: str
    doses: list[tuple[str, str, str]]


def read_drafts(given: HookRequest) -> tuple[list[Draft], list[str]]:
    """The drafted medicines, and the references of orders that cannot be read.

    Raises:
        Problem: 422, there are too many, or one is of another patient.
    """
    entries = [(entry.fullUrl, entry.resource) for entry in entries_of(given) if entry.resource]
    resources = [resource for _, resource in entries]
    check_owner([item for item in resources if kind(item) != "Medication"], given.context.patientId)
    pool = medications(resources) | {url: item for url, item in entries if url and kind(item) == "Medication"}
    orders = [item for item in resources if kind(item).startswith("Medication") and kind(item) != "Medication"]
    if len(orders) > ORDERS:
        raise Problem(422, f"There are more than {ORDERS} medication orders.", "Send fewer at a time.")
    found, unreadable = list[Draft](), list[str]()
    for order in orders:
        if draft := _draft(named(order, pool)):
            found.append(draft)
        else:
            unreadable.append(reference(order))
    return found, unreadable


def selected(given: HookRequest) -> set[str] | None:
    """The references that order-select is about, None: all.

    Raises:
        Problem: 422, drafts or selections are missing, or a selection is not among the drafts.
    """
    chosen, at_hand = given.context.selections, {reference(entry.resource or {}) for entry in entries_of(given)}
    if given.hook == "order-select" and chosen is None:
        raise Problem(422, "The context has no `selections`.", "Send what was selected, as Type/id.")
    if given.hook != "order-select" or chosen is None:
        return None
    if not set(chosen) <= at_hand:
        raise Problem(422, "A selection is not among the `draftOrders`.", "Send each selected order with its id.")
    return set(chosen)


def _draft(order: Resource) -> Draft | None:
    """None of what is no readable MedicationRequest that names its medicine."""
    if kind(order) != "MedicationRequest" or not is_readable(order):
        return None
    try:
        name = clean_text(facts.medication({**order, "dosageInstruction": []})["name"], NAME_CHARS)
        items = [item for item in order.get("dosageInstruction") or [] if isinstance(item, dict)]
        doses = [(_dose(name, item), _frequency(item), _words(item)) for item in items]
    except (*SHAPE, InvalidOperation):
        return None
    return Draft(reference(order), name, [dose for dose in doses if any(dose)]) if name else None


def _dose(name: str, item: Resource) -> str:
    """One dose, "1000 mg"; pieces and millilitres are counted out by the strength in the product's name."""
    given = _first(item.get("doseAndRate")) or item
    amount = given.get("doseQuantity") or (given.get("doseRange") or {}).get("high") or {}
    told = f"{amount.get('value', '')} {amount.get('unit') or amount.get('code') or ''}".strip()
    said = quantities(told) or [item for item in quantities(str(item.get("text") or "")) if item.unit]
    one = next((quantity for quantity in said if quantity.unit not in TIMES), None)
    strengths = [quantity for quantity in quantities(name) if quantity.unit not in (*PIECES, *TIMES, "ml")]
    liquid = [part for part in name.lower().split() if part.endswith("/ml")]
    if one is None or not strengths or (one.unit in PIECES) == bool(liquid) or one.unit not in (*PIECES, "ml"):
        return clean_text(told or (f"{one.value:f} {one.unit}" if one else ""), 40)
    return " / ".join(f"{(one.value * quantity.value).normalize():f} {quantity.unit}" for quantity in strengths)


def _frequency(item: Resource) -> str:
    """How often, as the gate reads it: "2 times a day"; the instruction's own words where nothing is coded."""
    timing = _first(item.get("timing"))
    repeat, said = timing.get("repeat") or {}, facts.concept(timing.get("code"))
    count, unit = repeat.get("frequencyMax") or repeat.get("frequency"), HOURS.get(str(repeat.get("periodUnit")))
    if not (count and unit):
        return clean_text(said or str(item.get("text") or ""), 120)
    period = Decimal(str(repeat.get("period", 1))) * unit
    a_day = Decimal(str(count)) * 24 / period if period else Decimal(0)
    if a_day >= 1 and a_day == a_day.to_integral():
        return f"{a_day:f} times a day"
    return f"every {period / 24:f} days" if count == 1 else f"{count} times in {period} hours"


def _words(item: Resource) -> str:
    route, needed = facts.concept(item.get("route")), "as needed" if item.get("asNeededBoolean") else ""
    return clean_text(" ".join(filter(None, (route, needed, str(item.get("text") or "")))), 200)


def _first(value: Any) -> Resource:
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, dict) else {}
