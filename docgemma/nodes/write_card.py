"""Compose the card that a person decides: patient, arguments in plain words and as written, findings."""

from typing import Any

from docgemma.nodes.context import Context
from docgemma.reading.drugs import link_drug
from docgemma.reading.shorthand import duration, expand
from docgemma.state import PendingWrite
from docgemma.tools.base import Tool


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


def pending_write(
    tool: Tool, args: dict[str, Any], original: dict[str, str], findings: list[str], context: Context
) -> PendingWrite:
    """What waits for a decision."""
    patient = context.store.patient(args["patient_id"])
    who = {"id": patient.id, "name": patient.name, "birth_date": patient.birth_date} if patient else {}
    return PendingWrite(name=tool.name, label=tool.label, patient=who, args=args, original=original, findings=findings)


def _drug(name: str, context: Context) -> str:
    """An abbreviation or a near spelling as the dictionary has it; a name that it knows stays as written."""
    link = link_drug(name, context.drugs)
    return link.name if link.how in ("short", "near") else name


def _differs(one: Any, other: Any) -> bool:
    return str(one).casefold() != str(other).casefold()
