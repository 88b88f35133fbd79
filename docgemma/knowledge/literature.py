"""Published literature: Europe PMC's answers, and PubMed's baseline files read in the same shape.

Limited to PubMed's records and without retracted ones. Source: europepmc.org/RestfulWebService.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import IO, Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from docgemma.http import Deadline
from docgemma.knowledge.base import Article
from docgemma.knowledge.http import Fetched, Service, Wire, at
from docgemma.knowledge.label_text import plain
from docgemma.knowledge.search import words
from docgemma.paths import data_file

PAGE = "https://europepmc.org/article"
HEADING = re.compile(r"\s*<h[1-6]>\s*(.*?)\s*:?\s*</h[1-6]>\s*", re.IGNORECASE)
INLINE = re.compile(r"</?(?:i|b|u|em|strong|su[bp])>", re.IGNORECASE)


class FullText(Wire):
    availabilityCode: str = ""
    documentStyle: str = ""
    url: str = ""


class Record(Wire):
    """One article, `resultType=core`; `lite` has `journalTitle` instead of `journalInfo`."""

    id: str
    source: str = ""
    pmid: str = ""
    title: str = ""
    authorString: str = ""
    journal: str = at("journalInfo.journal.title", "journalTitle", default="")
    pubYear: str = ""
    abstractText: str = ""
    copies: tuple[FullText, ...] = at("fullTextUrlList.fullTextUrl", default=())
    kinds: tuple[str, ...] = at("pubTypeList.pubType", default=())
    keywords: tuple[str, ...] = at("keywordList.keyword", default=())
    changed: str = at("dateOfRevision", "firstIndexDate", default="")  # ISO date


class Results(Wire):
    """An answer of /search; nothing found is a 200 with an empty list."""

    hitCount: int
    resultList: dict[str, Any]
    records: tuple[Record, ...] = at("resultList.result", default=())


@lru_cache(maxsize=2)
def shipped(kind: str) -> dict[str, dict[str, Any]]:
    """The shipped records of "literature" or "trials" by their ids: a PMID, "DEMO-TRIAL-004"."""
    lines = data_file("knowledge", f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    return {item["id"]: item for item in map(json.loads, lines)}


@lru_cache(maxsize=1)
def trial_names() -> frozenset[str]:
    """What the studies of the shipped collection are called: "DAPA-HF". Each summary begins with it."""
    begun = (item["abstract"].partition(".")[0] for item in shipped("literature").values())
    return frozenset(name for name in begun if " " not in name and len(name) > 3 and sum(map(str.isupper, name)) > 1)


def find_articles(service: Service, query: str, limit: int, deadline: Deadline) -> Fetched[list[Article]]:
    """Articles on a question in plain words, the most relevant first; [] means that there are none.

    Raises:
        ToolError: `invalid_args` for a query without words; or an outage.
    """
    params = {
        "query": f'({words(query, "query")}) AND SRC:MED AND NOT PUB_TYPE:"retracted publication"',
        "format": "json",
        "resultType": "core",
        "pageSize": str(limit),
    }
    return service.get("search", params, lambda raw: parse(raw)[:limit], deadline)


def parse(raw: object) -> list[Article]:
    """Europe PMC's JSON as articles; ValueError for another shape."""
    return [article(record) for record in Results.model_validate(raw).records]


def pubmed_records(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Articles of PubMed's XML in Europe PMC's shape, one element at a time so that memory stays flat."""
    events = ElementTree.iterparse(stream, events=("start", "end"))
    _, root = next(events)
    for event, element in events:
        if event == "end" and element.tag == "PubmedArticle":
            yield _record(element)
            root.clear()


def _record(element: Element) -> dict[str, Any]:
    def texts(path: str) -> list[str]:
        return [plain("".join(item.itertext())) for item in element.iterfind(f"MedlineCitation/{path}")]

    pmid = next(iter(texts("PMID")), None)
    parts = element.iterfind("MedlineCitation/Article/Abstract/AbstractText")
    labels = [f"{label.capitalize()}: " if (label := part.get("Label")) else "" for part in parts]
    authors = element.iterfind("MedlineCitation/Article/AuthorList/Author")
    names = (
        " ".join(author.findtext(key, "") for key in ("LastName", "Initials", "CollectiveName")) for author in authors
    )
    year = re.search(r"\b[12][0-9]{3}\b", " ".join(texts("Article/Journal/JournalIssue/PubDate/*")))
    return {
        "id": pmid,
        "pmid": pmid,
        "title": " ".join(texts("Article/ArticleTitle")),
        "authorString": f"{', '.join(name.strip() for name in names)}.",
        "journalTitle": " ".join(texts("Article/Journal/Title")),
        "pubYear": year and year[0],  # "1998 Dec-1999 Jan" is 1998
        "abstractText": " ".join(map("".join, zip(labels, texts("Article/Abstract/AbstractText"), strict=True))),
        "pubTypeList": {"pubType": texts("Article/PublicationTypeList/PublicationType")},
        "keywordList": {"keyword": texts("MeshHeadingList/MeshHeading/DescriptorName") + texts("KeywordList/Keyword")},
        "dateOfRevision": "-".join(part.zfill(2) for part in texts("DateRevised/*") or texts("DateCompleted/*")),
    }


def article(record: Record) -> Article:
    return Article(
        id=record.pmid or f"{record.source}{record.id}",
        title=text(record.title),
        authors=text(record.authorString),
        journal=text(record.journal),
        year=int(record.pubYear) if len(record.pubYear) == 4 and record.pubYear.isdecimal() else None,
        abstract=text(record.abstractText),
        url=_link(record),
    )


def _link(record: Record) -> str:
    """A page with the free full text, else the article's page."""
    for copy in record.copies:
        if copy.availabilityCode in ("OA", "F") and copy.documentStyle == "html" and copy.url.startswith("https://"):
            return copy.url
    return f"{PAGE}/{record.source or 'MED'}/{record.id}"


def text(marked: str) -> str:
    """Plain text of a title or abstract; its headings become "Methods: "."""
    return plain(INLINE.sub("", HEADING.sub(r" \1: ", marked)))
