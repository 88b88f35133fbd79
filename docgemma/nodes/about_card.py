"""What a message does to the entries that wait: which one it is about, and how the graph goes on with them."""

from typing import Any, NamedTuple, cast

from langgraph.types import Command

from docgemma.nodes.context import Context
from docgemma.nodes.input_assembly import understand
from docgemma.reading.labels import WRITES
from docgemma.rules import known, waiting
from docgemma.rules.amend import amendment, named_in, taken_back
from docgemma.rules.patient_state import UNKNOWN, as_told
from docgemma.state import AgentState, Held, PendingWrite, Request
from docgemma.text.words import listed, names, plain

HOLD = {"decision": "hold", "args": {}}
REJECT = {"decision": "reject", "args": {}}
FOR_WHOM = "For whom? The entry that waits is for {card}, and {spoken} was spoken of last. Say it again with the name."
CHECKED_AGAIN = "The entry below is unchanged, and was checked again with what you wrote."


class Outcome(NamedTuple):
    """How the graph goes on.

    Attributes:
        commands: to run, one after the other.
        own: whether the message is also a question of its own, answered above the card.
        told: what is said above the answer.
    """

    commands: list["Command[Any]"]
    own: bool = False
    told: str = ""


def about_card(message: str, state: AgentState, pending: dict[str, Any], context: Context) -> Outcome:
    """Correct or reject the entry that waits, or one behind it, where the message says so; words approve nothing."""
    front = waiting.as_held(state, pending["name"], pending["args"], pending.get("original") or {})
    touched = front.pop("touched", None)
    cards = [front, *known.held(state)]
    entries = waiting.entries(cards)
    request = _read(message, state, cards, entries[0], context)
    back, named = taken_back(request), named_in(request)
    if at := waiting.entry_meant(request, back, named, entries, touched):
        request = _read(message, state, cards, entries[at], context)
    meant, others = entries[at], [one.args for one in entries[:at] + entries[at + 1 :]]
    decision = amendment(request, meant.request, cast(PendingWrite, {"name": meant.tool, "args": meant.args}), others)
    spoken, whose = state.get("active_patient"), pending.get("patient") or {}
    another = spoken["name"] if spoken and whose and spoken["id"] != whose["id"] else ""
    for_whom = FOR_WHOM.format(card=whose.get("name"), spoken=another)
    asked_back = Outcome([Command(resume={"decision": "amend", "args": {}, "beside": for_whom})])
    if _tells_more(message, request, decision, front):
        if another:
            return asked_back
        said = f"{front['request']['said']}. {message}"
        again = cast(Held, {**front, "request": known.replaced(front["request"], said=said)})
        return Outcome([Command(resume=HOLD), _reopened([again, *cards[1:]], CHECKED_AGAIN)])
    rejects = decision["decision"] == "reject"
    more = set(request["asks"]) - {"cancel", "ok", "fix", "chat", *(WRITES if request["corrects"] else ())}
    other = request["orders"] and named and not any(waiting.is_of(drug, meant.args, meant.request) for drug in named)
    if touched == -1 and other and not (at or back):  # "paracetamol instead", of what was taken out before
        return Outcome([Command(resume=HOLD)], own=True)
    halts = rejects or listed("request_words", "halting", "unwanting") & set(plain(message).split())
    if halts and not named and len(entries) > 1 and names(listed("request_words", "all_of_it"), message):
        return _all_rejected(cards)
    own = decision["decision"] == "hold" or (bool(more) and rejects)
    entry = any(request[kind] for kind in ("orders", "allergies", "notes")) and request["meant"] == "ordered"
    nobody = not (request["patients"] or request["unclear"] or request["corrects"])
    if own and entry and nobody and another:
        return asked_back
    followed = any(one.card == meant.card and one.place is not None for one in entries)  # that card comes next, at once
    told = waiting.TAKEN_OUT.format(waiting.name_of(meant.args)) if rejects and followed else ""
    if not at or not (decision["args"] or rejects):
        return Outcome([Command(resume=decision)], own, told)
    if meant.place is None:  # it is decided in front of the others
        cards = [cards[meant.card], *cards[: meant.card], *cards[meant.card + 1 :]]
        return Outcome([Command(resume=HOLD), _reopened(cards, ""), Command(resume=decision)], own, told)
    cards[meant.card], told = waiting.settled(cards[meant.card], meant, request, rejects)
    return Outcome([Command(resume=HOLD), _reopened(cards, told)], own)


def _tells_more(message: str, request: Request, decision: dict[str, Any], front: Held) -> bool:
    """Whether a message tells the state of the patient of the order in front, and asks or changes nothing: "shes 46kg",
    "on dialysis now btw"."""
    told = as_told(message, UNKNOWN)
    tells = told.weight or told.results or told.problems or told.pregnancy_weeks
    asks = set(request["asks"]) & {"ddi", "lit", "trial", "change", "cancel", *(() if request["corrects"] else WRITES)}
    others = {one["id"] for one in request["patients"]} - {front["args"].get("patient_id")} or request["unclear"]
    changes = decision["decision"] == "reject" or decision["args"] or asks or named_in(request)
    asking = message.rstrip().endswith("?") or {*plain(message).split()} & listed("telling", "unsaid", "not_now")
    return bool(tells and front["tool"] == "prescribe_medication" and not (changes or others or asking))


def _all_rejected(cards: list[Held]) -> Outcome:
    """Nothing of what waits is wanted any more."""
    alone = [waiting.alone(card) for card in cards]
    gone = [name for (card, behind) in alone for name in (waiting.name_of(card["args"]), *behind)]
    rejected: list[Command[Any]] = [Command(resume=REJECT) for _ in cards]
    reopened = _reopened([card for card, _ in alone], "")
    return Outcome([Command(resume=HOLD), reopened, *rejected], told=waiting.TAKEN_OUT.format("; ".join(gone)))


def _reopened(cards: list[Held], told: str) -> "Command[Any]":
    return Command(goto="reopen_card", update={"held": cards, "final_response": told})


def _read(message: str, state: AgentState, cards: list[Held], entry: waiting.Waiting, context: Context) -> Request:
    """What a message asks for beside an entry that waits."""
    of_it = {"request": entry.request, "message": cards[entry.card]["message"]}
    return understand(message, cast(AgentState, {**state, **of_it}), context, waiting=True)
