"""An entry that waits for a decision: for whom it is, which of its fields can be changed, and what was changed."""

from collections.abc import Sequence
from typing import Any

from docgemma.agent import Agent
from docgemma.demo.view import field_label
from docgemma.errors import DocGemmaError


def patient_of(agent: Agent | None, pending: dict[str, Any]) -> str:
    """The patient as a person knows them; the id alone where the record cannot be read (the findings say so)."""
    given = str(pending["args"].get("patient_id", ""))
    try:
        match = agent.store.patient(given) if agent else None
    except DocGemmaError:
        match = None
    return f"{match.label} (ID {match.id})" if match else f"patient ID {given}"


def fields(agent: Agent | None, pending: dict[str, Any]) -> dict[str, str | None]:
    """What can be changed, empty ones too. The patient cannot: reject, and ask for the right one."""
    known = pending["args"]
    if agent and pending.get("name"):
        known = {name: pending["args"].get(name) for name in agent.toolbox[pending["name"]].args.model_fields}
    return {name: value for name, value in known.items() if name != "patient_id"}


def changed(before: dict[str, str | None], values: Sequence[str | None]) -> dict[str, str]:
    """The fields whose value is another one now."""
    given = zip(before.items(), values, strict=False)
    return {name: (new or "").strip() for (name, old), new in given if (new or "").strip() != (old or "")}


def said(changes: dict[str, str]) -> str:
    """What a person says who approves with these changes."""
    if not changes:
        return "Approved."
    return "Changed: " + "; ".join(f"{field_label(name)} {value}" for name, value in changes.items())
