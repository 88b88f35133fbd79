"""What a message does to an entry that waits for approval. Words correct and reject; they never approve. Pure."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, cast

from docgemma.reading.labels import TOPICS
from docgemma.reading.terms import everyday
from docgemma.rules.corrections import ORDER_DETAILS
from docgemma.rules.known import replaced
from docgemma.rules.plan import NOT_SPECIFIED, order_args
from docgemma.rules.typed import ALSO, also_written
from docgemma.rules.waiting import is_of
from docgemma.state import PendingWrite, Request
from docgemma.text.words import clinical, listed, names, plain

NOT_UNDERSTOOD = (
    "The entry below is unchanged: what to change was not understood. Say the whole dose, reaction or note text, or "
    "edit the card."
)
NOT_APPROVED = "Not approved: words approve nothing. Approve or reject the entry below."
NOT_CARRIED = "Not carried over from {drug}: {notes}."
CARRIED = "Carried over from {drug}: {frequency}. Check it."
NOT_WAITING = "The entry below is unchanged: no entry of {drugs} waits."
CHANGED = ("orders", "allergies", "notes", "patients")  # of a request, by a correction
LOOKS_UP = frozenset([*TOPICS, "find", "safe", "ddi", "may", "lit", "trial", "img"])


def amendment(
    request: Request, last: Request, pending: PendingWrite, others: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """How the waiting card goes on. `others`: the arguments of the other entries that wait.

    Returns:
        {"decision": "reject" | "amend" | "hold", "args": {...}, "beside": a line above the card}. "hold": another
        question, which is answered first.
    """
    asks, said = set(request["asks"]), request["said"]
    asking = said.rstrip().endswith("?")
    named, unwanted = named_in(request), taken_back(request)
    mine = [drug for drug in named if is_of(drug, pending["args"], last)]
    waits = [drug for drug in named if any(is_of(drug, args, last) for args in others)]
    another = bool(request["orders"]) and request["meant"] == "ordered" and not request["corrects"]
    pointing = others and listed("request_words", "foremost", "latest", "ordinals") & set(plain(said).split())
    approved = names(listed("request_words", "approving"), said) and not asking
    if pointing and not (named or asking or approved):  # "leave the second one out", "back to the first, make it bd"
        return _decision("amend", beside=NOT_UNDERSTOOD)
    if unwanted and (another or all(drug in [*unwanted, *mine, *waits] for drug in named)):
        if any(drug in mine for drug in unwanted):  # "no naproxen, use celecoxib 100 mg bd"
            return _decision("reject")
        if not another:
            return _unchanged(unwanted)
    if (new := _swapped(request, pending, last)) and (mine or not others) and not asking:
        return _exchanged(pending["args"], new)
    if (scale := _scale(said)) and not asking:
        return _scaled(pending["args"].get("dosage") or "", scale)
    if _dropped(request, last, another):
        return _decision("reject")
    denied = listed("request_words", "denying") & set(plain(said).split())
    approving = approved and not (request["details"] or denied)
    approving = approving and all(drug in [*mine, *waits] for drug in request["drugs"]) and not request["patients"]
    if ("ok" in asks and asks <= {"ok", "chat"}) or (approving and (named or not asks & LOOKS_UP - {"find"})):
        return _decision("amend", beside=NOT_APPROVED)
    nobody = not (request["drugs"] or request["orders"] or request["patients"])
    refused = request["meant"] == "refused" and nobody and not asking  # "anything pending?"
    if ("cancel" in asks or refused) and not asks & LOOKS_UP:  # "hold on, what's his GFR": the card stays
        dropping = listed("request_words", "dropping")
        bare = any(names(dropping, part) and not names([drug["said"] for drug in named], part) for part in _parts(said))
        return _decision("reject") if bare or mine or not request["drugs"] else _unchanged(named)
    now, before = _entry(request, pending["name"]), _entry(last, pending["name"])
    changed = {name: value for name, value in now.items() if value and value != before.get(name)}
    if plain(changed.get("medication_name", "")) == plain(pending["args"].get("medication_name") or ""):  # of "doxy"
        changed.pop("medication_name", None)
    if request["corrects"] and before.get("notes") and not now.get("notes"):  # of another drug, or "not IM"
        changed["notes"] = ""
    told = now.get("medication_name") in (None, before.get("medication_name")) and request["meant"] == "ordered"
    told = told and len(request["orders"]) < 2 and "dosage" in now and not now.get("patient_id")  # "500 mg for 7 days"
    if not (request["corrects"] or told):
        nothing = not (asks or asking or named or request["patients"] or request["unclear"] or request["measures"])
        return _decision("amend", beside=NOT_UNDERSTOOD) if nothing else _decision("hold")
    doubtful = _doubtful(request, last, changed, bool(others), bool(mine)) or any(drug not in mine for drug in waits)
    if doubtful or not changed:
        return _decision("amend", beside=NOT_UNDERSTOOD)
    if "medication_name" in changed:
        return _exchanged(pending["args"], changed)
    rest = also_written(request) if pending["name"] == "add_allergy" else []  # "moderate, it is no real allergy"
    return _decision("amend", changed, ALSO.format("; ".join(f"“{text}”" for text in rest)) if rest else "")


def _swapped(request: Request, pending: PendingWrite, last: Request) -> dict[str, Any]:
    """The whole order that takes the place of the card's, "swap codeine for paracetamol 1 g qds", else {}."""
    swaps = listed("request_words", "swapping") & set(plain(request["said"]).split())
    drugs = {drug["said"]: drug for drug in request["drugs"]}
    whole = [order for order in request["orders"] if order["dose"] and order["frequency"]]
    others = [one for one in whole if not is_of(drugs.get(one["said"], {**one}), pending["args"], last)]
    if not swaps or len(others) != 1 or pending["name"] != "prescribe_medication":
        return {}
    return {"notes": "", **order_args(others[0]), "medication_name": others[0]["drug"]}


def _exchanged(before: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """The card with another drug; what is not carried over from the one before is said."""
    gone = before.get("notes") if before.get("notes") != changed.get("notes") else ""
    drug, often = before.get("medication_name"), before.get("frequency")
    told = [NOT_CARRIED.format(drug=drug, notes=gone)] if gone else []
    kept = often and "dosage" in changed and not changed.get("frequency")
    told += [CARRIED.format(drug=drug, frequency=often)] if kept else []
    return _decision("amend", changed, " ".join(told))


def _doubtful(request: Request, last: Request, changed: Mapping[str, Any], several: bool, mine: bool) -> bool:
    """Whether it is not sure that a correction is of this entry, or what all of it says: another dose beside it,
    "tramadol instead" where several wait."""
    words = plain(request["said"]).split()
    more = listed("request_words", "one_more") & set(words[:1]) and {"dosage", "frequency"} <= set(changed)
    other = "medication_name" in changed
    return bool(more or (other and several and not mine) or _left(request, last, other))


def _left(request: Request, last: Request, other_drug: bool) -> set[str]:
    """Words beside what a correction changes of an order that stand in no field of it and tell something all the same:
    "alternate with 6 mg", "folic stays daily"."""
    order: Mapping[str, Any] = request["orders"][-1] if request["orders"] else {}
    new = {word for name in (*ORDER_DETAILS, "said") for word in plain(str(order.get(name) or "")).split()}
    empty = listed("request_words", *clinical("request_words")["unfindable"])
    words = plain(request["said"]).split()
    courtesy = ("beside_scaling", "beside_change", "correcting", "altering", "changing", "opening", "back", "speaking")
    known = listed("request_words", *courtesy)
    known |= frozenset(plain(json.dumps(last["orders"], ensure_ascii=False)).split())
    known |= frozenset() if other_drug else empty | everyday()  # "neuro say 500 bd"
    old = {word for no, word in pairwise(words) if no in ("not", "than") and word[:1].isdigit()}
    known |= old | {"not"} if old else frozenset()  # "5/7 not 7"
    parts = [part for part in _clauses(request["said"]) if (new - empty) & set(plain(part).split())]
    runs = [run for part in parts for run in also_written(replaced(request, said=part))]
    return {word for run in runs for word in plain(run).split()} - known


def _clauses(said: str) -> list[str]:
    """The parts of a message between marks that no number has: "she's 63, no, 2.5 mg"."""
    for mark in (". ", ", ", "; ", "? ", "! ", " - ", " but "):
        said = said.replace(mark, "\n")
    return said.split("\n")


def _dropped(request: Request, last: Request, another: bool) -> bool:
    """Whether the entry that waits is taken back, or another is in its place: "scrap that", "swap to doxycycline"."""
    said, drugs = request["said"], [drug["said"] for drug in request["drugs"]]
    now, before = cast(Any, request), cast(Any, last)
    if request["corrects"] and any(now[kind] != before[kind] for kind in CHANGED):  # "no wait, 20 mg"
        return False
    named = request["drugs"] or request["orders"] or request["patients"] or request["details"]
    apart = [part for part in said.replace("?", ".").split(". ") if not names(drugs, part)]  # "scrap it. naloxone?"
    instead = names(listed("request_words", "replacing"), said)
    instead = instead or plain(_parts(said)[0]) in listed("request_words", "declining")
    back = names(listed("request_words", "dropping"), said if another or not named else " ; ".join(apart))
    return back or (another and instead)


def _decision(what: str, args: dict[str, Any] | None = None, beside: str = "") -> dict[str, Any]:
    return {"decision": what, "args": args or {}} | ({"beside": beside} if beside else {})


def _unchanged(drugs: list[dict[str, Any]]) -> dict[str, Any]:
    return _decision("amend", beside=NOT_WAITING.format(drugs=", ".join(drug["said"] for drug in drugs)))


def _parts(said: str) -> list[str]:
    """A message between its marks: "no. paracetamol 1 g", "forget the quetiapine, keep the melatonin"."""
    return said.translate(str.maketrans(",;?!", "....")).replace(" but ", ".").split(".")


def named_in(request: Request) -> list[dict[str, Any]]:
    """The drugs that the message itself names."""
    return [drug for drug in request["drugs"] if plain(drug["said"]) in plain(request["said"])]


def taken_back(request: Request) -> list[dict[str, Any]]:
    """The drugs that a message takes back by name: "skip the amlodipine", "not the ramipril"."""
    parts = {drug["said"]: plain(part).partition(plain(drug["said"])) for drug in named_in(request)
             for part in _parts(request["said"]) if names([drug["said"]], part)}  # fmt: skip
    before = {said: part[0].split() for said, part in parts.items() if not part[2].startswith((" is ", " was "))}
    words, pointing = listed("request_words", "unwanting"), listed("request_words", "unwanting", "pointing")
    told = {said for said, begun in before.items() if words & set(begun[:3]) and begun[-1] in pointing}
    asking = request["said"].rstrip().endswith("?")
    return [drug for drug in named_in(request) if drug["said"] in told and not asking]


def _scale(said: str) -> float | None:
    """By how much a message changes the dose and says nothing else: "halve it", "cut the dose in half"."""
    words, scales = set(plain(said).split()), clinical("request_words")["scaling"]
    told = {scales[word] for word in words & set(scales)}
    return told.pop() if len(told) == 1 and words - set(scales) <= listed("request_words", "beside_scaling") else None


def _scaled(dose: str, scale: float) -> dict[str, Any]:
    """The card with the dose so many times what stands there; unchanged where that is not one number."""
    unit = dose.lstrip("0123456789.,")
    number = dose[: len(dose) - len(unit)].replace(",", "")
    if not number.replace(".", "", 1).isdecimal() or any(map(str.isdigit, unit)):
        return _decision("amend", beside=NOT_UNDERSTOOD)
    return _decision("amend", {"dosage": f"{(Decimal(number) * Decimal(str(scale))).normalize():f}{unit}"})


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
