"""Check each drug that is considered for each patient of the turn: the same code as before an order."""

from collections.abc import Mapping
from typing import Any

from docgemma.nodes.context import Context
from docgemma.nodes.write_card import is_bare, with_unit
from docgemma.nodes.write_findings import order_findings
from docgemma.rules import known
from docgemma.rules.order_check import Finding
from docgemma.state import AgentState, Request
from docgemma.text.drugs import ingredients
from docgemma.tools.records import active_ingredients

Considered = tuple[str, str, str, str]  # drug, dose, frequency, route and instructions


def order_checks(state: AgentState, context: Context) -> dict[tuple[str, str], list[Finding]]:
    """(patient id, drug) -> findings for everything that is asked about and not ordered."""
    request = known.request(state)
    asked = set(request["asks"])
    checked = asked & {"may"} or (request["meant"] in ("asked", "unsure", "refused") and request["orders"])
    about = checked or (known.drugs(state) and asked & {"safe", "ddi"})
    found: dict[tuple[str, str], list[Finding]] = {}
    for item in known.charts(state) if about else []:
        patient = item["result"]["patient"]["id"]
        for drug, dose, often, said in _new(_considered(request, known.drugs(state), context), item["result"], context):
            args = {"patient_id": patient, "medication_name": drug, "dosage": dose, "frequency": often, "notes": said}
            found[patient, drug] = order_findings(args, item["result"], context)
    return found


def _new(orders: list[Considered], chart: dict[str, Any], context: Context) -> list[Considered]:
    """What is not taken already; where all of it is, all of it."""
    active = active_ingredients(chart, context.drugs)
    return [order for order in orders if not ingredients(order[0], context.drugs) <= active] or orders


def _considered(request: Request, names: list[str], context: Context) -> list[Considered]:
    """The drugs with the doses that were said of them; what is no drug is not checked, and is said not to be one.

    A loose dose is that of the only drug named; one without a unit that is no usual dose is not judged.
    """
    details = request["details"] if len(names) == 1 else {}
    ordered = [_told(order["drug"], order, context) for order in request["orders"]]
    said = {item[0].casefold() for item in ordered}
    return [*ordered, *(_told(name, details, context) for name in names if name.casefold() not in said)]


def _told(drug: str, told: Mapping[str, Any], context: Context) -> Considered:
    dose = with_unit(told.get("dose", ""), drug, context)
    dose = "" if is_bare(dose) else dose
    return drug, dose, told.get("frequency", ""), f"{told.get('route', '')} {told.get('notes', '')}"
