"""Finding drug names in text: whole words, any case, longest name first. The dictionary is given, not loaded here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from rapidfuzz import fuzz, process

from docgemma.text import characters as spelling
from docgemma.text.words import listed

WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")
PLAIN_NAME = re.compile(r"[a-z0-9]+(?: [a-z0-9]+)*")
GAP = re.compile(r"[\s\-‐‑–/]{1,3}")  # between the words of one name
DOT_GAP = re.compile(r"\.\s{0,2}")  # "St. John's wort"; a full stop after a longer word ends a sentence
JOINED = re.compile(r"[\s,;/&+]*(?:and|with|or|plus|und)?[\s,/&+]*", re.IGNORECASE)
DOSE_NEXT = re.compile(r"[\s:(]{0,3}\d+(?:[.,]\d+)?\s{0,2}(?:mg|mcg|µg|μg|g|ml|units?|iu|meq|mmol|%)", re.IGNORECASE)
SUGGEST_SCORE = 78  # of 100; below, a "did you mean" is noise


@dataclass(frozen=True)
class Mention:
    """A drug in a text. `text` as written (text[start:end]), `name` the dictionary's spelling, lower case."""

    text: str
    name: str
    start: int
    end: int


class DrugNames:
    """A dictionary of drug names, generic and brand.

    Args:
        generics: name -> its generic name (itself, for a generic). Combinations: "a and b".
    """

    def __init__(self, generics: Mapping[str, str]):
        self._keys: dict[str, str] = {}  # folded words joined by blanks -> name
        self._longest: dict[str, int] = {}  # first word -> words of the longest name that begins so
        self._generics = dict(generics)
        for name in self._generics:
            if key := _key(name):
                self._keys.setdefault(key, name)
                first = key.partition(" ")[0]
                self._longest[first] = max(key.count(" ") + 1, self._longest.get(first, 0))

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._keys

    def generic(self, name: str) -> str | None:
        """The generic name, lower case, or None if the name is not known. Never guesses."""
        return self._generics[self._keys[_key(name)]] if name in self else None

    def ingredients(self, name: str) -> frozenset[str]:
        """What is in it: one generic name, several for a combination, the name itself where it is not known."""
        return frozenset(self.parts(name))

    def parts(self, name: str) -> list[str]:
        """The ingredients in the order in which the dictionary names them."""
        generic = self.generic(name)
        if not generic:
            return [" ".join(name.lower().split())]
        return [part for item in _parts(generic) for part in self._base(item)]

    def _base(self, part: str) -> list[str]:
        """An ingredient as it is called by itself: "norethisterone acetate" is norethindrone."""
        if generic := self.generic(part):
            return _parts(generic)
        return [base for item in self.find(part) for base in _parts(self._generics[item.name])] or [part]

    def suggest(self, name: str, limit: int = 3) -> list[str]:
        """Known names spelt much like this one, best first, for a 'did you mean'. Never to be taken as the answer."""
        key = _key(name)
        if len(key) < 4:
            return []
        names = [known for known in self._keys if len(known) > 3]
        found = process.extract(key[:80], names, scorer=fuzz.ratio, limit=limit * 8, score_cutoff=SUGGEST_SCORE)
        best: dict[str, str] = {}  # one spelling of each drug
        for match, _score, _index in found:
            best.setdefault(self._generics[self._keys[match]], self._keys[match])
        return list(best.values())[:limit]

    def begun(self, name: str) -> str:
        """The generic name of the only drug, alone or combined, whose name begins so; "" where several do, or none."""
        meant = {self._generics[known] for key, known in self._keys.items() if key.startswith(_key(name))}
        least = min(meant, key=len, default="")
        return least if all(least in other for other in meant) else ""

    def find(self, text: str) -> list[Mention]:
        """Every mention in order of appearance; names inside longer names are not reported."""
        found = list(self._matches(text))
        return [item for number, item in enumerate(found) if _is_drug_here(text, found, number)]

    def _matches(self, text: str) -> Iterator[Mention]:
        words = list(WORD.finditer(text))
        folded = [fold(match.group()) for match in words]
        at = 0
        while at < len(words):
            last, end, name = at, words[at].end(), None
            for last in range(min(at + self._longest.get(folded[at], 0), len(words)) - 1, at - 1, -1):
                name = self._keys.get(" ".join(folded[at : last + 1]))
                if name and all(_joined(text, words[i], words[i + 1]) for i in range(at, last)):
                    end = words[last].end()
                    break
                name = None
            written = words[at].group()
            if not name and len(written) > 3 and written[-2] in "'’ʼ" and written[-1] in "sS":  # metformin's
                last, end, name = at, end - 2, self._keys.get(fold(written[:-2]))
            if name:
                yield Mention(text[words[at].start() : end], name, words[at].start(), end)
            at = (last if name else at) + 1


def ingredients(name: str, drugs: DrugNames | None) -> frozenset[str]:
    """Generic names in a medication's name, strength and form ignored: "Metformin 500 MG Oral Tablet" is metformin."""
    return frozenset(ingredients_in_order(name, drugs))


def ingredients_in_order(name: str, drugs: DrugNames | None) -> list[str]:
    """The same, each once, as the name puts them where it spells out all: "oxycodone/acetaminophen"."""
    if drugs and (found := drugs.find(name)):
        parts = list(dict.fromkeys(part for item in found for part in drugs.parts(item.name)))
        places = [name.casefold().find(part) for part in parts]
        return sorted(parts, key=name.casefold().find) if min(places) >= 0 else parts
    words = re.sub(r"\d.*$", "", name).strip().casefold()
    return [words or name.casefold()]


def _joined(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    gap = DOT_GAP if len(left.group()) < 3 and text[left.end()] == "." else GAP
    return bool(gap.fullmatch(text, left.end(), right.start()))


def fold(word: str) -> str:
    """Lower case, without accents and apostrophes: as names are compared."""
    return spelling.fold(word).replace("'", "").replace("’", "").replace("ʼ", "")


def _key(name: str) -> str:
    if PLAIN_NAME.fullmatch(name):  # most of the dictionary; this is what loading it costs
        return name
    return " ".join(fold(match.group()) for match in WORD.finditer(name))


def _parts(generic: str) -> list[str]:
    return [part.strip() for part in re.split(r",\s|/|\band\b", generic) if part.strip()]


def _is_drug_here(text: str, found: list[Mention], number: int) -> bool:
    """Whether a substance of the body is meant as a drug: "insulin resistance" and "iron level" are not."""
    item = found[number]
    if item.name not in listed("drug_words", "endogenous"):
        return True
    after = WORD.search(text, item.end, item.end + 40)
    following = after.group().lower() if after and not text[item.end : after.start()].strip(" -") else ""
    if following in listed("drug_words", "measured"):
        return False
    if item.name not in listed("drug_words", "only_as_supplement") or following in listed("drug_words", "forms"):
        return True
    gaps = [(left.end, right.start) for left, right in pairwise(found[max(number - 1, 0) : number + 2])]
    joined = any(stop - start < 12 and JOINED.fullmatch(text, start, stop) for start, stop in gaps)
    return joined or bool(DOSE_NEXT.match(text, item.end))
