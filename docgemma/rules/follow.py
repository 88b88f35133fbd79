"""What a message takes over from the one before it: a correction's order, a follow-up's drugs and measures. Pure."""

from typing import Any

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.words import plain
from docgemma.rules.known import unique
from docgemma.state import AgentState, OrderRef, Request

PRONOUNS = frozenset(["he", "him", "his", "she", "her", "hers"])
BRIEF = 5  # words of a follow-up that takes the drugs of the message before to another patient
ORDER_FIELDS = {"dose": "dose", "route": "route", "frequency": "frequency", "notes": "notes"}


def carried(request: Request, last: Request | None, patient_open: bool) -> Request:
    """The request, completed from the last one.

    Args:
        request: of this message.
        last: of the message before, completed itself; None in a new conversation.
        patient_open: whether a patient is open.
    """
    if "allergy" in request["asks"] and not request["allergies"]:  # no entry without its substance: the list is meant
        request = Request(**{**request, "asks": unique([*(ask for ask in request["asks"] if ask != "allergy"), "alg"])})
    asks = set(request["asks"])
    if "fix" in asks and last:
        return corrected(request, last)
    new: dict[str, Any] = {}
    somebody = request["patients"] or request["unclear"]
    if last:
        if (
            somebody
            and not asks - {"find", "chat"}
            and last["asks"]
            and not (last["patients"] or last["unclear"] or patient_open)
        ):
            return Request(
                **{**last, "patients": request["patients"], "unclear": request["unclear"], "said": request["said"]}
            )
        if asks & set(TOPICS) and not request["measures"] and somebody and asks & set(last["asks"]):
            new["measures"] = last["measures"]
        brief = len(request["said"].split()) <= BRIEF  # "and for Souza?"
        if asks & {"may", "ddi", "safe"} and not request["drugs"] and not request["orders"] and (brief or not somebody):
            new["drugs"] = last["drugs"] or [_as_drug(order) for order in last["orders"]]
        elif "ddi" in asks and len(request["drugs"]) == 1 and not somebody and not patient_open:
            new["drugs"] = _distinct([*request["drugs"], *last["drugs"]])
    if last and "trial" in asks and not (request["conditions"] or request["trials"]):
        new |= {"conditions": last["conditions"], "condition": last["condition"]}
    if request["drugs"] and (somebody or patient_open) and asks <= {"chart", "chat", "gk", "oos", "find", "demo"}:
        new["asks"] = ["may"]  # a patient and a drug is an order check
    few = len(new.get("drugs", request["drugs"])) < 2
    if "ddi" in asks and few and (somebody or patient_open):  # with, or among, what the patient takes
        new["asks"] = unique([*request["asks"], "may"])
    about_them = PRONOUNS & set(plain(request["said"]).replace("'s", "").split())
    if (
        "asks" not in new
        and patient_open
        and not somebody
        and about_them
        and asks <= {"chat", "gk", "oos", "find", "fix"}
    ):
        new["asks"] = ["chart"]  # somebody who is open is spoken of, and nothing else was understood
    if "may" in asks and not somebody and not patient_open:  # nobody to check it for: what the labels say in general
        drugs = new.get("drugs", request["drugs"])
        general = ["safe", *(["ddi"] if len(drugs) > 1 else [])] if drugs else []
        new["asks"] = unique([*request["asks"], *general])
    return Request(**{**request, **new})


def corrected(request: Request, last: Request) -> Request:
    """The last request with what this message changes of it."""
    new: dict[str, Any] = {"said": request["said"], "meant": last["meant"], "corrects": True}
    for field in ("patients", "unclear", "drugs", "orders", "allergies", "notes", "measures"):
        if request[field]:
            new[field] = request[field]
    if request["patients"] or request["unclear"]:
        new["patients"], new["unclear"], new["owners"] = request["patients"], request["unclear"], {}
    details = request["details"]
    writes = set(last["asks"]) & set(WRITES)
    if last["orders"] and "rx" in writes and (details or request["drugs"] or request["orders"]):
        new["orders"] = [*last["orders"][:-1], _changed(last["orders"][-1], request)]
    if last["allergies"] and "allergy" in writes and (details or request["allergies"] or request["drugs"]):
        new["allergies"] = [*last["allergies"][:-1], _changed_allergy(last["allergies"][-1], request)]
    return Request(**{**last, **new})


def _changed(order: OrderRef, request: Request) -> OrderRef:
    """An order with other details, or another drug."""
    changes: dict[str, str] = {}
    given = request["orders"][0] if request["orders"] else None
    if given:
        changes = {name: value for name, value in given.items() if value}
    elif request["drugs"]:
        drug = request["drugs"][-1]
        changes = {"said": drug["said"], "drug": drug["name"], "how": drug["how"]}
    changes |= {field: request["details"][name] for name, field in ORDER_FIELDS.items() if name in request["details"]}
    if changes.get("dose", "x").replace(".", "", 1).isdigit():  # "make it 500": of the unit that was said
        changes["dose"] = f"{changes['dose']} {order['dose'].lstrip('0123456789., ')}".strip()
    return OrderRef(**{**order, **changes})


def _changed_allergy(entry: dict[str, str], request: Request) -> dict[str, str]:
    given = request["allergies"][0] if request["allergies"] else {}
    changes = {name: value for name, value in given.items() if value}
    if not given and request["drugs"]:
        changes["substance"] = request["drugs"][-1]["said"]
    changes |= {name: request["details"][name] for name in ("reaction", "severity") if name in request["details"]}
    return {**entry, **changes}


def recorded_before(state: AgentState) -> bool:
    """Whether the turn before wrote an entry: a correction of it would have to change what stands in the record."""
    return any(
        item["writes"] and not item["error"] and item["result"].get("decision") != "rejected"
        for item in state.get("tool_results") or []
    )  # fmt: skip


def _as_drug(order: OrderRef) -> dict[str, str]:
    return {"said": order["said"], "name": order["drug"], "how": order["how"]}


def _distinct(drugs: list[dict[str, str]]) -> list[dict[str, str]]:
    kept = unique(drug["name"] for drug in drugs)
    return [next(drug for drug in drugs if drug["name"] == name) for name in kept]
