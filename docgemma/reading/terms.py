"""Match what a clinician types with what charts and labels call it: synonyms of `data/clinical`, whole words.

Data decides; no topic is named in code.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from docgemma.reading.words import clinical, plain

SHORT = 4  # a fragment of so few characters is a whole word
Entry = dict[str, Any]


def fits(fragment: str, name: str) -> int:
    """Where a fragment begins in a folded name: at the start of a word; -1 if nowhere."""
    at = name.find(fragment)
    while at >= 0:
        end = at + len(fragment)
        begins = at == 0 or not name[at - 1].isalnum()
        if begins and (len(fragment) > SHORT or end == len(name) or not name[end].isalnum()):
            return at
        at = name.find(fragment, at + 1)
    return -1


def names(fragments: Iterable[str], text: str) -> bool:
    """Whether one of the fragments stands in a text."""
    folded = plain(text)
    return any(fits(str(fragment), folded) >= 0 for fragment in fragments)


def said_in(text: str, entries: Sequence[Entry]) -> list[Entry]:
    """The entries whose `said` stands in a text as whole words, the longest phrase first, in order of appearance."""
    words = plain(text)
    spellings = words, words.replace("/", " "), words.replace("'", "")  # "crp/hb" are two; "lft's"
    folded = f" {'  '.join(spellings)} "
    places: list[tuple[int, int, Entry]] = []
    for phrase, entry in _phrases(id(entries), entries):
        at = folded.find(f" {phrase} ")
        if at >= 0 and not any(at < end and start < at + len(phrase) for start, end, _ in places):
            places.append((at, at + len(phrase), entry))
    found = [entry for _, _, entry in sorted(places, key=lambda place: place[0])]
    return [entry for number, entry in enumerate(found) if entry not in found[:number]]


def measures_in(text: str, *, sure: bool = False) -> list[str]:
    """Names of the measures that a text asks for, groups opened: "U&Es" is creatinine, urea, sodium, potassium.

    Args:
        sure: leave out words that may mean something else ("vs"), as they do outside of a marked measure.
    """
    listed: list[str] = []
    for entry in said_in(text, _unambiguous() if sure else _measures_and_groups()):
        listed += entry.get("group") or [entry["name"]]
    return list(dict.fromkeys(listed))


def near_measures(text: str) -> list[str]:
    """Measures of which a word of the text is a near misspelling: "egrf", "creatinin"."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    known = {plain(str(said)): entry for entry in _measures_and_groups() for said in entry.get("said") or []}
    single = [word for word in known if " " not in word and len(word) > SHORT - 1]
    found: list[str] = []
    for word in plain(text).replace("/", " ").split():
        if len(word) >= SHORT and word not in known and word not in everyday():
            near = process.extractOne(word, single, scorer=OSA.distance, score_cutoff=1 if len(word) < 8 else 2)
            near = near if near and near[0][0] == word[0] else None
            found += (known[near[0]].get("group") or [known[near[0]]["name"]]) if near else []
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1)
def _unambiguous() -> list[Entry]:
    lists = clinical("measures")
    return [*lists["measures"], *lists["groups"]]


@lru_cache(maxsize=1)
def _measures_and_groups() -> list[Entry]:
    lists = clinical("measures")
    known = {entry["name"]: entry for entry in _unambiguous()}
    usual = [  # of an ambiguous word in a chart question, the first reading
        {**known[entry["readings"][0]], "said": [entry["said"]], "name": entry["readings"][0]}
        for entry in lists["ambiguous"]
        if entry["readings"][0] in known and len(entry["said"]) > 1
    ]
    return [*known.values(), *usual]


@lru_cache(maxsize=4000)
def measure_named(name: str) -> str:
    """The measure that a chart entry of this name is; "" if none is known. What begins first in the name wins."""
    folded, best = plain(name), (len(name) + 1, 0, "")
    for entry in clinical("measures")["measures"]:
        for fragment in entry.get("match") or []:
            if (at := fits(str(fragment), folded)) >= 0:
                best = min(best, (at, -len(fragment), entry["name"]))
    return best[2]


def kinds_in(text: str, topic: str) -> list[Entry]:
    """The parts of a chart topic that a text asks for: {"name", "match"}."""
    entry = next((entry for entry in clinical("topics")["topics"] if entry["topic"] == topic), {})
    return said_in(text, entry.get("kinds") or []) if entry.get("kinds") else []


def label_topics_in(text: str) -> list[Entry]:
    """What a text asks of a label: {"name", "match"}."""
    return said_in(text, clinical("label_topics")["topics"])


@lru_cache(maxsize=1)
def everyday() -> frozenset[str]:
    """Single words by which measures, topics and label topics are asked for: none is somebody's name."""
    lists = [*_measures_and_groups(), *clinical("topics")["topics"], *clinical("label_topics")["topics"]]
    lists += [kind for entry in clinical("topics")["topics"] for kind in entry.get("kinds") or []]
    said = (plain(str(word)) for entry in lists for word in entry.get("said") or [])
    return frozenset(word for word in said if " " not in word)


_LISTS: dict[int, tuple[Sequence[Entry], list[tuple[str, Entry]]]] = {}  # of lists that live as long as the process


def _phrases(key: int, entries: Sequence[Entry]) -> list[tuple[str, Entry]]:
    if key not in _LISTS or _LISTS[key][0] is not entries:
        pairs = [
            (plain(str(said)), entry) for entry in entries for said in [*_named(entry), *(entry.get("said") or [])]
        ]
        _LISTS[key] = entries, sorted(pairs, key=lambda pair: -len(pair[0]))
    return _LISTS[key][1]


def _named(entry: Entry) -> list[str]:
    """A measure, kind or label topic is also asked for by its own name; a part of the chart is not."""
    return [entry["name"]] if "name" in entry else []
