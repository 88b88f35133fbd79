"""Compare drugs by class, for allergies and duplicate therapy: the lists of `data/clinical/drug_classes.yaml`. Pure."""

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any

from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import clinical, phrases_in, plain


def classes_of(parts: Set[str]) -> set[str]:
    """Names of the classes that one of these ingredients belongs to."""
    return {name for name, entry in _classes().items() if entry["members"] & {part.casefold() for part in parts}}


def class_mates(parts: Set[str], alike: bool = False) -> list[str]:
    """The other members of the classes that one of these ingredients belongs to; `alike`: of those of which two at once
    are duplicate therapy, since they do the same."""
    mine = {part.casefold() for part in parts}
    classes = [entry for entry in clinical("drug_classes")["classes"] if entry["duplicate"] or not alike]
    kinds = [
        [name for name in entry["members"] if not (alike and name in entry.get("duplicate_not", []))]
        for entry in classes
    ]
    mates = (name for members in kinds if mine & set(members) for name in members)
    return [name for name in dict.fromkeys(mates) if name not in mine]


def classes_said(text: str, drugs: DrugNames | None) -> list[str]:
    """The classes that a text names as such: "sulfa", "IV contrast". The longest phrase wins, and the words of a longer
    drug name ("milk thistle") name no class."""
    words = f" {_words(text)} "
    for name in (_words(item.text) for item in (drugs.find(text) if drugs else [])):
        if " " in name and name not in dict(_phrases()):
            words = words.replace(f" {name} ", " ; ")
    found = [name for named in phrases_in(words.strip(), _phrases())[0] for name in named]
    told = f" {_words(text)} "
    return [
        name
        for name in dict.fromkeys(found)
        if not any(f" {_words(word)} " in told for word in _classes()[name].get("unless", []))
    ]


def allergy_conflict(ordered: str, allergen: str, drugs: DrugNames | None) -> str | None:
    """Why an allergy concerns an ordered drug: the same drug, its class, a class known to cross-react; None if not."""
    mine, theirs = ingredients(ordered, drugs), ingredients(allergen, drugs)
    if same := mine & theirs:
        return f"{ordered} is the same drug" if mine <= theirs else f"{ordered} contains {', '.join(sorted(same))}"
    classes = classes_of(mine) | set(classes_said(ordered, drugs))
    said, member = set(classes_said(allergen, drugs)), classes_of(theirs)
    for name, entry in _classes().items():
        if name in classes and (name in said or (name in member and entry["allergy"])):
            says = str(entry.get("says", f"{{drug}} belongs to the same class ({name})"))
            return says.replace("{drug}", ordered)
    for cross in clinical("drug_classes")["cross"]:
        meant = cross["allergy"] in said | member | theirs and cross["order"] in classes | mine
        if meant and mine & set(cross.get("members", mine)) and not mine & set(cross.get("but_not", [])):
            return str(cross["says"])
    return None


def names_class_of(allergen: str, text: str, drugs: DrugNames | None) -> bool:
    """Whether a text names the class of an allergen, or a class that has it as a part: "any beta-lactam"."""
    mine = {*classes_said(allergen, drugs)} | classes_of(ingredients(allergen, drugs))
    said = {*classes_said(text, None)}
    groups = {name for name in said if not _classes()[name]["members"]}
    parts = {cross["order"] for cross in clinical("drug_classes")["cross"] if cross["allergy"] in groups}
    return bool(mine & (said | parts))


def is_comparable(allergen: str, drugs: DrugNames | None) -> bool:
    """Whether an allergen is a known drug or class; "milk" is one where a class of drugs names it."""
    return bool(drugs and drugs.find(allergen)) or bool(classes_said(allergen, drugs))


def duplicate_class(one: Set[str], other: Set[str]) -> tuple[str, str] | None:
    """The class of which two drugs are members, with a wording of its own or ""; None where two may stand together."""
    for name, entry in _classes().items():
        members = entry["members"] - set(entry.get("duplicate_not", [])) if entry["duplicate"] else set()
        if one & members and other & members:
            return name, entry.get("duplicate_says", "")
    return None


@lru_cache(maxsize=1)
def _classes() -> dict[str, Mapping[str, Any]]:
    return {entry["name"]: {**entry, "members": set(entry["members"])} for entry in clinical("drug_classes")["classes"]}


@lru_cache(maxsize=1)
def _phrases() -> list[tuple[str, list[str]]]:
    """How charts name classes, with the classes that are named so, the longest first."""
    found: dict[str, list[str]] = {}
    for name, entry in _classes().items():
        for phrase in entry["said"]:
            found.setdefault(_words(phrase), []).append(name)
    return sorted(found.items(), key=lambda item: -len(item[0]))


def _words(text: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in plain(text)).split())
