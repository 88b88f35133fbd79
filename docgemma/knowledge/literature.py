"""Published literature: Europe PMC's answers; the kit reads PubMed's baseline files in the same shape.

Limited to PubMed's records and without retracted ones. Source: europepmc.org/RestfulWebService.
"""

import json
import re
from collections import defaultdict
from functools import lru_cache
from itertools import takewhile
from typing import Any

from docgemma.http import Deadline
from docgemma.knowledge.base import Article
from docgemma.knowledge.http import Fetched, Service, Wire, at
from docgemma.knowledge.label_text import plain
from docgemma.knowledge.search import words
from docgemma.paths import data_file
from docgemma.text.words import listed, phrases_in
from docgemma.text.words import plain as plain_words

LEAD, HEAD = 3, 7  # words that a name stands in; letters of its head
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
def trial_names() -> dict[str, list[str]]:
    """What the studies of the shipped collection are called, as each summary begins -> their articles: "DAPA-HF",
    "STOP ACEi"; of a long name its head too where no other has it: "PARADIGM"."""
    found, heads = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for item in shipped("literature").values():
        lead = item["abstract"].partition(".")[0].partition(",")[0].partition(" (")[0].split()
        name = " ".join(takewhile(lambda word: not word[0].islower(), lead))
        odd = any(sum(char.isupper() or char.isdigit() for char in word) > 1 for word in name.split())
        if odd and len(name) > 3 and len(lead) <= LEAD and "guideline" not in lead:
            found[name].append(item["id"])
            heads[name.partition("-")[0]].append(item["id"])
    return {**{head: ids for head, ids in heads.items() if len(head) >= HEAD and len(ids) == 1}, **found}


def studies_in(text: str) -> dict[str, list[str]]:
    """Studies of the shipped collection that a text names, as they are called -> their articles. A name is a whole
    word, with a blank for a hyphen too ("DAPA HF"); in small letters only where it is spelt as no word ("dapa-hf"), and
    in a text all in capitals only where that asks nothing else."""
    known = sorted(trial_names(), key=len, reverse=True)
    spaced, rest = phrases_in(_spaced(text), [(_spaced(name), name) for name in known])
    beside = {*plain_words(rest).split()} - listed("request_words", "of_articles", "studies")
    spaced = [] if text.isupper() and beside else spaced
    odd = [name for name in known if " " not in name and not (name.isupper() and name.isalpha())]
    small, _ = phrases_in(plain_words(text), [(plain_words(name), name) for name in odd])
    return {name: trial_names()[name] for name in [*spaced, *(name for name in small if name not in spaced)]}


def _spaced(text: str) -> str:
    """The words of a text, in capitals and small letters as written."""
    return " ".join("".join(char if char.isalnum() else " " for char in text).split())


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
