"""The registry of the ten tools. A new tool is a file beside this one, a line in `registered` and its tests."""

from docgemma.settings import Settings
from docgemma.tools.base import Tool, Toolbox


def toolbox(settings: Settings | None = None) -> Toolbox:
    """All tools in order; on the server that `DOCGEMMA_MCP_URL` names, where the settings name one."""
    box = Toolbox(registered())
    if settings and settings.mcp_url:
        from docgemma.tools.mcp_client import RemoteToolbox

        return RemoteToolbox(box, settings.mcp_url, settings.mcp_token)
    return box


def registered() -> tuple[Tool, ...]:
    """The registry: a new tool is one more line. Order: v3 specification, section 16."""
    from docgemma.tools import drugs, images, literature_and_trials, records, writes

    return (
        drugs.DRUG_SAFETY,
        drugs.DRUG_INTERACTIONS,
        literature_and_trials.LITERATURE,
        literature_and_trials.TRIALS,
        records.PATIENT_SEARCH,
        records.PATIENT_CHART,
        writes.PRESCRIBE,
        writes.ADD_ALLERGY,
        writes.SAVE_NOTE,
        images.IMAGE_ANALYSIS,
    )
