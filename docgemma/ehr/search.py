"""Name search in the SQLite index: the name as spelt; only if nobody has it, beginnings of names and near misses."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from docgemma.ehr.base import NAMED, PatientMatch
from docgemma.ehr.names import allowed_edits, name_key, nearest, query_tokens, ranked

MAX_WORDS = 12  # of a query; the rest is not a name
MANY = 500  # bearers of a word; more need not be counted
MAX_VARIANTS = 40  # spellings tried for one word
PERSON = "SELECT p.patient_id, p.name, p.birth_date, p.sex FROM person p WHERE "
HAS = "p.patient_id IN (SELECT patient_id FROM name_token WHERE token IN ({}))"
BEGINS = "p.patient_id IN (SELECT patient_id FROM name_token WHERE token >= ? AND token < ?)"
BEGINS_TOO = "EXISTS (SELECT 1 FROM name_token t WHERE t.patient_id = p.patient_id AND token >= ? AND token < ?)"
BEARERS = "SELECT p.patient_id, p.name, p.birth_date, p.sex FROM name_token f CROSS JOIN person p USING (patient_id)"
SAME_PERSON = "SELECT 1 FROM name_token t WHERE t.patient_id = f.patient_id"
LAST = chr(0x10FFFF)


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
        if found := self._having([[token] for token in tokens]):
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
        clauses, values = ["f.token = ?"], [tokens[0]]
        for token in tokens[1:]:
            clauses.append(f"EXISTS ({SAME_PERSON} AND t.token = ?)")
            values.append(token)
        if len(tokens) > 1:
            clauses.append(f"EXISTS ({SAME_PERSON} AND t.is_family = 1 AND t.token IN ({_marks(tokens)}))")
            values += tokens
        else:
            clauses.append("f.is_family = 1")
        if born:
            clauses.append(f"({' OR '.join(['p.birth_date LIKE ? OR ? LIKE p.birth_date || ?'] * len(born))})")
            values += [value for day in born for value in (day + "%", day, "%")]
        rows = self.connection.execute(f"{BEARERS} WHERE {' AND '.join(clauses)} LIMIT {NAMED}", values)
        found = [PatientMatch(*row) for row in rows]
        return found if len(found) == NAMED else ranked(found, " ".join(tokens))

    def _having(self, words: list[list[str]]) -> list[PatientMatch]:
        """Patients who have, for every word, one of its spellings."""
        return self._persons([HAS.format(_marks(word)) for word in words], [item for word in words for item in word])

    def _beginnings(self, tokens: list[str]) -> list[PatientMatch]:
        """ "J. Smith", "Mari Garc": every word begins a word of the name."""
        if max(map(len, tokens)) < 3:
            return []
        longest_first = sorted(tokens, key=len, reverse=True)
        bounds = [bound for token in longest_first for bound in (token, token + LAST)]
        return self._persons([BEGINS, *[BEGINS_TOO] * (len(tokens) - 1)], bounds)

    def _near(self, tokens: list[str]) -> list[PatientMatch]:
        """At most a typing error or two in all; only the nearest are kept."""
        spellings = [self._spellings(token, alone=len(tokens) == 1) for token in tokens]
        found = self._having(spellings) if all(spellings) else []
        return nearest(tokens, [(match, self._words(match.id)) for match in found])[1]

    def _without_extra_words(self, tokens: list[str]) -> list[PatientMatch]:
        """ "John Q. Smith" where the record has no middle name: one word fewer, at least two left."""
        if len(tokens) < 3:
            return []
        shorter = [[[token] for at, token in enumerate(tokens) if at != left_out] for left_out in range(len(tokens))]
        return list({match.id: match for words in shorter for match in self._having(words)}.values())

    def _spellings(self, token: str, alone: bool) -> list[str]:
        """Known words near `token`, the nearest first."""
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        rows = self.connection.execute("SELECT id, token FROM vocabulary WHERE id > ? ORDER BY id", (self._seen,))
        for self._seen, word in rows:
            self._vocabulary.setdefault(len(word), []).append(word)
        edits = allowed_edits(token, alone)
        near: list[tuple[str, int, int]] = []
        for length in range(len(token) - edits, len(token) + edits + 1):
            known = self._vocabulary.get(length, [])
            near += process.extract(token, known, scorer=OSA.distance, score_cutoff=edits, limit=MAX_VARIANTS)
        return [word for word, _, _ in sorted(near, key=lambda item: item[1])[:MAX_VARIANTS]]

    def _words(self, patient_id: str) -> set[str]:
        rows = self.connection.execute("SELECT token FROM name_token WHERE patient_id = ?", (patient_id,))
        return {token for (token,) in rows}

    def _persons(self, clauses: list[str], values: Sequence[str]) -> list[PatientMatch]:
        """The shortest names: one without further words is the shortest that fits."""
        query = f"{PERSON}{' AND '.join(clauses)} ORDER BY length(p.name), p.name, p.birth_date LIMIT {NAMED}"
        return [PatientMatch(*row) for row in self.connection.execute(query, values)]


def _marks(values: list[str]) -> str:
    return ",".join("?" * len(values))
