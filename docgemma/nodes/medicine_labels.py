"""Look up the label of a medicine as a chart or an order names it."""

from docgemma.errors import DocGemmaError
from docgemma.knowledge.base import DrugLabel
from docgemma.nodes.context import Context


def label_of(medicine: str, context: Context) -> DrugLabel | None:
    """The label, "ibuprofen susp" by its ingredient too; None if none can be read."""
    for name in dict.fromkeys([medicine, *(item.text for item in context.drugs.find(medicine))]):
        try:
            records = context.knowledge.label(name).records
        except DocGemmaError:
            continue
        if records:
            return records[0]
    return None
