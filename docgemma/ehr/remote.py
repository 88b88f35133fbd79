"""The record store on any FHIR R4 server: Medplum, HAPI, OpenEMR. An outage is an error and never an empty chart.

The server finds candidates of a search; which of them fit is decided by the same rules as in the SQLite store.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from docgemma.ehr import fhir
from docgemma.ehr.base import NAMED, Chart, PatientMatch, Provenance, Resource
from docgemma.ehr.client import HEADERS, PAGE, RemoteError, Session
from docgemma.ehr.identifiers import identified
from docgemma.ehr.names import TITLES, best_fit, family_words, name_key, name_words, query_tokens, ranked
from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.http import log_no_addresses
from docgemma.text.characters import fold

logger = logging.getLogger(__name__)
# kind -> how many of the newest are read (None: all)
CHART = {
    "Condition": None,
    "MedicationRequest": None,
    "AllergyIntolerance": None,
    "Immunization": None,
    "Observation": 500,
    "DocumentReference": 50,
}
QUERY_CHARS = 400
CANDIDATES = 1000  # patients read to find the ones whose name fits
ANY = 12  # words or identifiers in one search for patients who have any of them
ASKED_ALONE = 3  # groups that get a search of their own, when too many have any of the words
ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\,$|"})  # these have a meaning in a FHIR search


class RemoteStore:
    """RecordStore over HTTP. Threads may share it.

    Observations and notes are the newest 500 and 50; everything else is read whole. Every method raises RemoteError,
    which is both a StoreError and a typed ToolError, when the server fails.

    Args:
        base_url: of the server, "https://host/fhir/R4".
        timeout_s: for all requests of one method together.
    """

    def __init__(self, base_url: str, auth: httpx.Auth | None = None, timeout_s: float = 10.0):
        if not re.match(r"https?://[^/?#@\s]+(/[^?#\s]*)?$", base_url, re.IGNORECASE):
            hint = "Write DOCGEMMA_EHR like https://host/fhir/R4; credentials have settings of their own."
            raise ConfigError("The address of the FHIR server is not a plain web address.", hint=hint)
        self.base_url, self.name = base_url.rstrip("/"), f"FHIR server {httpx.URL(base_url).host}"
        self._auth, self._timeout_s = auth, timeout_s
        self._tls = httpx.create_ssl_context()  # once: it takes longer than a request
        log_no_addresses()

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        """A typing error within the first three letters of the only word typed is not forgiven: servers search
        beginnings."""
        text = name[:QUERY_CHARS].strip()
        if not query_tokens(text):
            return []
        with self._session() as session:
            if fhir.ID.fullmatch(text) and any(map(str.isdigit, text)) and (known := session.read("Patient", text)):
                return [fhir.patient_match(known)]
            return best_fit(_candidates(session, text), text)[:limit]

    def patient(self, patient_id: str) -> PatientMatch | None:
        if not fhir.ID.fullmatch(patient_id):
            return None
        with self._session() as session:
            found = session.read("Patient", patient_id)
        return fhir.patient_match(found) if found else None

    def born(self, days: Sequence[str]) -> list[PatientMatch]:
        with self._session() as session:
            found = [item for day in days[:2] for item in _people(session, [("birthdate", day)])]
        # a server that ignores the search is not believed
        return [fhir.patient_match(item) for item in found if item.get("birthDate") in days]

    def by_identifier(self, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
        """A server does not find an MRN without its letters."""
        values = list(dict.fromkeys(values))[:ANY]
        cases = list(dict.fromkeys(case for value in values for case in (value, value.upper(), value.lower())))
        if not cases:
            return {}
        with self._session() as session:
            found = _people(session, [("identifier", cases)])
            if ids := [case for case in cases if fhir.ID.fullmatch(case)]:
                found += _people(session, [("_id", ids)])
        return identified(values, found)

    def named(self, groups: Sequence[Sequence[str]], born: Sequence[str] = ()) -> list[list[PatientMatch]]:
        """One search for anybody with one of the dozen first words; if there are too many, one for each of the first
        groups. A lower-case name far into a long text may be missed."""
        words = list({name_key(word): word for word in (max(group, key=len) for group in groups if group)}.values())
        words = [word for word in words if len(word) > 2][:ANY] or words[:1]
        narrow = [("birthdate", list(born))] if born else []
        with self._session() as session:
            found = _people(session, [("name", words), *narrow]) if words else []
            if len(found) >= NAMED:
                for group in groups[:ASKED_ALONE]:
                    found += _people(session, [*(("name", word) for word in group), *narrow])
        people = {patient["id"]: patient for patient in found}.values()
        return [
            ranked([fhir.patient_match(item) for item in people if _holds(group, item)], " ".join(group))
            for group in groups
        ]

    def chart(self, patient_id: str) -> Chart | None:
        if not fhir.ID.fullmatch(patient_id):
            return None
        with self._session() as session, ThreadPoolExecutor(len(CHART)) as pool:
            patient = session.read("Patient", patient_id)
            if patient is None:
                return None
            found = pool.map(lambda kind: _entries(session, kind, patient_id), CHART)
            resources = [item for items in found for item in items]
            if any(fhir.patient_id_of(item) != patient_id for item in resources):
                # a server that ignores a parameter it does not know would mix patients
                raise session.failed("entries of another patient")
            return fhir.build_chart(patient, resources, session.read)

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource once per key: looked up first, then created on condition that it is not there."""
        resource = fhir.checked_write(resource, provenance)
        kind, patient_id = resource["resourceType"], fhir.patient_id_of(resource)
        with self._session() as session:
            if kind != "Patient" and not (patient_id and session.read("Patient", patient_id)):
                raise ToolError(ErrorType.NOT_FOUND, "The patient of this entry is not in the record store.")
            # looked up first, because not every server honours If-None-Exist
            stored = _written(session, kind, provenance.key) or _post(session, resource, provenance.key)
        with self._session() as session:  # with a deadline of its own
            _sign(session, stored, provenance)
        return stored

    def close(self) -> None:
        """Nothing is kept open between calls."""

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with httpx.Client(base_url=self.base_url, auth=self._auth, headers=HEADERS, verify=self._tls) as client:
            yield Session(client, self.name, self._timeout_s)


def _candidates(session: Session, text: str) -> Iterator[list[Resource]]:
    """Patients with all words of a name; then those with any of them, and with any of their beginnings."""
    words = [word for word in re.findall(r"[\w'’-]+", text) if fold(word) not in TITLES][:ANY] or [text]
    yield _people(session, [("name", word) for word in words], CANDIDATES)
    for parts in (words, [word[:3] for word in words]):
        yield [item for part in dict.fromkeys(parts[:4]) for item in _people(session, [("name", part)])]


def _people(session: Session, params: Sequence[tuple[str, str | list[str]]], limit: int = NAMED) -> list[Resource]:
    """Current patients, not those merged into another record. A list means any of its values."""
    values = [(key, [value] if isinstance(value, str) else value) for key, value in params]
    query = [(key, ",".join(item.translate(ESCAPED) for item in value)) for key, value in values]
    found = session.search("Patient", [*query, PAGE], limit)
    return [item for item in found if not any(link.get("type") == "replaced-by" for link in item.get("link") or [])]


def _holds(group: Sequence[str], patient: Resource) -> bool:
    """Whether all these words are of the patient's name, one of them of the family name."""
    keys = {name_key(word) for word in group}
    return keys <= name_words(patient) and not keys.isdisjoint(family_words(patient))


def _entries(session: Session, kind: str, patient_id: str) -> list[Resource]:
    newest = [("_sort", "-date")] if CHART[kind] else []
    return session.search(kind, [("patient", f"Patient/{patient_id}"), *newest, PAGE], CHART[kind])


def _written(session: Session, kind: str, key: str) -> Resource | None:
    mine = fhir.key_identifier(key)
    found = session.search(kind, [("identifier", _token(mine)), ("_count", "5")])
    # compared again: a server that ignores the parameter returns what it likes, and may add to an identifier
    written = [item for item in found if any(mine.items() <= own.items() for own in item.get("identifier") or [])]
    return written[0] if written else None


def _post(session: Session, resource: Resource, key: str) -> Resource:
    kind = resource["resourceType"]
    condition = f"identifier={quote(_token(fhir.key_identifier(key)), safe='')}"
    answer: Any = session.post(kind, resource, {"If-None-Exist": condition, "Prefer": "return=representation"})
    if isinstance(answer, dict) and answer.get("resourceType") == kind and answer.get("id"):
        return answer
    if stored := _written(session, kind, key):
        return stored
    raise session.failed("the entry was accepted and cannot be read back")


def _sign(session: Session, stored: Resource, provenance: Provenance) -> None:
    """Record who wrote, once. The entry is stored already: a refusal here must not look like a failed write."""
    target = f"{stored['resourceType']}/{stored['id']}"
    try:
        if not session.search("Provenance", [("target", target)]):
            session.post("Provenance", fhir.provenance_resource(stored, provenance))
    except RemoteError as error:
        logger.warning("A write was stored, and who made it was not: %s", error)


def _token(identifier: dict[str, str]) -> str:
    return f"{identifier['system']}|{identifier['value']}"
