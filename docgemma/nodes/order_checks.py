"""Check each drug that is considered for each patient of the turn: the same code as before an order."""

from typing import Any

from docgemma.nodes.context import Context
from docgemma.nodes.write_card import is_bare, with_unit
from docgemma.nodes.write_findings import order_findings
from docgemma.rules import known
from docgemma.rules.order_check import Finding
from docgemma.state import AgentState, Request
from docgemma.text.drugs import ingredients
from docgemma.tools.records import active_ingredients

Considered = tuple[str, str, str]  # drug, dose, frequency


def order_checks(state: AgentState, context: Context) -> dict[tuple[str, str], list[Finding]]:
    """(patient id, drug) -> findings for everything that is asked about and not ordered."""
    request = known.request(state)
    asked = set(request["asks"])
    checked = asked & {"may"} or (request["meant"] in ("asked", "unsure") and request["orders"])
    about = checked or (known.drugs(state) and asked & {"safe", "ddi"})
    found: dict[tuple[str, str], list[Finding]] = {}
    for item in known.charts(state) if about else []:
        patient = item["result"]["patient"]["id"]
        for drug, dose, frequency in _new(_considered(request, known.drugs(state), context), item["result"], context):
            args = {"patient_id": patient, "medication_name": drug, "dosage": dose, "frequency": frequency}
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
    dose = with_unit(details.get("dose", ""), names[0], context) if details else ""
    dose = "" if is_bare(dose) else dose
    ordered = [(order["drug"], order["dose"], order["frequency"]) for order in request["orders"]]
    said = {drug.casefold() for drug, _, _ in ordered}
    named = [(name, dose, details.get("frequency", "")) for name in names]
    return [*ordered, *(item for item in named if item[0].casefold() not in said)]
