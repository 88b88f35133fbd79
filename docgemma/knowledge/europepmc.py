"""Published literature from Europe PMC, limited to PubMed's records and without retracted ones.

Source: europepmc.org/RestfulWebService.
"""

import re

from pydantic import Field

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.base import Article
from docgemma.knowledge.http import Deadline, Fetched, Http, Service
from docgemma.knowledge.label_text import plain

from docgemma.knowledge.wire import Wire

MAX_LIMIT = 100
PAGE = "https://europepmc.org/article"
HEADING = re.compile(r"\s*<h[1-6]>\s*(.*?)\s*:?\s*</h[1-6]>\s*", re.IGNORECASE)
INLINE = re.compile(r"</?(?:i|b|u|em|strong|su[bp])>", re.IGNORECASE)


class FullText(Wire):
    availabilityCode: str = ""
    documentStyle: str = ""
    url: str = ""


class FullTexts(Wire):
    fullTextUrl: tuple[FullText, ...] = ()


class Journal(Wire):
    title: str = ""


class JournalInfo(Wire):
    journal: Journal = Field(default_factory=Journal)


class Record(Wire):
    """One article, `resultType=core`; `lite` has `journalTitle` instead of `journalInfo`."""

    id: str
    source: str = ""
    pmid: str = ""
    title: str = ""
    authorString: str = ""
    journalTitle: str = ""
    journalInfo: JournalInfo = Field(default_factory=JournalInfo)
    pubYear: str = ""
    abstractText: str = ""
    fullTextUrlList: FullTexts = Field(default_factory=FullTexts)


class ResultList(Wire):
    result: tuple[Record, ...] = ()


class Results(Wire):
    """An answer of /search; nothing found is a 200 with an empty list."""

    hitCount: int
    resultList: ResultList


def find_articles(http: Http, service: Service, query: str, limit: int, deadline: Deadline) -> Fetched[list[Article]]:
    """Articles on a question in plain words, the most relevant first; [] means that there are none.

    Raises:
        ToolError: `invalid_args` for a query without words; or an outage.
    """
    params = {
        "query": f'({words(query)}) AND SRC:MED AND NOT PUB_TYPE:"retracted publication"',
        "format": "json",
        "resultType": "core",
        "pageSize": str(min(limit, MAX_LIMIT)),
    }
    return http.get(service, "search", params, lambda raw: parse(raw)[:limit], deadline)


def words(query: str) -> str:
    """The words of a query alone: no field, operator, wildcard or quotation of Europe PMC's language is left.

    Raises:
        ToolError: `invalid_args`, nothing is left.
    """
    found = [word.strip("-'") for word in re.findall(r"[\w'-]+", query)]
    found = [word.lower() if word in ("AND", "OR", "NOT") else word for word in found if word]
    if not found:
        raise ToolError(ErrorType.INVALID_ARGS, "The literature query has no words.", missing_fields=["query"])
    return " ".join(found)


def parse(raw: object) -> list[Article]:
    """Europe PMC's JSON as articles; ValueError for another shape."""
    return [article(record) for record in Results.model_validate(raw).resultList.result]


def article(record: Record) -> Article:
    return Article(
        id=record.pmid or f"{record.source}{record.id}",
        title=text(record.title),
        authors=text(record.authorString),
        journal=text(record.journalInfo.journal.title or record.journalTitle),
        year=int(record.pubYear) if re.fullmatch(r"[12][0-9]{3}", record.pubYear) else None,
        abstract=text(record.abstractText),
        url=_link(record),
    )


def _link(record: Record) -> str:
    """A page with the free full text, else the article's page."""
    for copy in record.fullTextUrlList.fullTextUrl:
        if copy.availabilityCode in ("OA", "F") and copy.documentStyle == "html" and copy.url.startswith("https://"):
            return copy.url
    return f"{PAGE}/{record.source or 'MED'}/{record.id}"


def text(marked: str) -> str:
    """Plain text of a title or abstract; its headings become "Methods: "."""
    return plain(INLINE.sub("", HEADING.sub(r" \1: ", marked)))
