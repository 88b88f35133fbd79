"""Check each drug that is considered for each patient of the turn: the same code as before an order."""

from typing import Any

from docgemma.nodes.context import Context
from docgemma.nodes.write_findings import findings_for
from docgemma.rules import known
from docgemma.state import AgentState, OrderRef, Request
from docgemma.text.drugs import ingredients


def order_checks(state: AgentState, context: Context) -> dict[tuple[str, str], list[str]]:
    """(patient id, drug) -> findings, the worst first, for everything that is asked about and not ordered."""
    request = known.request(state)
    asked = set(request["asks"])
    checked = asked & {"may"} or (request["meant"] in ("asked", "unsure") and request["orders"])
    about = checked or (known.drugs(state) and asked & {"safe", "ddi"})
    found: dict[tuple[str, str], list[str]] = {}
    for item in known.charts(state) if about else []:
        patient = item["result"]["patient"]["id"]
        for order in _new(_considered(request, known.drugs(state)), item["result"], context):
            args = {
                "patient_id": patient,
                "medication_name": order["drug"],
                "dosage": order["dose"],
                "frequency": order["frequency"],
            }
            found[patient, order["drug"]] = findings_for(args, context)
    return found


def _new(orders: list[OrderRef], chart: dict[str, Any], context: Context) -> list[OrderRef]:
    """What is not taken already; where all of it is, all of it."""
    active = {
        part for item in chart["medications"] if item["active"] for part in ingredients(item["name"], context.drugs)
    }
    new = [order for order in orders if not ingredients(order["drug"], context.drugs) <= active]
    return new or orders


def _considered(request: Request, names: list[str]) -> list[OrderRef]:
    """The drugs with the doses that were said of them; what is no drug is not checked, and is said not to be one."""
    orders = list(request["orders"])
    named = {order["drug"].casefold() for order in orders}
    details = request["details"]
    for name in names:
        if name.casefold() not in named:
            orders.append(OrderRef(
                said=name, drug=name, how="named", dose=details.get("dose", ""), route="",
                frequency=details.get("frequency", ""), notes="",
            ))  # fmt: skip
    return orders
