"""What a message does to the entries that wait: which one it is about, and how the graph goes on with them."""

from typing import Any, cast

from langgraph.types import Command

from docgemma.nodes.context import Context
from docgemma.nodes.input_assembly import understand
from docgemma.reading.labels import WRITES
from docgemma.rules import known, waiting
from docgemma.rules.amend import amendment, named_in, taken_back
from docgemma.state import AgentState, Held, PendingWrite, Request

HOLD = {"decision": "hold", "args": {}}


def about_card(
    message: str, state: AgentState, pending: dict[str, Any], context: Context
) -> tuple[list["Command[Any]"], bool]:
    """Correct or reject the entry that waits, or one behind it, where the message says so; words approve nothing.

    Returns:
        The commands to run, and whether the message is also a question of its own, answered above the card.
    """
    front = waiting.as_held(state, pending["name"], pending["args"], pending.get("original") or {})
    cards = [front, *known.held(state)]
    entries = waiting.entries(cards)
    request = _read(message, state, cards, entries[0], context)
    if at := waiting.entry_meant([taken_back(request), named_in(request)], entries):
        request = _read(message, state, cards, entries[at], context)
    meant, others = entries[at], [one.args for one in entries[:at] + entries[at + 1 :]]
    card = cast(PendingWrite, {"name": meant.tool, "args": meant.args})
    decision = amendment(request, meant.request, card, others)
    rejects = decision["decision"] == "reject"
    more = set(request["asks"]) - {"cancel", "ok", "fix", "chat", *(WRITES if request["corrects"] else ())}
    own = decision["decision"] == "hold" or (bool(more) and rejects)
    if not at or not (decision["args"] or rejects):
        return [Command(resume=decision)], own
    if meant.place is None:  # it is decided in front of the others
        cards = [cards[meant.card], *cards[: meant.card], *cards[meant.card + 1 :]]
        return [Command(resume=HOLD), _reopened(cards, ""), Command(resume=decision)], own
    cards[meant.card], told = waiting.settled(cards[meant.card], meant, request, rejects)
    return [Command(resume=HOLD), _reopened(cards, told)], own


def _reopened(cards: list[Held], told: str) -> "Command[Any]":
    return Command(goto="reopen_card", update={"held": cards, "final_response": told})


def _read(message: str, state: AgentState, cards: list[Held], entry: waiting.Waiting, context: Context) -> Request:
    """What a message asks for beside an entry that waits."""
    of_it = {"request": entry.request, "message": cards[entry.card]["message"]}
    return understand(message, cast(AgentState, {**state, **of_it}), context, waiting=True)
