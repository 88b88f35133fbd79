"""The record store on any FHIR R4 server: Medplum, HAPI, OpenEMR. An outage is an error and never an empty chart."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from anyio.from_thread import start_blocking_portal

from docgemma.ehr.auth import Token, auth_from
from docgemma.ehr.base import Chart, PatientMatch, Provenance, Resource
from docgemma.ehr.client import HEADERS, PAGE, Session
from docgemma.ehr.fhir import (
    ID,
    build_chart,
    checked_write,
    identifier_values,
    key_identifier,
    local_reference,
    medication_named,
    now,
    patient_id_of,
    patient_match,
    provenance_resource,
)
from docgemma.ehr.names import query_tokens
from docgemma.ehr.outcome import RemoteError
from docgemma.ehr.remote_search import born_on, find_patients, identified, named_patients
from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.settings import Settings

T = TypeVar("T")
logger = logging.getLogger(__name__)

QUERY_CHARS = 400
CONNECT_S = 4.0
# httpx and httpcore log whole addresses; stamina warns of every pause, which ends in an answer or in our own error
QUIET = {"httpx": logging.WARNING, "httpcore": logging.WARNING, "stamina": logging.ERROR}
# kind -> how many of the newest are read (None: all)
CHART = {
    "Condition": None,
    "MedicationRequest": None,
    "AllergyIntolerance": None,
    "Immunization": None,
    "Observation": 500,
    "DocumentReference": 50,
}
SIGNING_S = 3.0  # at least, to record who wrote


class RemoteStore:
    """RecordStore over HTTP. Threads may share it.

    Observations and notes are the newest 500 and 50; everything else is read whole.

    Args:
        base_url: of the server, "https://host/fhir/R4".
        auth: how it knows us.
        timeout_s: for all requests of one method together.

    Every method raises RemoteError, which is both a StoreError and a typed ToolError, when the server fails.
    """

    def __init__(self, base_url: str, auth: httpx.Auth | None = None, timeout_s: float = 10.0):
        if not re.match(r"https?://[^/?#@\s]+(/[^?#\s]*)?$", base_url, re.IGNORECASE):
            hint = "Write DOCGEMMA_EHR like https://host/fhir/R4; credentials have settings of their own."
            raise ConfigError("The address of the FHIR server is not a plain web address.", hint=hint)
        self.base_url, self.name = base_url.rstrip("/"), f"FHIR server {httpx.URL(base_url).host}"
        self._auth, self._timeout_s = auth or Token(), timeout_s
        self._tls = httpx.create_ssl_context()  # once: it takes longer than a request
        for name, level in QUIET.items():
            logging.getLogger(name).setLevel(level)

    @classmethod
    def from_settings(cls, settings: Settings) -> "RemoteStore":
        base_url = settings.ehr_location.rstrip("/")
        return cls(base_url, auth_from(settings, base_url), settings.tool_timeout)

    def search_patients(self, name: str, limit: int = 20) -> list[PatientMatch]:
        """Patients whose name, or whose id, is this; best first; [] if none.

        The server finds candidates; which of them fit, and which are guesses, is decided as in the SQLite store. A
        typing error within the first three letters of the only word typed is not forgiven: servers search beginnings.
        """
        text = name[:QUERY_CHARS].strip()
        if not query_tokens(text):
            return []
        return self._run(lambda session: find_patients(session, text))[:limit]

    def patient(self, patient_id: str) -> PatientMatch | None:
        found = self._patient(patient_id)
        return patient_match(found) if found else None

    def identifiers(self, patient_id: str) -> list[str]:
        return identifier_values(self._patient(patient_id) or {})

    def by_identifier(self, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
        return self._run(lambda session: identified(session, values)) if values else {}

    def named(self, groups: Sequence[Sequence[str]], born: Sequence[str] = ()) -> list[list[PatientMatch]]:
        """As in the SQLite store, for the dozen first words; a lower-case name far into a long text may be missed."""
        return self._run(lambda session: named_patients(session, groups, born)) if groups else []

    def born(self, days: Sequence[str]) -> list[PatientMatch]:
        return self._run(lambda session: born_on(session, days)) if days else []

    def chart(self, patient_id: str) -> Chart | None:
        return self._run(lambda session: _chart(session, patient_id)) if ID.fullmatch(patient_id) else None

    def create(self, resource: Resource, provenance: Provenance) -> Resource:
        """Store a new resource once per key: looked up first, then created on condition that it is not there."""
        resource = checked_write(resource, provenance)
        return self._run(lambda session: _create(session, resource, provenance))

    def close(self) -> None:
        """Nothing is kept open between calls."""

    def _run(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do `work` on an event loop of its own thread, where a deadline ends a call whatever the server does."""

        async def call() -> T:
            async with httpx.AsyncClient(
                base_url=self.base_url,
                auth=self._auth,
                headers=HEADERS,
                verify=self._tls,
                timeout=httpx.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s)),
            ) as client:
                return await work(Session(client, self.name, self._timeout_s))

        with start_blocking_portal() as portal:
            return portal.call(call)

    def _patient(self, patient_id: str) -> Resource | None:
        if not ID.fullmatch(patient_id):
            return None
        return self._run(lambda session: session.read("Patient", patient_id))


async def _chart(session: Session, patient_id: str) -> Chart | None:
    patient = await session.read("Patient", patient_id)
    if patient is None:
        return None
    found = await asyncio.gather(*(_entries(session, kind, patient_id) for kind in CHART))
    resources = [item for items in found for item in items]
    if any(patient_id_of(item) != patient_id for item in resources):
        # a server that ignores a parameter it does not know would mix patients
        raise session.failed(ErrorType.INVALID_RESPONSE, "entries of another patient")
    return build_chart(patient, [await _with_medication_name(session, item) for item in resources])


async def _entries(session: Session, kind: str, patient_id: str) -> list[Resource]:
    newest = [("_sort", "-date")] if CHART[kind] else []
    return await session.search(kind, [("patient", f"Patient/{patient_id}"), *newest, PAGE], CHART[kind])


async def _with_medication_name(session: Session, resource: Resource) -> Resource:
    reference = resource.get("medicationReference") or {}
    kind, _, identifier = local_reference(reference).partition("/")
    if kind != "Medication" or reference.get("display"):
        return resource
    return medication_named(resource, await session.read(kind, identifier))


async def _create(session: Session, resource: Resource, provenance: Provenance) -> Resource:
    kind, patient_id = resource["resourceType"], patient_id_of(resource)
    if kind != "Patient" and not (patient_id and await session.read("Patient", patient_id)):
        raise ToolError(ErrorType.NOT_FOUND, "The patient of this entry is not in the record store.")
    # looked up first, because not every server honours If-None-Exist
    stored = await _written(session, kind, provenance.key) or await _post(session, resource, provenance.key)
    await _sign(session, stored, provenance)
    return stored


async def _written(session: Session, kind: str, key: str) -> Resource | None:
    mine = key_identifier(key)
    found = await session.search(kind, [("identifier", _token(mine)), ("_count", "5")])
    # compared again: a server that ignores the parameter returns what it likes, and may add to an identifier
    return next(
        (item for item in found if any(mine.items() <= own.items() for own in item.get("identifier") or [])), None
    )


async def _post(session: Session, resource: Resource, key: str) -> Resource:
    kind = resource["resourceType"]
    condition = {
        "If-None-Exist": f"identifier={quote(_token(key_identifier(key)), safe='')}",
        "Prefer": "return=representation",
    }
    answer: Any = await session.send("POST", kind, body=resource, headers=condition)
    if isinstance(answer, dict) and answer.get("resourceType") == kind and answer.get("id"):
        return answer
    if stored := await _written(session, kind, key):
        return stored
    raise session.failed(ErrorType.INVALID_RESPONSE, "the entry was accepted and cannot be read back")


async def _sign(session: Session, stored: Resource, provenance: Provenance) -> None:
    """Record who wrote, once. The entry is stored already: a refusal here must not look like a failed write."""
    record = provenance_resource(stored, provenance, now())
    exact, target = record["target"][0], record["target"][-1]
    session.extend(SIGNING_S)
    try:
        known = await session.search("Provenance", [("target", target["reference"])])
        if not any(exact in (item.get("target") or []) for item in known):
            await session.send("POST", "Provenance", body=record, retry=False)
    except RemoteError as error:
        logger.warning("A write was stored, and who made it was not: %s", error)


def _token(identifier: dict[str, str]) -> str:
    return f"{identifier['system']}|{identifier['value']}"
