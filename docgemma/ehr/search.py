"""Name search over the index tables: the name as spelt; only if nobody has it, beginnings of names and near misses."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from docgemma.ehr.base import NAMED, PatientMatch
from docgemma.ehr.names import MAX_EDITS, allowed_edits, fold, name_key, query_tokens

MAX_WORDS = 12  # of a query; the rest is not a name
MAX_VARIANTS = 40  # spellings tried for one word
MAX_RANKED = NAMED  # of the shortest names; a name without further words is the shortest that fits

MANY = 500  # bearers of a word; more need not be counted

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

    def named(self, groups: Sequence[Sequence[str]], born: Sequence[str] = ()) -> list[list[PatientMatch]]:
        """For each group the patients with all its words, one as family name; `born` as in births.py."""
        groups = [[name_key(word) for word in group] for group in groups]
        words = json.dumps(list({word for group in groups for word in group}))
        bearers = f"(SELECT count(*) FROM (SELECT 1 FROM name_token n WHERE n.token = v.token LIMIT {MANY}))"
        query = f"SELECT token, {bearers} FROM vocabulary v WHERE token IN (SELECT value FROM json_each(?))"
        count = dict(self.connection.execute(query, (words,)).fetchall())
        return [
            self._family(sorted(group, key=count.__getitem__), born) if group and count.keys() >= set(group) else []
            for group in groups
        ]

    def _family(self, tokens: list[str], born: Sequence[str]) -> list[PatientMatch]:
        """Beginning with the rarest word, and not beyond NAMED patients: a common name has thousands."""
        table = "family_token" if len(tokens) == 1 else "name_token"
        query = (
            f"SELECT p.patient_id, p.name, p.birth_date, p.sex FROM {table} f CROSS JOIN person p USING (patient_id)"
        )
        clauses, values = ["f.token = ?"], list(tokens)
        exists = "EXISTS (SELECT 1 FROM {} t WHERE t.patient_id = f.patient_id AND t.token {})"
        clauses += [exists.format("name_token", "= ?")] * (len(tokens) - 1)
        if len(tokens) > 1:
            clauses.append(exists.format("family_token", f"IN ({_marks(tokens)})"))
            values += tokens
        if born:
            fits = " OR ".join(["p.birth_date LIKE ? OR ? LIKE p.birth_date || '%'"] * len(born))
            clauses.append(f"({fits})")
            values += [value for day in born for value in (day + "%", day)]
        rows = self.connection.execute(f"{query} WHERE {' AND '.join(clauses)} LIMIT {NAMED}", values)
        found = [PatientMatch(*row) for row in rows]
        return found if len(found) == NAMED else ranked(found, " ".join(tokens))

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
