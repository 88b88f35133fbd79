"""Link the drugs of a request to the dictionary: as spelt, by ward abbreviation, by near spelling; or say that a name
is not recognised. A drug that was named is never dropped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from rapidfuzz import fuzz

from docgemma.reading.reader import Span
from docgemma.text.drugs import WORD, DrugNames
from docgemma.text.words import clinical, listed, plain

NEAR = 85  # of 100: one or two letters of the name are wrong
LEAD = 4  # by which a near name must be nearer than the next
SURE = 0.7  # of a mark whose name nobody knows
MIN_CHARS = 4  # of a name that may be misspelt
DOSED = 4  # characters behind a doubtful abbreviation that make it a drug: "metro 400"
CUT = 2  # last letters of a generic name that may be missing
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
    text: str, drugs: DrugNames, spans: Iterable[Span] = (), beside: Sequence[tuple[int, int]] = (), pair: bool = False
) -> list[DrugLink]:
    """The drugs of a text in order of appearance, each once: misspelt and unknown names only where the reader marked a
    drug (`spans`), none in the places `beside` (patients, the text of a note), and where it is asked what goes together
    (`pair`) groups unmarked too: "lamotrigine and estrogen ocps"."""
    found: list[DrugLink] = []
    others = DrugNames({word: "" for word in map(str, listed("request_words", "no_drugs")) if " " in word})
    beside = [*beside, *((item.start, item.end) for item in others.find(text))]  # "bp pill" is not the pill
    for span in (_whole(span, text) for span in spans):
        inside = [] if span.text in drugs else _apart(span, drugs)
        link = link_drug(span.text, drugs, span.start)
        unsure = link.how == "unknown" and span.score <= SURE
        apart = {drugs.ingredients(other.name) for other in inside}
        several = len(apart) > 1  # "warfarin ibuprofen", "ramip spiro kcl"
        cut = link.how == "named" and len(inside) == 1  # the mark runs on, or ends within the next name
        links = inside if several or cut else [] if unsure else [link]
        found += [item for item in links if not _inside(item.start, item.end, beside)]
    groups = [(item.start, item.end) for item in DrugNames(dict.fromkeys(said_for("groups"), "")).find(text) if pair]
    for start, end in [*groups, *_places(text, drugs)]:  # "pt on clopi": also where the reader marks nothing
        if not _inside(start, end, [*beside, *((link.start, link.end) for link in found)]):
            found.append(link_drug(text[start:end], drugs, start))
    distinct: dict[frozenset[str], DrugLink] = {}
    for link in sorted(found, key=lambda link: link.start):
        distinct.setdefault(drugs.ingredients(link.name), link)
    return list(distinct.values())


def _places(text: str, drugs: DrugNames) -> list[tuple[int, int]]:
    """Where names and abbreviations stand, of overlapping ones the longest."""
    found: list[tuple[int, int]] = []
    behind = ((item, text[item.end : item.end + DOSED]) for item in _shorthand(True).find(text))
    dosed = (item for item, dose in behind if dose[:1].isspace() and _is_amount(dose.strip()))
    named = [*drugs.find(text), *_shorthand().find(text), *dosed]
    for item in sorted(named, key=lambda item: item.start - item.end):
        found += [] if _inside(item.start, item.end, found) else [(item.start, item.end)]
    return found


def _whole(span: Span, text: str) -> Span:
    """A mark, or the longer abbreviation that it stands in: "carb" of "calcium carb"."""
    longer = [item for item in _shorthand().find(text) if item.start <= span.start and span.end <= item.end]
    return Span(longer[0].text, longer[0].start, longer[0].end, span.score) if longer else span


def _is_amount(text: str) -> bool:
    """Whether a doubtful abbreviation before it is a drug: "400", "1.2", "x2", "1g"."""
    return len(text) > 1 and text.removeprefix("x").rstrip("mgk").replace(".", "", 1).isdecimal()


def _apart(span: Span, drugs: DrugNames) -> list[DrugLink]:
    """The drugs that stand side by side in one mark."""
    known = _places(span.text, drugs)
    words = [word.span() for word in WORD.finditer(span.text) if not _inside(*word.span(), known)]
    links = [link_drug(span.text[start:end], drugs, span.start + start) for start, end in [*known, *words]]
    return [link for link in links if link.how != "unknown" or plain(link.text) in said_for("ambiguous")]


def link_drug(text: str, drugs: DrugNames, start: int = 0) -> DrugLink:
    """What one name stands for."""
    name, how = _meaning(text, drugs)
    return DrugLink(text, name, start, start + len(text), how)


def _meaning(text: str, drugs: DrugNames) -> tuple[str, How]:
    name = plain(text)
    bare = name.removeprefix("the ").removeprefix("an ").removeprefix("a ")
    short = said_for("abbreviations")
    if text in drugs:
        whole = drugs.generic(text) or text
        cut = 0 < len(whole) - len(name) <= CUT and whole.startswith(name)  # "ceftriaxon"
        return (whole, "near") if cut else (text, "named")
    if name in short:
        return short[name]["name"], "short"
    if bare in said_for("groups"):
        return bare, "group"
    if name in said_for("foods"):
        return said_for("foods")[name]["name"], "food"
    if inside := drugs.find(text):
        return max(inside, key=lambda item: len(item.text)).text, "named"
    for word in [*(plain(item.text) for item in _shorthand().find(text)), *name.split()]:  # "otc potassium pills"
        if word in short:
            return short[word]["name"], "short"
    if name in said_for("ambiguous"):
        return text, "unknown"
    if begun := drugs.begun(name) if len(name) > MIN_CHARS else "":  # "fluvox"; "norflox" is not Norflex
        return begun, "near"
    near = drugs.suggest(name) if len(name) >= MIN_CHARS else []
    scores = [fuzz.ratio(name, other) for other in near[:2]]
    alike = bool(near) and near[0][0] == name[0] and scores[0] >= NEAR
    close = alike and (len(near) == 1 or scores[0] - scores[1] >= LEAD or name[:4] == near[0][:4])
    return (near[0], "near") if close else (text, "unknown")


def spelt_out(query: str) -> str:
    """A query with abbreviations of drugs, groups and conditions in words: "benzos" is benzodiazepines."""
    known_as = {**said_for("abbreviations"), **said_for("groups"), **said_for("conditions")}
    words = [word.strip("?!.,;:+") for word in query.split()]
    told = [word for word in words if word and plain(word) not in listed("request_words", "query")]
    spelt = " ".join(known_as.get(plain(word), {"name": word})["name"] for word in told).split()
    return " ".join(word for before, word in pairwise(["", *spelt]) if word.casefold() != before.casefold())


@lru_cache(maxsize=8)
def said_for(kind: Literal["abbreviations", "ambiguous", "groups", "foods", "conditions"]) -> dict[str, dict[str, Any]]:
    """What is said -> its entry in `data/clinical`, by the `name` that dictionaries and registries use.

    Args:
        kind: ward abbreviations and common misspellings of drugs (no ambiguous ones); groups of drugs, with their
            members in `drugs`; foods and habits, with the drugs that they matter for; abbreviations of conditions.
    """
    part = "drugs" if kind == "abbreviations" else kind
    file = {"groups": "drug_groups", "foods": "drug_groups", "conditions": kind}.get(kind, "drug_abbreviations")
    named = kind in ("groups", "foods")  # these are asked for by their own name too
    return {
        plain(str(said)): entry
        for entry in clinical(file)[part]
        for said in [*([entry["name"]] if named else []), *(entry.get("said") or []), *(entry.get("misspelt") or [])]
    }


@lru_cache(maxsize=2)
def _shorthand(doubtful: bool = False) -> DrugNames:
    """Abbreviations that are no other word, wherever they stand; or those that may be one, "gent" and "metro"."""
    marked, short = (listed("drug_abbreviations", key) for key in ("only_where_marked", "three_letters"))
    told = {said for said in said_for("abbreviations") if said in short or len(said) >= MIN_CHARS}
    return DrugNames({said: said for said in (told & marked if doubtful else told - marked)})


def _inside(start: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    return any(start < stop and begin < end for begin, stop in places)
