"""Match what a clinician types with what charts and labels call it: synonyms of `data/clinical`, whole words.

Data decides; no topic is named in code.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from docgemma.paths import data_file
from docgemma.text.words import SHORT, clinical, fits, listed, phrases_in, plain

Entry = dict[str, Any]


def measures_in(text: str, *, sure: bool = False) -> list[str]:
    """Names of the measures that a text asks for, groups opened: "U&Es" is creatinine, urea, sodium, potassium.

    Args:
        sure: leave out words that may mean something else ("vs"), as they do outside of a marked measure.
    """
    single = [word.removesuffix("s") if len(word) > 3 else word for word in text.casefold().split()]  # "A1cs"
    entries = said_in(f"{text} ; {' '.join(single)}", "measures" if sure else "any measures")
    return list(dict.fromkeys(name for entry in entries for name in entry.get("group") or [entry["name"]]))


def measure_said(phrase: str) -> str:
    """The single measure that these words are, "" if they are none, or one of a group."""
    known = dict(reversed(_phrases("any measures")))
    return known[phrase]["name"] if phrase in known and not known[phrase].get("group") else ""


@lru_cache(maxsize=4000)
def measure_named(name: str) -> str:
    """The measure that a chart entry of this name is; "" if none is known. What begins first in the name wins."""
    folded, best = plain(name), (len(name) + 1, 0, "")
    for entry in clinical("measures")["measures"]:
        for fragment in entry.get("match") or []:
            if (at := fits(str(fragment), folded)) >= 0:
                best = min(best, (at, -len(fragment), entry["name"]))
    return best[2]


def parts_of(score: str) -> list[str]:
    """The measures that a clinical score is made of, so far as they are results; [] for what is no score."""
    return next((entry.get("parts", []) for entry in clinical("measures")["measures"] if entry["name"] == score), [])


def topics_in(text: str) -> list[str]:
    """The parts of a chart that a text names as a whole: "bloods", "meds"."""
    return [entry["topic"] for entry in said_in(text, "topics")]


def refers_back(text: str) -> bool:
    """Whether a message points at the one before it: "and for Souza?", "is it safe then?"."""
    words = plain(text).replace("'s", "").split()
    return bool(listed("request_words", "back") & set(words) or listed("request_words", "opening") & set(words[:1]))


@lru_cache(maxsize=1)
def everyday() -> frozenset[str]:
    """Single words by which measures, topics, label topics and problems are named: none is somebody's name."""
    topics = [entry["topic"] for entry in clinical("topics")["topics"]]
    lists = [entry for kind in ("any measures", "topics", "label_topics", *topics) for entry in _entries(kind)]
    said = [plain(str(word)) for entry in lists for word in entry.get("said") or []]
    problems = {word for entry in clinical("problems")["problems"] for word in entry["chart"] if len(word) > SHORT}
    said += problems - {*clinical("problems")["eponyms"]}
    return frozenset(word for word in said if " " not in word)


@lru_cache(maxsize=1)
def given_names() -> frozenset[str]:
    """Given names, folded: beside a surname that only somebody else has, one is somebody who is not known."""
    return frozenset(data_file("rcm", "pii", "given.txt").read_text(encoding="utf-8").split())


def in_full(forms: Iterable[str]) -> set[str]:
    """The given names, folded, of which one of these words is a short form: "becky's" is Rebecca."""
    return {name.removesuffix("*") for form in forms for name in clinical("given_names")["short"].get(plain(form), [])}


def said_in(text: str, kind: str) -> list[Entry]:
    """The entries of a list that stand in a text as whole words, the longest phrase first, in order of appearance.

    Args:
        kind: a list of `_entries`; of "label_topics" and the parts of a chart topic each is {"name", "match"}.
    """
    of_labels = kind == "label_topics"  # elsewhere "mg/kg/day" is no magnesium
    words = " ".join(word for word in plain(text).split() if of_labels or "/kg" not in word)
    spellings = words, words.replace("/", " ").replace("+", " "), words.replace("'", "")  # "crp/hb" are two; "lft's"
    found, _ = phrases_in("  ".join(spellings), _phrases(kind))
    return [entry for number, entry in enumerate(found) if entry not in found[:number]]


@lru_cache(maxsize=40)
def _phrases(kind: str) -> list[tuple[str, Entry]]:
    """What is said for each entry of a list, its own name too, the longest first."""
    pairs = [
        (plain(str(said)), entry)
        for entry in _entries(kind)
        for said in [*([entry["name"]] if "name" in entry else []), *(entry.get("said") or [])]
    ]
    return sorted(pairs, key=lambda pair: -len(pair[0]))


def _entries(kind: str) -> list[Entry]:
    """`measures` (groups too), `any measures` (ambiguous words by their first reading), `disturbances`, `topics`,
    `label_topics`, `treating` (words by which treatment is asked for), a list of `questions`, `stated`
    (what a message tells and no problem list holds: "his op is on Monday"), or the kinds of a topic."""
    measures, topics = clinical("measures"), clinical("topics")["topics"]
    known = {entry["name"]: entry for entry in [*measures["measures"], *measures["groups"]]}
    usual = [
        {**known[entry["readings"][0]], "said": [entry["said"]], "name": entry["readings"][0]}
        for entry in measures["ambiguous"]
        if entry["readings"][0] in known and len(entry["said"]) > 1
    ]
    lists: dict[str, list[Entry]] = {
        "measures": list(known.values()), "any measures": [*known.values(), *usual], "topics": topics,
        "label_topics": clinical("label_topics")["topics"], "disturbances": measures["disturbances"],
        "treating": [{"said": clinical("request_words")["treating"]}],
        **{kind: items for kind, items in clinical("questions").items() if isinstance(items, list)},
        "uses": clinical("drug_groups")["uses"],
        "stated": clinical("problems")["stated"],
        **{entry["topic"]: entry.get("kinds") or [] for entry in topics},
    }  # fmt: skip
    return lists[kind]
