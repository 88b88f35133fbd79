"""What a message does to an entry that waits for approval. Words correct and reject; they never approve. Pure."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from docgemma.reading.labels import TOPICS
from docgemma.rules.follow import as_written
from docgemma.rules.plan import NOT_SPECIFIED, order_args
from docgemma.state import AgentState, Held, PendingWrite, Request
from docgemma.text.words import clinical, listed, names, plain

NOT_UNDERSTOOD = (
    "The entry below is unchanged: what to change was not understood. Say the whole dose, reaction or note text, or "
    "edit the card."
)
NOT_APPROVED = "Not approved: words approve nothing. Approve or reject the entry below."
NOT_WAITING = "The entry below is unchanged: no entry of {drugs} waits."
LOOKS_UP = frozenset([*TOPICS, "find", "safe", "ddi", "may", "lit", "trial", "img"])


def as_held(state: AgentState, tool: str, args: dict[str, Any], original: dict[str, str]) -> Held:
    """The card in front, with its turn, as it waits; its request as the card reads by now."""
    earlier = state.get("reopened")
    results = earlier["results"] if earlier else state.get("tool_results") or []
    entries = [item["args"] for item in results if item["writes"] and not item["error"]]
    return Held(
        tool=tool, args=args, original=original, turn_id=state["turn_id"], message=state["message"],
        user_query=state["user_query"], request=as_written(state["request"], [*entries, args | original]),
        results=results,
    )  # fmt: skip


def entry_meant(request: Request, waiting: Sequence[Held]) -> int:
    """Which of the entries that wait a message rejects or corrects by its drug's name; the one in front, 0, if none."""
    for named in (_unwanted(request), _named(request)):
        of_it = [any(_is_of(drug, one["args"], one["request"]) for drug in named) for one in waiting]
        if any(of_it):
            return of_it.index(True) if named != _named(request) or sum(of_it) == 1 else 0
    return 0


def amendment(
    request: Request, last: Request, pending: PendingWrite, others: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """How the waiting card goes on. `others`: the arguments of the other entries that wait.

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
    mine = [drug for drug in _named(request) if _is_of(drug, pending["args"], last)]
    ordered_too = [{"medication_name": order["drug"]} for order in last["orders"]]
    waits = [drug for drug in _named(request) if any(_is_of(drug, args, last) for args in [*others, *ordered_too])]
    unwanted = _unwanted(request)
    if unwanted and all(drug in [*unwanted, *mine, *waits] for drug in _named(request)):
        return _decision("reject") if any(drug in mine for drug in unwanted) else _unchanged(unwanted)
    if (scale := _scale(said)) and not asking:
        return _scaled(pending["args"].get("dosage") or "", scale)
    apart = [part for part in said.replace("?", ".").split(". ") if not names(drugs, part)]  # "scrap it. naloxone?"
    now, before = _entry(request, pending["name"]), _entry(last, pending["name"])
    dropped = names(listed("request_words", "dropping"), said if another or not named else " ; ".join(apart))
    dropped = dropped or (another and names(listed("request_words", "replacing"), said))  # "swap to doxycycline 100 bd"
    dropped = dropped or (another and plain(_parts(said)[0]) in listed("request_words", "declining"))
    if dropped or (("cancel" in asks or refused) and not asks & LOOKS_UP):  # "hold on, what's his GFR": the card stays
        bare = any(names(listed("request_words", "dropping"), part) for part in _parts(said) if not names(drugs, part))
        return _decision("reject") if dropped or bare or mine or not drugs else _unchanged(_named(request))
    approving = names(listed("request_words", "approving"), said) and not (asking or named)
    if ("ok" in asks and asks <= {"ok", "chat"}) or (approving and asks <= {"ok", "chat", "find", "oos", "rx"}):
        return _decision("amend", beside=NOT_APPROVED)
    changed = {name: value for name, value in now.items() if value and value != before.get(name)}
    told = now.get("medication_name") in (None, before.get("medication_name")) and request["meant"] == "ordered"
    told = told and len(request["orders"]) < 2 and "dosage" in now and not now.get("patient_id")  # "500 mg for 7 days"
    if not (request["corrects"] or told):
        return _decision("hold")
    if any(drug not in mine for drug in waits):  # of another entry, whose drug this one never becomes
        return _decision("amend", beside=NOT_UNDERSTOOD)
    return _decision("amend", changed) if changed else _decision("amend", beside=NOT_UNDERSTOOD)


def _decision(what: str, args: dict[str, Any] | None = None, beside: str = "") -> dict[str, Any]:
    return {"decision": what, "args": args or {}} | ({"beside": beside} if beside else {})


def _unchanged(drugs: list[dict[str, Any]]) -> dict[str, Any]:
    return _decision("amend", beside=NOT_WAITING.format(drugs=", ".join(drug["said"] for drug in drugs)))


def _parts(said: str) -> list[str]:
    """A message between its marks: "no. paracetamol 1 g", "forget the quetiapine, keep the melatonin"."""
    return said.translate(str.maketrans(",;?!", "....")).replace(" but ", ".").split(".")


def _named(request: Request) -> list[dict[str, Any]]:
    """The drugs that the message itself names."""
    return [drug for drug in request["drugs"] if plain(drug["said"]) in plain(request["said"])]


def _unwanted(request: Request) -> list[dict[str, Any]]:
    """The drugs that a message takes back by name: "skip the amlodipine", "not the ramipril"."""
    before = {drug["said"]: plain(part).partition(plain(drug["said"]))[0].split() for drug in _named(request)
              for part in _parts(request["said"]) if names([drug["said"]], part)}  # fmt: skip
    words, pointing = listed("request_words", "unwanting"), listed("request_words", "unwanting", "pointing")
    told = {said for said, begun in before.items() if words & set(begun[:3]) and begun[-1] in pointing}
    asking = request["said"].rstrip().endswith("?")
    return [drug for drug in _named(request) if drug["said"] in told and not asking]


def _is_of(drug: dict[str, Any], args: dict[str, Any], request: Request) -> bool:
    """Whether a drug is that of an entry: "metoprolol" is of "metoprolol tartrate"."""
    entry = plain(args.get("medication_name") or args.get("substance") or ";")
    alike = [one for one in request["drugs"] if entry in (plain(one["said"]), plain(one["name"]))]
    known = {entry, *(plain(one[key]) for one in alike for key in ("said", "name", "generic") if one.get(key))}
    said = {plain(drug[key]) for key in ("said", "name", "generic") if drug.get(key)}
    return bool(known & said) or any(f"{entry} ".startswith(f"{name} ") for name in said)


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
