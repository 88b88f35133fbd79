"""Link the drugs of a request to the dictionary: as spelt, by ward abbreviation, by near spelling; or say that a name
is not recognised. A drug that was named is never dropped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from rapidfuzz import fuzz

from docgemma.reading.reader import Span
from docgemma.reading.words import clinical, plain
from docgemma.rules.drugs import DrugNames

NEAR = 85  # of 100: one or two letters of the name are wrong
SURE = 0.7  # of a mark whose name nobody knows
MIN_CHARS = 4  # of a name that may be misspelt
How = Literal["named", "short", "near", "group", "food", "unknown"]


@dataclass(frozen=True)
class DrugLink:
    """text[start:end] names a drug; `name` is the dictionary's spelling, the text itself where it is not known."""

    text: str
    name: str
    start: int
    end: int
    how: How


def link_drugs(
    text: str, drugs: DrugNames, spans: Iterable[Span] = (), beside: Sequence[tuple[int, int]] = ()
) -> list[DrugLink]:
    """The drugs of a text in order of appearance, each once.

    Args:
        spans: what the reader marked as drugs: misspelt and unknown names are looked for only there.
        beside: places that name no drug: patients, the text of a note.
    """
    marked = [span for span in spans if not _inside(span.start, span.end, beside)]
    found = [(link_drug(part, drugs, start), span.score) for span in marked for part, start in _parts(span, drugs)]
    found = [link for link, score in found if link.how != "unknown" or (score > SURE and len(link.text) >= MIN_CHARS)]
    for item in drugs.find(text):
        if not _inside(item.start, item.end, [*beside, *((link.start, link.end) for link in found)]):
            found.append(DrugLink(item.text, item.name, item.start, item.end, "named"))
    distinct: dict[frozenset[str], DrugLink] = {}
    for link in sorted(found, key=lambda link: link.start):
        distinct.setdefault(drugs.ingredients(link.name), link)
    return list(distinct.values())


def _parts(span: Span, drugs: DrugNames) -> list[tuple[str, int]]:
    """A marked place, or each of the drugs in it: "warfarin ibuprofen" names two."""
    if span.text in drugs:
        return [(span.text, span.start)]
    inside = drugs.find(span.text)
    several = len({drugs.ingredients(item.name) for item in inside}) > 1
    return [(item.text, span.start + item.start) for item in inside] if several else [(span.text, span.start)]


def link_drug(text: str, drugs: DrugNames, start: int = 0) -> DrugLink:
    """What one name stands for."""
    end = start + len(text)
    name = plain(text)
    if text in drugs:
        return DrugLink(text, text, start, end, "named")
    if meant := abbreviations().get(name):
        return DrugLink(text, meant, start, end, "short")
    if name.removeprefix("the ").removeprefix("an ").removeprefix("a ") in groups():
        name = name.removeprefix("the ").removeprefix("an ").removeprefix("a ")
        return DrugLink(text, name, start, end, "group")
    if name in foods():
        return DrugLink(text, foods()[name]["name"], start, end, "food")
    if inside := drugs.find(text):
        longest = max(inside, key=lambda item: len(item.text))
        return DrugLink(text, longest.text, start, end, "named")
    for word in name.split():
        if meant := abbreviations().get(word):
            return DrugLink(text, meant, start, end, "short")
    near = drugs.suggest(name) if len(name) >= MIN_CHARS else []
    alike = bool(near) and near[0][0] == name[0] and fuzz.ratio(name, near[0]) >= NEAR
    if alike and (len(near) == 1 or _lead(name, near) or name[:4] == near[0][:4]):
        return DrugLink(text, near[0], start, end, "near")
    return DrugLink(text, text, start, end, "unknown")


AMOUNTS = frozenset("vs versus day days week weeks any some".split())  # no subject of a query


def spelt_out(query: str) -> str:
    """A query with abbreviations of drugs, groups and conditions in words: "benzos" is benzodiazepines."""
    known_as = {**abbreviations(), **group_names(), **condition_names()}
    words = [word.strip("?!.,;:+") for word in query.split()]
    told = [word for word in words if word and plain(word) not in AMOUNTS]
    spelt = " ".join(known_as.get(plain(word), word) for word in told).split()
    return " ".join(word for before, word in pairwise(["", *spelt]) if word.casefold() != before.casefold())


@lru_cache(maxsize=1)
def abbreviations() -> dict[str, str]:
    """Ward abbreviation or common misspelling -> the dictionary's name. Ambiguous ones are not among them."""
    entries = clinical("drug_abbreviations")["drugs"]
    return {
        plain(str(said)): entry["name"]
        for entry in entries
        for key in ("said", "misspelt")
        for said in entry.get(key) or []
    }


@lru_cache(maxsize=1)
def groups() -> dict[str, list[str]]:
    """What a group of drugs is called -> its members."""
    entries = clinical("drug_groups")["groups"]
    return {plain(str(said)): list(entry["drugs"]) for entry in entries for said in [entry["name"], *entry["said"]]}


@lru_cache(maxsize=1)
def group_names() -> dict[str, str]:
    """What a group of drugs is called -> the name that labels and literature use."""
    entries = clinical("drug_groups")["groups"]
    return {plain(str(said)): entry["name"] for entry in entries for said in entry["said"]}


@lru_cache(maxsize=1)
def condition_names() -> dict[str, str]:
    """Abbreviation of a condition -> the name that literature and registries use."""
    return {plain(str(said)): entry["name"] for entry in clinical("conditions")["conditions"] for said in entry["said"]}


@lru_cache(maxsize=1)
def foods() -> dict[str, dict]:
    """What a food or habit is called -> its entry: the drugs that it matters for."""
    entries = clinical("drug_groups")["foods"]
    return {plain(str(said)): entry for entry in entries for said in [entry["name"], *entry["said"]]}


def _lead(name: str, near: Sequence[str]) -> bool:
    """Whether the first is clearly nearer than the others."""
    return fuzz.ratio(name, near[0]) - fuzz.ratio(name, near[1]) >= 4


def _inside(start: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    return any(start < stop and begin < end for begin, stop in places)
