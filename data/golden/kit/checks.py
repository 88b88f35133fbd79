"""What a turn had to show and does not: one short reason each. Pure; no model, no store."""

import re
from collections.abc import Iterator
from typing import Any

from docgemma.paths import kit

alternatives = kit("golden", "cases").alternatives

SAME = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u2010": "-", "\u2011": "-", "–": "-", "−": "-"})
# a figure is whole: 4.1 does not stand in 14.1 nor in 4.15, 50 mg not in 150 mg
BEFORE_FIGURE, AFTER_FIGURE = r"(?<!\d)(?<!\d[.,])", r"(?![.,]?\d)"
MORE_OFTEN = "(?<!twice)(?<!thrice)(?<!times)"  # "daily" does not stand in "twice daily"


def failed_checks(turn: Any, result: dict[str, Any]) -> list[str]:
    """Every expectation of a turn that its result, what `Agent.ask` returned, does not meet; [] where it is right."""
    card, text = result.get("pending_write"), shown(result)
    ran = {tool["name"] for tool in result.get("tools", [])}
    reasons = [f"{item!r} is missing" for item in turn.must if not any(says(text, one) for one in alternatives(item))]
    for item in turn.must_not:
        reasons += [f"{one!r} is there" for one in alternatives(item) if says(text, one, whole_words=True)]
    reasons += [f"{name} did not run" for name in turn.tools if name not in ran]
    if turn.status and turn.status != result.get("status"):
        reasons.append(f"status is {result.get('status')}, not {turn.status}")
    return reasons + list(_card_faults(turn.card, card))


def shown(result: dict[str, Any]) -> str:
    """What a person reads of it: the answer, and the card with its findings."""
    card = result.get("pending_write") or {}
    parts = [result.get("answer") or ""]
    for key in ("args", "findings", "patient"):
        parts += _leaves(card.get(key))
    return "\n".join(parts)


def says(text: str, wanted: str, whole_words: bool = False) -> bool:
    """Whether a text holds another, up to case, blanks and the form of quotes and dashes; a figure only as a whole."""
    words = _bounded(_folded(wanted))
    return bool(re.search(rf"(?<!\w){words}(?!\w)" if whole_words else words, _folded(text)))


def same_value(wanted: str, got: str) -> bool:
    """Whether one stands in the other, blanks left out: "500mg" is "500 mg"; "50 mg" is not "150 mg"."""
    one, other = (_folded(value).replace(" ", "") for value in (wanted, got))
    short, long = sorted((one, other), key=len)
    return bool(short) and bool(re.search(MORE_OFTEN + _bounded(short), long))


def _card_faults(wanted: dict[str, str] | str | None, card: dict[str, Any] | None) -> Iterator[str]:
    if wanted is None:
        return
    if not isinstance(wanted, dict):
        if card:
            yield f"a card waits ({card['name']})"
    elif not card:
        yield f"no card waits ({wanted['name']})"
    elif card["name"] != wanted["name"]:
        yield f"the card is {card['name']}, not {wanted['name']}"
    else:
        person = " ".join(_leaves(card["patient"]))
        if not any(says(person, one) for one in alternatives(wanted.get("patient", ""))):
            yield f"the card's patient is {person}, not {wanted['patient']}"
        for key in (key for key in wanted if key not in ("name", "patient")):
            got = card["args"].get(key)
            if not any(same_value(one, "" if got is None else str(got)) for one in alternatives(wanted[key])):
                yield f"the card's {key} is {got!r}, not {wanted[key]!r}"


def _bounded(words: str) -> str:
    """As a pattern that does not begin or end inside a figure."""
    before = BEFORE_FIGURE if words[:1].isdigit() else ""
    return before + re.escape(words) + (AFTER_FIGURE if words[-1:].isdigit() else "")


def _folded(text: str) -> str:
    return " ".join(text.translate(SAME).casefold().split())


def _leaves(value: Any) -> list[str]:
    """Every text and figure of a nested value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [str(value)]
