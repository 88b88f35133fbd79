"""Entries that were not made: rejected ones, and ones asked for and never prepared. Code says so, not a model."""

from docgemma.reading.labels import WRITES
from docgemma.rules import known
from docgemma.rules.absence import claims_entry
from docgemma.rules.plan import planned
from docgemma.rules.sentences import split
from docgemma.state import AgentState, ToolResult

NOTHING_RECORDED = "Nothing was written to the record."
NOT_PREPARED = (
    f"{NOTHING_RECORDED} The request was read as a general question, so no entry was prepared. Ask for the entry "
    "itself, with the patient's ID and, for a prescription, the drug, the dose and how often."
)


def is_rejected(result: ToolResult) -> bool:
    """Whether a person rejected this entry."""
    return result["result"].get("decision") == "rejected"


def any_rejected(state: AgentState) -> bool:
    return any(is_rejected(item) for item in state.get("tool_results") or [])


def refused_answer(state: AgentState) -> str | None:
    """The whole answer of a turn in which nothing happened but rejections; None where there is more to say."""
    results = state.get("tool_results") or []
    if not results or not all(is_rejected(item) for item in results):
        return None
    lines = known.unique(item["formatted_result"] for item in results)
    return "\n".join([*lines, NOTHING_RECORDED])


def unprepared_answer(state: AgentState) -> str | None:
    """The whole answer where an entry was ordered and the question was taken for a general one; else None."""
    return NOT_PREPARED if any(step.ask in WRITES for step in planned(state)) else None


def without_entries(text: str, said_before: list[str]) -> tuple[str, list[str]]:
    """A text without the sentences that claim an entry which no earlier text confirms, and those sentences."""
    kept, removed = [], []
    for sentence, gap in split(text):
        if claims_entry(sentence, said_before):
            removed.append(sentence.strip())
        else:
            kept.append(sentence + gap)
    return "".join(kept).strip(), removed
