"""Patient names in a question: capitalised runs, and lower-case words after a cue that only a name can follow."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from docgemma.rules.drugs import Mention
from docgemma.rules.name_words import (
    CLINICIANS,
    EPONYM_HEADS,
    EPONYMS,
    NOT_NAMES,
    PARTICLES,
    PLACES_FOLLOW,
    RECORD_WORDS,
    SUFFIXES,
    TITLES,
    TOPIC_WORDS,
)

TOKEN = re.compile(r"[^\s,;:!?()\[\]{}\"“”«»<>/\\|@#$%^&*+=~`…—–]+")
POSSESSIVE = re.compile(r"(?:['’ʼ][sS]|(?<=[sSzZxX])['’ʼ])$")
NAME_WORD = re.compile(r"[^\W\d_](?:[^\d_\s]*[^\W\d_.])?\.?")
DOSE_AHEAD = re.compile(r"\s{1,3}\d+(?:[.,]\d+)?\s?(?:mg|mcg|µg|g|ml|units?|iu)\b", re.IGNORECASE)
# of conditions, procedures and drug classes, for capitalised words without a cue
MEDICAL = re.compile(
    r"(?:itis|osis|emia|aemia|inoma|eloma|anoma|coma|phoma|blastoma|pathy|ectomy|ology|algia|uria|plegia|trophy|penia"
    r"|cardia|pn[o]?ea|scopy|graphy|statins?|mycin|cillin|prazole|sartan|mab|tinib|gliptin|gliflozin|tension|ation)$"
)
SEARCH_VERBS = frozenset({"find", "search", "lookup", "locate", "open", "pull", "look", "show", "get", "retrieve"})
LOOKED_UP = frozenset({"pubmed", "medline", "literature", "papers", "articles", "trials", "trial", "evidence"})
PRONOUNS = frozenset({"his", "her", "their", "him", "them", "hers", "theirs", "he", "she"})
MAX_WORDS = 6
MAX_CHARS = 20_000  # a question; what follows is a pasted document, and its names are not whom the question is about

Cue = Literal["title", "patient", "search"]


@dataclass(frozen=True)
class NameSpan:
    """A name as written, without title and possessive: text[start:end]."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Word:
    """One word of the question. `after` is the punctuation up to the next word."""

    text: str  # without possessive
    start: int
    end: int
    possessive: bool
    after: str
    drug: bool

    @property
    def key(self) -> str:
        return self.text.lower().strip(".'’-")

    @property
    def ends(self) -> bool:
        return self.possessive or bool(self.after.strip()) or "\n" in self.after


def find_names(text: str, drugs: Sequence[Mention] = ()) -> list[NameSpan]:
    """Names of people in a question, in order of appearance.

    Args:
        text: the question, control characters removed.
        drugs: where drugs are mentioned in it, in order; a drug is no name, unless it follows a given name after a
            clear cue ("patient Mary Allegra").
    """
    return _Reader(text, _split(text[:MAX_CHARS], drugs)).read()


class _Reader:
    def __init__(self, text: str, words: list[Word]):
        self.text, self.words = text, words
        cased = [word.text for word in words if word.text.lower() != word.text.upper()]
        self.shouting = bool(cased) and sum(item.isupper() for item in cased) > 0.7 * len(cased)
        plain = [word.text for word in words[1:] if not word.drug and not word.text.isupper()]
        self.titled = len(plain) > 3 and sum(item[0].isupper() for item in plain) > 0.8 * len(plain)
        self.foreign = len(cased) < 0.5 * len(words)
        self.person = any(word.key in PRONOUNS for word in words)

    def read(self) -> list[NameSpan]:
        found, at = [], 0
        while at < len(self.words):
            if self.words[at].key in CLINICIANS and at + 1 < len(self.words):
                at = max(self._run(at + 1, any_case=False), at + 1)  # Dr Smith is not the patient
                continue
            end = self._name_at(at)
            if end > at:
                first, last = self.words[at], self.words[end - 1]
                found.append(NameSpan(self.text[first.start : last.end], first.start, last.end))
            at = max(end, at + 1)
        return found

    def _name_at(self, at: int) -> int:
        """Where the name that begins at this word ends; `at` if there is none."""
        cue = self._cue(at)
        end = self._trim(at, self._run(at, any_case=False), cue)
        if end > at and self._accepts(at, end, cue):
            return self._given_name(at, end, cue)
        if cue == "search" and not self._strongly_patient(at) and self.words[at].drug:
            return at
        end = self._trim(at, self._run(at, any_case=True), cue)
        return end if end > at and self._accepts_lower(at, end, cue) else at

    def _cue(self, at: int) -> Cue | None:
        before = [word.key for word in self.words[max(0, at - 3) : at]]
        if not before or (self.words[at - 1].after.strip() not in ("", ":", "#", '"', "“", "(")):
            return None
        if before[-1] in TITLES:
            return "title"
        if self.words[at - 1].possessive:
            return None
        if before[-1] in ("patient", "pt", "named", "called", "surname") or before[-2:] in (
            ["name", "is"],
            ["patient", "name"],
        ):
            return "patient"
        if LOOKED_UP & {word.key for word in self.words[max(0, at - 5) : at]}:
            return None  # "a PubMed search for hyperemesis gravidarum"
        if before[-1] in SEARCH_VERBS or (before[-1] in ("up", "for", "on") and SEARCH_VERBS & set(before[:-1])):
            return "search"
        return None

    def _strongly_patient(self, at: int) -> bool:
        """Whether lower-case words here can only be a name: "find patient john smith", "a patient called …"."""
        before = [word.key for word in self.words[max(0, at - 5) : at]]
        if before[-1] in ("named", "called"):
            return True
        return before[-1] in ("patient", "pt") and bool(
            SEARCH_VERBS & set(before) or {"for", "with"} & set(before[-2:])
        )

    def _run(self, at: int, *, any_case: bool) -> int:
        """The end of the run of words that could be parts of one name."""
        end = at
        while end < len(self.words) and end - at < MAX_WORDS and self._could_be(end, at, any_case):
            end += 1
            if self.words[end - 1].ends:
                break
        while end > at and self.words[end - 1].key in PARTICLES and not any_case:
            end -= 1
        return end

    def _could_be(self, at: int, start: int, any_case: bool) -> bool:
        word = self.words[at]
        if not NAME_WORD.fullmatch(word.text) or word.key in TITLES:
            return False
        if word.key in NOT_NAMES and not (self._given(word) or self._introduced(at)):
            return False
        if any_case or self.shouting:
            return any_case and (word.key not in EPONYMS or at > start)
        return not word.text.islower() or (word.key in PARTICLES and (at > start or self._capital_next(at)))

    def _given(self, word: Word) -> bool:
        return len(word.key) == 1 and word.text[0].isupper() and word.key != "i"  # an initial

    def _introduced(self, at: int) -> bool:
        """A patient named Will Young."""
        return bool(at) and self.words[at - 1].key in ("named", "called") and self.words[at].text[0].isupper()

    def _capital_next(self, at: int) -> bool:
        """Whether a capitalised word follows, after further particles: "van der Heijden"."""
        if self.words[at].ends or at + 1 >= len(self.words):
            return False
        return self.words[at + 1].text[0].isupper() or (
            self.words[at + 1].key in PARTICLES and self._capital_next(at + 1)
        )

    def _trim(self, at: int, end: int, cue: Cue | None) -> int:
        """Leave out drugs: all of them without a cue; with one, those that are alone or followed by a dose."""
        for position in range(at, end):
            if not self.words[position].drug:
                continue
            dosed = bool(DOSE_AHEAD.match(self.text, self.words[position].end))
            if cue is None and not self._record_follows(end):
                return position
            if position == at or (dosed and position - at >= 1):
                return position
        return end

    def _accepts(self, at: int, end: int, cue: Cue | None) -> bool:
        words = self.words[at:end]
        following = self._next(end)
        if cue in ("title", "patient"):
            return not (cue == "patient" and len(words) == 1 and (words[0].key in EPONYMS or following in EPONYM_HEADS))
        if any(MEDICAL.search(word.key) for word in words) or self._topic(words, following):
            return False
        if cue == "search":
            return not (len(words) == 1 and self._abbreviation(words[0]))
        if self._record_follows(end):
            return not self._abbreviation(words[0])
        if len(words) < 2 or self.titled or self.foreign or any(self._abbreviation(word) for word in words):
            return False
        return not (at and self.words[at - 1].key in PLACES_FOLLOW and self._about_places())

    def _accepts_lower(self, at: int, end: int, cue: Cue | None) -> bool:
        words = self.words[at:end]
        if any(MEDICAL.search(word.key) or word.drug for word in words[:1]) or self._topic(words, self._next(end)):
            return False
        if cue == "title" or (cue == "patient" and self._strongly_patient(at)):
            return len(words) <= 4
        if cue == "search":
            return 2 <= len(words) <= 4 and (self.person or self._record_follows(end))
        return self._record_follows(end) and len(words) <= 3 and not any(word.drug for word in words)

    def _given_name(self, at: int, end: int, cue: Cue | None) -> int:
        """García, Maria: after a cue, one family name, a comma, a given name."""
        last = self.words[end - 1]
        if not cue or end - at != 1 or last.after.strip() != ",":
            return end
        further = self._trim(end, self._run(end, any_case=False), cue)
        listing = self.words[further - 1].after.strip() == "," or (
            self._next(further) in ("and", "or") and self._capital_next(further)
        )
        return further if 1 <= further - end <= 2 and not listing else end

    def _topic(self, words: Sequence[Word], following: str) -> bool:
        eponym = words[-1].key in EPONYMS and (len(words) == 1 or words[-1].possessive)
        return eponym or following in EPONYM_HEADS or following in TOPIC_WORDS

    def _record_follows(self, end: int) -> bool:
        """Whether the word before `end` owns a record: "Garcia's latest labs"."""
        if not end or not self.words[end - 1].possessive or self.words[end - 1].key in EPONYMS:
            return False
        return any(word.key in RECORD_WORDS for word in self.words[end : end + 3])

    def _next(self, end: int) -> str:
        joined = end < len(self.words) and (not self.words[end - 1].ends or self.words[end - 1].possessive)
        return self.words[end].key if joined else ""

    def _abbreviation(self, word: Word) -> bool:
        return len(word.text) > 1 and word.text.isupper() and not word.text.endswith(".") and word.key not in SUFFIXES

    def _about_places(self) -> bool:
        return any(word.key in ("trial", "trials", "study", "studies", "recruiting") for word in self.words)


def _split(text: str, drugs: Sequence[Mention]) -> list[Word]:
    words, tokens = [], list(TOKEN.finditer(text))
    spans, mention = list(drugs), 0
    for number, token in enumerate(tokens):
        written = token.group().lstrip("'’-.")
        start = token.end() - len(written)
        stop = written.endswith(".") and len(written) > 2 and written[:-1].lower() not in TITLES | CLINICIANS | {"st"}
        written = written.rstrip("'’-.") if stop else written.rstrip("-") if not POSSESSIVE.search(written) else written
        owner = POSSESSIVE.search(written)
        name = written[: owner.start()] if owner else written
        if not name:
            continue
        while mention < len(spans) and spans[mention].end <= start:
            mention += 1
        drug = mention < len(spans) and spans[mention].start < start + len(name)
        after = text[token.end() : tokens[number + 1].start()] if number + 1 < len(tokens) else text[token.end() :]
        words.append(Word(name, start, start + len(name), bool(owner), "." + after if stop else after, drug))
    return words
