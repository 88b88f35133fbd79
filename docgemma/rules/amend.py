"""What a message does to an entry that waits for approval. Words correct and reject; they never approve. Pure."""

from typing import Any

from docgemma.reading.labels import TOPICS
from docgemma.rules.plan import NOT_SPECIFIED, order_args
from docgemma.state import PendingWrite, Request
from docgemma.text.words import listed, names

NOT_UNDERSTOOD = (
    "The entry below is unchanged: what to change was not understood. Say the whole dose, reaction or note text, or "
    "edit the card."
)
NOT_APPROVED = "Not approved: words approve nothing. Approve or reject the entry below."
LOOKS_UP = frozenset([*TOPICS, "find", "safe", "ddi", "may", "lit", "trial", "img"])


def amendment(request: Request, last: Request, pending: PendingWrite) -> dict[str, Any]:
    """How the waiting card goes on.

    Returns:
        {"decision": "reject" | "amend" | "hold", "args": {...}, "beside": a line above the card}. "hold": another
        question, which is answered first.
    """
    asks = set(request["asks"])
    said, asking = request["said"], request["said"].rstrip().endswith("?")
    refused = request["meant"] == "refused" and not (request["drugs"] or request["orders"] or request["patients"])
    refused = refused and not asking  # "anything pending?"
    named = request["drugs"] or request["orders"] or request["patients"] or request["details"]
    another = bool(request["orders"]) and request["meant"] == "ordered" and not request["corrects"]
    drugs = [drug["said"] for drug in request["drugs"]]
    apart = [part for part in said.replace("?", ".").split(". ") if not names(drugs, part)]  # "scrap it. naloxone?"
    now, before = _entry(request, pending["name"]), _entry(last, pending["name"])
    dropped = names(listed("request_words", "dropping"), said if another or not named else " ; ".join(apart))
    dropped = dropped or (another and names(listed("request_words", "replacing"), said))  # "swap to doxycycline 100 bd"
    if dropped or (("cancel" in asks or refused) and not asks & LOOKS_UP):  # "hold on, what's his GFR": the card stays
        return _decision("reject")
    if asks <= {"ok", "chat"} and "ok" in asks:
        return _decision("amend", beside=NOT_APPROVED)
    changed = {name: value for name, value in now.items() if value and value != before.get(name)}
    told = now.get("medication_name") in (None, before.get("medication_name")) and request["meant"] == "ordered"
    told = told and len(request["orders"]) < 2 and "dosage" in now and not now.get("patient_id")  # "500 mg for 7 days"
    if not (request["corrects"] or told):
        return _decision("hold")
    return _decision("amend", changed) if changed else _decision("amend", beside=NOT_UNDERSTOOD)


def _decision(what: str, args: dict[str, Any] | None = None, beside: str = "") -> dict[str, Any]:
    return {"decision": what, "args": args or {}} | ({"beside": beside} if beside else {})


def _entry(request: Request, tool: str) -> dict[str, Any]:
    """The arguments of the last entry that a request asks for."""
    entry: dict[str, Any] = {}
    if tool == "prescribe_medication" and request["orders"]:
        order = request["orders"][-1]
        entry = order_args(order) | {"medication_name": order["drug"] or order["said"]}
        entry["frequency"] = entry["frequency"].removeprefix(NOT_SPECIFIED)
    elif tool == "prescribe_medication" and request["meant"] == "ordered":
        entry = order_args(request["details"])
    elif tool == "add_allergy" and request["allergies"]:
        entry = dict(request["allergies"][-1])
    elif tool == "save_clinical_note" and request["notes"]:
        entry = dict(request["notes"][-1])
    return entry | ({"patient_id": request["patients"][0]["id"]} if request["patients"] else {})
