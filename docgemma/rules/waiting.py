"""The entries that wait for approval: the card in front, what its message orders after it, the cards behind. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from docgemma.reading.labels import WRITES
from docgemma.rules import known
from docgemma.rules.plan import WRITE_TOOLS, order_args
from docgemma.rules.refusal import NOTHING_RECORDED
from docgemma.state import AgentState, Held, Request
from docgemma.text.words import clinical, listed, names, plain

ITEMS = {"rx": "orders", "allergy": "allergies", "note": "notes"}  # of a request
TAKEN_OUT = "Taken out: {}."
NOT_RECORDED = "Waits for your approval, and is not recorded: {entry}."
CHANGED = "Changed, and follows after this entry: {}."


class Waiting(NamedTuple):
    """One entry that waits.

    Attributes:
        card: which of the cards it belongs to; the one in front is 0.
        place: where it stands in that card's request, where it follows the card; None for the card itself.
        request: that request with this entry alone.
    """

    card: int
    place: int | None
    tool: str
    args: dict[str, Any]
    request: Request


def as_held(state: AgentState, tool: str, args: dict[str, Any], original: dict[str, str]) -> Held:
    """The card in front, with its turn, as it waits; its request as the card reads by now."""
    earlier = state.get("reopened")
    results = earlier["results"] if earlier else state.get("tool_results") or []
    entries = [item["args"] for item in results if item["writes"] and not item["error"]]
    card = Held(
        tool=tool, args=args, original=original, turn_id=state["turn_id"], message=state["message"],
        user_query=state["user_query"], request=known.as_written(state["request"], [*entries, args | original]),
        results=results,
    )  # fmt: skip
    if earlier and "touched" in earlier:
        card["touched"] = earlier["touched"]
    return card


def entries(cards: Sequence[Held]) -> list[Waiting]:
    """The cards, then the entries that follow each of them."""
    found = [Waiting(at, None, card["tool"], card["args"], _alone(card, *_own(card))) for at, card in enumerate(cards)]
    for at, card in enumerate(cards):
        for ask in WRITES:
            items = cast(Any, card["request"])[ITEMS[ask]] if ask in card["request"]["asks"] else []
            for place in range(_made(card, ask) + (card["tool"] == WRITE_TOOLS[ask]), len(items)):
                item = items[place]
                args = order_args(item) | {"medication_name": item["drug"]} if ask == "rx" else dict(item)
                if not card["request"]["owners"].get(ask):  # an order of several patients is several entries
                    found.append(Waiting(at, place, WRITE_TOOLS[ask], args, _alone(card, ask, place)))
    return found


def entry_meant(
    request: Request, taken_back: Sequence[dict[str, Any]], named: Sequence[dict[str, Any]],
    waiting: Sequence[Waiting], touched: int | None,
) -> int:  # fmt: skip
    """Which entry a message is about, by a drug that it takes back or names, by the patient, or as a correction of the
    one that was corrected last; the one in front, 0, where none or several are."""
    said = plain(request["said"])
    ids = {one["id"] for one in request["patients"] if one["said"] and plain(one["said"]) in said}
    theirs = [at for at, one in enumerate(waiting) if one.place is None and {one.args.get("patient_id")} == ids]
    if len(theirs) == 1 and not (named or request["unclear"]):  # "back to Fatima, make it 5 days"
        return theirs[0]
    if not named and touched is not None and request["corrects"]:
        return next((at for at, one in enumerate(waiting) if one.card == 0 and one.place == touched), 0)
    for drugs in (taken_back, named):
        of_it = [any(is_of(drug, one.args, one.request) for drug in drugs) for one in waiting]
        if sum(of_it) == 1 or (any(of_it) and drugs is taken_back):
            return of_it.index(True)
    return 0


def settled(card: Held, one: Waiting, request: Request, rejects: bool) -> tuple[Held, str]:
    """The card without the entry that follows it, or with that entry as it is corrected; and a line that says so."""
    kind, place = ITEMS[_ask(one.tool)], cast(int, one.place)
    items, before = ([] if rejects else cast(Any, request)[kind][-1:]), cast(Any, card["request"])[kind]
    told = TAKEN_OUT.format(name_of(one.args)) if rejects else CHANGED.format(" ".join(_told(items[0])))
    new = known.replaced(card["request"], **{kind: [*before[:place], *items, *before[place + 1 :]]})
    return cast(Held, {**card, "request": new, "touched": -1 if rejects else place}), told


def alone(card: Held) -> tuple[Held, list[str]]:
    """The card with nothing that follows it, and the names of what followed."""
    front, *behind = entries([card])
    own = front.request
    kept = {ask: WRITE_TOOLS[ask] == card["tool"] for ask in WRITES}
    asks = [ask for ask in own["asks"] if kept.get(ask, True)]
    made = {ITEMS[ask]: cast(Any, card["request"])[ITEMS[ask]][: _made(card, ask)] for ask in WRITES if kept[ask]}
    items = {kind: [*made.get(kind, []), *cast(Any, own)[kind]] for kind in ITEMS.values()}
    request = known.replaced(own, asks=asks, **items)
    return cast(Held, {**card, "request": request}), [name_of(one.args) for one in behind]


def _told(item: dict[str, Any]) -> list[str]:
    fields = ("said", "dose", "frequency", "route", "notes", "substance", "reaction", "severity", "note_text")
    return [item[name] for name in fields if item.get(name)]


def entered_before(state: AgentState) -> list[str]:
    """What became of the entries of the turns before, and what waits, where that is asked: "did it go thru?"."""
    if not names(listed("request_words", "entered"), known.request(state)["said"]):
        return []
    calls = [call for turn in state.get("history") or [] for call in turn["tools"] if call.get("writes")]
    told = [call["brief"].split("\n")[0] for call in calls]
    for one in entries(known.held(state)):
        entry = " ".join(str(text) for name, text in one.args.items() if text and name != "patient_id")
        told.append(NOT_RECORDED.format(entry=entry))
    return told if any(call["written"] for call in calls) else [*told, NOTHING_RECORDED]


def name_of(args: dict[str, Any]) -> str:
    """What an entry is of: its drug, substance or note."""
    return str(args.get("medication_name") or args.get("substance") or args.get("note_text") or "")


def is_of(drug: dict[str, Any], args: dict[str, Any], request: Request) -> bool:
    """Whether a drug is that of an entry: "metoprolol" is of "metoprolol tartrate", "cef" of cefalexin."""
    entry = plain(args.get("medication_name") or args.get("substance") or ";")
    alike = [one for one in request["drugs"] if entry in (plain(one["said"]), plain(one["name"]))]
    own = {entry, *(plain(one[key]) for one in alike for key in ("said", "name", "generic") if one.get(key))}
    said = {plain(drug[key]) for key in ("said", "name", "generic") if drug.get(key)}
    said |= {clinical("drug_abbreviations")["ordered"].get(name, name) for name in said}  # "vit k"
    begun = drug["how"] == "unknown" and len(drug["said"]) > 2 and entry.startswith(plain(drug["said"]))
    return begun or bool(own & said) or any(f"{entry} ".startswith(f"{name} ") for name in said)


def _ask(tool: str) -> str:
    return next(ask for ask, name in WRITE_TOOLS.items() if name == tool)


def _made(card: Held, ask: str) -> int:
    """How many entries of a kind were decided in the card's turn before it."""
    return sum(item["tool_name"] == WRITE_TOOLS[ask] for item in card["results"])


def _own(card: Held) -> tuple[str, int]:
    ask = _ask(card["tool"])
    return ask, min(_made(card, ask), max(0, len(cast(Any, card["request"])[ITEMS[ask]]) - 1))


def _alone(card: Held, ask: str, place: int) -> Request:
    """The card's request with one entry alone."""
    items = cast(Any, card["request"])[ITEMS[ask]][place : place + 1]
    others: dict[str, Any] = {kind: [] for kind in ITEMS.values()}
    return known.replaced(card["request"], **(others | {ITEMS[ask]: items}))
