"""How FHIR R4 dicts are read, checked and referred to: names, references, dates, chart sections. No I/O."""

import hashlib
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from docgemma.ehr.base import Chart, PatientMatch, Provenance, Resource
from docgemma.ehr.facts import concept
from docgemma.errors import ErrorType, ToolError

Read = Callable[[str, str], Resource | None]  # a resource by its type and id
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
NAME_RANK = {"usual": 0, "official": 1, None: 2}
ABSTRACT = frozenset({"Resource", "DomainResource"})
MAX_PROBLEMS = 3


def name_text(name: Resource) -> str:
    """One HumanName as written, without titles."""
    parts = " ".join(part for part in [*(name.get("given") or []), name.get("family") or ""] if part)
    return parts.strip() or (name.get("text") or "").strip()


def family_text(name: Resource) -> str:
    """The family name, or the last word of a name that does not say which it is."""
    return name.get("family") or next(reversed(name_text(name).split()), "")


def display_name(patient: Resource) -> str:
    """The name a clinician uses first."""
    ranked = sorted(patient.get("name") or [], key=lambda name: NAME_RANK.get(name.get("use"), 3))
    return next((text for text in map(name_text, ranked) if text), "(no name)")


def identifier_values(patient: Resource) -> list[str]:
    """Record numbers of a Patient resource, as recorded."""
    numbers = [item for item in patient.get("identifier") or [] if item.get("system") != KEY_SYSTEM]
    return [str(item["value"]) for item in numbers if item.get("value")]


def patient_match(patient: Resource, guessed: bool = False) -> PatientMatch:
    birth_date, sex = patient.get("birthDate") or "", patient.get("gender") or ""
    numbers = tuple(identifier_values(patient))
    return PatientMatch(patient["id"], display_name(patient), birth_date, sex, guessed, numbers)


def local_reference(reference: Any) -> str:
    """`Type/id` of a relative, absolute or versioned reference, or ""."""
    text = reference.get("reference") if isinstance(reference, dict) else None
    found = LOCAL_REFERENCE.search(text) if isinstance(text, str) else None
    return found.group(1) if found else ""


def patient_id_of(resource: Resource) -> str:
    """Whose resource this is, or ""."""
    if resource.get("resourceType") == "Patient":
        return resource.get("id") or ""
    owners = [local_reference(resource.get(key)).partition("/") for key in ("subject", "patient", "beneficiary")]
    return next((identifier for kind, _, identifier in owners if kind == "Patient"), "")


def date_of(resource: Resource) -> str:
    """When it happened, ISO, or "" if the resource does not say."""
    for key in DATE_FIELDS:
        value = resource.get(key)
        if isinstance(value, dict):
            value = value.get("start") or value.get("end")
        if isinstance(value, str) and value:
            return value
    return ""


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


def build_chart(patient: Resource, resources: Iterable[Resource], read: Read) -> Chart:
    """The summary of one patient, each section newest first, those of one day in the order given; undated ones last.

    What is marked "entered in error" stays in the store and never shows. `read` is for drugs named by reference.
    """
    sections: dict[str, list[Resource]] = {}
    for resource in resources:
        status = resource.get("verificationStatus")
        codes = {item.get("code") for item in status.get("coding") or []} if isinstance(status, dict) else set()
        if (name := section(resource)) and "entered-in-error" not in {*codes, resource.get("status")}:
            sections.setdefault(name, []).append(_with_medication_name(resource, read))
    for items in sections.values():
        items.sort(key=date_of, reverse=True)
    return Chart(patient=patient_match(patient), record=patient, **sections)


def _with_medication_name(resource: Resource, read: Read) -> Resource:
    """An order that names its drug by reference, with the drug's name beside the reference."""
    reference = resource.get("medicationReference") or {}
    kind, _, identifier = local_reference(reference).partition("/")
    if kind != "Medication" or reference.get("display"):
        return resource
    name = concept((read(kind, identifier) or {}).get("code"))
    return {**resource, "medicationReference": {**reference, "display": name}} if name else resource


def key_identifier(key: str) -> dict[str, str]:
    """A write's key as an identifier. What has a meaning in a FHIR search is hashed: servers differ in escaping it."""
    value = key if PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()
    return {"system": KEY_SYSTEM, "value": value}


def checked_write(resource: Any, provenance: Provenance) -> Resource:
    """The resource as it will be stored: valid, and carrying the key of its write.

    Raises:
        ToolError: `invalid_args`, naming the faulty elements and never their content.
    """
    if not provenance.key:
        raise ToolError(ErrorType.INVALID_ARGS, "A write needs a key, so that it can happen only once.")
    problems = problems_of(resource)
    if not problems:
        resource = {**resource, "identifier": [*(resource.get("identifier") or []), key_identifier(provenance.key)]}
        problems = problems_of(resource)  # not every resource has a list of identifiers
    if problems:
        shown = "; ".join(f"{field}: {reason}" for field, reason in problems[:MAX_PROBLEMS])
        fields = [field for field, _ in problems]
        raise ToolError(ErrorType.INVALID_ARGS, f"Not a valid FHIR resource: {shown}", missing_fields=fields)
    return dict(resource)


def provenance_resource(stored: Resource, provenance: Provenance) -> Resource:
    """Who wrote this version of a resource, when, and in which thread. The version comes first; the plain reference is
    there because servers find a Provenance by it alone."""
    plain, meta = f"{stored['resourceType']}/{stored['id']}", stored.get("meta") or {}
    version = [{"reference": f"{plain}/_history/{meta['versionId']}"}] if meta.get("versionId") else []
    resource: Resource = {
        "resourceType": "Provenance",
        "target": [*version, {"reference": plain}],
        "recorded": meta.get("lastUpdated") or now(),
        "agent": [{"type": {"text": "author"}, "who": {"display": provenance.actor or "unknown"}}],
    }
    if provenance.thread:
        what = {"identifier": {"system": THREAD_SYSTEM, "value": provenance.thread}}
        resource["entity"] = [{"role": "source", "what": what}]
    return resource


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def problems_of(resource: Any) -> list[tuple[str, str]]:
    """(element, what is wrong with it) in structure, types, required elements and closed code lists; [] if valid.

    Asked of fhir.resources, whose R4B models cover R4 for everything in a chart (R4B changed no element of those).
    """
    # a quarter of a second, so only where something is written
    from fhir.resources.R4B import get_fhir_model_class
    from fhir.resources.R4B.resource import Resource as Model
    from pydantic import ValidationError

    kind = resource.get("resourceType") if isinstance(resource, dict) else None
    if not isinstance(kind, str):
        return [("resourceType", "missing")]
    try:
        model = get_fhir_model_class(kind)
    except (LookupError, ImportError, ValueError):
        model = None
    # HumanName has a model and is no resource; DomainResource is only what resources have in common
    if model is None or not issubclass(model, Model) or kind in ABSTRACT:
        return [("resourceType", "unknown in FHIR R4")]
    try:
        model.model_validate(resource)
    except ValidationError as error:
        # `input` is left out on purpose: it is patient data
        kinds = [
            item["type"].rpartition(".")[2].replace("_", " ") for item in error.errors()
        ]  # "missing", "date parsing"
        places = [".".join(map(str, item["loc"])) or "resource" for item in error.errors()]
        return list(zip(places, kinds, strict=True))
    # fhir.resources lists the closed code sets and does not enforce them
    extras: dict[str, Any] = {info.alias or name: info.json_schema_extra for name, info in model.model_fields.items()}
    closed = {name: extra["enum_values"] for name, extra in extras.items() if extra and extra.get("enum_values")}
    given = {name: resource[name] for name in closed if isinstance(resource.get(name), str)}
    return [(name, f"must be one of {', '.join(closed[name])}") for name in given if given[name] not in closed[name]]
