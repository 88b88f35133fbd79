"""The two searches: medical literature, and clinical trials."""

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from docgemma.knowledge.base import Answer, Article, Trial
from docgemma.reading.drugs import spelt_out
from docgemma.schemas import ClinicalTrialsArgs, LiteratureSearchArgs
from docgemma.text.words import listed, plain
from docgemma.tools.base import FORMATTED, Tool, ToolContext, ToolOutput, bound, clip, fallback_line, joined, sentence

SHOWN, ARTICLES = 5, 3  # trials; articles, each with what it found
INVENTED = "Demonstration records are invented examples; nobody can enrol in them."
# of an answer, see `knowledge.base.Answer`
ABOUT = {"fell_back": str | None, "size": int | None, "invented": int, "partial": bool}


def search_medical_literature(args: LiteratureSearchArgs, context: ToolContext) -> ToolOutput:
    """Published work on a question, the best match first.

    Data (`LITERATURE.data`): `id` is a PMID, or "doi:…" where none is known.

    Raises:
        ToolError: an outage.
    """
    answer = _found(args.query, lambda text: context.knowledge.literature(text, limit=ARTICLES))
    return _output({"query": args.query}, "articles", answer)


def find_clinical_trials(args: ClinicalTrialsArgs, context: ToolContext) -> ToolOutput:
    """Trials for a condition, the best match first.

    Data (`TRIALS.data`): `status` (the filter as asked); `id` is an NCT id, or DEMO-TRIAL-… for an invented record.

    Raises:
        ToolError: `invalid_args` for a status that is none, or an outage.
    """
    answer = _found(args.condition, lambda text: context.knowledge.trials(text, status=args.status, limit=SHOWN))
    return _output({"condition": args.condition, "status": args.status}, "trials", answer)


def _found(text: str, find: Callable[[str], Answer[Any]]) -> Answer[Any]:
    """Search as asked, then with abbreviations in words ("abx in CAP"), then for each of two questions in one."""
    answer = find(text)
    if not answer.records and (plain := spelt_out(text)) != text:
        answer = find(plain)
    parts = [part for part in text.split(",") if len(part.split()) > 2]
    if (answer.partial or not answer.records) and len(parts) > 1:
        records = {item.id: item for part in parts for item in find(part).records}
        answer = replace(answer, records=list(records.values())[:SHOWN], partial=bool(records))
    return answer


def _output(asked: dict[str, Any], name: str, answer: Answer[Article] | Answer[Trial]) -> ToolOutput:
    links = [{"title": item.title, "url": item.url, "id": item.id} for item in answer.records]
    told = {name: getattr(answer, name) for name in ABOUT}
    data = {**asked, name: [asdict(item) for item in answer.records], **told}
    return ToolOutput(data, answer.source, answer.as_of, empty=not links, links=links)


def format_literature(data: dict[str, Any]) -> str:
    if not data["articles"]:
        return f"No articles were found for {data['query']}{_searched(data)}."
    asked, lacking = plain(data["query"]).split(), listed("request_words", "lacking")
    without = {word for before, word in pairwise(asked) if before in lacking}
    titles = {item["title"]: {*plain(item["title"]).split()} for item in data["articles"]}
    named = {title: min(words & without) for title, words in titles.items() if words & without and not words & lacking}
    told = [f"“{title}” names {word}, which the question leaves out." for title, word in named.items()]
    return "\n".join([*told, _shown(data, data["articles"], _article_line)])


def format_trials(data: dict[str, Any]) -> str:
    if not data["trials"]:
        kind = f"{data['status']} trials" if data["status"] else "trials"
        return f"No {kind} were found for {data['condition']}{_searched(data)}."
    return _shown(data, data["trials"], _trial_line)


def _searched(data: dict[str, Any]) -> str:
    """Of the offline collection how large it is: what is not there may exist."""
    size, invented = data.get("size"), data.get("invented")
    there = f" in the offline collection of {size:,} records" if size is not None else ""
    count = "all" if invented == size else f"{invented:,} of them"
    there += f" ({count} invented for demonstration)" if invented else ""
    return f"{there}, which does not prove that there are none" if there else ""


def _shown(data: dict[str, Any], items: list[Any], line: Callable[[Any, int], str]) -> str:
    asked = data.get("query") or data.get("condition")
    partly = f"Nothing matches all of “{asked}”; the nearest:" if data.get("partial") else ""
    notice = INVENTED if any(item.get("demonstration") for item in items) else ""
    closing = [notice, fallback_line(data)]
    each = max(180, (FORMATTED - sum(len(part) + 1 for part in [partly, *closing])) // len(items) - 1)
    return bound([partly, *(line(item, each) for item in items)], closing)


def _article_line(item: dict[str, Any], limit: int) -> str:
    number = f"PMID {item['id']}" if item["id"].isdecimal() else item["id"]
    where = ", ".join(str(part) for part in (item["journal"], item["year"], number) if part)
    head = f"{sentence(clip(item['title'], 150))} ({where})"
    return f"{head} {clip(item['abstract'], max(60, limit - len(head)))}".strip()


def _trial_line(item: dict[str, Any], limit: int) -> str:
    status = item["status"].replace("_", " ").lower()
    facts = ", ".join(part for part in (item["id"], status, item["phase"]) if part)
    head = f"{sentence(clip(item['title'], 160))} ({facts})"
    treatment = f"Treatment: {joined(item['interventions'][:3])}." if item["interventions"] else ""
    places = f"Sites: {joined(list(dict.fromkeys(item['locations']))[:3])}." if item["locations"] else ""
    return clip(" ".join(part for part in (head, treatment, places, item["summary"]) if part), limit)


LITERATURE = Tool(
    name="search_medical_literature",
    label="Medical Literature",
    signature="(query: str)",
    description=(
        "Search PubMed and medical literature databases for published studies, systematic reviews, and clinical "
        "evidence. Use when a clinician asks about research, evidence, studies, or medical literature on a topic."
    ),
    args=LiteratureSearchArgs,
    example="What is the evidence for SGLT2 inhibitors in heart failure?",
    run=search_medical_literature,
    format=format_literature,
    no_answer="The literature service did not respond. Nothing was searched.",
    data={"query": str, "articles": [Article], **ABOUT},
    needs="no patient",
    outside=True,
)

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
    no_answer="The trial registry did not respond. Nothing was searched.",
    data={"condition": str, "status": str | None, "trials": [Trial], **ABOUT},
    needs="no patient",
    outside=True,
)
