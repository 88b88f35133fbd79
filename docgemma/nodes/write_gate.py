"""What a person should know before a record entry is approved: the chart is read, and the rules judge."""

from typing import Any

from docgemma.errors import StoreError
from docgemma.nodes.context import Context
from docgemma.nodes.medicine_labels import label_of
from docgemma.nodes.write_interactions import check_interactions
from docgemma.rules.chart_answer import results_to_weigh
from docgemma.rules.safety import check_allergy_entry, check_order
from docgemma.rules.suits import label_conflicts
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
    pairs, label = check_interactions(drug, medications, context), _label(drug, context)
    findings = check_order(
        drug, args["dosage"], args["frequency"], allergies=allergies, medications=medications,
        interactions=pairs.found, max_daily_dose=label["max_daily_dose"] if label else None, drugs=context.drugs,
        no_known_allergies=bool(chart and chart["no_known_allergies"]), not_checked=pairs.unknown,
        none_listed=pairs.none_listed,
    )  # fmt: skip
    problems = label_conflicts(drug, label, chart, context.drugs) if label and chart else []
    severe = sum(line.startswith("Contraindicated") for line in problems)
    weighed = [results_to_weigh(chart)] if chart and chart["labs"] else []
    return [*problems[:severe], *findings, *problems[severe:], *weighed]


def _chart(patient_id: str, context: Context) -> dict[str, Any] | None:
    """The chart, or None: the rules then say that nothing could be checked."""
    try:
        chart = context.store.chart(patient_id)
    except StoreError:
        return None
    return chart_data(chart) if chart else None


def _label(drug: str, context: Context) -> dict[str, Any] | None:
    """What the label says, or None: the rules then say what could not be checked."""
    label = label_of(drug, context)
    return label and {
        "max_daily_dose": label.max_daily_dose, "contraindications": label.contraindications,
        "warnings": label.warnings, "boxed_warning": label.boxed_warning,
    }  # fmt: skip
