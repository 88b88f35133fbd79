"""What a clinician types, as a full-text query: stop words out, synonyms in, any input safe."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from math import log
from typing import NamedTuple

from docgemma.errors import ErrorType, ToolError
from docgemma.paths import data_file, data_yaml
from docgemma.text.drugs import DrugNames
from docgemma.text.words import clinical, listed

MAX_CONCEPTS = 8
LONGEST = 6  # words of a phrase
MAX_MEMBERS = 16  # of a group of drugs that stands for each of them
NEEDED = 0.6  # share of what was asked about, by weight; measured on data/knowledge/search_questions.yaml
PLAIN, UNKNOWN = 0.6, 1.5  # weight of a plain word beside a term, and of one that no record has
WORD = re.compile(r"[^\W_]+")
ANY_STATUS = frozenset({"", "any", "all", "none", "unknown"})


class Concept(NamedTuple):
    """One thing that is asked about. `ways`: how it is said, as typed first; `wider`: what it is a kind of or close to;
    `clinical`: it is a term, so that a record without it is about something else."""

    ways: tuple[str, ...]
    wider: tuple[str, ...]
    clinical: bool


class Vocabulary(NamedTuple):
    """`phrases`, `wider`: words of a phrase -> ways to say it, and what it is a kind of; `statuses`: as said -> codes;
    `terms`: words that name something clinical."""

    stop_words: frozenset[str]
    phrases: dict[tuple[str, ...], list[str]]
    wider: dict[tuple[str, ...], list[str]]
    statuses: dict[str, list[str]]
    terms: frozenset[str]


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """`search.yaml`, and of `data/clinical` what drugs, their groups, conditions, tests and risks are called."""
    data = data_yaml("knowledge", "search.yaml")
    same = _lines(data["synonyms"])
    taken = {way for ways, _ in same for way in ways}  # "ca" is cancer here, not calcium
    same += [([way for way in ways if way not in taken], []) for ways in _clinical_names()]
    groups = [*_lines(data["drug_classes"]), *_groups()]
    phrases: dict[tuple[str, ...], list[str]] = {}
    for ways, kinds in [*same, *groups]:
        for way in ways:
            _add(phrases, way, [way, *ways, *kinds])
    wider: dict[tuple[str, ...], list[str]] = {}
    for ways, members in groups:
        for member in members if len(members) <= MAX_MEMBERS else []:
            _add(wider, member, ways)
    for topic in clinical("label_topics")["topics"]:
        for way in topic["said"]:
            _add(wider, way, topic["said"])
    terms = _terms()
    stop_words = (listed("request_words", "function_words") - terms) | {*data["stop_words"].split()}
    return Vocabulary(stop_words, phrases, wider, data["statuses"], terms)


def _terms() -> frozenset[str]:
    """Words that name a condition, a test or a food."""
    tests = [item["name"] for part in ("measures", "groups") for item in clinical("measures")[part]]
    problems = [part for item in clinical("problems")["problems"] for part in item["chart"]]
    foods = [str(said) for item in clinical("drug_groups")["foods"] for said in (item["name"], *item["said"])]
    conditions = data_file("edge", "lists", "conditions.txt").read_text(encoding="utf-8").lower()
    return frozenset(word for text in (*tests, *problems, *foods, conditions) for word in WORD.findall(text))


def _clinical_names() -> Iterator[list[str]]:
    """What is said for one drug, condition or test, its name first."""
    tests = clinical("measures")
    named = [*clinical("drug_abbreviations")["drugs"], *clinical("conditions")["conditions"]]
    for item in [*named, *tests["measures"], *tests["groups"]]:
        yield [str(said) for said in (item["name"], *item.get("said", []), *item.get("misspelt", []))]


def _groups() -> list[tuple[list[str], list[str]]]:
    """Groups and classes of drugs: what each is called, and its members."""
    lists = (("drug_groups", "groups", "drugs"), ("drug_classes", "classes", "members"))
    items = ((item, members) for file, part, members in lists for item in clinical(file)[part])
    return [([str(way) for way in (item["name"], *item.get("said", []))], item[members]) for item, members in items]


def _add(known: dict[tuple[str, ...], list[str]], phrase: str, others: Iterable[str]) -> None:
    ways = known.setdefault(tuple(WORD.findall(phrase.lower())), [])
    ways += [way for way in others if way not in ways]


def _lines(text: str) -> list[tuple[list[str], list[str]]]:
    """Lines of "way, way > kind, kind"."""
    parts = ([part.split(",") for part in line.split(">")] for line in text.splitlines())
    return [([way.strip() for way in ways], [kind.strip() for kind in chain(*kinds)]) for ways, *kinds in parts]


def statuses(text: str | None) -> tuple[str, ...]:
    """A recruitment status as said, as the registry's own codes; () for no filter.

    Raises:
        ToolError: `invalid_args` for a word that is no status, with the words that can be used as `suggestions`.
    """
    said = " ".join(WORD.findall((text or "").lower().replace("_", " ")))
    if said in ANY_STATUS:
        return ()
    known = vocabulary().statuses
    for key in (said, said.removesuffix(" trials"), said.removeprefix("currently ")):
        if key in known:
            return tuple(known[key])
    raise ToolError(
        ErrorType.INVALID_ARGS,
        "ClinicalTrials.gov has no such trial status.",
        hint=f"Use one of: {', '.join(sorted(known))}.",
        missing_fields=["status"],
        suggestions=sorted(known),
    )


def words(text: str, field: str) -> str:
    """The words of a query alone: no field, operator, wildcard or quotation of a service's query language is left.

    Raises:
        ToolError: `invalid_args`, nothing is left.
    """
    found = [word.strip("-'") for word in re.findall(r"[\w'-]+", text)]
    found = [word.lower() if word in ("AND", "OR", "NOT") else word for word in found if word]
    if not found:
        raise ToolError(ErrorType.INVALID_ARGS, f"The {field} has no words.", missing_fields=[field])
    return " ".join(found)


def concepts(text: str, names: DrugNames | None = None) -> list[Concept]:
    """The things asked about, in order; at most eight.

    Args:
        names: the drug dictionary: a brand is searched by what is in it.
    """
    words = [word.lower() for word in WORD.findall(text[:2000])]
    found: list[Concept] = []
    at = 0
    while at < len(words) and len(found) < MAX_CONCEPTS:
        size, ways, known = _phrase_at(words, at, names)
        if ways and not any(ways[0] in item.ways for item in found):
            related = (vocabulary().wider.get(tuple(way.split()), []) for way in ways)
            wider = tuple(way for way in dict.fromkeys(chain(*related)) if way not in ways)
            found.append(Concept(tuple(ways), wider, known or bool(wider) or ways[0] in vocabulary().terms))
        at += size
    return found


def weight(item: Concept, held: int, of: int) -> float:
    """How much it tells: the rarer the more; a plain word less than a term, and little where no record has it."""
    rare = log(1 + (of + 1) / (held + 0.5))
    return rare if item.clinical else rare * PLAIN if held else UNKNOWN


def telling(shares: dict[Concept, float]) -> list[Concept]:
    """The weightiest things asked about: a record without any of them cannot have what is needed."""
    found, left = [], 1.0
    for item in sorted(shares, key=lambda item: -shares[item]):
        if left >= NEEDED:
            found.append(item)
        left -= shares[item]
    return found


def expression(ways: Iterable[str]) -> str:
    """An FTS5 expression: one of the ways."""
    return " OR ".join('"' + way.replace('"', "") + '"' for way in ways)


def _phrase_at(words: list[str], at: int, names: DrugNames | None) -> tuple[int, list[str], bool]:
    """How many words one thing takes from there, how it is said ([] for one that asks nothing), whether it is known."""
    stop_words, phrases, *_ = vocabulary()
    for size in range(min(LONGEST, len(words) - at), 0, -1):
        phrase = " ".join(words[at : at + size])
        own = phrases.get(tuple(words[at : at + size]), [])
        drug = names.parts(phrase) if names and phrase in names else []
        if (own or drug) and phrase not in stop_words:
            further = [way for name in (*own, *drug) for way in phrases.get(tuple(name.split()), [])]
            return size, list(dict.fromkeys([phrase, *drug, *own, *further])), True
    word = words[at]
    return 1, [] if word in stop_words or word[0].isdigit() or len(word) == 1 else [word], False
