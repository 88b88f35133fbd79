"""Clinical trial search."""

from dataclasses import asdict
from typing import Any

from docgemma.reading.drugs import spelt_out
from docgemma.schemas import ClinicalTrialsArgs
from docgemma.tools.base import Tool, ToolContext, ToolOutput
from docgemma.tools.drugs import fallback_line
from docgemma.tools.text import bound, clip, joined, sentence

SHOWN = 5


def find_clinical_trials(args: ClinicalTrialsArgs, context: ToolContext) -> ToolOutput:
    """Trials for a condition, the best match first.

    Data: `condition: str`, `status: str | None` (the filter as asked), `trials: [{"id", "title", "status", "phase",
    "conditions": list[str], "interventions": list[str], "locations": list[str], "summary", "url",
    "demonstration": bool}]`, `fell_back: str | None`. `id` is an NCT id, or DEMO-TRIAL-… for an invented record.

    Raises:
        ToolError: `invalid_args` for a status that is none, or an outage.
    """
    answer = context.knowledge.trials(args.condition, status=args.status, limit=SHOWN)
    if not answer.records and (plain := spelt_out(args.condition)) != args.condition:
        answer = context.knowledge.trials(plain, status=args.status, limit=SHOWN)
    trials = [asdict(item) for item in answer.records]
    links = [{"title": item.title, "url": item.url, "id": item.id} for item in answer.records]
    data = {"condition": args.condition, "status": args.status, "trials": trials, "fell_back": answer.fell_back}
    return ToolOutput(data, answer.source, answer.as_of, empty=not trials, links=links)


def format_trials(data: dict[str, Any]) -> str:
    trials = data["trials"]
    if not trials:
        kind = f"{data['status']} trials" if data["status"] else "trials"
        return f"No {kind} were found for {data['condition']}."
    each = max(180, 1150 // len(trials))
    lines = [_trial_line(item, each) for item in trials]
    invented = any(item["demonstration"] for item in trials)
    notice = "Demonstration records are invented examples; nobody can enrol in them." if invented else ""
    return bound(lines, closing=[notice, fallback_line(data)])


def _trial_line(item: dict[str, Any], limit: int) -> str:
    status = item["status"].replace("_", " ").lower()
    facts = ", ".join(part for part in (item["id"], status, item["phase"]) if part)
    head = f"{sentence(clip(item['title'], 160))} ({facts})"
    treatment = f"Treatment: {joined(item['interventions'][:3])}." if item["interventions"] else ""
    places = f"Sites: {joined(list(dict.fromkeys(item['locations']))[:3])}." if item["locations"] else ""
    return clip(" ".join(part for part in (head, treatment, places, item["summary"]) if part), limit)


TRIALS = Tool(
    name="find_clinical_trials",
    label="Clinical Trials",
    signature="(condition: str, status: str = None)",
    description=(
        "Search ClinicalTrials.gov for active, recruiting, or completed clinical trials for a specific condition or "
        "treatment. Use when a clinician asks about experimental treatments, ongoing trials, or new therapies being "
        "studied."
    ),
    args=ClinicalTrialsArgs,
    example="Are there recruiting trials for triple-negative breast cancer?",
    run=find_clinical_trials,
    format=format_trials,
    entity="condition",
    needs="no patient",
    outside=True,
)
