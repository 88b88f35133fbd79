"""What a person should know before a record entry is approved: the chart is read, and the rules judge."""

from typing import Any

from docgemma.errors import DocGemmaError, StoreError
from docgemma.knowledge.base import Interaction
from docgemma.nodes.context import Context
from docgemma.rules.safety import check_allergy_entry, check_order, ingredients
from docgemma.tools.records import chart_data


def findings_for(tool_name: str, args: dict[str, Any], context: Context) -> list[str]:
    """The safety findings for a write, the worst first; what could not be checked is a finding too.

    Args:
        tool_name: one of the writes.
        args: valid arguments of it.
    """
    if tool_name == "save_clinical_note":
        return []
    chart = _chart(args["patient_id"], context)
    return [*_death(chart), *_judged(tool_name, args, chart, context)]


def _death(chart: dict[str, Any] | None) -> list[str]:
    return ["This patient is recorded as deceased."] if chart and chart["deceased"] else []


def _judged(tool_name: str, args: dict[str, Any], chart: dict[str, Any] | None, context: Context) -> list[str]:
    allergies = chart["allergies"] if chart else None
    medications = chart["medications"] if chart else None
    if tool_name == "add_allergy":
        return check_allergy_entry(args["substance"], allergies=allergies, medications=medications, drugs=context.drugs)
    drug = args["medication_name"]
    interactions, unknown = _interactions(drug, medications, context)
    return check_order(
        drug, args["dosage"], args["frequency"], allergies=allergies, medications=medications,
        interactions=interactions, max_daily_dose=_maximum(drug, context), drugs=context.drugs,
        no_known_allergies=bool(chart and chart["no_known_allergies"]), not_checked=unknown,
    )  # fmt: skip


def _chart(patient_id: str, context: Context) -> dict[str, Any] | None:
    """The chart, or None: the rules then say that nothing could be checked."""
    try:
        chart = context.store.chart(patient_id)
    except StoreError:
        return None
    return chart_data(chart) if chart else None


def _interactions(
    drug: str, medications: list[dict[str, Any]] | None, context: Context
) -> tuple[list[Interaction] | None, list[str]]:
    """Interactions of the drug with the active medications, and those that no source knows."""
    active = [item["name"] for item in medications or [] if item.get("active", True)]
    generics: dict[str, str] = {}
    unknown = []
    for name in active:
        parts = ingredients(name, context.drugs)
        known = [part for part in parts if _known(part, context)]
        generics |= {part: name for part in known}
        if len(known) < len(parts):
            unknown.append(name)
    found: list[Interaction] = []
    ordered = ingredients(drug, context.drugs)
    try:
        for part in ordered:
            others = [name for name in generics if name not in ordered]
            if others:
                answer = context.knowledge.interactions([part, *others])
                found += [item for item in answer.records if part in item.drugs]
    except DocGemmaError:
        return None, unknown
    return found, unknown


def _known(name: str, context: Context) -> bool:
    try:
        return context.knowledge.generic_name(name) is not None
    except DocGemmaError:
        return False


def _maximum(drug: str, context: Context) -> str | None:
    try:
        records = context.knowledge.label(drug).records
    except DocGemmaError:
        return None  # the rules say that no maximum is known
    return records[0].max_daily_dose if records else None
