"""What a card shows: an entry's arguments with abbreviations in words, and beside them what was written."""

from typing import Any

from docgemma.nodes.context import Context
from docgemma.reading.drugs import link_drug
from docgemma.reading.sig import duration, expand


def as_card(args: dict[str, Any], context: Context) -> dict[str, dict[str, Any]]:
    """The arguments in plain words, and the original of each that was written otherwise.

    Returns:
        {"args", "original"}: "vanc" becomes vancomycin, "bd" twice daily, "7/7" for 7 days. What is not known stays.
    """
    plain = dict(args)
    if "medication_name" in args:
        plain["medication_name"] = _drug(args["medication_name"], context)
        plain["frequency"] = expand(args["frequency"], "frequencies")
        if args.get("notes"):
            parts = (part.strip() for part in args["notes"].replace(",", ";").split(";"))
            plain["notes"] = "; ".join(
                duration(part) or expand(part, "routes", "frequencies") for part in parts if part
            )
    elif "substance" in args:
        plain["substance"] = _drug(args["substance"], context)
    original = {name: str(args[name]) for name in args if _differs(args[name], plain[name])}
    return {"args": plain, "original": original}


def _drug(name: str, context: Context) -> str:
    """An abbreviation or a near spelling as the dictionary has it; a name that it knows stays as written."""
    link = link_drug(name, context.drugs)
    return link.name if link.how in ("short", "near") else name


def _differs(one: Any, other: Any) -> bool:
    return str(one).casefold() != str(other).casefold()
