"""Interactions of an ordered drug with the active medications, pair by pair: one unknown drug hides no other pair."""

from itertools import product
from typing import Any

from docgemma.errors import DocGemmaError, ToolError
from docgemma.knowledge.base import Interaction
from docgemma.nodes.context import Context
from docgemma.rules.order_check import Checked
from docgemma.text.drugs import ingredients


def check_interactions(drug: str, medications: list[dict[str, Any]] | None, context: Context) -> Checked:
    """Look up the drug with each active medication. An outage ends it: what was not asked is not "none listed"."""
    listed: list[Interaction] = []
    checked = Checked(found=listed)
    for name in dict.fromkeys(item["name"] for item in medications or [] if item.get("active", True)):
        if ingredients(name, context.drugs) <= ingredients(drug, context.drugs):
            continue  # the same drug is a duplicate, not an interaction
        try:
            found, source = _pair(drug, name, context)
        except DocGemmaError:
            return Checked(found=None)
        listed += [item for item in found if item not in listed]
        if source is None:
            checked.unknown.append(name)
        elif not found:
            checked.none_listed[name] = source
    return checked


def _pair(drug: str, other: str, context: Context) -> tuple[list[Interaction], str | None]:
    """What is listed of two medications, and the source; None where it does not know all of both.

    A source may list a combination as a whole, by its ingredients, or both, so that all are asked for; either way of
    knowing both drugs completely will do.
    """
    found: list[Interaction] = []
    source = None
    for mine, theirs in product(_ways(drug, context), _ways(other, context)):
        answers = [_ask(a, b, context) for a, b in product(mine, theirs) if a != b]
        found += [item for answer in answers if answer for item in answer.records if item not in found]
        if answers and all(answer and not answer.not_covered for answer in answers):
            source = source or _said(answers[0])
    return found, source


def _ways(medication: str, context: Context) -> list[list[str]]:
    """The names to ask for: its ingredients, and a combination also as a whole."""
    parts = sorted(ingredients(medication, context.drugs))
    return [parts] if len(parts) == 1 else [[medication], parts]


def _ask(a: str, b: str, context: Context) -> Any:
    """The source's answer, or None where it does not know one of the two.

    Raises:
        DocGemmaError: an outage, or a snapshot that cannot be read.
    """
    try:
        return context.knowledge.interactions([a, b])
    except ToolError as error:
        if error.retryable:
            raise
        return None


def _said(answer: Any) -> str:
    return f"{answer.source}, as of {answer.as_of}" if answer.as_of else f"{answer.source}, date unknown"
