"""Compare words, and read the word lists of `data/clinical`: what clinicians say, what charts and labels call it."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeVar

from docgemma.paths import data_yaml
from docgemma.text.characters import fold

T = TypeVar("T")
SHORT = 4  # a fragment of so few characters is a whole word
REACH, ALL = 4, 99  # words that are denied behind "no", and behind "denies"


@lru_cache(maxsize=20_000)
def plain(text: str) -> str:
    """For comparing: lower case, without accents, single blanks; `+`, `-` and `/` stay ("k+", "x-ray")."""
    kept = "".join(char if char.isalnum() or char in "+-/'&%" else " " for char in fold(text).replace("’", "'"))
    return " ".join(kept.split())


def fits(fragment: str, name: str) -> int:
    """Where a fragment begins in a folded name, at the start of a word; -1 if nowhere. A lone letter ends whole."""
    at = name.find(fragment)
    while at >= 0:
        end = at + len(fragment)
        begins = at == 0 or not name[at - 1].isalnum()
        if begins and ((len(fragment) > SHORT and fragment[-2] != " ") or not name[end : end + 1].isalnum()):
            return at
        at = name.find(fragment, at + 1)
    return -1


def names(fragments: Iterable[str], text: str) -> bool:
    """Whether one of the fragments stands in a text."""
    folded = plain(text)
    return any(fits(str(fragment), folded) >= 0 for fragment in fragments)


def affirmed(text: str, but: frozenset[str] = frozenset()) -> str:
    """A text without what it denies: "no fever", "denies fever, chills"; `but` are words that deny nothing here."""
    kept, denied, denying = [], 0, listed("alarms", "denying") - but
    for word in text.split():
        denied = REACH if plain(word) in denying and denied < REACH else denied
        denied = ALL if plain(word) in listed("alarms", "denying_all") else denied
        kept.append(";" if denied > 0 else word)
        ended = word[-1] in ".;!?" or (word[-1] == "," and denied <= REACH)
        denied = 0 if ended else denied - 1
    return " ".join(kept)


@lru_cache(maxsize=40)
def clinical(name: str) -> dict[str, Any]:
    """One file of `data/clinical` as it stands.

    Raises:
        ConfigError: it is missing or is no YAML.
    """
    return data_yaml("clinical", f"{name}.yaml")


@lru_cache(maxsize=200)
def listed(name: str, *keys: str) -> frozenset[str]:
    """The words of one or more lists in a file of `data/clinical`, as a set."""
    return frozenset(word for key in keys for word in clinical(name)[key])


def phrases_in(folded: str, known: Iterable[tuple[str, T]]) -> tuple[list[T], str]:
    """The values of the phrases that stand in a folded text as whole words, in order of appearance, and the rest of it.

    Args:
        known: (phrase, value), the longest phrase first.
    """
    left, places = f" {folded} ", []
    for phrase, value in known:
        at = left.find(f" {phrase} ")
        if at >= 0:
            places.append((at, value))
            left = left.replace(f" {phrase} ", f" {';' * len(phrase)} ")
    return [value for _, value in sorted(places, key=lambda place: place[0])], left.replace(";", " ")


def begun_with(words: Iterable[str]) -> str:
    """The word that a message begins with, behind "and" or "ok"; "" where there is none."""
    return next((word for word in words if word not in listed("request_words", "opening")), "")
