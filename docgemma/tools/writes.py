"""The three writes. A person has approved each before it runs; the same `write_key` never writes twice.

Each raises ToolError: `not_found` (no such patient), `invalid_args`, `not_permitted`, or an outage; then nothing was
written. The data of each: `WRITTEN` (`recorded` is an ISO time) and what was written.
"""

import base64
import hashlib
import re
from typing import Any

from docgemma.ehr.base import Provenance
from docgemma.ehr.fhir import now
from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.drug_rules import rxnorm_code
from docgemma.schemas import AddAllergyArgs, ClinicalNoteArgs, PrescribeMedicationArgs
from docgemma.state import AgentState
from docgemma.text.drugs import ingredients
from docgemma.text.words import clinical
from docgemma.tools.base import Tool, ToolContext, ToolOutput, bound, clip

DOSE = re.compile(r"^\s*(\d+(?:[.,]\d+)?)\s*(mg|mcg|µg|g|ml|units?|iu)\b\s*$", re.IGNORECASE)
RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm"
TERMINOLOGY = "http://terminology.hl7.org/CodeSystem"


def write_key(thread: str, state: AgentState, tool: Tool) -> str:
    """The same key for the same step of the same turn, before and after a crash, whatever was edited."""
    reopened = state.get("reopened")
    results = reopened["results"] if reopened else state.get("tool_results", [])
    step = sum(1 for result in results if result["tool_name"] == tool.name and not result["error"])
    text = f"{thread}/{state['turn_id']}/{tool.name}/{step}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def prescribe_medication(args: PrescribeMedicationArgs, context: ToolContext) -> ToolOutput:
    """A new active MedicationRequest."""
    dosage: dict[str, Any] = {"text": f"{args.dosage} {args.frequency}", "timing": {"code": {"text": args.frequency}}}
    if found := DOSE.match(args.dosage):
        quantity = {"value": float(found[1].replace(",", ".")), "unit": found[2]}
        dosage["doseAndRate"] = [{"doseQuantity": quantity}]
    resource = {
        "resourceType": "MedicationRequest",
        "status": "active",
        "intent": "order",
        "medicationCodeableConcept": _medication(args.medication_name),
        "authoredOn": now(),
        "dosageInstruction": [dosage],
    }
    if args.notes:
        resource["note"] = [{"text": args.notes}]
    return _write(resource, "subject", args, context)


def format_prescription(data: dict[str, Any]) -> str:
    return bound(
        [
            f"Prescribed {data['medication_name']} {data['dosage']} {data['frequency']} for {_who(data)}.",
            f"Instruction: {clip(data['notes'], 200)}" if data["notes"] else "",
            f"The order is active in the record (order ID {data['resource_id']}).",
        ]
    )


def add_allergy(args: AddAllergyArgs, context: ToolContext) -> ToolOutput:
    """A new active AllergyIntolerance. `severity` becomes mild, moderate, severe or None."""
    severity = _severity(args.severity)
    resource = {
        "resourceType": "AllergyIntolerance",
        "clinicalStatus": _coded("allergyintolerance-clinical", "active"),
        "verificationStatus": _coded("allergyintolerance-verification", "confirmed"),
        "code": {"text": args.substance},
        "recordedDate": now(),
        "reaction": [{"manifestation": [{"text": args.reaction}]} | ({"severity": severity} if severity else {})],
    }
    if _is_drug(args.substance, context):
        resource["category"] = ["medication"]
    return _write(resource, "patient", args.model_copy(update={"severity": severity}), context)


def format_allergy(data: dict[str, Any]) -> str:
    detail = ", ".join(part for part in (data["reaction"], data["severity"]) if part)
    return bound(
        [
            f"Recorded an allergy to {data['substance']} ({detail}) for {_who(data)}.",
            f"The allergy is active in the record (entry ID {data['resource_id']}).",
        ]
    )


def save_clinical_note(args: ClinicalNoteArgs, context: ToolContext) -> ToolOutput:
    """A new current DocumentReference holding the note as text."""
    known = clinical("entries")["note_types"].items()
    coding = [{"system": "http://loinc.org", **loinc} for key, loinc in known if key in args.note_type.lower()][:1]
    attachment = {
        "contentType": "text/plain; charset=utf-8",
        "data": base64.b64encode(args.note_text.encode()).decode(),
        "title": args.note_type,
    }
    resource = {
        "resourceType": "DocumentReference",
        "status": "current",
        "type": {"text": args.note_type} | ({"coding": coding} if coding else {}),
        "date": now(),
        "content": [{"attachment": attachment}],
    }
    return _write(resource, "subject", args, context)


def format_note(data: dict[str, Any]) -> str:
    kind = data["note_type"]
    named = "note" in kind.lower() or "summary" in kind.lower()
    return bound(
        [
            f"Saved the {kind if named else f'{kind} note'} for {_who(data)}.",
            f"Note text: {clip(data['note_text'], 300)}",
            f"The note is in the record (note ID {data['resource_id']}).",
        ]
    )


def _write(resource: dict[str, Any], whose: str, args: Any, context: ToolContext) -> ToolOutput:
    """Create a resource once. `whose`: its field that refers to the patient."""
    patient = context.store.patient(args.patient_id.strip())
    if patient is None:
        raise ToolError(ErrorType.NOT_FOUND, "no such patient", entity=args.patient_id)
    if not context.write_key:
        raise ToolError(ErrorType.NOT_PERMITTED, "a write without its key could happen twice")
    if context.override and resource["resourceType"] == "DocumentReference":  # which has no field of remarks
        resource["description"] = context.override
    elif context.override:
        resource.setdefault("note", []).append({"text": context.override})
    resource[whose] = {"reference": f"Patient/{patient.id}", "display": patient.name}
    stored = context.store.create(resource, Provenance(context.actor, context.thread, context.write_key))
    if _essence(stored) != _essence(resource):  # the key was used before, for something else: nothing was written
        raise ToolError(ErrorType.NOT_PERMITTED, "the write key belongs to another write")
    head = {
        "resource_type": stored["resourceType"],
        "resource_id": stored["id"],
        "patient": {"id": patient.id, "name": patient.name},
        "recorded": stored.get("meta", {}).get("lastUpdated") or now(),
    }
    return ToolOutput(head | args.model_dump(exclude={"patient_id"}), context.store.name)


def _essence(resource: dict[str, Any]) -> tuple[Any, ...]:
    """What was ordered or written, without what a store adds or rewrites."""
    concept = resource.get("medicationCodeableConcept") or resource.get("code") or resource.get("type") or {}
    return (
        resource.get("resourceType"),
        concept.get("text"),
        [item.get("text") for item in resource.get("dosageInstruction", [])],
        [item.get("attachment", {}).get("data") for item in resource.get("content", [])],
    )


def _medication(name: str) -> dict[str, Any]:
    """The drug as it was ordered, with its RxNorm ingredient code where it is one ingredient whose code is known."""
    parts = ingredients(name, load_drug_names())
    code = rxnorm_code(next(iter(parts))) if len(parts) == 1 else ""
    return {"text": name} | ({"coding": [{"system": RXNORM, "code": code}]} if code else {})


def _is_drug(substance: str, context: ToolContext) -> bool:
    try:
        return context.knowledge.generic_name(substance) is not None
    except ToolError:  # the category is a convenience; an outage of a name service must not lose an allergy
        return False


def _severity(text: str | None) -> str | None:
    word = (text or "").strip().lower()
    known = next((code for code, words in clinical("entries")["severity"].items() if word in words), None)
    if known is None:
        raise ToolError(ErrorType.INVALID_ARGS, "severity is mild, moderate or severe", missing_fields=["severity"])
    return known or None


def _who(data: dict[str, Any]) -> str:
    return f"{data['patient']['name']} (patient ID {data['patient']['id']})"


def _coded(system: str, value: str) -> dict[str, Any]:
    return {"coding": [{"system": f"{TERMINOLOGY}/{system}", "code": value}]}


WRITTEN = {"resource_type": str, "resource_id": str, "patient": {"id": str, "name": str}, "recorded": str}

PRESCRIBE = Tool(
    name="prescribe_medication",
    label="Prescription",
    signature="(patient_id: str, medication_name: str, dosage: str, frequency: str)",
    description=(
        "Create a new medication order for a patient in the EHR. Use when a clinician wants to prescribe, order, or "
        "start a medication for a specific patient."
    ),
    args=PrescribeMedicationArgs,
    example="Prescribe amlodipine 5 mg once daily for patient xyz-321",
    run=prescribe_medication,
    format=format_prescription,
    data={**WRITTEN, "medication_name": str, "dosage": str, "frequency": str, "notes": str | None},
    needs="plan",
    writes=True,
)

ADD_ALLERGY = Tool(
    name="add_allergy",
    label="Allergy Documentation",
    signature="(patient_id: str, substance: str, reaction: str, severity: str = None)",
    description=(
        "Document an allergy or adverse reaction in a patient's record. Use when a clinician wants to record, "
        "document, or note an allergy."
    ),
    args=AddAllergyArgs,
    example="Document a severe penicillin allergy with hives for patient xyz-321",
    run=add_allergy,
    format=format_allergy,
    data={**WRITTEN, "substance": str, "reaction": str, "severity": str | None},
    needs="plan",
    writes=True,
)

SAVE_NOTE = Tool(
    name="save_clinical_note",
    label="Clinical Note",
    signature="(patient_id: str, note_type: str, note_text: str)",
    description=(
        "Save a clinical note (progress note, consult note, procedure note, etc.) to a patient's record. Use when a "
        "clinician wants to write, save, or document a clinical note."
    ),
    args=ClinicalNoteArgs,
    example="Save a progress note for patient xyz-321: blood pressure controlled, continue treatment",
    run=save_clinical_note,
    format=format_note,
    data={**WRITTEN, "note_type": str, "note_text": str},
    needs="plan",
    writes=True,
)
