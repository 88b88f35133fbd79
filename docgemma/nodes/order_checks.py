"""Check each drug that is considered for each patient of the turn: the same code as before an order."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from docgemma.nodes.context import Context
from docgemma.nodes.taken_against import taken_against
from docgemma.nodes.write_card import is_bare, with_unit
from docgemma.nodes.write_findings import order_findings
from docgemma.rules import known
from docgemma.rules.dose_answer import strength_in
from docgemma.rules.order_check import MAJOR, Finding
from docgemma.rules.patient_state import as_told, patient_state
from docgemma.rules.typed import typed_values
from docgemma.state import AgentState
from docgemma.text.drugs import ingredients
from docgemma.text.numbers import quantities
from docgemma.text.shorthand import expanded
from docgemma.tools.records import active_ingredients

CONCENTRATIONS = ("/l", "/dl")
Considered = tuple[str, str, str, str]  # drug, dose, frequency, route and instructions
Orders = list[Considered]


def order_checks(state: AgentState, context: Context) -> dict[tuple[str, str], list[Finding]]:
    """(patient id, drug) -> findings for everything that is asked about and not ordered; where no drug is named ("is he
    on anything to worry about with that?") what results say against the medicines that are taken."""
    request = known.request(state)
    asked = set(request["asks"])
    checked = asked & {"may"} or (request["meant"] in ("asked", "unsure", "refused") and request["orders"])
    told = [request["details"], *(drug.get("details") for drug in request["drugs"]), [*typed_values(request["said"])]]
    weighed = asked & {"trial", "labs"} and any(told)  # "clozapine 6.25, any trial?", "lymphocytes 0.4 on DMF"
    about = checked or (known.drugs(state) and (weighed or asked & {"safe", "ddi", "change"}))
    found: dict[tuple[str, str], list[Finding]] = {}
    for item in known.charts(state) if about else []:
        patient = item["result"]["patient"]["id"]
        fresh, held = _considered(state, item["result"], context)
        named, active = fresh or held, item["result"]["medications"]
        beside = held if fresh and "may" in asked else []  # "metformin ok? and ibuprofen": what is grave of both
        if "change" in asked and not checked:  # "wants back on yaz": what is not taken is new
            active, named = [], fresh
        taken = [(entry["name"], "", "", "") for entry in active if entry["active"]]
        for order in [*(named or taken), *beside]:
            drug, dose, often, said = order
            args = {"patient_id": patient, "medication_name": drug, "dosage": dose, "frequency": often, "notes": said}
            args |= {"told": known.told(request)} if len(known.charts(state)) == 1 else {}
            judged = order_findings(args, item["result"], context)
            if order in beside:
                judged = [finding for finding in judged if finding.rank <= MAJOR and finding.first]
            if not found:
                told_of = as_told(str(args.get("told") or ""), patient_state(item["result"], date.today()))
                judged += taken_against(args, item["result"], told_of, context)
            if kept := [finding for finding in judged if named or finding.first.startswith("latest")]:
                found[patient, drug] = kept
    return found


def _considered(state: AgentState, chart: dict[str, Any], context: Context) -> tuple[Orders, Orders]:
    """The drugs with the doses that were said of them, and those that are taken already, with the dose of the record;
    what is no drug is not checked, and is said not to be one.

    A loose dose is that of the only drug named; one without a unit that is no usual dose is not judged.
    """
    request, active = known.request(state), active_ingredients(chart, context.drugs)
    others = [item["substance"] for item in request["allergies"]]  # "is it the amox, add penicillin allergy"
    for members in (drug["members"] for drug in request["drugs"] if drug["how"] == "group"):
        taken = [name for name in members if ingredients(name, context.drugs) <= active]
        others += [name for name in members if taken and name not in taken]  # "on her pill" is the one she takes
    names = [name for name in known.drugs(state) if name not in others]
    given = {drug["name"]: drug["details"] for drug in request["drugs"] if drug.get("details")}
    strength = "/" in request["details"].get("dose", "") and strength_in(request["said"])  # "susp 100/5" is no dose
    alone = request["details"] if len(names) == 1 and not strength else {}
    said = {order["drug"].casefold(): _told(order["drug"], order, context) for order in request["orders"]}
    asked = [
        *said.values(),
        *(_told(name, given.get(name, alone), context) for name in names if name.casefold() not in said),
    ]
    held = [order for order in asked if ingredients(order[0], context.drugs) <= active]
    fresh = [order for order in asked if order not in held]
    return fresh, [_recorded(order, chart, context) for order in held]


def _recorded(order: Considered, chart: dict[str, Any], context: Context) -> Considered:
    """A medicine that is taken with the dose of the record, where none was said: "100 mg", "once daily"."""
    parts = ingredients(order[0], context.drugs)
    active = (item for item in chart["medications"] if item["active"])
    taken = [item for item in active if parts & ingredients(item["name"], context.drugs)]
    words = taken[0]["dosage"].split() if len(taken) == 1 and not order[1] else []
    size = 1 if any(item.unit for item in quantities("".join(words[:1]))) else 2  # "1g three times daily"
    dose, often = " ".join(words[:size]), words[size:]
    counted = often and words[size - 1][-1:].isalpha() and any(item.unit for item in quantities(dose))
    return (order[0], dose, " ".join(often), order[3]) if counted else order


def _told(drug: str, told: Mapping[str, Any], context: Context) -> Considered:
    said = f"{told.get('route', '')} {told.get('notes', '')}"
    dose = with_unit(told.get("dose", ""), drug, context, said)
    dose = "" if is_bare(dose) or dose.casefold().endswith(CONCENTRATIONS) else dose  # "glucose 2.9 mmol/l"
    return drug, dose, expanded(told.get("frequency", ""), "frequencies"), said
