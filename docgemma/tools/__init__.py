"""The ten tools. `toolbox()` gives them all; `base.py` says what a tool is."""

from docgemma.tools.base import Tool, Toolbox, ToolContext, ToolOutput, validate

__all__ = ["Tool", "ToolContext", "ToolOutput", "Toolbox", "toolbox", "validate"]


def toolbox() -> Toolbox:
    """All ten, in the order of the v3 specification, section 16."""
    from docgemma.tools import drugs, images, literature, records, trials, writes

    return Toolbox(
        (
            drugs.DRUG_SAFETY,
            drugs.DRUG_INTERACTIONS,
            literature.LITERATURE,
            trials.TRIALS,
            records.PATIENT_SEARCH,
            records.PATIENT_CHART,
            writes.PRESCRIBE,
            writes.ADD_ALLERGY,
            writes.SAVE_NOTE,
            images.IMAGE_ANALYSIS,
        )
    )
