"""Look up the interactions among the medicines that a patient takes already: nobody has to ask for the gravest."""

from typing import Any

from docgemma.errors import DocGemmaError, ErrorType, ToolError
from docgemma.knowledge.base import Interaction
from docgemma.nodes.context import Context
from docgemma.rules.drugs import ingredients

GRAVE = ("contraindicated", "major")
MAX_MEDICINES = 20


def standing_interactions(chart: dict[str, Any], context: Context) -> list[str]:
    """One line for each contraindicated or major pair of active medicines; none where nothing could be looked up."""
    active = [item["name"] for item in chart["medications"] if item["active"]][:MAX_MEDICINES]
    names = sorted({part for name in active for part in ingredients(name, context.drugs)})
    found = [item for item in _listed(names, context) if item.severity.lower() in GRAVE]
    return [
        f"Taken together already: {item.severity.lower()} interaction of {item.drugs[0]} with {item.drugs[1]}. "
        f"{item.mechanism} {item.management}".strip()
        for item in sorted(found, key=lambda item: GRAVE.index(item.severity.lower()))
    ]


def _listed(names: list[str], context: Context) -> list[Interaction]:
    """What is listed of any two of these; a name that the source does not know is left out."""
    names = list(names)
    while len(names) > 1:
        try:
            return list(context.knowledge.interactions(names).records)
        except ToolError as error:
            unknown = error.details.get("entity")
            if error.error_type is not ErrorType.DRUG_NOT_IN_DATABASE or unknown not in names:
                return []
            names.remove(unknown)
        except DocGemmaError:
            return []
    return []
