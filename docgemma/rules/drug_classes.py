"""Classes of drugs as far as allergies and duplicate therapy need them: `data/clinical/drug_classes.yaml`.

An allergy that is neither a known drug
nor a class is a finding of its own.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import clinical, plain

Class = Mapping[str, Any]


@lru_cache(maxsize=4096)
def classes_of(ingredient: str) -> tuple[str, ...]:
    """Names of the classes that a generic name belongs to."""
    return tuple(name for name, entry in _classes().items() if ingredient.casefold() in entry["members"])


def classes_said(text: str, drugs: DrugNames | None) -> list[str]:
    """The classes that a text names as such: "sulfa", "IV contrast". The longest phrase wins, and the words of a longer
    drug name ("milk thistle") name no class."""
    words = _words(text)
    taken = {at for item in (drugs.find(text) if drugs else []) for at in _places(words, _words(item.text))}
    found: list[str] = []
    at = 0
    while at < len(words):
        for count in range(min(_longest(), len(words) - at), 0, -1):
            names = _phrases().get(" ".join(words[at : at + count]), [])
            if names and not taken & set(range(at, at + count)):
                found += names
                at += count - 1
                break
        at += 1
    told = f" {' '.join(words)} "
    denied = {
        name
        for name in found
        if any(f" {' '.join(_words(word))} " in told for word in _classes()[name].get("unless", []))
    }
    return [name for name in dict.fromkeys(found) if name not in denied]


def allergy_conflict(ordered: str, allergen: str, drugs: DrugNames | None) -> str | None:
    """Why an allergy concerns an ordered drug: the same drug, its class, a class known to cross-react; None if not."""
    mine, theirs = ingredients(ordered, drugs), ingredients(allergen, drugs)
    if mine & theirs:
        return f"{ordered} is the same drug"
    classes = {name for part in mine for name in classes_of(part)} | set(classes_said(ordered, drugs))
    said = set(classes_said(allergen, drugs))
    member = {name for part in theirs for name in classes_of(part)}
    for name, entry in _classes().items():
        if name in classes and (name in said or (name in member and entry["allergy"])):
            says = str(entry.get("says", f"{{drug}} belongs to the same class ({name})"))
            return says.replace("{drug}", ordered)
    for cross in clinical("drug_classes")["cross"]:
        about = cross["allergy"] in said | member or cross["allergy"] in theirs
        if about and (cross["order"] in classes or cross["order"] in mine) and _concerned(cross, mine):
            return str(cross["says"])
    return None


def is_comparable(allergen: str, drugs: DrugNames | None) -> bool:
    """Whether an allergen is a known drug or class; "milk" is one where a class of drugs names it."""
    return bool(drugs and drugs.find(allergen)) or bool(classes_said(allergen, drugs))


def duplicate_class(one: frozenset[str], other: frozenset[str]) -> tuple[str, str] | None:
    """The class of which two drugs are members, with a wording of its own or ""; None where two may stand together."""
    for name, entry in _classes().items():
        members = entry["members"] - set(entry.get("duplicate_not", [])) if entry["duplicate"] else set()
        if one & members and other & members:
            return name, entry.get("duplicate_says", "")
    return None


def _concerned(cross: Mapping[str, Any], mine: frozenset[str]) -> bool:
    return not (("members" in cross and not mine & set(cross["members"])) or mine & set(cross.get("but_not", [])))


@lru_cache(maxsize=1)
def _classes() -> dict[str, dict[str, Any]]:
    return {entry["name"]: {**entry, "members": set(entry["members"])} for entry in clinical("drug_classes")["classes"]}


@lru_cache(maxsize=1)
def _phrases() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, entry in _classes().items():
        for phrase in entry["said"]:
            found.setdefault(" ".join(_words(phrase)), []).append(name)
    return found


@lru_cache(maxsize=1)
def _longest() -> int:
    return max(phrase.count(" ") + 1 for phrase in _phrases())


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() or char == "'" else " " for char in plain(text)).replace("'", "").split()


def _places(words: list[str], name: list[str]) -> list[int]:
    """Where the words of a drug's name of several words stand, unless they name a class themselves."""
    if len(name) < 2 or " ".join(name) in _phrases():
        return []
    starts = [at for at in range(len(words)) if words[at : at + len(name)] == name]
    return [at + step for at in starts for step in range(len(name))]
