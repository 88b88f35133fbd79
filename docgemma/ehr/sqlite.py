"""The record store in one SQLite file: FHIR R4 resources as JSON, every write with its author, search by FTS5."""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from docgemma.ehr import fhir
from docgemma.ehr.base import NAMED, Chart, PatientMatch, Provenance, Resource
from docgemma.ehr.database import Database
from docgemma.ehr.identifiers import identified, identifier_key, patient_keys
from docgemma.ehr.names import allowed_edits, best_fit, family_words, name_key, name_words, query_tokens, ranked
from docgemma.errors import ErrorType, ToolError

SEARCH_WORDS = 12  # of a name; more is not a name
MAX_VARIANTS = 40  # spellings tried for one word


class SqliteStore(Database):
    """RecordStore on a file. Threads may share one object; each process opens its own.

    Args:
        seed: resources of a new file, stored in the same transaction that makes its tables.
        create, busy_timeout_s, errors: as for Database.
    """

    name = "Patient record"

    def __init__(
        self, path: str | Path, seed: Iterable[Resource] = (), *, create: bool = True, busy_timeout_s: float = 30.0
    ):
        super().__init__(Path(path).expanduser(), create, busy_timeout_s)
        self._words: dict[int, list[str]] = {}  # of all names, by length
        self._words_of: object = None  # the state of the file in which these were the words
        try:
            self.prepare(fill=lambda: self._save(seed))
        except BaseException:
            self.close()
            raise

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        text = name.strip()
        with self.reading():
            if known := self._read("Patient", text):
                return [fhir.patient_match(known)]
            return best_fit(self._candidates(query_tokens(text)[:SEARCH_WORDS]), text)[:limit]

    def patient(self, patient_id: str) -> PatientMatch | None:
        with self.reading():
            found = self._read("Patient", patient_id)
            return fhir.patient_match(found) if found else None

    def born(self, days: Sequence[str]) -> list[PatientMatch]:
        with self.reading():
            found = [patient for day in days for patient in self._people(f"born : {_quoted('#' + _digits(day))}")]
        return [fhir.patient_match(patient) for patient in found]

    def by_identifier(self, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
        keys = [_quoted(f"#{identifier_key(value)}") for value in values]
        with self.reading():
            return identified(values, self._people(f"ids : ({' OR '.join(keys)})") if keys else [])

    def named(self, groups: Sequence[Sequence[str]], born: Sequence[str] = ()) -> list[list[PatientMatch]]:
        typed = [[name_key(word) for word in group] for group in groups]
        words = json.dumps(list({word for group in typed for word in group}))
        with self.reading():
            query = "SELECT term FROM people_word WHERE term IN (SELECT value FROM json_each(?))"
            known = {term for (term,) in self.execute(query, (words,))}
            return [self._bearers(group, born) if group and known.issuperset(group) else [] for group in typed]

    def chart(self, patient_id: str) -> Chart | None:
        query = "SELECT body FROM resource WHERE patient_id = ? AND section != '' ORDER BY rowid"
        with self.reading():
            patient = self._read("Patient", patient_id)
            if patient is None:
                return None
            resources = [json.loads(body) for (body,) in self.execute(query, (patient_id,))]
            return fhir.build_chart(patient, resources, self._read)

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource and its Provenance in one transaction, once per key."""
        resource = fhir.checked_write(resource, provenance)
        with self.writing():
            query = "SELECT r.body FROM write_key JOIN resource r USING (type, id) WHERE key = ?"
            if written := self.execute(query, (provenance.key,)).fetchone():
                return dict(json.loads(written[0]))
            if resource["resourceType"] != "Patient" and not self._read("Patient", fhir.patient_id_of(resource)):
                raise ToolError(ErrorType.NOT_FOUND, "The patient of this entry is not in the record store.")
            stored = self._put({**resource, "id": str(uuid.uuid4())})
            self._sign(stored, provenance)
            key = (provenance.key, stored["resourceType"], stored["id"])
            self.execute("INSERT INTO write_key (key, type, id) VALUES (?, ?, ?)", key)
            return stored

    def save(self, resources: Iterable[Resource]) -> int:
        """Store resources under their own ids in one transaction: new ones, and changed ones in place of the old.

        Not validated and without Provenance: for loading files.

        Returns:
            How many were new or changed.
        """
        with self.writing():
            return self._save(resources)

    # below: within a transaction

    def _read(self, kind: str, resource_id: str) -> Resource | None:
        query = "SELECT body FROM resource WHERE type = ? AND id = ?"
        row = self.execute(query, (kind, resource_id)).fetchone()
        return json.loads(row[0]) if row else None

    def _people(self, match: str, order: str = "") -> list[Resource]:
        """Patient resources that an FTS5 expression finds, at most NAMED."""
        query = f"SELECT body FROM people JOIN resource ON resource.rowid = people.rowid WHERE people MATCH ? {order} "
        return [json.loads(body) for (body,) in self.execute(f"{query} LIMIT {NAMED}", (match,))]

    def _candidates(self, tokens: list[str]) -> Iterator[list[Resource]]:
        """Who may be meant: with all words as spelt, as beginnings, misspelt, and with one word too many."""

        def having(spellings: Iterable[str], joined: str = " AND ") -> list[Resource]:
            # the shortest names: one without further words is the shortest that fits
            return self._people(f"words : ({joined.join(spellings)})", "ORDER BY length(words), words")

        exact = [_quoted(token) for token in tokens]
        if exact:
            yield having(exact)
            if max(map(len, tokens)) >= 3:  # "J. Smith", "Mari Garc"
                yield having(f"{word} *" for word in exact)
            near = [self._spellings(token, alone=len(tokens) == 1) for token in tokens]
            yield having(f"({' OR '.join(words)})" for words in near) if all(near) else []
        if len(tokens) >= 3:  # "John Q. Smith" where the record has no middle name
            shorter = [[word for word in exact if word != left_out] for left_out in exact]
            yield having((f"({' AND '.join(words)})" for words in shorter), " OR ")

    def _spellings(self, token: str, alone: bool) -> list[str]:
        """Known words near `token`, the nearest first, quoted."""
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        state = (self.execute("PRAGMA data_version").fetchone(), self.connection.total_changes)
        if self._words_of != state:
            self._words, self._words_of = {}, state
            for (word,) in self.execute("SELECT term FROM people_word WHERE term > '$'"):  # not what begins with #
                self._words.setdefault(len(word), []).append(word)
        most, near = allowed_edits(token, alone), list[tuple[str, int, int]]()
        for length in range(len(token) - most, len(token) + most + 1):
            known = self._words.get(length, [])
            near += process.extract(token, known, scorer=OSA.distance, score_cutoff=most, limit=MAX_VARIANTS)
        return [_quoted(word) for word, _, _ in sorted(near, key=lambda item: item[1])[:MAX_VARIANTS]]

    def _bearers(self, words: list[str], born: Sequence[str]) -> list[PatientMatch]:
        """Patients who have all these words, one of them as family name."""
        quoted = [_quoted(word) for word in words]
        match = f"words : ({' AND '.join(quoted)}) AND family : ({' OR '.join(quoted)})"
        if born:  # of the day, of its month or year alone, of a day in the year that is asked for, or not recorded
            days = [_digits(day) for day in born]
            dates = [f'"#{day}" * OR "#{day[:6]}" OR "#{day[:4]}"' for day in days]
            match += f' AND born : ("#" OR {" OR ".join(dates)})'
        found = [fhir.patient_match(patient) for patient in self._people(match)]
        return found if len(found) == NAMED else ranked(found, " ".join(words))

    def _sign(self, stored: Resource, provenance: Provenance) -> None:
        self._put({**fhir.provenance_resource(stored, provenance), "id": str(uuid.uuid4())})

    def _save(self, resources: Iterable[Resource]) -> int:
        changed = 0
        for resource in resources:
            current = self._read(resource["resourceType"], resource["id"])
            if current is None or {**current, "meta": None} != {**resource, "meta": None}:
                self._put(resource)
                changed += 1
        return changed

    def _put(self, resource: Resource) -> Resource:
        """Store a resource, as its next version where there is one."""
        kind, resource_id, stamp = resource["resourceType"], resource["id"], fhir.now()
        query = "SELECT rowid, version FROM resource WHERE type = ? AND id = ?"
        rowid, version = self.execute(query, (kind, resource_id)).fetchone() or (None, 0)
        meta = {**(resource.get("meta") or {}), "versionId": str(version + 1), "lastUpdated": stamp}
        stored = {**resource, "meta": meta}
        body = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
        row = (rowid, kind, resource_id, version + 1, stamp, fhir.patient_id_of(stored), fhir.section(stored), body)
        columns = "rowid, type, id, version, last_updated, patient_id, section, body"
        insert = self.execute(f"INSERT OR REPLACE INTO resource ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if kind == "Patient":
            self._index(insert.lastrowid, stored)
        return stored

    def _index(self, rowid: int | None, patient: Resource) -> None:
        """Make a patient findable by name, id, identifiers and birth date, and by none that were replaced."""
        columns = (name_words(patient), family_words(patient), {f"#{key}" for key in patient_keys(patient)})
        row = (rowid, *(" ".join(sorted(words)) for words in columns), "#" + _digits(patient.get("birthDate") or ""))
        self.execute("INSERT OR REPLACE INTO people (rowid, words, family, ids, born) VALUES (?, ?, ?, ?, ?)", row)


def _quoted(word: str) -> str:
    """A word as FTS5 takes it, whatever stands in it."""
    return '"' + word.replace('"', '""') + '"'


def _digits(day: str) -> str:
    return day.replace("-", "")
