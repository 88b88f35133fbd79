"""The notes of an order by what they say: its route, how long, at what meal, what for; one part of a kind. Pure."""

from docgemma.rules.dose_rows import route_of
from docgemma.text.durations import duration
from docgemma.text.rewording import SIDES
from docgemma.text.shorthand import expanded, in_words
from docgemma.text.words import listed, names, plain

FEW = 3  # words of a route


def parts_of(notes: str) -> list[str]:
    """The single instructions of an order's notes."""
    return [part.strip() for part in notes.replace(", ", ";").split(";") if part.strip()]


def kind_of(part: str) -> str:
    """What an instruction says: `length`, `route`, `side`, `weight`, `limit`, `meal`, `start`, `purpose`, or `rest`."""
    words = plain(part).split()
    route = route_of(part) and len(words) <= FEW and words[0] != "for"
    told = {
        "length": duration(part), "route": route or in_words(expanded(part, "routes"), "routes"),
        "limit": listed("sig", "maximum") & {*words}, "start": listed("sig", "starting") & {*words[:2]},
        "side": names(SIDES, part), "weight": words[0] == "weight",
        "meal": names(listed("sig", "occasions"), part), "purpose": words[0] == "for",
    }  # fmt: skip
    return next((kind for kind, is_so in told.items() if is_so), "rest")


def merged(before: str, more: str, without: str = "") -> str:
    """Notes with further instructions, each in the place of what was of its kind; less what is denied, "not IM"."""
    new, denied = parts_of(more), {expanded(part, "routes") for part in parts_of(without)}
    replaced = {kind_of(part) for part in new}
    kept = [part for part in parts_of(before) if kind_of(part) not in replaced]
    return "; ".join(part for part in [*kept, *new] if expanded(part, "routes") not in denied)
