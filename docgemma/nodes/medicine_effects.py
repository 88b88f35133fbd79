"""Set the labels of a patient's medicines beside the results asked for: what may move them, what they limit."""

from typing import Any

from docgemma.nodes.context import Context
from docgemma.nodes.medicine_labels import label_of
from docgemma.reading.labels import TOPICS
from docgemma.reading.terms import measures_in, names
from docgemma.reading.words import clinical
from docgemma.rules import known
from docgemma.state import AgentState

MAX_LINES = 5
MAX_MEDICINES = 12


def medicine_effects(state: AgentState, context: Context) -> dict[str, list[str]]:
    """Patient id -> lines of the labels of active medicines that speak of the results asked for, the gravest first."""
    request = known.request(state)
    if not {"labs", "vit", "may"} & set(request["asks"]) or not set(request["asks"]) & {*TOPICS, "may"}:
        return {}
    asked = set(measures_in(" ; ".join([*request["measures"], request["said"]])))
    effects = [entry["match"] for entry in clinical("measure_labels")["effects"] if asked & set(entry["measures"])]
    fragments = [fragment for match in effects for fragment in match]
    found: dict[str, list[str]] = {}
    for item in known.charts(state) if fragments else []:
        chart = item["result"]
        lines = [line for name in _active(chart) for line in _lines(name, fragments, context)]
        found[chart["patient"]["id"]] = sorted(lines, key=lambda line: "warning" in line)[:MAX_LINES]
    return found


def _active(chart: dict[str, Any]) -> list[str]:
    return known.unique(entry["name"] for entry in chart["medications"] if entry["active"])[:MAX_MEDICINES]


def _lines(medicine: str, fragments: list[str], context: Context) -> list[str]:
    """One line of its label, or none: boxed warning, contraindication, warning, in this order."""
    label = label_of(medicine, context)
    if label is None:
        return []
    parts = [("boxed warning", part) for part in (label.boxed_warning or "").split(". ") if part]
    parts += [("contraindication", text) for text in label.contraindications]
    parts += [("warning", text) for text in label.warnings]
    told = [f"{medicine} ({kind}): {text.rstrip('.')}" for kind, text in parts if names(fragments, text)]
    return told[:1]
