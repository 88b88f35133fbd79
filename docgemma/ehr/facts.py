"""FHIR R4 resources as the few facts a clinician reads. Pure; what a resource does not say stays "", never guessed.

The texts were written by others: each leaves as one clean line, and as a quotation where it speaks or is a note.
"""

import base64
import binascii
from typing import Any

from docgemma.ehr.base import Resource
from docgemma.text.quoted import as_recorded, quotation

NO_KNOWN_ALLERGY = frozenset({"716186003", "409137002", "429625007", "428607008"})  # SNOMED CT: not an allergy
CLOSED = frozenset({"resolved", "inactive", "remission"})
STOPPED = frozenset({"completed", "stopped", "cancelled", "ended", "draft", "entered-in-error"})
WRONG = frozenset({"entered-in-error", "refuted"})
FLAGS = {
    "H": "high", "HH": "critically high", "HU": "high", "L": "low", "LL": "critically low", "LU": "low",
    "A": "abnormal", "AA": "critically abnormal", "POS": "positive", "N": "normal", "NEG": "negative",
}  # fmt: skip
ELSEWHERE = "(the text of this note is kept outside the record)"
NOT_ABNORMAL = frozenset({"", "normal", "negative"})


def condition(resource: Resource) -> dict[str, Any]:
    """`name, active, onset, resolved`."""
    return _recorded("problem", {
        "name": concept(resource.get("code")),
        # a problem without a status counts as active: unknown is never normal
        "active": code(resource.get("clinicalStatus")) not in CLOSED and not _wrong(resource),
        "onset": (resource.get("onsetDateTime") or resource.get("recordedDate") or "")[:10],
        "resolved": (resource.get("abatementDateTime") or "")[:10],
    })  # fmt: skip


def medication(resource: Resource) -> dict[str, Any]:
    """`name, dosage, active, status, started, reason`. `dosage` is the instruction as one text, "500 mg twice daily".

    A MedicationRequest, or a MedicationStatement (a drug taken, ordered elsewhere).
    """
    name = concept(resource.get("medicationCodeableConcept"))
    status = resource.get("status", "")
    instructions = resource.get("dosageInstruction") or resource.get("dosage") or []
    return _recorded("medication", {
        "name": name or resource.get("medicationReference", {}).get("display", ""),
        "dosage": "; ".join(filter(None, map(_dosage, instructions))),
        "active": status not in STOPPED,
        "status": status,
        "started": (resource.get("authoredOn") or resource.get("effectiveDateTime") or "")[:10],
        "reason": ", ".join(filter(None, (item.get("display", "") for item in resource.get("reasonReference", [])))),
    })  # fmt: skip


def allergy(resource: Resource) -> dict[str, Any] | None:
    """`substance, reaction, severity, criticality, active`; None for "no known allergy" and refuted entries."""
    if says_no_known_allergy(resource) or _wrong(resource):
        return None
    reactions = resource.get("reaction", [])
    shown = [concept(sign) for item in reactions for sign in item.get("manifestation", [])]
    return _recorded("allergy", {
        "substance": concept(resource.get("code")),
        "reaction": ", ".join(filter(None, shown)),
        "severity": next((item["severity"] for item in reactions if item.get("severity")), ""),
        "criticality": resource.get("criticality", ""),
        "active": code(resource.get("clinicalStatus")) not in CLOSED,
        "recorded": (resource.get("recordedDate") or "")[:10],
    })  # fmt: skip


def says_no_known_allergy(resource: Resource) -> bool:
    return any(item.get("code") in NO_KNOWN_ALLERGY for item in resource.get("code", {}).get("coding", []))


def observation(resource: Resource) -> dict[str, Any]:
    """`name, value, unit, flag, date, low, high, code`. `value` is text; `flag` is "" where nothing says."""
    quantity, limits = resource.get("valueQuantity", {}), (resource.get("referenceRange") or [{}])[0]
    low, high = (limits.get(end, {}).get("value") for end in ("low", "high"))
    return _recorded("test", {
        "name": concept(resource.get("code")),
        "value": _value(resource),
        "unit": quantity.get("unit") or quantity.get("code", ""),
        "flag": _flag(resource, quantity, low, high),
        "date": (resource.get("effectiveDateTime") or resource.get("issued") or "")[:10],
        "low": low,
        "high": high,
        "code": code(resource.get("code")),
    })  # fmt: skip


def document(resource: Resource) -> dict[str, Any]:
    """`type, date, author, text`. A text that lies outside the resource is not fetched, and that is said."""
    attachments = [item.get("attachment", {}) for item in resource.get("content", [])]
    texts = [_decoded(item) for item in attachments if item.get("contentType", "text/plain").startswith("text/")]
    said = " ".join(filter(None, texts)) or resource.get("description") or ""
    elsewhere = any(item.get("url") for item in attachments)
    return _recorded("note", {
        "type": concept(resource.get("type")) or "note",
        "date": resource.get("date", "")[:10],
        "author": ", ".join(filter(None, (item.get("display", "") for item in resource.get("author", [])))),
        "text": quotation(said) if said else ELSEWHERE if elsewhere else "",
    })  # fmt: skip


def immunization(resource: Resource) -> dict[str, Any]:
    """`name, date`."""
    told = {"name": concept(resource.get("vaccineCode")), "date": resource.get("occurrenceDateTime", "")[:10]}
    return _recorded("vaccine", told)


def _recorded(kind: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Every text of an entry as the record says it; a note's is a quotation already."""
    places = {key: kind if key == "name" else key for key in entry if key != "text" and isinstance(entry[key], str)}
    return entry | {key: as_recorded(entry[key], place) for key, place in places.items()}


def concept(value: Resource | None) -> str:
    """What a CodeableConcept is called."""
    value = value or {}
    shown = [item.get("display") or item.get("code", "") for item in value.get("coding", [])]
    return value.get("text") or next(filter(None, shown), "")


def code(value: Resource | None) -> str:
    return next((item.get("code", "") for item in (value or {}).get("coding", [])), "")


def _wrong(resource: Resource) -> bool:
    return code(resource.get("verificationStatus")) in WRONG


def _value(resource: Resource) -> str:
    if "value" in (quantity := resource.get("valueQuantity", {})):
        return f"{quantity.get('comparator', '')}{quantity['value']}"
    if parts := resource.get("component"):  # blood pressure: 152/94
        values = [part["valueQuantity"] for part in parts if "value" in part.get("valueQuantity", {})]
        unit = values[0].get("unit", "") if values else ""
        return f"{'/'.join(str(item['value']) for item in values)} {unit}".strip()
    return concept(resource.get("valueCodeableConcept")) or str(
        resource.get("valueString", resource.get("valueInteger", ""))
    )


def _flag(resource: Resource, quantity: Resource, low: float | None, high: float | None) -> str:
    given = [item.get("code", "") for group in resource.get("interpretation", []) for item in group.get("coding", [])]
    if given:
        return FLAGS.get(given[0].upper(), str(given[0]))
    if "value" not in quantity or (low is None and high is None):
        return ""
    if low is not None and quantity["value"] < low:
        return "low"
    return "high" if high is not None and quantity["value"] > high else "normal"


def _dosage(item: Resource) -> str:
    if item.get("text"):
        return str(item["text"])
    dose = ((item.get("doseAndRate") or [{}])[0]).get("doseQuantity", {})
    amount = f"{dose['value']} {dose.get('unit', '')}".strip() if "value" in dose else ""
    timing = item.get("timing", {})
    often = concept(timing.get("code"))
    if not often and (repeat := timing.get("repeat", {})).get("frequency"):
        often = f"{repeat['frequency']} per {repeat.get('period', 1)} {repeat.get('periodUnit', '')}".strip()
    return f"{amount} {often}".strip()


def _decoded(attachment: Resource) -> str:
    try:
        return base64.b64decode(attachment.get("data", ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return "(this note cannot be read)"
