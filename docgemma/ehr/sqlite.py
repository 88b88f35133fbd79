"""The record store in one SQLite file: FHIR R4 resources as JSON, every version kept, every write with its author."""

import json
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from docgemma.ehr.base import NAMED, Chart, PatientMatch, Provenance
from docgemma.ehr.database import Database
from docgemma.ehr.fhir import (
    Resource,
    build_chart,
    checked_write,
    display_name,
    family_text,
    identifier_values,
    is_error,
    local_reference,
    medication_named,
    name_text,
    now,
    patient_id_of,
    provenance_resource,
    section,
)
from docgemma.ehr.identifiers import best_of, identifier_key, patient_keys
from docgemma.ehr.names import index_tokens
from docgemma.ehr.search import NameIndex
from docgemma.ehr.validate import validate_resource
from docgemma.errors import ErrorType, ToolError

BUSY_TIMEOUT_S = 30.0
SEARCH_CHARS = 400  # of a name; more is not a name


class SqliteStore:
    """RecordStore on a file. Threads may share one object; each process opens its own.

    Args:
        path: the database file.
        seed: resources of a new file, stored in the same transaction that makes its tables.
        create: make the file where there is none; otherwise its absence is an error.
        busy_timeout_s: how long to wait for another process's write.

    Raises:
        StoreError: no such file, not a record store, corrupt, not readable, locked.
    """

    name = "Patient record"

    def __init__(
        self,
        path: str | Path,
        seed: Iterable[Resource] = (),
        *,
        create: bool = True,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ):
        self.path = Path(path).expanduser()
        self._db = Database(self.path, lambda db: _save(db, seed), _index_all, create, busy_timeout_s)
        self._names = NameIndex(self._db.connection)

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        """Patients whose name, or whose id, is this; best first; [] if none."""
        text = name[:SEARCH_CHARS].strip()
        with self._db.reading():
            by_id = _person(self._db, text)
            return [by_id] if by_id else self._names.search(text, limit)

    def patient(self, patient_id: str) -> PatientMatch | None:
        with self._db.reading():
            return _person(self._db, patient_id)

    def by_identifier(self, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
        keys = {value: identifier_key(value) for value in values}
        query = (
            "SELECT i.value_folded, p.patient_id, p.name, p.birth_date, p.sex FROM identifier i JOIN person p USING "
            f"(patient_id) WHERE i.value_folded IN (SELECT value FROM json_each(?)) LIMIT {NAMED}"
        )
        found: dict[str, list[PatientMatch]] = {}
        with self._db.reading():
            for key, *row in self._db.execute(query, (json.dumps(list(keys.values())),)):
                found.setdefault(key, []).append(PatientMatch(*row))
        return {value: best_of(value, found[key]) for value, key in keys.items() if key in found}

    def named(self, groups: Sequence[Sequence[str]], born: Sequence[str] = ()) -> list[list[PatientMatch]]:
        with self._db.reading():
            return self._names.named(groups, born)

    def identifiers(self, patient_id: str) -> list[str]:
        with self._db.reading():
            return identifier_values(_body(self._db, "Patient", patient_id) or {})

    def born(self, days: Sequence[str]) -> list[PatientMatch]:
        query = "SELECT patient_id, name, birth_date, sex FROM person WHERE birth_date = ? ORDER BY name LIMIT ?"
        with self._db.reading():
            return [PatientMatch(*row) for day in days for row in self._db.execute(query, (day, NAMED))]

    def chart(self, patient_id: str) -> Chart | None:
        query = "SELECT body FROM resource WHERE patient_id = ? AND section != '' ORDER BY rowid"
        with self._db.reading():
            patient = _body(self._db, "Patient", patient_id)
            if patient is None or is_error(patient):
                return None
            resources = [json.loads(body) for (body,) in self._db.execute(query, (patient_id,))]
            return build_chart(patient, [self._with_medication_name(item) for item in resources])

    def read(self, kind: str, resource_id: str) -> Resource | None:
        """One resource in its current version, or None."""
        with self._db.reading():
            return _body(self._db, kind, resource_id)

    def history(self, kind: str, resource_id: str) -> list[Resource]:
        """Every version of one resource, newest first; [] if it was never here."""
        query = "SELECT body FROM history WHERE type = ? AND id = ? ORDER BY version DESC"
        with self._db.reading():
            return [json.loads(body) for (body,) in self._db.execute(query, (kind, resource_id))]

    def count(self, kind: str) -> int:
        with self._db.reading():
            return self._db.execute("SELECT count(*) FROM resource WHERE type = ?", (kind,)).fetchone()[0]

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource, its first version and its Provenance in one transaction, once per key."""
        resource = checked_write(resource, provenance)
        with self._db.writing():
            query = "SELECT type, id FROM write_key WHERE key = ?"
            if written := self._db.execute(query, (provenance.key,)).fetchone():
                return _body(self._db, *written)
            self._require_patient(resource)
            stored = _put(self._db, {**resource, "id": str(uuid.uuid4())})
            self._sign(stored, provenance)
            key = (provenance.key, stored["resourceType"], stored["id"])
            self._db.execute("INSERT INTO write_key (key, type, id) VALUES (?, ?, ?)", key)
            return stored

    def update(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new version of a resource, if `meta.versionId` is still the current one.

        Raises:
            ToolError: `not_found` if it is not here, `invalid_args` if it is invalid or was changed meanwhile.
        """
        validate_resource(resource)
        kind, given = resource["resourceType"], (resource.get("meta") or {}).get("versionId")
        with self._db.writing():
            current = _body(self._db, kind, resource.get("id") or "")
            if current is None:
                raise ToolError(ErrorType.NOT_FOUND, f"There is no such {kind} to change.")
            if given != current["meta"]["versionId"]:
                raise ToolError(ErrorType.INVALID_ARGS, f"This {kind} was changed since it was read.")
            self._require_patient(resource)
            stored = _put(self._db, resource)
            self._sign(stored, provenance)
            return stored

    def save(self, resources: Iterable[Resource]) -> int:
        """Store resources under their own ids in one transaction: new ones, and new versions of changed ones.

        Not validated and without Provenance: for loading files.

        Returns:
            How many were new or changed.
        """
        with self._db.writing():
            return _save(self._db, resources)

    def close(self) -> None:
        self._db.close()

    def _require_patient(self, resource: Resource) -> None:
        if resource["resourceType"] == "Patient":
            return
        if not _person(self._db, patient_id_of(resource)):
            raise ToolError(ErrorType.NOT_FOUND, "The patient of this entry is not in the record store.")

    def _sign(self, stored: Resource, provenance: Provenance) -> None:
        record = provenance_resource(stored, provenance, stored["meta"]["lastUpdated"])
        validate_resource(record)
        _put(self._db, {**record, "id": str(uuid.uuid4())})

    def _with_medication_name(self, resource: Resource) -> Resource:
        kind, _, identifier = local_reference(resource.get("medicationReference")).partition("/")
        return medication_named(resource, _body(self._db, kind, identifier)) if kind == "Medication" else resource


def _body(db: Database, kind: str, resource_id: str) -> Resource | None:
    row = db.execute("SELECT body FROM resource WHERE type = ? AND id = ?", (kind, resource_id)).fetchone()
    return json.loads(row[0]) if row else None


def _person(db: Database, patient_id: str) -> PatientMatch | None:
    query = "SELECT patient_id, name, birth_date, sex FROM person WHERE patient_id = ?"
    row = db.execute(query, (patient_id,)).fetchone()
    return PatientMatch(*row) if row else None


def _save(db: Database, resources: Iterable[Resource]) -> int:
    changed = 0
    for resource in resources:
        current = _body(db, resource["resourceType"], resource["id"])
        if current is None or _content(current) != _content(resource):
            _put(db, resource)
            changed += 1
    return changed


def _content(resource: Resource) -> Resource:
    return {key: value for key, value in resource.items() if key != "meta"}


def _put(db: Database, resource: Resource) -> Resource:
    """The next version of one resource, into all tables."""
    kind, resource_id, stamp = resource["resourceType"], resource["id"], now()
    query = "SELECT max(version) FROM history WHERE type = ? AND id = ?"
    version = (db.execute(query, (kind, resource_id)).fetchone()[0] or 0) + 1
    meta = {**(resource.get("meta") or {}), "versionId": str(version), "lastUpdated": stamp}
    stored = {**resource, "meta": meta}
    body = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    row = (kind, resource_id, version, stamp, patient_id_of(stored), section(stored), body)
    db.execute("DELETE FROM resource WHERE type = ? AND id = ?", (kind, resource_id))
    db.execute("INSERT INTO resource VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (*row[:4], body))
    if kind == "Patient":
        _index_names(db, stored)
    return stored


def _index_names(db: Database, patient: Resource) -> None:
    patient_id = patient["id"]
    db.execute("DELETE FROM person WHERE patient_id = ?", (patient_id,))
    db.execute("DELETE FROM name_token WHERE patient_id = ?", (patient_id,))
    _index_lookups(db, patient)
    if is_error(patient):
        return
    person = (patient_id, display_name(patient), patient.get("birthDate") or "", patient.get("gender") or "")
    db.execute("INSERT INTO person VALUES (?, ?, ?, ?)", person)
    for token in {token for name in patient.get("name") or [] for token in index_tokens(name_text(name))}:
        db.execute("INSERT OR IGNORE INTO name_token VALUES (?, ?)", (token, patient_id))
        db.execute("INSERT OR IGNORE INTO vocabulary (token) VALUES (?)", (token,))


def _index_lookups(db: Database, patient: Resource) -> None:
    """Identifiers and family names; those of a patient entered in error are forgotten."""
    patient_id, names = patient["id"], [] if is_error(patient) else patient.get("name") or []
    keys = set() if is_error(patient) else patient_keys(patient)
    families = {token for name in names for token in index_tokens(family_text(name))}
    for table, words in (("identifier", keys), ("family_token", families)):
        db.execute(f"DELETE FROM {table} WHERE patient_id = ?", (patient_id,))
        for word in words:
            db.execute(f"INSERT INTO {table} VALUES (?, ?)", (word, patient_id))


def _index_all(db: Database) -> None:
    """Fill the look-ups of a file that an older program made. What cannot be read fails when it is asked for."""
    for (body,) in db.execute("SELECT body FROM resource WHERE type = 'Patient'"):
        with suppress(ValueError):
            _index_lookups(db, json.loads(body))
