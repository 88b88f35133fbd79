"""Literature search."""

from dataclasses import asdict
from typing import Any

from docgemma.reading.drugs import spelt_out
from docgemma.schemas import LiteratureSearchArgs
from docgemma.tools.base import Tool, ToolContext, ToolOutput
from docgemma.tools.drugs import fallback_line
from docgemma.tools.text import bound, clip, sentence

SHOWN = 5


def search_medical_literature(args: LiteratureSearchArgs, context: ToolContext) -> ToolOutput:
    """Published work on a question, the best match first.

    Data: `query: str`, `articles: [{"id", "title", "authors", "journal", "year": int | None, "abstract", "url",
    "demonstration": bool}]`, `fell_back: str | None`. `id` is a PMID, or DEMO-LIT-… for an invented record.

    Raises:
        ToolError: an outage.
    """
    answer = context.knowledge.literature(args.query, limit=SHOWN)
    if not answer.records and (plain := spelt_out(args.query)) != args.query:  # "abx in CAP" in words
        answer = context.knowledge.literature(plain, limit=SHOWN)
    articles = [asdict(item) for item in answer.records]
    links = [{"title": item.title, "url": item.url, "id": item.id} for item in answer.records]
    data = {"query": args.query, "articles": articles, "fell_back": answer.fell_back}
    return ToolOutput(data, answer.source, answer.as_of, empty=not articles, links=links)


def format_literature(data: dict[str, Any]) -> str:
    articles = data["articles"]
    if not articles:
        return f"No articles were found for {data['query']}."
    each = max(180, 1150 // len(articles))
    lines = [_article_line(item, each) for item in articles]
    invented = any(item["demonstration"] for item in articles)
    notice = "Demonstration records are invented examples and must not be cited." if invented else ""
    return bound(lines, closing=[notice, fallback_line(data)])


def _article_line(item: dict[str, Any], limit: int) -> str:
    where = ", ".join(str(part) for part in (item["journal"], item["year"], item["id"]) if part)
    head = f"{sentence(item['title'])} ({where})"
    return f"{clip(head, 200)} {clip(item['abstract'], max(60, limit - len(head)))}".strip()


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
    entity="query",
    needs="no patient",
    outside=True,
)
