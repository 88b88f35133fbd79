"""What counts as the same name: its words, how near a typed name is to a recorded one, and where names may stand in a
text. No I/O."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from docgemma.ehr.base import PatientMatch, Resource
from docgemma.ehr.fhir import family_text, name_text, patient_match
from docgemma.text.characters import fold

TITLES = frozenset(
    """mr mrs ms miss mx dr doctor prof professor sir dame rev jr sr ii iii iv md phd rn esq frau herr madame monsieur
    mme mlle senor senora signor signora""".split()
)
CLINICIANS = frozenset({"dr", "doctor", "prof", "professor"})  # a surname behind these is seldom a patient's
# part of a surname, and no surname
PARTICLES = frozenset("de la los las van von der den del da di do dos du el al bin".split())
WORDS = re.compile(r"\w+")
# a word of a text as a name may use it, possessive and combining accents included
TYPED = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+(?:['’‘`´ʼʻ](?:[^\W_]|[\u0300-\u036f])+)*")
APOSTROPHES = str.maketrans(dict.fromkeys("'’‘`´ʼʻ"))
HYPHENS = str.maketrans(dict.fromkeys("-‐‑–"))
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
MAX_EDITS = 2  # in all words of a name together
LONGEST = 4  # words of a name looked up together; the parts of a longer one are the same patient


def name_key(word: str) -> str:
    """One word of a name for comparing: O'Brien is obrien."""
    return fold(word).translate(APOSTROPHES)


def query_tokens(text: str) -> list[str]:
    """The words of a name as somebody typed it: no titles, no order, no repeats. "Dr. SMITH, John" -> smith, john."""
    words = WORDS.findall(name_key(text))
    return list(dict.fromkeys([word for word in words if word not in TITLES] or words))


def index_tokens(name: str) -> set[str]:
    """Every word by which this name may be looked for: O'Brien is obrien, o and brien; Smith-Jones also smithjones."""
    folded = fold(name)
    german = fold(unicodedata.normalize("NFC", name.casefold()).translate(GERMAN))
    texts = {folded, folded.translate(APOSTROPHES), folded.translate(HYPHENS), german}
    return {word for text in texts for word in WORDS.findall(text)}


def name_words(patient: Resource) -> set[str]:
    """Every word by which a Patient resource may be looked for."""
    return {word for name in patient.get("name") or [] for word in index_tokens(name_text(name))}


def family_words(patient: Resource) -> set[str]:
    return {word for name in patient.get("name") or [] for word in index_tokens(family_text(name))}


def allowed_edits(token: str, alone: bool) -> int:
    """How many typing errors (a swap of neighbours counts as one) a word may hold and still be a guess, not noise."""
    if len(token) < (4 if alone else 3):
        return 0
    return 1 if len(token) < 8 else MAX_EDITS


def closeness(tokens: Sequence[str], words: set[str]) -> int | None:
    """How near a typed name is to a recorded one: 0 as spelt, 1 its beginnings, 2 or more with typing errors or a word
    too many; None is another name."""
    from rapidfuzz.distance import OSA

    if words.issuperset(tokens):
        return 0
    if max(map(len, tokens)) >= 3 and all(any(word.startswith(token) for word in words) for token in tokens):
        return 1
    edits = [min((OSA.distance(token, word) for word in words), default=99) for token in tokens]
    allowed = [allowed_edits(token, len(tokens) == 1) for token in tokens]
    if all(map(int.__le__, edits, allowed)) and sum(edits) <= MAX_EDITS:
        return 1 + sum(edits)
    return 2 + MAX_EDITS if len(tokens) >= 3 and len(set(tokens) - words) == 1 else None


def best_fit(candidates: Iterable[Sequence[Resource]], name: str) -> list[PatientMatch]:
    """The patients nearest to a typed name, best first; guesses (`guessed=True`) only where nobody is spelt this way.

    Args:
        candidates: lists of Patient resources, the most alike first. The first list in which somebody fits decides.
    """
    tokens = query_tokens(name)
    for patients in candidates:
        near: dict[int, dict[str, PatientMatch]] = {}
        for patient in patients:
            words = name_words(patient)
            if words and (distance := closeness(tokens, words)) is not None:
                near.setdefault(distance, {})[patient["id"]] = patient_match(patient, guessed=distance != 0)
        if near:
            return ranked(list(near[min(near)].values()), name)
    return []


def ranked(matches: Sequence[PatientMatch], name: str) -> list[PatientMatch]:
    """Fewest further names first, then names as typed, then by name and birth date."""
    typed = query_tokens(name)

    def rank(match: PatientMatch) -> tuple[int, bool, str, str, str]:
        words = query_tokens(match.name)
        return len(words), words != typed, fold(match.name), match.birth_date, match.id

    return sorted(matches, key=rank)


@dataclass(frozen=True)
class Word:
    """One word of a text as a patient's name may use it."""

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
    for piece in TYPED.finditer(text):
        typed, before = piece.group(), text[words[-1].end if words else 0 : piece.start()]
        key = name_key(typed)
        forms: tuple[str, ...] = (typed,)
        if len(key) > 3 and key.endswith("s"):
            forms = (typed, typed[:-1]) if typed[-2].isalnum() else (typed[:-2], typed)
        initial = bool(words) and words[-1].silent
        opens = not words or (not initial and any(char in before for char in ".?!\n"))
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
    if any(word.capital for word in name) or title in TITLES - CLINICIANS:
        # "does Kim" is no name, though there is a Kim Does
        return len(name) == 1 or not any(word.text.islower() and word.is_plain(ordinary) for word in name)
    return not all(word.is_plain(ordinary) for word in name)
