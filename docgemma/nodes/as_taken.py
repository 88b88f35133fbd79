"""The drugs and orders of a request beside the medicines that its patient takes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from docgemma.nodes.context import Context
from docgemma.reading.drugs import link_drug, said_for
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.request import as_drug
from docgemma.reading.terms import measure_said, said_in
from docgemma.rules import known
from docgemma.state import ActivePatient, Request
from docgemma.text.drugs import ingredients
from docgemma.text.numbers import quantities
from docgemma.text.words import listed, names, plain
from docgemma.tools.records import chart_data

BESIDE = frozenset({"labs", "vit", "imm"})  # asks beside which a drug that is not taken is considered


def with_medicine(request: Request, last: Request, active: ActivePatient, context: Context) -> Request:
    """The request before, with the one medicine that it was about where neither names a drug: all that the patient
    takes, or takes of a kind that was asked for. "any reason not to leave her on it" goes on with that."""
    others = [key for key in ("drugs", "orders") if request[key] or last[key]] or request["patients"]
    kinds = [kind for measure in last["measures"] for kind in said_in(measure, "medications")]
    about = not others and not request["unclear"] and len(last["patients"]) < 2 and "meds" in last["asks"]
    charted = _taken_now(known.replaced(last, patients=[]), active, context) if about else []
    taken = known.unique(item["name"] for item in charted)
    mine = [name for name in taken if not kinds or any(names(kind["match"], name) for kind in kinds)]
    drugs = [as_drug(link_drug(name, context.drugs), context.drugs) for name in mine]
    return known.replaced(last, drugs=drugs) if len(drugs) == 1 else last


def as_taken(request: Request, active: ActivePatient | None, context: Context, before: str = "") -> Request:
    """The drugs; of a group beside another drug what the patient takes of it ("he's on water pills"), beside its own
    member none ("abx, micro say cipro"); an ambiguous name is the reading that is taken ("levo"). What is not taken
    though it seems so is checked ("duloxetine dose? interacts with tramadol?")."""
    taken = _taken_now(request, active, context) if request["drugs"] or len(request["orders"]) > 1 else []
    medicines, drugs = {item["name"]: ingredients(item["name"], context.drugs) for item in taken}, []
    parts_of = {drug["said"]: ingredients(drug["name"], context.drugs) for drug in request["drugs"]}
    for drug in request["drugs"]:
        group = [ingredients(name, context.drugs) for name in said_for("groups").get(drug["name"], {}).get("drugs", [])]
        others = [parts for said, parts in parts_of.items() if said != drug["said"]]
        mine = [name for name, parts in medicines.items() if parts in group]
        said = plain(drug["said"])
        also = said_for("abbreviations").get(said, {}).get("also", "")  # "pred" is prednisone of who takes that
        readings = said_for("ambiguous").get(said, {}).get("readings", [also])
        meant = [name for name in readings if ingredients(name, context.drugs) in medicines.values()]
        if drug["how"] == "unknown" and not meant:  # "?uti. nitro ok?"
            uses = said_in(f"{request['said']}. {before}", "uses")  # of the message `before` too
            meant = [name for name in readings if any(name in use["drugs"] for use in uses)]
        if drug["how"] == "group" and any(parts in group for parts in others):
            drug = {**drug, "members": []}
        elif drug["how"] == "group" and mine and any(parts not in medicines.values() for parts in others):
            drug = {**drug, "members": mine, "taken": True}
        elif (drug["how"] == "unknown" or also) and len(meant) == 1:
            drug = {**drug, "name": meant[0], "generic": meant[0], "how": "short"}
        drugs.append(drug)
    checked = ["may"] if _not_taken(request, active, medicines, context) else []
    short = {drug["said"]: drug["name"] for drug in drugs if drug["how"] == "short"}
    meant_by = {said: {"said": name, "drug": name, "how": "short"} for said, name in short.items()}
    orders: list[Any] = [
        {**order, **meant_by.get(order["said"], {})}
        if order["how"] == "unknown" or short.get(order["said"], order["drug"]) != order["drug"] else order
        for order in request["orders"]
    ]  # fmt: skip
    if len(orders) > 1:
        orders = _not_had(orders, taken, context)
    return known.replaced(request, drugs=drugs, orders=orders, asks=[*request["asks"], *checked])


def _not_had(orders: list[Any], taken: list[dict[str, Any]], context: Context) -> list[Any]:
    """The orders without what is taken already in that dose, or is named without one, beside another:
    "gabapentin 300 tid is on board. i'd add amitriptyline 10 mg qhs"."""
    had = [(ingredients(item["name"], context.drugs), _amounts(str(item["dosage"]))) for item in taken]
    new = [
        order for order in orders
        if not any(parts & ingredients(order["drug"], context.drugs) and {*_amounts(order["dose"])[:1]} <= {*doses}
                   for parts, doses in had)
    ]  # fmt: skip
    return new or orders


def _amounts(dosage: str) -> list[Decimal]:
    return [item.value for item in quantities(dosage)]


def _taken_now(request: Request, active: ActivePatient | None, context: Context) -> list[dict[str, Any]]:
    """The active medicines of the only patient who is meant; none of several, or of nobody."""
    who = [patient["id"] for patient in request["patients"]] or ([active["id"]] if active else [])
    stored = context.store.chart(who[0]) if len(who) == 1 else None
    return [item for item in chart_data(stored)["medications"] if item["active"]] if stored else []


def _not_taken(
    request: Request, active: ActivePatient | None, medicines: Mapping[str, frozenset[str]], context: Context
) -> bool:
    """Whether medicines are asked for, and one that is named is not taken, where several or a dose are: "gerd -
    omeprazole or protonix?" and "hydroxyzine 25 x1?" ask whether it suits."""
    named = [ingredients(drug["name"], context.drugs) for drug in request["drugs"] if drug["how"] != "group"]
    dosed = request["details"].get("dose") or any(order["dose"] for order in request["orders"])
    how_much = any(topic.get("beside") for topic in said_in(request["said"], "label_topics"))  # "what dose of apixaban"
    words = {*plain(request["said"]).split()}
    how_much = how_much or bool(listed("request_words", "under_way") & words)  # "tpa running, is he on an acei?"
    several = len(named) > 1 or (named and (dosed or how_much))
    who = len(request["patients"]) or bool(active)
    asks = set(request["asks"])
    told = "meds" in asks or (dosed and asks & set(TOPICS) and not asks & set(WRITES))  # "planning cipro 250 bid. gfr?"
    measured = any(measure_said(plain(drug["said"])) for drug in request["drugs"])
    measures = " ; ".join(map(plain, request["measures"]))  # "after viagra. is he on nitrates?" asks of another drug
    aside = measures and not any(plain(drug["said"]) in measures for drug in request["drugs"])
    begun = listed("request_words", "beginning") & words and not listed("request_words", "allergy_words") & words
    others = [*(["meds"] if aside else []), *(["alg"] if begun else [])]  # "saw an ad for jardiance. add it?"
    beside = bool(named and asks) and not measured and asks <= {*BESIDE, *others}
    if not (beside or (told and several)) or "may" in asks or who != 1:
        return False
    taken = frozenset[str]().union(*medicines.values())
    return not all(parts & taken for parts in named)
