"""The record store in one SQLite file: FHIR R4 resources as JSON, every version kept, every write with its author."""

import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from docgemma.ehr.base import Chart, PatientMatch, Provenance
from docgemma.ehr.fhir import (
    Resource,
    build_chart,
    display_name,
    is_error,
    local_reference,
    name_text,
    now,
    patient_id_of,
    provenance_resource,
    section,
    with_key,
)
from docgemma.ehr.names import index_tokens
from docgemma.ehr.schema import APPLICATION_ID, TABLES, VERSION
from docgemma.ehr.search import NameIndex
from docgemma.ehr.validate import validate_resource
from docgemma.errors import ErrorType, StoreError, ToolError

BUSY_TIMEOUT_S = 30.0
SEARCH_CHARS = 400  # of a name; more is not a name


class SqliteStore:
    """RecordStore on a file. Threads may share it; processes open one each.

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
        self._lock = threading.RLock()
        self._connection = self._open(create, busy_timeout_s)
        try:
            self._prepare(seed, busy_timeout_s)
        except BaseException:
            self._connection.close()
            raise
        self._names = NameIndex(self._connection)

    # reading

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        """Patients whose name, or whose id, is this; best first; [] if none."""
        text = name[:SEARCH_CHARS].strip()
        with self._reading():
            by_id = self._patient(text)
            return [by_id] if by_id else self._names.search(text, limit)

    def patient(self, patient_id: str) -> PatientMatch | None:
        with self._reading():
            return self._patient(patient_id)

    def chart(self, patient_id: str) -> Chart | None:
        with self._reading():
            patient = self._body("Patient", patient_id)
            if patient is None or is_error(patient):
                return None
            query = "SELECT body FROM resource WHERE patient_id = ? AND section != '' ORDER BY rowid DESC"
            resources = [json.loads(body) for (body,) in self._connection.execute(query, (patient_id,))]
            return build_chart(patient, map(self._with_medication_name, resources))

    def read(self, kind: str, resource_id: str) -> Resource | None:
        """One resource in its current version, or None."""
        with self._reading():
            return self._body(kind, resource_id)

    def history(self, kind: str, resource_id: str) -> list[Resource]:
        """Every version of one resource, newest first; [] if it was never here."""
        query = "SELECT body FROM history WHERE type = ? AND id = ? ORDER BY version DESC"
        with self._reading():
            return [json.loads(body) for (body,) in self._connection.execute(query, (kind, resource_id))]

    def count(self, kind: str) -> int:
        with self._reading():
            return self._connection.execute("SELECT count(*) FROM resource WHERE type = ?", (kind,)).fetchone()[0]

    # writing

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource, its first version and its Provenance in one transaction, once per key."""
        resource = _writable(resource, provenance)
        with self._writing():
            if stored := self._by_key(provenance.key):
                return stored
            self._require_patient(resource)
            stored = self._put({**resource, "id": str(uuid.uuid4())})
            self._sign(stored, provenance)
            insert = "INSERT INTO write_key (key, type, id) VALUES (?, ?, ?)"
            self._connection.execute(insert, (provenance.key, stored["resourceType"], stored["id"]))
            return stored

    def update(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new version of a resource, if `meta.versionId` is still the current one.

        Raises:
            ToolError: `not_found` if it is not here, `invalid_args` if it is invalid or was changed meanwhile.
        """
        validate_resource(resource)
        kind, given = resource["resourceType"], (resource.get("meta") or {}).get("versionId")
        with self._writing():
            current = self._body(kind, resource.get("id") or "")
            if current is None:
                raise ToolError(ErrorType.NOT_FOUND, f"There is no such {kind} to change.")
            if given != current["meta"]["versionId"]:
                raise ToolError(ErrorType.INVALID_ARGS, f"This {kind} was changed since it was read.")
            self._require_patient(resource)
            stored = self._put(resource)
            self._sign(stored, provenance)
            return stored

    def save(self, resources: Iterable[Resource]) -> int:
        """Store resources under their own ids in one transaction: new ones, and new versions of changed ones.

        Not validated and without Provenance: for loading files and seeding.

        Returns:
            How many were new or changed.
        """
        with self._writing():
            return self._save(resources)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    # inside

    def _open(self, create: bool, busy_timeout_s: float) -> sqlite3.Connection:
        if not self.path.parent.is_dir():
            hint = "Create it, or point DOCGEMMA_EHR at another place."
            raise StoreError(f"The folder of the record store, {self.path.parent}, does not exist.", hint=hint)
        if not create and not self.path.exists():
            hint = "Make it with `docgemma ehr load FILE...`, or unset DOCGEMMA_EHR for the synthetic patients."
            raise StoreError(f"There is no record store at {self.path}.", hint=hint)
        mode = "rwc" if create else "rw"
        with self._guarded():
            return sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=busy_timeout_s,
                isolation_level=None, check_same_thread=False,
            )  # fmt: skip

    def _prepare(self, seed: Iterable[Resource], busy_timeout_s: float) -> None:
        """Make the tables of a new file, or refuse a file that is something else."""
        with self._guarded():
            application, version = self._identity()
            if not application and not version and self._is_empty():
                self._use_wal(busy_timeout_s)
                with self._writing():
                    # another process may have been faster
                    if self._is_empty():
                        self._create_tables(seed)
                application, version = self._identity()
        if application != APPLICATION_ID:
            hint = "Point DOCGEMMA_EHR at a record store, or at a file that does not exist yet."
            raise StoreError(f"{self.path} is a database, but not a record store of docgemma.", hint=hint)
        if version != VERSION:
            hint = "Use the version that wrote it, or load the records into a new file."
            raise StoreError(f"{self.path} was written by another version of docgemma.", hint=hint)

    def _create_tables(self, seed: Iterable[Resource]) -> None:
        # not executescript, which would commit the transaction
        for statement in TABLES.split(";"):
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {VERSION}")
        self._save(seed)

    def _identity(self) -> tuple[int, int]:
        pragmas = ("application_id", "user_version")
        return tuple(self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)

    def _is_empty(self) -> bool:
        return self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0

    def _use_wal(self, busy_timeout_s: float) -> None:
        # SQLite does not call its busy handler for this switch, so two first uses at once need a loop of our own
        deadline = time.monotonic() + busy_timeout_s
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Every failure of SQLite or of a stored body is a StoreError with one clear line."""
        try:
            yield
        except sqlite3.Error as error:
            raise _store_error(error, self.path) from error
        except json.JSONDecodeError as error:
            raise _corrupt(self.path) from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, self._guarded():
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, taken at once so that what is read inside cannot change before it is written."""
        with self._lock, self._guarded():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _body(self, kind: str, resource_id: str) -> Resource | None:
        query = "SELECT body FROM resource WHERE type = ? AND id = ?"
        row = self._connection.execute(query, (kind, resource_id)).fetchone()
        return json.loads(row[0]) if row else None

    def _patient(self, patient_id: str) -> PatientMatch | None:
        query = "SELECT patient_id, name, birth_date, sex FROM person WHERE patient_id = ?"
        row = self._connection.execute(query, (patient_id,)).fetchone()
        return PatientMatch(*row) if row else None

    def _by_key(self, key: str) -> Resource | None:
        row = self._connection.execute("SELECT type, id FROM write_key WHERE key = ?", (key,)).fetchone()
        return self._body(*row) if row else None

    def _require_patient(self, resource: Resource) -> None:
        patient_id = patient_id_of(resource)
        if resource["resourceType"] != "Patient" and not (patient_id and self._patient(patient_id)):
            raise ToolError(
                ErrorType.NOT_FOUND, "The patient of this entry is not in the record store.", entity="patient"
            )

    def _save(self, resources: Iterable[Resource]) -> int:
        changed = 0
        for resource in resources:
            current = self._body(resource["resourceType"], resource["id"])
            if current is None or _content(current) != _content(resource):
                self._put(resource)
                changed += 1
        return changed

    def _put(self, resource: Resource) -> Resource:
        """The next version of one resource, into all tables."""
        kind, resource_id, stamp = resource["resourceType"], resource["id"], now()
        query = "SELECT max(version) FROM history WHERE type = ? AND id = ?"
        version = (self._connection.execute(query, (kind, resource_id)).fetchone()[0] or 0) + 1
        meta = {**(resource.get("meta") or {}), "versionId": str(version), "lastUpdated": stamp}
        stored = {**resource, "meta": meta}
        body = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
        row = (kind, resource_id, version, stamp, patient_id_of(stored), section(stored), body)
        self._connection.execute("DELETE FROM resource WHERE type = ? AND id = ?", (kind, resource_id))
        self._connection.execute("INSERT INTO resource VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self._connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (*row[:4], body))
        if kind == "Patient":
            self._index_names(stored)
        return stored

    def _index_names(self, patient: Resource) -> None:
        patient_id, run = patient["id"], self._connection.execute
        run("DELETE FROM person WHERE patient_id = ?", (patient_id,))
        run("DELETE FROM name_token WHERE patient_id = ?", (patient_id,))
        if is_error(patient):
            return
        person = (patient_id, display_name(patient), patient.get("birthDate") or "", patient.get("gender") or "")
        run("INSERT INTO person VALUES (?, ?, ?, ?)", person)
        for token in {token for name in patient.get("name") or [] for token in index_tokens(name_text(name))}:
            run("INSERT OR IGNORE INTO name_token VALUES (?, ?)", (token, patient_id))
            run("INSERT OR IGNORE INTO vocabulary (token) VALUES (?)", (token,))

    def _sign(self, stored: Resource, provenance: Provenance) -> None:
        target = f"{stored['resourceType']}/{stored['id']}/_history/{stored['meta']['versionId']}"
        record = provenance_resource(target, provenance, stored["meta"]["lastUpdated"])
        validate_resource(record)
        self._put({**record, "id": str(uuid.uuid4())})

    def _with_medication_name(self, resource: Resource) -> Resource:
        """An order may name its drug by reference; a chart must show it."""
        reference = resource.get("medicationReference")
        kind, _, identifier = local_reference(reference).partition("/")
        if kind != "Medication" or reference.get("display"):
            return resource
        code = (self._body(kind, identifier) or {}).get("code") or {}
        text = code.get("text") or next((c["display"] for c in code.get("coding") or [] if c.get("display")), "")
        return {**resource, "medicationReference": {**reference, "display": text}} if text else resource


def _writable(resource: Resource, provenance: Provenance) -> Resource:
    """The resource as it will be stored, checked; it carries the key of its write."""
    if not provenance.key:
        raise ToolError(ErrorType.INVALID_ARGS, "A write needs a key, so that it can happen only once.")
    resource = with_key(resource, provenance.key) if isinstance(resource, dict) else resource
    validate_resource(resource)
    return resource


def _content(resource: Resource) -> Resource:
    return {key: value for key, value in resource.items() if key != "meta"}


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code, or -1 where the error came from Python's side."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def _corrupt(path: Path) -> StoreError:
    return StoreError(f"The record store {path} is damaged.", hint="Restore it from a backup, or move it away.")


def _store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """What went wrong, in one line without SQL."""
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        hint = "Try again; if it persists, close the other program."
        return StoreError(f"The record store {path} is locked by another program.", hint=hint, retryable=True)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _corrupt(path)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"The record store {path} cannot be written.", hint="Make the file and its folder writable.")
    if code == sqlite3.SQLITE_CANTOPEN:
        hint = "Check that the file and its folder exist and that you may read and write them."
        return StoreError(f"The record store {path} cannot be opened.", hint=hint)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreError(f"The disk of the record store {path} failed or is full.", hint="Free space and try again.")
    return StoreError(f"The record store {path} failed: {error}.", hint="Run `docgemma doctor`.")
