"""What a clinician types, as a full-text query: stop words out, synonyms in, any input safe."""

import re
from functools import lru_cache
from itertools import combinations

from docgemma.errors import ErrorType, ToolError
from docgemma.paths import data_yaml

MAX_CONCEPTS = 8
WORD = re.compile(r"[^\W_]+")
ANY_STATUS = frozenset({"", "any", "all", "none", "unknown"})


@lru_cache(maxsize=1)
def vocabulary() -> tuple[frozenset[str], dict[tuple[str, ...], list[str]], dict[str, list[str]]]:
    """`search.yaml`: stop words; words of a phrase -> every way to say it, itself first; status as said -> codes."""
    data = data_yaml("knowledge", "search.yaml")
    phrases: dict[tuple[str, ...], list[str]] = {}
    for line in data["synonyms"].splitlines():
        same, _, kinds = ([item.strip() for item in part.split(",") if item.strip()] for part in line.partition(">"))
        for phrase in same:
            ways = phrases.setdefault(tuple(phrase.split()), [phrase])
            ways += [way for way in (*same, *kinds) if way not in ways]
    return frozenset(data["stop_words"].split()), phrases, data["statuses"]


def statuses(text: str | None) -> tuple[str, ...]:
    """A recruitment status as said, as the registry's own codes; () for no filter.

    Raises:
        ToolError: `invalid_args` for a word that is no status, with the words that can be used as `suggestions`.
    """
    said = " ".join(WORD.findall((text or "").lower().replace("_", " ")))
    if said in ANY_STATUS:
        return ()
    *_, known = vocabulary()
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


def concepts(text: str) -> list[list[str]]:
    """The things asked about, each as the ways to say it, in order; at most eight."""
    words = [word.lower() for word in WORD.findall(text[:2000])]
    found: list[list[str]] = []
    at = 0
    while at < len(words) and len(found) < MAX_CONCEPTS:
        size, ways = _phrase_at(words, at)
        if ways and ways not in found:
            found.append(ways)
        at += size
    return found


def known_part(text: str) -> str:
    """The phrases of `search.yaml` in a text, without the rest: "hfref" of "four pillar gdmt hfref sequencing"."""
    _, phrases, _ = vocabulary()
    return " ".join(ways[0] for ways in concepts(text) if tuple(ways[0].split()) in phrases)


def match_expression(text: str) -> str:
    """An FTS5 expression: two thirds of what was asked about must be there. "" if nothing was asked about."""
    terms = [f"({' OR '.join(_quoted(way) for way in ways)})" for ways in concepts(text)]
    if not terms:
        return ""
    needed = len(terms) - len(terms) // 3
    return " OR ".join(f"({' AND '.join(group)})" for group in combinations(terms, needed))


def _phrase_at(words: list[str], at: int) -> tuple[int, list[str]]:
    stop_words, phrases, _ = vocabulary()
    for size in range(min(max(map(len, phrases)), len(words) - at), 0, -1):
        if ways := phrases.get(tuple(words[at : at + size])):
            return size, ways
    word = words[at]
    return 1, [] if word in stop_words or (len(word) == 1 and not word.isdigit()) else [word]


def _quoted(phrase: str) -> str:
    return '"' + phrase.replace('"', "") + '"'
