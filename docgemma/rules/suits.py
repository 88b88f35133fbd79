"""Set a label's contraindications and warnings beside the problems of a patient. Pure; which words mean the same is data.

Not covered here: doses by kidney function, age or weight.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from docgemma.reading.terms import measure_named, names
from docgemma.reading.words import clinical, plain


def label_conflicts(drug: str, label: Mapping[str, Any], chart: Mapping[str, Any]) -> list[str]:
    """Lines of a label that name an active problem of the patient, the gravest first, one line each.

    Args:
        drug: as ordered.
        label: `boxed_warning`, `contraindications`, `warnings`.
        chart: data of `get_patient_chart`; its active problems count.
    """
    lines = [("Contraindicated", text) for text in label["contraindications"]]
    lines += [("Boxed warning", label["boxed_warning"])] if label["boxed_warning"] else []
    lines += [("Warning", text) for text in label["warnings"]]
    found = []
    for kind, text in lines:
        if limit := _kidney_limit(text):
            found += _by_kidney(kind, drug, text, limit, chart)
        elif problem := _named(text, chart["conditions"]):
            found.append(f"{kind} ({drug}): {text.rstrip('.')}. The patient has: {problem}.")
    return list(dict.fromkeys(found))


def _kidney_limit(text: str) -> float | None:
    """The eGFR or creatinine clearance below which a line holds: "eGFR below 30", "30 to 45" is 45."""
    words = plain(text).replace("/", " ").split()
    if not {"egfr", "clearance"} & set(words):
        return None
    numbers = [float(word) for word in words if word.replace(".", "", 1).isdigit() and float(word) > 5]
    return max(numbers[:2]) if numbers else None


def _by_kidney(kind: str, drug: str, text: str, limit: float, chart: Mapping[str, Any]) -> list[str]:
    """The line where the latest eGFR is below its limit; unknown is never normal."""
    latest = next((item for item in chart["labs"] if measure_named(item["name"]) == "egfr"), None)
    if latest is None:
        return [f"{kind} ({drug}): {text.rstrip('.')}. No eGFR is recorded for this patient."]
    value = float("".join(char for char in latest["value"] if char.isdigit() or char == ".") or "nan")
    below = not value >= limit
    return [f"{kind} ({drug}): {text.rstrip('.')}. Latest eGFR: {latest['value']} ({latest['date']})."] if below else []


def _named(text: str, conditions: Sequence[Mapping[str, Any]]) -> str:
    """The active problem that a line speaks of."""
    for entry in clinical("problems")["problems"]:
        if not names(entry["label"], text):
            continue
        for item in conditions:
            if item["active"] and names(entry["chart"], item["name"]):
                return item["name"]
    return ""
