"""Articles of PubMed's baseline and update files (XML) and of Europe PMC's answers (JSON), for the snapshot.

Retracted publications are left out, as the live search leaves them out.
"""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from docgemma.knowledge.base import Article
from docgemma.knowledge.build import add_article
from docgemma.knowledge.bulk_json import Open, json_records
from docgemma.knowledge.bulk_staging import Note
from docgemma.knowledge.europepmc import PAGE, Record, article
from docgemma.knowledge.label_text import plain

SOURCE = "PubMed and Europe PMC bulk data"
SCHEMA = ""
RETRACTED = "retracted publication"
MAX_AUTHORS = 20


@dataclass(frozen=True)
class Deleted:
    """PubMed's update files name articles that were taken back."""

    ids: tuple[str, ...]


def records(open_document: Open) -> Iterator[Any]:
    """`PubmedArticle` elements and `Deleted`, or Europe PMC's records; decided by the first character."""
    with open_document() as stream:
        head = stream.read(200).lstrip(b"\xef\xbb\xbf \t\r\n")
    return _xml(open_document) if head[:1] == b"<" else json_records(open_document, ("resultList.result",))


def stated(open_document: Open) -> None:
    """Neither source states the date of a file; the newest record tells."""


def add(connection: sqlite3.Connection, raw: Any) -> Note:
    """Store one article; a later one with the same id takes its place.

    Raises:
        ValueError: it is not an article.
    """
    if isinstance(raw, Deleted):
        for item in raw.ids:
            forget(connection, item)
        return Note(counted=False)
    found, kinds, keywords, newest = _pubmed(raw) if isinstance(raw, Element) else _europepmc(raw)
    if not found.title and not found.abstract:
        raise ValueError("an article without words")
    forget(connection, found.id)
    if RETRACTED in {kind.lower() for kind in kinds}:
        return Note(skipped=RETRACTED, newest=newest)
    add_article(connection, found, keywords)
    return Note(newest=newest)


def tidy(connection: sqlite3.Connection) -> None:
    """Nothing is left to tidy."""


def forget(connection: sqlite3.Connection, article_id: str) -> None:
    for (row,) in connection.execute("SELECT rowid FROM article WHERE id = ?", (article_id,)).fetchall():
        connection.execute("DELETE FROM article_text WHERE rowid = ?", (row,))
        connection.execute("DELETE FROM article WHERE rowid = ?", (row,))


def _europepmc(raw: Any) -> tuple[Article, list[str], list[str], str | None]:
    record = Record.model_validate(raw)
    kinds = raw.get("pubTypeList") or {}
    keywords = (raw.get("keywordList") or {}).get("keyword") or []
    newest = raw.get("dateOfRevision") or raw.get("firstIndexDate")
    return article(record), list(kinds.get("pubType") or []), [str(word) for word in keywords], newest


def _xml(open_document: Open) -> Iterator[Element | Deleted]:
    """One element at a time; what was read is dropped, so that memory stays flat."""
    with open_document() as stream:
        events = ElementTree.iterparse(stream, events=("start", "end"))
        _, root = next(events)
        for event, element in events:
            if event == "end" and element.tag == "PubmedArticle":
                yield element
                root.clear()
            elif event == "end" and element.tag == "DeleteCitation":
                yield Deleted(tuple(_text(item) for item in element.iter("PMID")))


def _pubmed(element: Element) -> tuple[Article, list[str], list[str], str | None]:
    citation = element.find("MedlineCitation")
    if citation is None or not (pmid := _text(citation.find("PMID"))):
        raise ValueError("no PMID")
    found = Article(
        id=pmid,
        title=_text(citation.find("Article/ArticleTitle")) or _text(citation.find("Article/VernacularTitle")),
        authors=_authors(citation),
        journal=_text(citation.find("Article/Journal/Title")),
        year=_year(citation),
        abstract=" ".join(filter(None, map(_part, citation.iterfind("Article/Abstract/AbstractText")))),
        url=f"{PAGE}/MED/{pmid}",
    )
    kinds = [_text(item) for item in citation.iterfind("Article/PublicationTypeList/PublicationType")]
    words = [*citation.iterfind("MeshHeadingList/MeshHeading/DescriptorName"), *citation.iter("Keyword")]
    date = citation.find("DateRevised") if citation.find("DateRevised") is not None else citation.find("DateCompleted")
    return found, kinds, [_text(word) for word in words], _date(date)


def _authors(citation: Element) -> str:
    """ "Ostrow P, Lindqvist M." as Europe PMC writes them; beyond twenty, "et al."."""
    names = []
    for author in citation.iterfind("Article/AuthorList/Author"):
        name = f"{_text(author.find('LastName'))} {_text(author.find('Initials'))}".strip()
        names.append(name or _text(author.find("CollectiveName")))
    names = [name for name in names if name]
    more = ", et al" if len(names) > MAX_AUTHORS else ""
    return f"{', '.join(names[:MAX_AUTHORS])}{more}." if names else ""


def _part(element: Element) -> str:
    text, label = _text(element), element.get("Label", "")
    return f"{label.capitalize()}: {text}" if text and label else text


def _year(citation: Element) -> int | None:
    """Of the issue; "1998 Dec-1999 Jan" is 1998."""
    found = citation.find("Article/Journal/JournalIssue/PubDate")
    years = re.findall(r"\b[12][0-9]{3}\b", " ".join(found.itertext())) if found is not None else []
    return int(years[0]) if years else None


def _date(element: Element | None) -> str | None:
    if element is None:
        return None
    parts = [_text(element.find(name)) for name in ("Year", "Month", "Day")]
    return f"{parts[0]:0>4}-{parts[1]:0>2}-{parts[2]:0>2}" if all(part.isdigit() for part in parts) else None


def _text(element: Element | None) -> str:
    """Words of an element, of <i> and <sub> inside it too."""
    return plain("".join(element.itertext())) if element is not None else ""
