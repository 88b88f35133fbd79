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
    names = _Finder(text, words, marked, people).spans()
    again = [*people, *(words.known_by(name_parts(text[start:end])) for start, end in names)]
    return _Finder(text, words, marked, again).spans() if names else names


class _Finder:
    def __init__(self, text: str, words: Words, marked: Iterable[tuple[int, int, str]], people: Collection[Set[str]]):
        self.text, self.words, self.people = text, words, people
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
            end = self._run(at)
            if end > at and self._is_person(at, end):
                last = self.tokens[end - 1]
                possessive = 2 if self._possessive(end - 1) else 0
                found.append((self.tokens[at].start(), last.end() - possessive))
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

    def _eponym(self, at: int) -> bool:
        lists, part = self.words.lists, self.parts[at]
        follows = self._gap(at) == " " and self.parts[at + 1] in lists["heads"]
        if part in self.known:
            return follows and self.parts[at + 1] in lists["diseases"] and part in lists["always"] | lists["with_head"]
        owned = self._possessive(at) and self._gap(at) == " " and self.parts[at + 1] in lists["heads"]
        return part in lists["always"] or (part in lists["with_head"] and (follows or owned))

    def _titled(self, at: int) -> bool:
        before, lists = self.parts[at - 1] if at else "", self.words.lists
        return (before in lists["titles"] and self._gap(at - 1) in (" ", ". ", ".")) or (
            before in lists["kin"] and self._gap(at - 1) == " "
        )

    def _can_begin(self, at: int) -> bool:
        word, part, lists = self.tokens[at].group(), self.parts[at], self.words.lists
        if not word[0].isalpha() or any(char.isdigit() for char in word) or part in lists["never"]:
            return False
        if word[0].isupper() and (self._titled(at) or self._credential(at)):
            return True
        if at and self._gap(at - 1) == "-" and self.kept[at - 1]:
            return False  # Loeys-Dietz
        if self.kept[at]:
            return part in self.words.given and self._gap(at) == " " and self.parts[at + 1] in self.words.surnames
        if part in self.known and len(part) > 1:
            together = self._gap(at) in (" ", ", ") and self._one_person(at)
            return word[0].isupper() or part not in lists["also_words"] or together
        if len(part) == 1:
            return word.isupper() and self._gap(at) == ". " and self._can_begin(at + 1)
        if word.isupper() and len(part) < 4 and not self.words.is_name(part) and not self._shouted(at + 1):
            return False  # an abbreviation
        if not word[0].isupper():
            full = self._gap(at) == " " and part in self.words.given and self.parts[at + 1] in self.words.surnames
            return full or self._lower_pair(at) or (self.words.is_name(part) and part not in self.words.ordinary)
        if self.words.is_ordinary(part):
            if self.marks[at] != "PERSON" or self._gap(at) not in (" ", "-", ", "):
                return False
            return self.words.is_name(self.parts[at + 1]) and self.tokens[at + 1].group()[0].isupper()
        return True

    def _lower_pair(self, at: int) -> bool:
        """Whether "patricia lindqvist" stands here: two words that English does not have, one of them a usual name."""
        if self._gap(at) != " " or any(self.kept[at : at + 2]):
            return False
        pair = self.parts[at : at + 2]
        strange = all(len(part) > 2 and part.isalpha() and not self.words.is_ordinary(part) for part in pair)
        capital = any(token.group()[0].isupper() for token in self.tokens[at : at + 2])
        barred = capital or any(part in self.words.lists["never"] for part in pair)
        return strange and not barred and any(self.words.is_name(part) for part in pair)

    def _shouted(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].group().isupper() and self._gap(at - 1) in (" ", ", ")

    def _credential(self, at: int) -> bool:
        """Whether this and at most two more words stand before ", MD"."""
        for end in range(at, min(at + 3, len(self.tokens) - 1)):
            if not self.tokens[end].group()[0].isupper() or self.kept[end]:
                return False
            if self._gap(end) == ", ":
                return self.parts[end + 1] in self.words.lists["credentials"]
            if self._gap(end) not in (" ", "-", ". "):
                return False
        return False

    def _one_person(self, at: int) -> bool:
        """Whether this word and the next are parts of one known name."""
        return any({self.parts[at], self.parts[at + 1]} <= person for person in self.people)

    def _run(self, at: int) -> int:
        """Where the name that may begin here ends; `at` itself if none can."""
        if not self._can_begin(at):
            return at
        end = at + 1
        while end < len(self.tokens) and self._joins(at, end):
            end += 1
        while end > at + 1 and self.parts[end - 1] in self.words.lists["particles"]:
            end -= 1
        return end

    def _joins(self, first: int, at: int) -> bool:
        gap, part, word, lists = self._gap(at - 1), self.parts[at], self.tokens[at].group(), self.words.lists
        if part in lists["never"] or any(char.isdigit() for char in word) or self._possessive(at - 1):
            return False
        if gap in (" ", ", ") and len(part) > 1 and self._one_person(at - 1):
            return True
        if gap == "-":
            return word.isalpha() and not self.kept[at]
        if gap == ", ":
            alone = all(self._gap(place) == "-" for place in range(first, at - 1))
            if not (alone and word[0].isupper() and not self.kept[at]):
                return False
            cell = first == 0 or any(mark in self._gap(first - 1) for mark in ":|\n")
            return part in self.words.given or (cell and len(part) > 2 and not self.words.is_ordinary(part))
        if gap not in (" ", ". ", "\u00a0") or (gap == ". " and len(self.parts[at - 1]) > 1):
            return False
        if part in lists["particles"] and self._gap(at) in (" ", "-"):
            following = self.parts[at + 1] in lists["particles"] or self.tokens[at + 1].group()[0].isupper()
            return following or self._can_begin(at + 1)
        if len(part) == 1:
            return word.isupper() and (self._gap(at)[:1] == "." or self._gap(at) == " ")
        if self.kept[at]:
            return self.parts[at - 1] in self.words.given and not self.words.drugs.generic(part)
        if word[0].isupper() and self.words.is_ordinary(part):
            return self.parts[at - 1] in self.words.given or self.marks[at] == self.marks[at - 1] == "PERSON"
        if word[0].islower() and part in self.words.surnames and self.parts[at - 1] in self.words.given:
            return True
        if word[0].islower() and at == first + 1 and self._lower_pair(first):
            return True
        return (word[0].isupper() == self.tokens[at - 1].group()[0].isupper() and self._can_begin(at)) or (
            self.parts[at - 1] in lists["particles"] and word[0].isupper()
        )

    def _is_person(self, first: int, end: int) -> bool:
        parts, lists, words = self.parts[first:end], self.words.lists, self.words
        long = [part for part in parts if len(part) > 1 and part not in lists["particles"]]
        if not long:
            return False
        if self._titled(first) or any(part in self.known for part in long):
            return True
        named = [part for part in long if words.is_name(part)]
        shout = self.tokens[first].group().isupper() and 1 < len(parts[0]) < 5 and not self._shouted(first + 1)
        if self._gap(end - 1) in (", ", " ") and self.parts[end] in lists["credentials"] and not shout:
            return True
        following = self.parts[end] if self._gap(end - 1) == " " else ""
        if following in lists["places"] or following in lists["diseases"]:
            return False
        lower = self.tokens[first].group()[0].islower()
        if lower and self._lower_pair(first):
            return True
        if len(long) > 1 and (len(named) == len(long) or any(part in words.given for part in long)):
            return not lower or len(named) == len(long)
        if lower or (shout and not named):
            return False
        strange = [part for part in long if part in named or (len(part) > 2 and not words.is_ordinary(part))]
        if len(long) > 1 and len(strange) == len(long) and self.marks[first] != "PLACE":
            return True
        before = self._gap(first - 1).strip(" .:,(#·\t") if first else "?"
        if not before and "\n" not in self._gap(first - 1) and self.parts[first - 1] in lists["cues"]:
            return self.marks[first] != "PLACE" or bool(named)
        if self.marks[first] == "PERSON" or (self._possessive(end - 1) and self.marks[first] != "PLACE"):
            return True
        return bool(named) and not shout and self.marks[first] != "PLACE"
