"""Find people's names in clinical text: lists of names, words around them, spaCy's opinion. Drugs and eponyms stay."""

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass
from re import Match

from docgemma.knowledge.drug_names import DrugNames, load_drug_names
from docgemma.paths import data_file, data_yaml
from docgemma.reading.terms import given_names
from docgemma.text.drugs import WORD, fold

Span = tuple[int, int]
ENDINGS = [pair.split(">") for pair in "ies>y ied>y es> ed> ed>e ing> ing>e s> d>".split()]


@dataclass(frozen=True)
class Words:
    """Which words can be names, and which cannot. All folded; the files are in data/rcm/pii."""

    given: frozenset[str]
    surnames: frozenset[str]
    ordinary: frozenset[str]
    lists: dict[str, frozenset[str]]  # titles, cues, credentials, never, particles, sexes; always, with_head, heads
    drugs: DrugNames

    @classmethod
    def load(cls, dictionary: Collection[str]) -> "Words":
        """The lists, with a dictionary of English words to tell "Patient Denied" from a name."""
        surnames = frozenset(data_file("rcm", "pii", "surnames.txt").read_text("utf-8").split())
        lists = data_yaml("rcm", "pii", "recognizers.yaml")["names"] | data_yaml("rcm", "pii", "eponyms.yaml")
        sets = {name: frozenset(fold(str(word)) for word in words) for name, words in lists.items()}
        return cls(given_names(), surnames, frozenset(dictionary), sets, load_drug_names())

    def is_name(self, word: str) -> bool:
        return word in self.given or word in self.surnames

    def known_by(self, parts: list[str]) -> set[str]:
        """The parts of a name that was found by which to find it again: not "Knee", should that have passed for one."""
        return {part for part in parts if self.is_name(parts[0]) or not self.is_ordinary(part)}

    def is_ordinary(self, word: str) -> bool:
        """An English word, inflected or not, that is not a usual name too."""
        stems = {word} | {word.removesuffix(end) + new for end, new in ENDINGS if word.endswith(end) and len(word) > 4}
        return not self.is_name(word) and not stems.isdisjoint(self.ordinary)


def name_parts(name: str) -> list[str]:
    """The parts of a name as names are compared: folded, without a possessive."""
    return [_part(word.group()) for word in WORD.finditer(name)]


def _part(word: str) -> str:
    return fold(word[:-2] if len(word) > 2 and word[-2] in "'’ʼ" and word[-1] in "sS" else word)


def find_names(
    text: str, words: Words, marked: Iterable[tuple[int, int, str]], people: Collection[Set[str]]
) -> list[Span]:
    """The places of names, without titles and possessives.

    Args:
        marked: what spaCy takes for a PERSON or a PLACE: start, end, label.
        people: of each person that this session knows, the parts of the name.
    """
    marked = list(marked)
    names = _Finder(text, words, marked, people).spans()
    again = [*people, *(words.known_by(name_parts(text[start:end])) for start, end in names)]
    return _Finder(text, words, marked, again).spans() if names else names


class _Finder:
    def __init__(self, text: str, words: Words, marked: Iterable[tuple[int, int, str]], people: Collection[Set[str]]):
        self.text, self.words, self.lists, self.people = text, words, words.lists, people
        self.known = frozenset(part for person in people for part in person)
        self.tokens: list[Match[str]] = list(WORD.finditer(text))
        self.parts = [_part(token.group()) for token in self.tokens]
        labels = {place: label for start, end, label in marked for place in range(start, end)}
        self.marks = [labels.get(token.start(), "") for token in self.tokens]
        drugs = {place for item in words.drugs.find(text) for place in range(item.start, item.end)}
        self.kept = [token.start() in drugs or self._eponym(at) for at, token in enumerate(self.tokens)]

    def spans(self) -> list[Span]:
        found, at = list[Span](), 0
        while at < len(self.tokens):
            end = at
            while end < len(self.tokens) and (self._joins(at, end) if end > at else self._can_begin(at)):
                end += 1
            while end > at + 1 and self.parts[end - 1] in self.lists["particles"]:
                end -= 1
            if end > at and self._is_person(at, end):
                found.append((self.tokens[at].start(), self.tokens[end - 1].end() - 2 * self._possessive(end - 1)))
            at = max(end, at + 1)
        return found

    def _possessive(self, at: int) -> bool:
        word = self.tokens[at].group()
        return len(word) > 2 and word[-2] in "'’ʼ" and word[-1] in "sS"

    def _gap(self, at: int) -> str:
        """What stands between this word and the next; a line break where there is none."""
        if not 0 <= at < len(self.tokens) - 1:
            return "\n"
        return self.text[self.tokens[at].end() : self.tokens[at + 1].start()]

    def _next(self, at: int) -> str:
        """The next word where only a blank stands between."""
        return self.parts[at + 1] if self._gap(at) == " " else ""

    def _eponym(self, at: int) -> bool:
        lists, part, follows = self.lists, self.parts[at], self._next(at)
        if part in self.known:
            return follows in lists["diseases"] and part in lists["always"] | lists["with_head"]
        return part in lists["always"] or (part in lists["with_head"] and follows in lists["heads"])

    def _titled(self, at: int) -> bool:
        before, gap = self.parts[at - 1] if at else "", self._gap(at - 1)
        return (before in self.lists["titles"] and gap in (" ", ". ", ".")) or (
            before in self.lists["kin"] and gap == " "
        )

    def _can_begin(self, at: int) -> bool:
        word, part = self.tokens[at].group(), self.parts[at]
        capital, following = word[0].isupper(), self._next(at)
        if not word[0].isalpha() or any(char.isdigit() for char in word) or part in self.lists["never"]:
            return False
        signs = self._gap(at) == " " and self._gap(at + 1) == ", " and self.parts[at + 2] in self.lists["credentials"]
        if capital and (self._titled(at) or signs):  # "Li Na, PT"
            return True
        if self.kept[at] or (at and self._gap(at - 1) == "-" and self.kept[at - 1]):  # Loeys-Dietz
            return False
        if part in self.known and len(part) > 1:
            together = any({part, following} <= person for person in self.people)
            return capital or part not in self.lists["also_words"] or together
        if len(part) == 1:
            return capital and self._gap(at) == ". " and self._can_begin(at + 1)
        if not capital:
            full = part in self.words.given and following in self.words.surnames
            return full or (self.words.is_name(part) and part not in self.words.ordinary)
        return not self.words.is_ordinary(part)

    def _joins(self, first: int, at: int) -> bool:
        gap, part, word, lists = self._gap(at - 1), self.parts[at], self.tokens[at].group(), self.lists
        before, capital = self.parts[at - 1], word[0].isupper()
        if part in lists["never"] or any(char.isdigit() for char in word) or self._possessive(at - 1):
            return False
        if gap in (" ", ", ") and len(part) > 1 and any({before, part} <= person for person in self.people):
            return True
        if gap == "-":
            return word.isalpha() and not self.kept[at]
        if gap == ", ":
            alone = capital and not self.kept[at] and all(self._gap(place) == "-" for place in range(first, at - 1))
            cell = first == 0 or any(mark in self._gap(first - 1) for mark in ":|\n")
            strange = cell and len(part) > 2 and not self.words.is_ordinary(part)
            return alone and (part in self.words.given or part in self.known or strange)
        if gap not in (" ", ". ", "\u00a0") or (gap == ". " and len(before) > 1):
            return False
        if part in lists["particles"] and self._gap(at) in (" ", "-"):
            following = self.parts[at + 1] in lists["particles"] or self.tokens[at + 1].group()[0].isupper()
            return following or self._can_begin(at + 1)
        if len(part) == 1:
            return word.isupper() and (self._gap(at)[:1] == "." or self._gap(at) == " ")
        if before in self.words.given and (capital or part in self.words.surnames):
            return not (self.kept[at] and self.words.drugs.generic(part))
        if before in lists["particles"] and capital:
            return True
        both = self.marks[at] == self.marks[at - 1] == "PERSON" and capital and not self.kept[at]
        return both or (capital == self.tokens[at - 1].group()[0].isupper() and self._can_begin(at))

    def _is_person(self, first: int, end: int) -> bool:
        lists, words, word = self.lists, self.words, self.tokens[first].group()
        long = [part for part in self.parts[first:end] if len(part) > 1 and part not in lists["particles"]]
        if not long or self._titled(first) or any(part in self.known for part in long):
            return bool(long)
        named = [part for part in long if words.is_name(part)]
        if self._gap(end - 1) in (", ", " ") and self.parts[end] in lists["credentials"]:
            return word[0].isupper()
        if self._next(end - 1) in lists["places"] | lists["diseases"]:
            return False
        if len(long) > 1 and len(named) == len(long):
            return True
        shouted = end > first + 1 and self._gap(first) in (" ", ", ") and self.tokens[first + 1].group().isupper()
        short = word.isupper() and 1 < len(self.parts[first]) < 5 and not shouted  # an abbreviation
        if not word[0].isupper() or (short and not named):
            return False
        if len(long) > 1 and any(part in words.given for part in long):
            return True
        if self.marks[first] == "PLACE":
            return False
        strange = all(part in named or (len(part) > 2 and not words.is_ordinary(part)) for part in long)
        cued = first and not self._gap(first - 1).strip(" .:,(#·\t") and self.parts[first - 1] in lists["cues"]
        sure = cued or self.marks[first] == "PERSON" or self._possessive(end - 1) or (bool(named) and not short)
        return bool(sure) or (len(long) > 1 and strange)
