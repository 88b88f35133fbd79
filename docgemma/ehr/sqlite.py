"""The record store in one SQLite file: FHIR R4 resources as JSON, every version kept, every write with its author."""

import json
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from docgemma.ehr.base import NAMED, Chart, PatientMatch, Provenance, Resource
from docgemma.ehr.database import Database
from docgemma.ehr.fhir import (
    build_chart,
    checked_write,
    display_name,
    family_text,
    identifier_values,
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
from docgemma.ehr.search import PERSON, NameIndex
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
        self._db = Database(self.path, create, busy_timeout_s)
        self._names = NameIndex(self._db.connection)
        try:
            self._db.prepare(create, lambda: self._save(seed))
        except BaseException:
            self._db.close()
            raise

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        """Patients whose name, or whose id, is this; best first; [] if none."""
        text = name[:SEARCH_CHARS].strip()
        with self._db.reading():
            by_id = self._person(text)
            return [by_id] if by_id else self._names.search(text, limit)

    def patient(self, patient_id: str) -> PatientMatch | None:
        with self._db.reading():
            return self._person(patient_id)

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
            return identifier_values(self._read("Patient", patient_id) or {})

    def born(self, days: Sequence[str]) -> list[PatientMatch]:
        query = f"{PERSON} p.birth_date = ? ORDER BY p.name LIMIT {NAMED}"
        with self._db.reading():
            return [PatientMatch(*row) for day in days for row in self._db.execute(query, (day,))]

    def chart(self, patient_id: str) -> Chart | None:
        query = "SELECT body FROM resource WHERE patient_id = ? AND section != '' ORDER BY rowid"
        with self._db.reading():
            patient = self._read("Patient", patient_id)
            if patient is None:
                return None
            resources = [json.loads(body) for (body,) in self._db.execute(query, (patient_id,))]
            return build_chart(patient, [self._with_medication_name(item) for item in resources])

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource, its first version and its Provenance in one transaction, once per key."""
        resource = checked_write(resource, provenance)
        with self._db.writing():
            query = "SELECT r.body FROM write_key JOIN resource r USING (type, id) WHERE key = ?"
            if written := self._db.execute(query, (provenance.key,)).fetchone():
                return dict(json.loads(written[0]))
            if resource["resourceType"] != "Patient" and not self._person(patient_id_of(resource)):
                raise ToolError(ErrorType.NOT_FOUND, "The patient of this entry is not in the record store.")
            stored = self._put({**resource, "id": str(uuid.uuid4())})
            self._sign(stored, provenance)
            key = (provenance.key, stored["resourceType"], stored["id"])
            self._db.execute("INSERT INTO write_key (key, type, id) VALUES (?, ?, ?)", key)
            return stored

    def save(self, resources: Iterable[Resource]) -> int:
        """Store resources under their own ids in one transaction: new ones, and new versions of changed ones.

        Not validated and without Provenance: for loading files.

        Returns:
            How many were new or changed.
        """
        with self._db.writing():
            return self._save(resources)

    def close(self) -> None:
        self._db.close()

    # below: within a transaction

    def _read(self, kind: str, resource_id: str) -> Resource | None:
        query = "SELECT body FROM resource WHERE type = ? AND id = ?"
        row = self._db.execute(query, (kind, resource_id)).fetchone()
        return json.loads(row[0]) if row else None

    def _person(self, patient_id: str) -> PatientMatch | None:
        row = self._db.execute(f"{PERSON} p.patient_id = ?", (patient_id,)).fetchone()
        return PatientMatch(*row) if row else None

    def _with_medication_name(self, resource: Resource) -> Resource:
        kind, _, identifier = local_reference(resource.get("medicationReference")).partition("/")
        return medication_named(resource, self._read(kind, identifier)) if kind == "Medication" else resource

    def _sign(self, stored: Resource, provenance: Provenance) -> None:
        record = provenance_resource(stored, provenance, stored["meta"]["lastUpdated"])
        self._put({**record, "id": str(uuid.uuid4())})

    def _save(self, resources: Iterable[Resource]) -> int:
        changed = 0
        for resource in resources:
            current = self._read(resource["resourceType"], resource["id"])
            if current is None or {**current, "meta": None} != {**resource, "meta": None}:
                self._put(resource)
                changed += 1
        return changed

    def _put(self, resource: Resource) -> Resource:
        """Store the next version of one resource."""
        kind, resource_id, stamp = resource["resourceType"], resource["id"], now()
        query = "SELECT max(version) FROM history WHERE type = ? AND id = ?"
        version = (self._db.execute(query, (kind, resource_id)).fetchone()[0] or 0) + 1
        meta = {**(resource.get("meta") or {}), "versionId": str(version), "lastUpdated": stamp}
        stored = {**resource, "meta": meta}
        body = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
        row = (kind, resource_id, version, stamp, patient_id_of(stored), section(stored), body)
        self._db.execute("INSERT OR REPLACE INTO resource VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (kind, resource_id, version, stamp, body))
        if kind == "Patient":
            self._index(stored)
        return stored

    def _index(self, patient: Resource) -> None:
        """Make a patient findable by name, id and identifiers, and by none that were replaced."""
        patient_id, names = patient["id"], patient.get("name") or []
        for table in ("person", "name_token", "identifier"):
            self._db.execute(f"DELETE FROM {table} WHERE patient_id = ?", (patient_id,))
        person = (patient_id, display_name(patient), patient.get("birthDate") or "", patient.get("gender") or "")
        self._db.execute("INSERT INTO person VALUES (?, ?, ?, ?)", person)
        families = {token for name in names for token in index_tokens(family_text(name))}
        for token in families | {token for name in names for token in index_tokens(name_text(name))}:
            self._db.execute("INSERT INTO name_token VALUES (?, ?, ?)", (token, token in families, patient_id))
            self._db.execute("INSERT OR IGNORE INTO vocabulary (token) VALUES (?)", (token,))
        for key in patient_keys(patient):
            self._db.execute("INSERT INTO identifier VALUES (?, ?)", (key, patient_id))
