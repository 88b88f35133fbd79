"""What fills the slots of one question: who is meant, which drugs, doses, texts. Remembers what it said."""

import re
from collections.abc import Callable

from docgemma.edge.lexicon import Lexicon, groups, words

STATUSES = (
    "recruiting",
    "recruiting",
    "recruiting",
    "completed",
    "active",
    "ongoing",
    "open",
    "enrolling",
    "terminated",
    "not yet recruiting",
    "suspended",
    "currently recruiting",
)
SUBJECT_BEFORE = re.compile(
    r"(?:^|[.;:,] |\b(?:is|was|has|have|does|did|do|that|if|whether|what|why|when|been) )$", re.I
)
PRONOUNS = (("she", "her", "her"),) * 4 + (("he", "him", "his"),) * 4 + (("they", "them", "their"),)


class Slots:
    """Fills the slots of one question; remembers who is meant and what was said."""

    def __init__(self, lexicon: Lexicon, who: str):
        self.words, self.who = lexicon, who
        self.pronoun = lexicon.pick(PRONOUNS)
        self.id, self.name = lexicon.patient_id(), lexicon.name()
        self.drugs = lexicon.drugs(5)
        self.count = lexicon.pick((2, 2, 2, 2, 3, 3, 4))
        self.named = False
        self.it = False  # whether "it" says which drug is meant

    def __call__(self, slot: str) -> str:
        maker: Callable[[], str] | None = getattr(self, f"_{slot}", None)
        if maker:
            return maker()
        if slot in groups("image_words"):
            return self.words.pick(groups("image_words")[slot])
        simple = {
            "drug": self.drugs[0],
            "drug1": self.drugs[0],
            "drug2": self.drugs[1],
            "drugx": self.drugs[4],
            "id": self.id,
            "name": self.name,
            "pro": self.pronoun[0],
            "obj": self.pronoun[1],
            "poss": self.pronoun[2],
            "subj": self.pronoun[0],
        }
        return simple[slot]

    def _drugs(self) -> str:
        drugs = self.drugs[: self.count]
        joint = self.words.pick((", ", ", ", ", ", " / ", " + ", "; ", " and ", ","))
        if self.words.chance(0.6) and joint in (", ", "; "):
            return f"{joint.join(drugs[:-1])}{self.words.pick((' and ', ', and ', ' & '))}{drugs[-1]}"
        return joint.join(drugs)

    def _it(self) -> str:
        return "it"

    def _who_subject(self) -> str:
        return self.pronoun[0] if self.who == "pronoun" or self.named else self._who()

    def _who(self) -> str:
        if self.who == "pronoun" or self.named:
            return self.pronoun[1]
        self.named = True
        if self.who == "name":
            return self.words.pick(("", "", "", "patient ", "Mr. ", "Ms ", "Mrs ", "Dr ")) + self.name
        return self.words.pick(("", "", "patient ", "pt ", "patient ")) + self.id

    def _whose(self) -> str:
        if self.who == "pronoun" or self.named:
            return self.pronoun[2]
        return self._who() + "'s"

    def _id2(self) -> str:
        return self.id[:-1] + str((int(self.id[-1], 16) + 1) % 10)

    def _dose(self) -> str:
        return self.words.dose()

    def _freq(self) -> str:
        return self.words.frequency()

    def _notes(self) -> str:
        return self.words.pick(words("instructions"))

    def _reason(self) -> str:
        return self.words.pick(("for pain", "for infection", "for blood pressure", "for reflux", "for anxiety"))

    def _route_reason(self) -> str:
        return self.words.pick(("PO", "IV", "by mouth", "orally", "SC", "IM"))

    def _cond(self) -> str:
        return self.words.pick(words("conditions"))

    _cond2 = _cond

    def _topic(self) -> str:
        return self.words.topic()

    def _status(self) -> str:
        return self.words.pick(STATUSES)

    def _subst(self) -> str:
        return self.words.pick(words("substances")) if self.words.chance(0.6) else self.words.drug()

    def _react(self) -> str:
        return self.words.pick(words("reactions"))

    def _sev(self) -> str:
        return self.words.pick(("mild", "moderate", "severe", "severe", "life-threatening", "serious"))

    def _notetype(self) -> str:
        return self.words.pick(words("note_types"))

    def _note(self) -> str:
        return self._told(self.words.pick(words("notes")))

    def _notes_clause(self) -> str:
        return self._told(self.words.pick(words("note_clauses")))

    def _told(self, text: str) -> str:
        """A note's text with its own slots filled: who is spoken of, and drugs that nobody orders."""
        simple = dict(zip(("pro", "obj", "poss", "drug", "drug2"), (*self.pronoun, *self.drugs[3:5]), strict=True))
        return re.sub(r"\{(\w+)\}", lambda found: simple[found[1]], text)

    def _term(self) -> str:
        kind = self.words.rng.random()
        if kind < 0.6:
            return self.words.pick(words("terms"))
        if kind < 0.85:
            return self.words.pick(words("conditions"))
        return self.words.pick(words("classes"))

    _term2 = _term

    def _classs(self) -> str:
        return self.words.pick(words("classes"))

    def _druglike(self) -> str:
        return self.words.pick(words("classes")) if self.words.chance(0.4) else self.words.drug()

    def _drugname(self) -> str:
        return self.words.drug().capitalize()

    def _surname(self) -> str:
        return self.words.pick(words("surnames"))

    def _title(self) -> str:
        return self.words.pick(("Mr", "Mrs", "Ms", "Miss", "Dr", "Mr.", "Mrs."))

    def _age(self) -> str:
        return self.words.age()


def subjects(pattern: str) -> str:
    """`{who}` as the subject of its clause becomes `{who_subject}`: "is she on", but "for her"."""
    parts = re.split(r"(\{who\})", pattern)
    for at in range(1, len(parts), 2):
        before = "".join(parts[:at])
        if SUBJECT_BEFORE.search(before) or not before:
            parts[at] = "{who_subject}"
    return "".join(parts)
