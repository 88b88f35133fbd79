"""Articles of PubMed's baseline and update files (XML), one element at a time so that memory stays flat."""

import re
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from docgemma.knowledge.base import Article
from docgemma.knowledge.label_text import plain

PAGE = "https://europepmc.org/article/MED"


def elements(stream: IO[bytes]) -> Iterator[Element]:
    events = ElementTree.iterparse(stream, events=("start", "end"))
    _, root = next(events)
    for event, element in events:
        if event == "end" and element.tag == "PubmedArticle":
            yield element
            root.clear()


def article(element: Element) -> tuple[Article, list[str], list[str], str | None]:
    """The article, its publication types, its keywords, and the ISO date of its last change.

    Raises:
        ValueError: it has no id.
    """
    citation = element.find("MedlineCitation")
    if citation is None or not (pmid := _text(citation.find("PMID"))):
        raise ValueError("no PMID")
    found = Article(
        id=pmid,
        title=_text(citation.find("Article/ArticleTitle")) or _text(citation.find("Article/VernacularTitle")),
        authors=_authors(citation),
        journal=_text(citation.find("Article/Journal/Title")),
        year=_year(citation.find("Article/Journal/JournalIssue/PubDate")),
        abstract=" ".join(filter(None, map(_part, citation.iterfind("Article/Abstract/AbstractText")))),
        url=f"{PAGE}/{pmid}",
    )
    kinds = [_text(item) for item in citation.iterfind("Article/PublicationTypeList/PublicationType")]
    words = [*citation.iterfind("MeshHeadingList/MeshHeading/DescriptorName"), *citation.iter("Keyword")]
    changed = next((date for tag in ("DateRevised", "DateCompleted") if (date := citation.find(tag)) is not None), None)
    return found, kinds, [_text(word) for word in words], _date(changed)


def _authors(citation: Element) -> str:
    """ "Ostrow P, Lindqvist M." as Europe PMC writes them."""
    names = []
    for author in citation.iterfind("Article/AuthorList/Author"):
        parts = [_text(author.find(part)) for part in ("LastName", "Initials", "CollectiveName")]
        names.append(" ".join(filter(None, parts)))
    return f"{', '.join(names)}." if names else ""


def _part(element: Element) -> str:
    text, label = _text(element), element.get("Label", "")
    return f"{label.capitalize()}: {text}" if text and label else text


def _year(date: Element | None) -> int | None:
    """Of the issue; "1998 Dec-1999 Jan" is 1998."""
    years = re.findall(r"\b[12][0-9]{3}\b", " ".join(date.itertext())) if date is not None else []
    return int(years[0]) if years else None


def _date(element: Element | None) -> str | None:
    parts = [_text(element.find(name)) for name in ("Year", "Month", "Day")] if element is not None else [""]
    return f"{parts[0]:0>4}-{parts[1]:0>2}-{parts[2]:0>2}" if all(part.isdigit() for part in parts) else None


def _text(element: Element | None) -> str:
    """Words of an element, of <i> and <sub> inside it too."""
    return plain("".join(element.itertext())) if element is not None else ""
