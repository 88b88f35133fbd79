"""The words that training texts are filled with: real and invented, from `data/edge/lists/`. Seeded by the caller."""

import random
import re
from functools import cache

from docgemma.paths import data_file

SYLLABLES = (
    "ba be bi bo ca ce ci co da de di do fa fe fi flu ga ge gi go lo la le li ma me mi mo na ne ni pra pre ra re ri "
    "ro sa se si so ta te ti to tra va ve vi vo xa xi za ze zo"
)
ENDINGS = (
    "mab nib pril sartan olol azole cillin mycin floxacin statin gliptin gliflozin tidine prazole pam lam xaban parin "
    "done zine pine tine vir"
)
AMOUNTS = (
    "0.25 0.5 1 2 2.5 5 7.5 10 12.5 15 20 25 30 40 50 60 75 80 100 125 150 200 250 300 400 500 600 750 800 875 1000 "
    "1,000 1200"
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
KEYS = {"a": "s", "e": "r", "i": "o", "o": "p", "n": "m", "t": "y", "s": "d", "c": "v", "l": "k", "r": "t"}


@cache
def words(name: str) -> tuple[str, ...]:
    """A list file: comma-separated, or (notes, clauses, topics) one item a line."""
    lines = [line for line in _text(name).splitlines() if line.strip() and not line.startswith("#")]
    if name in {"notes", "note_clauses", "topics"}:
        return tuple(lines)
    return tuple(item.strip() for line in lines for item in line.split(",") if item.strip())


@cache
def groups(name: str) -> dict[str, tuple[str, ...]]:
    """A list file of named groups, `name: a, b, c` a line."""
    found = {}
    for line in _text(name).splitlines():
        key, mark, rest = line.partition(":")
        if mark and not line.startswith("#"):
            found[key] = tuple(item.strip() for item in rest.split(",") if item.strip())
    return found


def _text(name: str) -> str:
    return data_file("edge", "lists", f"{name}.txt").read_text(encoding="utf-8")


class Lexicon:
    """Random words of each kind. Same seed, same words."""

    def __init__(self, rng: random.Random):
        self.rng = rng

    def pick(self, items):
        return items[int(self.rng.random() * len(items))]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def drug(self) -> str:
        """Mostly real (generic or brand); some invented, so that copying is learnt and not the names."""
        if self.chance(0.15):
            return self.invented_drug()
        drug = self.pick(words("drugs"))
        if self.chance(0.06):
            return self.typo(drug)
        if self.chance(0.06):
            return drug.upper() if len(drug) < 9 else drug.capitalize()
        return drug.lower() if self.chance(0.1) else drug

    def drugs(self, count: int) -> list[str]:
        found: dict[str, str] = {}
        while len(found) < count:
            drug = self.drug()
            found.setdefault(drug.lower(), drug)
        return list(found.values())

    def invented_drug(self) -> str:
        stem = "".join(self.pick(SYLLABLES.split()) for _ in range(self.pick((1, 2, 2))))
        drug = stem + self.pick(ENDINGS.split())
        return drug.capitalize() if self.chance(0.2) else drug

    def name(self) -> str:
        """A patient's name: given and family, sometimes one of them, reversed, or lower case."""
        given, family = self.pick(words("given_names")), self.pick(words("surnames"))
        if self.chance(0.08):
            family = self.syllables(2, 3).capitalize()
        if self.chance(0.06):
            given = self.syllables(2, 3).capitalize()
        shape = self.rng.random()
        if shape < 0.80:
            return f"{given} {family}"
        if shape < 0.86:
            return f"{family}, {given}"
        if shape < 0.91:
            return f"{given} {self.pick(LETTERS).upper()}. {family}"
        if shape < 0.95:
            return f"{given} {self.pick(words('given_names'))} {family}"
        return f"{given}-{self.pick(words('given_names'))} {family}" if shape < 0.97 else family

    def syllables(self, low: int, high: int) -> str:
        return "".join(self.pick(SYLLABLES.split()) for _ in range(self.rng.randint(low, high)))

    def patient_id(self) -> str:
        if self.chance(0.18):
            text = "".join(self.pick("0123456789abcdef") for _ in range(32))
            return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{self.pick('89ab')}{text[17:20]}-{text[20:]}"
        letters = "".join(self.pick(LETTERS) for _ in range(3))
        return f"{letters}-{self.rng.randrange(1000):03d}"

    def dose(self) -> str:
        """Mostly a number of milligrams; sometimes units, puffs, tablets."""
        if self.chance(0.82):
            unit = self.pick(("mg", "mg", "mg", "mg", "mg", "mcg", "g", "milligrams"))
            return f"{self.pick(AMOUNTS.split())}{self.pick(('', ' ', ' ', ' '))}{unit}"
        return self.pick(words("doses"))

    def frequency(self) -> str:
        return self.pick(words("frequencies"))

    def age(self) -> str:
        return str(self.rng.randint(2, 94))

    def topic(self) -> str:
        """What a literature search is about."""
        pattern = self.pick(words("topics"))
        return re.sub(r"\{(\w+)\}", lambda found: self._topic_word(found[1]), pattern)

    def _topic_word(self, slot: str) -> str:
        if slot.startswith("drug"):
            return self.drug()
        if slot == "cond":
            return self.pick(words("conditions"))
        if slot == "class":
            return self.pick(words("classes"))
        return self.pick(groups("topic_words")[slot])

    def typo(self, text: str) -> str:
        """One slip of the fingers: a letter dropped, doubled, swapped or struck beside."""
        places = [at for at in range(1, len(text) - 1) if text[at].isalpha()]
        if not places:
            return text
        at, kind = self.pick(places), self.rng.randrange(4)
        char = text[at]
        if kind == 0:
            return text[:at] + text[at + 1 :]
        if kind == 1:
            return text[:at] + char + text[at:]
        if kind == 2 and text[at + 1].isalpha():
            return text[:at] + text[at + 1] + char + text[at + 2 :]
        return text[:at] + KEYS.get(char, char) + text[at + 1 :]
