"""Name search over the index tables: the name as spelt; only if nobody has it, beginnings of names and near misses."""

import sqlite3
from dataclasses import replace
from itertools import pairwise

from docgemma.ehr.base import PatientMatch
from docgemma.ehr.names import MAX_EDITS, allowed_edits, fold, query_tokens

MAX_WORDS = 12  # of a query; the rest is not a name
MAX_VARIANTS = 40  # spellings tried for one word

MAX_RANKED = 200  # of the shortest names; a name without further words is the shortest that fits

_PERSON = "SELECT p.patient_id, p.name, p.birth_date, p.sex FROM person p WHERE "
_SHORTEST = f" ORDER BY length(p.name), p.name, p.birth_date LIMIT {MAX_RANKED}"
_LAST = chr(0x10FFFF)


class NameIndex:
    """Search in one open database. The distinct words of all names stay in memory, and new ones are added to them."""

    def __init__(self, connection: sqlite3.Connection):
        self.connection = connection
        self._vocabulary: dict[int, list[str]] = {}  # by length
        self._seen = 0

    def search(self, name: str, limit: int) -> list[PatientMatch]:
        """Best first. Guesses (`guessed=True`) only where nobody's name is spelt this way."""
        tokens = query_tokens(name)[:MAX_WORDS]
        if not tokens:
            return []
        if found := self._exact(tokens):
            return ranked(found, name)[:limit]
        guesses = self._beginnings(tokens) or self._near(tokens) or self._without_extra_words(tokens)
        return [replace(match, guessed=True) for match in ranked(guesses, name)[:limit]]

    def _exact(self, tokens: list[str]) -> list[PatientMatch]:
        return self._having([[token] for token in tokens])

    def _having(self, words: list[list[str]]) -> list[PatientMatch]:
        """Patients who have, for every word, one of its spellings."""
        clauses = [f"p.patient_id IN (SELECT patient_id FROM name_token WHERE token IN ({_marks(w)}))" for w in words]
        values = [spelling for word in words for spelling in word]
        return self._persons(" AND ".join(clauses), values)

    def _beginnings(self, tokens: list[str]) -> list[PatientMatch]:
        """ "J. Smith", "Mari Garc": every word begins a word of the name."""
        if max(map(len, tokens)) < 3:
            return []
        first, *rest = sorted(tokens, key=len, reverse=True)
        clause = "p.patient_id IN (SELECT patient_id FROM name_token WHERE token >= ? AND token < ?)"
        other = (
            " AND EXISTS (SELECT 1 FROM name_token t WHERE t.patient_id = p.patient_id AND token >= ? AND token < ?)"
        )
        values = [bound for token in (first, *rest) for bound in (token, token + _LAST)]
        return self._persons(clause + other * len(rest), values)

    def _near(self, tokens: list[str]) -> list[PatientMatch]:
        """At most a typing error or two in all; only the nearest are kept."""
        spellings = [self._spellings(token, alone=len(tokens) == 1) for token in tokens]
        if not all(spellings):
            return []
        costs: dict[int, list[PatientMatch]] = {}
        for match in self._having([list(item) for item in spellings]):
            words = self._words(match.id)
            cost = sum(min(edits for word, edits in item.items() if word in words) for item in spellings)
            costs.setdefault(cost, []).append(match)
        best = min(costs, default=MAX_EDITS + 1)
        return costs[best] if best <= MAX_EDITS else []

    def _without_extra_words(self, tokens: list[str]) -> list[PatientMatch]:
        """ "John Q. Smith" where the record has no middle name: one word fewer, at least two left."""
        if len(tokens) < 3:
            return []
        shorter = [tokens[:i] + tokens[i + 1 :] for i in range(len(tokens))]
        return list({match.id: match for words in shorter for match in self._exact(words)}.values())

    def _spellings(self, token: str, alone: bool) -> dict[str, int]:
        """Known words near `token`, with the number of edits."""
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        edits = allowed_edits(token, alone)
        self._read_new_words()
        near: list[tuple[str, float, int]] = []
        for length in range(len(token) - edits, len(token) + edits + 1):
            known = self._vocabulary.get(length, ())
            near += process.extract(token, known, scorer=OSA.distance, score_cutoff=edits, limit=MAX_VARIANTS)
        near.sort(key=lambda item: item[1])
        return {word: int(distance) for word, distance, _ in near[:MAX_VARIANTS]}

    def _read_new_words(self) -> None:
        rows = self.connection.execute("SELECT id, token FROM vocabulary WHERE id > ? ORDER BY id", (self._seen,))
        for self._seen, token in rows:
            self._vocabulary.setdefault(len(token), []).append(token)

    def _words(self, patient_id: str) -> set[str]:
        rows = self.connection.execute("SELECT token FROM name_token WHERE patient_id = ?", (patient_id,))
        return {token for (token,) in rows}

    def _persons(self, where: str, values: list[str]) -> list[PatientMatch]:
        return [PatientMatch(*row) for row in self.connection.execute(_PERSON + where + _SHORTEST, values)]


def ranked(matches: list[PatientMatch], name: str) -> list[PatientMatch]:
    """Fewest further names first, then words in the order typed, then by name and birth date."""
    tokens = query_tokens(name)

    def rank(match: PatientMatch) -> tuple:
        words = query_tokens(match.name)
        places = [words.index(token) if token in words else -1 for token in tokens]
        disorder = sum(later < earlier for earlier, later in pairwise(places))
        return len(words), disorder, fold(match.name), match.birth_date, match.id

    return sorted(matches, key=rank)


def _marks(values: list[str]) -> str:
    return ",".join("?" * len(values))
