"""What a turn knows so far: drugs and findings, from the request and the results of its calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from docgemma.state import AgentState, Held, Request, ToolResult
from docgemma.text.words import listed, plain

DOSES = frozenset({"dose", "maximum dose"})  # topics of a label
BRIEF = 5  # words of a follow-up that goes on with the message before: "and for Souza?", "and ibuprofen?"
NOTHING = Request(
    asks=[], meant="", patients=[], unclear=[], drugs=[], orders=[], allergies=[], notes=[], corrects=False,
    details={}, measures=[], conditions=[], status="", query="", trials=[], said="", telling=[], owners={},
)  # fmt: skip


def request(state: AgentState) -> Request:
    return state.get("request") or NOTHING


def told_of_one(request: Request, drug: str = "") -> dict[str, Any]:
    """The message as `told` and the drugs that it orders besides this one, where it is about one patient at most: of
    whom it tells."""
    others = [item["drug"] for item in request["orders"] if plain(item["drug"]) != plain(drug)]
    return {"told": told(request), "others": others} if len(request["patients"]) < 2 else {}


def told(request: Request) -> str:
    """The message with a mark behind each name: what follows is a clause of its own, "Diallo asthmatic, atenolol?"."""
    said = request["said"]
    for name in (patient["said"] for patient in request["patients"] if patient["said"]):
        before, _, after = said.partition(name)
        goes_on = {*plain(after).split()[:1]} & listed("telling", "asking")  # "Diallo was put on apixaban"
        said = said if goes_on else f"{before}{name} ;{after}"
    return said


def held(state: AgentState) -> list[Held]:
    """The entries that wait behind; a conversation of before 2026-11-27 has one, and no list."""
    cards: Any = state.get("held") or []
    return cards if isinstance(cards, list) else [cards]


def made(state: AgentState, tool: str) -> list[ToolResult]:
    """The calls of a tool that succeeded in this turn."""
    return [item for item in state.get("tool_results") or [] if item["tool_name"] == tool and not item["error"]]


def ordered(request: Request) -> list[dict[str, Any]]:
    """The drugs of a request's orders, as drugs that are named."""
    keys = {"said": "said", "name": "drug", "generic": "drug", "how": "how"}
    return [{key: cast(Any, item)[of] for key, of in keys.items()} for item in request["orders"]]


def charts(state: AgentState) -> list[ToolResult]:
    return made(state, "get_patient_chart")


def drugs(state: AgentState) -> list[str]:
    """Drugs that were asked about, as the dictionary spells them; unknown ones as typed; groups by their members."""
    named = [item for item in request(state)["drugs"] if item["how"] not in ("group", "food", "unknown")]
    opened = [member for item in request(state)["drugs"] for member in item.get("members", [])]
    return unique([*(item["name"] for item in named), *opened])


def in_charts(state: AgentState, part: str) -> list[str]:
    """Names of the active entries of a part ("medications", "conditions") of the charts read in this turn."""
    listed = [entry for item in charts(state) for entry in item["result"].get(part) or []]
    return unique(str(entry["name"]) for entry in listed if entry.get("active", True) and entry.get("name"))


def replaced(request: Request, **changes: Any) -> Request:
    """The request with some of its parts otherwise."""
    return cast(Request, {**request, **changes})


def as_written(request: Request, entries: Sequence[Mapping[str, Any]]) -> Request:
    """The request as its entries read, corrected: "same for Garcia" is of the corrected dose."""
    new: dict[str, Any] = {}
    for key, field in (("orders", "medication_name"), ("allergies", "substance"), ("notes", "note_text")):
        written, asked = [args for args in entries if field in args], cast(Any, request)[key]
        told = [{**args, "said": args[field], "drug": args[field], "dose": args.get("dosage")} for args in written]
        items = [
            {**one, **{name: args.get(name) or "" for name in one if name != "how"}}
            for one, args in zip(asked, told, strict=False)
        ]
        new[key] = [*items, *asked[len(items) :]]
    return replaced(request, **new)


def unique(items: Iterable[Any]) -> list[Any]:
    """Without repeats, whatever their case; the first spelling stays, and the order."""
    seen: dict[str, Any] = {}
    for item in items:
        if item:
            seen.setdefault(str(item).casefold(), item)
    return list(seen.values())
