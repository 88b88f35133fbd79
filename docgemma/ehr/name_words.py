"""The words of a free text as a patient's name may use them: possessives, initials, titles, particles. No I/O."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from docgemma.ehr.names import TITLES, name_key

WORD = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+(?:['’‘`´ʼʻ](?:[^\W_]|[\u0300-\u036f])+)*")
LONGEST = 4  # words of a name looked up together; the parts of a longer one are the same patient
CLINICIANS = frozenset({"dr", "doctor", "prof", "professor"})  # a surname behind these is seldom a patient's
# part of a surname, and no surname
PARTICLES = frozenset(
    {"de", "la", "los", "las", "van", "von", "der", "den", "del", "da", "di", "do", "dos", "du", "el", "al", "bin"}
)


@dataclass(frozen=True)
class Word:
    start: int
    end: int
    text: str
    key: str  # folded, without apostrophes
    forms: tuple[str, ...]  # beginnings of the text: as a last word, "smiths" is also "smith"
    capital: bool  # and not because a sentence begins
    joined: bool  # may continue the name before it

    @property
    def silent(self) -> bool:
        """An initial or a title, left out within a name."""
        return len(self.key) == 1 or self.key in TITLES

    def is_plain(self, ordinary: Callable[[str], bool]) -> bool:
        return any(ordinary(name_key(form)) for form in self.forms)


def read_words(text: str) -> list[Word]:
    words: list[Word] = []
    for piece in WORD.finditer(text):
        typed, before = piece.group(), text[words[-1].end if words else 0 : piece.start()]
        key, forms = name_key(typed), (typed,)
        if len(key) > 3 and key.endswith("s"):
            forms = (typed, typed[:-1]) if typed[-2].isalnum() else (typed[:-2], typed)
        initial = bool(words) and words[-1].silent
        opens = not (words and initial) and (not words or any(char in before for char in ".?!\n"))
        joined = bool(words) and before.strip(" \t-‐‑–") in ("", ",", *("." * initial))
        capital = typed[0].isupper() and not opens and not text.isupper()
        words.append(Word(*piece.span(), typed, key, forms, capital, joined))
    return words


def runs(words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Places (first, behind the last) of words that may be one name, the longest first."""
    for length in range(LONGEST, 0, -1):
        for first in range(len(words) - length + 1):
            if all(word.joined for word in words[first + 1 : first + length]):
                yield first, first + length


def spellings(name: Sequence[Word]) -> list[tuple[str, ...]]:
    """A name as words to look up: titles and initials within it left out, the last word also without its s."""
    inner = [word.text for at, word in enumerate(name[:-1]) if at == 0 or not word.silent]
    groups = [(*inner, form) for form in name[-1].forms]
    return [group for group in groups if len(set(map(name_key, group))) == len(group)]


def telling(words: Sequence[Word], first: int, behind: int, ordinary: Callable[[str], bool]) -> bool:
    """Whether unmarked words may be a name: not only particles and initials, nor only ordinary words in lower case."""
    name = words[first:behind]
    title = words[first - 1].key if first and name[0].joined else ""
    shortest = 3 if name[0].text.islower() and name[0].text.isascii() else 2
    if len(name) == 1 and (title in CLINICIANS or len(name[0].key) < shortest):
        return False
    if all(len(word.key) < 2 or word.key in PARTICLES for word in name):
        return False
    plain = [word.is_plain(ordinary) for word in name]
    if any(word.capital for word in name) or (title in TITLES and title not in CLINICIANS):
        # "does Kim" is no name, though there is a Kim Does
        return len(name) == 1 or not any(
            is_plain and word.text.islower() for word, is_plain in zip(name, plain, strict=True)
        )
    return not all(plain)
