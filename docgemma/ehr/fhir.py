"""How FHIR R4 dicts are read and referred to: names, patient references, dates, chart sections. No I/O."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from docgemma.ehr.base import Chart, PatientMatch, Provenance, Resource
from docgemma.ehr.facts import concept
from docgemma.ehr.validate import validate_resource
from docgemma.errors import ErrorType, ToolError

KEY_SYSTEM = "urn:docgemma:write-key"  # identifier.system of a resource that this program wrote
THREAD_SYSTEM = "urn:docgemma:thread"
PLAIN_KEY = re.compile(r"[A-Za-z0-9._:/-]{1,200}")
ID = re.compile(r"[A-Za-z0-9.-]{1,64}")  # what FHIR allows as a resource id
LOCAL_REFERENCE = re.compile(r"(?:^|/)([A-Z][A-Za-z]+/[A-Za-z0-9.-]{1,64})(?:/_history/.*)?$")

SECTIONS = {
    "Condition": "conditions",
    "MedicationRequest": "medications",
    "MedicationStatement": "medications",
    "AllergyIntolerance": "allergies",
    "DocumentReference": "notes",
    "Immunization": "immunizations",
}
DATE_FIELDS = (
    "effectiveDateTime", "effectiveInstant", "effectivePeriod", "authoredOn", "occurrenceDateTime", "onsetDateTime",
    "onsetPeriod", "recordedDate", "date", "dateAsserted", "issued", "performedDateTime", "performedPeriod", "period",
)  # fmt: skip
NAME_ORDER = ("usual", "official", None)  # what a clinician calls the patient first


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def section(resource: Resource) -> str:
    """The Chart field this resource belongs to, or "" if it is not part of the summary."""
    kind = resource.get("resourceType", "")
    if kind != "Observation":
        return SECTIONS.get(kind, "")
    codes = {code.get("code") for item in resource.get("category") or [] for code in item.get("coding") or []}
    if "vital-signs" in codes:
        return "vitals"
    # an uncategorised measurement is shown with the labs rather than lost
    return "labs" if "laboratory" in codes or not codes else "observations"


def name_text(name: Resource) -> str:
    """One HumanName as written, without titles."""
    parts = " ".join(part for part in [*(name.get("given") or []), name.get("family") or ""] if part)
    return parts.strip() or (name.get("text") or "").strip()


def family_text(name: Resource) -> str:
    """The family name, or the last word of a name that does not say which it is."""
    return name.get("family") or next(reversed(name_text(name).split()), "")


def identifier_values(patient: Resource) -> list[str]:
    """Record numbers of a Patient resource, as recorded."""
    return [str(item["value"]) for item in patient.get("identifier") or [] if item.get("value")]


def display_name(patient: Resource) -> str:
    names = patient.get("name") or []
    ranked = sorted(names, key=lambda n: NAME_ORDER.index(n.get("use")) if n.get("use") in NAME_ORDER else 9)
    return next((text for text in map(name_text, ranked) if text), "(no name)")


def patient_match(patient: Resource, guessed: bool = False) -> PatientMatch:
    return PatientMatch(
        patient["id"], display_name(patient), patient.get("birthDate") or "", patient.get("gender") or "", guessed
    )


def local_reference(reference: Any) -> str:
    """`Type/id` of a relative, absolute or versioned reference, or ""."""
    text = reference.get("reference") if isinstance(reference, dict) else None
    found = LOCAL_REFERENCE.search(text) if isinstance(text, str) else None
    return found.group(1) if found else ""


def patient_id_of(resource: Resource) -> str:
    """Whose resource this is, or ""."""
    if resource.get("resourceType") == "Patient":
        return resource.get("id") or ""
    for key in ("subject", "patient", "beneficiary"):
        kind, _, identifier = local_reference(resource.get(key)).partition("/")
        if kind == "Patient":
            return identifier
    return ""


def date_of(resource: Resource) -> str:
    """When it happened, ISO, or "" if the resource does not say."""
    for key in DATE_FIELDS:
        value = resource.get(key)
        if isinstance(value, dict):
            value = value.get("start") or value.get("end")
        if isinstance(value, str) and value:
            return value
    return ""


def is_error(resource: Resource) -> bool:
    """Marked "entered in error": it stays in the store and never shows in a chart."""
    status = resource.get("verificationStatus")
    codes = {item.get("code") for item in status.get("coding") or []} if isinstance(status, dict) else set()
    return resource.get("status") == "entered-in-error" or "entered-in-error" in codes


def build_chart(patient: Resource, resources: Iterable[Resource]) -> Chart:
    """The summary of one patient, each section newest first, those of one day in the order given; undated ones last."""
    sections: dict[str, list[Resource]] = {}
    for resource in resources:
        if (name := section(resource)) and not is_error(resource):
            sections.setdefault(name, []).append(resource)
    for items in sections.values():
        items.sort(key=date_of, reverse=True)
    return Chart(patient=patient_match(patient), record=patient, **sections)


def key_identifier(key: str) -> dict[str, str]:
    """A write's key as an identifier. What has a meaning in a FHIR search is hashed: servers differ in escaping it."""
    value = key if PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()
    return {"system": KEY_SYSTEM, "value": value}


def checked_write(resource: Resource, provenance: Provenance) -> Resource:
    """The resource as it will be stored: valid, and carrying the key of its write.

    Raises:
        ToolError: `invalid_args`.
    """
    if not provenance.key:
        raise ToolError(ErrorType.INVALID_ARGS, "A write needs a key, so that it can happen only once.")
    validate_resource(resource)
    identifiers = [*(resource.get("identifier") or []), key_identifier(provenance.key)]
    resource = {**resource, "identifier": identifiers}
    validate_resource(resource)  # not every resource has a list of identifiers
    return resource


def medication_named(resource: Resource, medication: Resource | None) -> Resource:
    """An order that names its drug by reference, with the drug's name beside the reference."""
    reference, name = resource.get("medicationReference") or {}, concept((medication or {}).get("code"))
    if reference.get("display") or not name:
        return resource
    return {**resource, "medicationReference": {**reference, "display": name}}


def provenance_resource(stored: Resource, provenance: Provenance, recorded: str) -> Resource:
    """Who wrote this version of a resource, when, and in which thread. The version comes first; the plain reference is
    there because servers find a Provenance by it alone."""
    plain, version = f"{stored['resourceType']}/{stored['id']}", (stored.get("meta") or {}).get("versionId")
    resource: Resource = {
        "resourceType": "Provenance",
        "target": [{"reference": f"{plain}/_history/{version}"}] * bool(version) + [{"reference": plain}],
        "recorded": recorded,
        "agent": [{"type": {"text": "author"}, "who": {"display": provenance.actor or "unknown"}}],
    }
    if provenance.thread:
        what = {"identifier": {"system": THREAD_SYSTEM, "value": provenance.thread}}
        resource["entity"] = [{"role": "source", "what": what}]
    return resource
