"""Look up the interactions among the medicines that a patient takes already: nobody has to ask for the gravest."""

from typing import Any

from docgemma.errors import DocGemmaError
from docgemma.nodes.context import Context
from docgemma.text.drugs import ingredients
from docgemma.tools.drugs import interactions_of_known

GRAVE = ("contraindicated", "major")
MAX_MEDICINES = 20


def standing_interactions(chart: dict[str, Any], context: Context) -> list[str]:
    """One line for each contraindicated or major pair of active medicines; none where nothing could be looked up."""
    active = [item["name"] for item in chart["medications"] if item["active"]][:MAX_MEDICINES]
    names = sorted({part for name in active for part in ingredients(name, context.drugs)})
    try:
        listed = interactions_of_known(names, context.knowledge)[0].records if len(names) > 1 else []
    except DocGemmaError:
        return []
    found = [item for item in listed if item.severity.lower() in GRAVE]
    return [
        f"Taken together already: {item.severity.lower()} interaction of {item.drugs[0]} with {item.drugs[1]}. "
        f"{item.mechanism} {item.management}".strip()
        for item in sorted(found, key=lambda item: GRAVE.index(item.severity.lower()))
    ]
