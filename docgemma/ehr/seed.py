"""The synthetic patients of `data/ehr` as FHIR R4 resources. The files are for people; this turns them into FHIR.

Nothing is validated here, at the first use of every installation: the tests validate every resource once.
"""

import base64
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docgemma.ehr.fhir import Resource
from docgemma.errors import StoreError
from docgemma.paths import data_file

NAMESPACE = uuid.UUID("5d3ad9a0-5f0f-4d6e-9c4c-0c1f6d0c8a11")  # of the ids of everything but the patients

SNOMED = "http://snomed.info/sct"
ICD10 = "http://hl7.org/fhir/sid/icd-10-cm"
LOINC = "http://loinc.org"
UCUM = "http://unitsofmeasure.org"
CVX = "http://hl7.org/fhir/sid/cvx"
HL7 = "http://terminology.hl7.org/CodeSystem/"
QUANTITY = re.compile(r"([\d.]+) ?([A-Za-z%]+)$")


def seed_resources(folder: Path | None = None) -> Iterator[Resource]:
    """Every resource of every synthetic patient, patients first among their own. Read when first asked for.

    Raises:
        ConfigError: there is no data folder.
        StoreError: the files are unreadable.
    """
    folder = folder or data_file("ehr")
    codes, patients = _load(folder / "codes.yaml"), _load(folder / "patients.yaml")
    for patient in patients:
        yield from _Record(patient, codes).resources()


def _load(path: Path) -> Any:
    import yaml  # only the first use of an installation reads these files

    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        hint = "Reinstall docgemma, or set DOCGEMMA_EHR to a record store of your own."
        raise StoreError(f"The synthetic patients in {path} cannot be read.", hint=hint) from error


class _Record:
    """One patient's lines, as resources. Dates in the files are ISO; columns are separated by " | "."""

    def __init__(self, patient: dict[str, Any], codes: dict[str, Any]):
        self.patient, self.codes = patient, codes
        self.id = str(patient["id"])
        self.reference = {"reference": f"Patient/{self.id}"}

    def resources(self) -> Iterator[Resource]:
        yield self._patient()
        for kind in ("problems", "medications", "allergies", "labs", "vitals", "social", "notes", "immunizations"):
            for entry in self.patient.get(kind) or []:
                yield from getattr(self, f"_{kind}")(entry)

    def _resource(self, resource_type: str, key: str, **content: Any) -> Resource:
        identifier = str(uuid.uuid5(NAMESPACE, f"{self.id} {resource_type} {key}"))
        return {"resourceType": resource_type, "id": identifier, **{k: v for k, v in content.items() if v}}

    def _patient(self) -> Resource:
        given, family = self.patient.get("given"), self.patient.get("family")
        name = {"use": "official", "given": given.split() if given else None, "family": family}
        names = [{key: value for key, value in name.items() if value}]
        names += [{"text": str(text)} for text in self.patient.get("also", [])]
        resource = {
            "resourceType": "Patient", "id": self.id, "active": True, "name": names,
            "gender": self.patient["sex"], "birthDate": str(self.patient["born"]),
        }  # fmt: skip
        if died := self.patient.get("died"):
            resource["deceasedDateTime"] = str(died)
        if language := self.patient.get("language"):
            resource["communication"] = [{"language": {"text": language}, "preferred": True}]
        return resource

    def _problems(self, line: str) -> Iterator[Resource]:
        """code | since [| resolved YYYY-MM-DD]"""
        code, since, *rest = _columns(line)
        resolved = rest[0].removeprefix("resolved ") if rest else None
        yield self._resource(
            "Condition", code,
            clinicalStatus=_concept("condition-clinical", "resolved" if resolved else "active"),
            verificationStatus=_concept("condition-ver-status", "confirmed"),
            category=[_concept("condition-category", "problem-list-item")],
            code=self._problem_code(code), subject=self.reference, onsetDateTime=since, abatementDateTime=resolved,
        )  # fmt: skip

    def _problem_code(self, code: str) -> Resource:
        entry = self.codes["problems"][code]
        systems = ((SNOMED, entry.get("snomed")), (ICD10, entry.get("icd10")))
        coding = [{"system": system, "code": str(value)} for system, value in systems if value]
        return {"coding": coding, "text": entry["text"]}

    def _medications(self, line: str) -> Iterator[Resource]:
        """drug | dose | frequency | since | problem [| status]"""
        drug, dose, frequency, since, reason, *rest = _columns(line)
        instruction: dict[str, Any] = {"text": f"{dose} {frequency}", "timing": {"code": {"text": frequency}}}
        if found := QUANTITY.fullmatch(dose):
            instruction["doseAndRate"] = [{"doseQuantity": {"value": _number(found[1]), "unit": found[2]}}]
        condition = self._resource("Condition", reason)["id"]
        reference = {"reference": f"Condition/{condition}", "display": self.codes["problems"][reason]["text"]}
        yield self._resource(
            "MedicationRequest", f"{drug} {since}", status=rest[0] if rest else "active", intent="order",
            medicationCodeableConcept={"text": drug}, subject=self.reference, authoredOn=since,
            reasonReference=[reference], dosageInstruction=[instruction],
        )  # fmt: skip

    def _allergies(self, line: str) -> Iterator[Resource]:
        """substance | reaction | severity | recorded [| category]"""
        substance, reaction, severity, recorded, *rest = _columns(line)
        yield self._resource(
            "AllergyIntolerance", substance,
            clinicalStatus=_concept("allergyintolerance-clinical", "active"),
            verificationStatus=_concept("allergyintolerance-verification", "confirmed"),
            type="allergy", category=[rest[0] if rest else "medication"],
            criticality="high" if severity == "severe" else "low",
            code={"text": substance}, patient=self.reference, recordedDate=recorded,
            reaction=[{"manifestation": [{"text": reaction}], "severity": severity}],
        )  # fmt: skip

    def _labs(self, entry: dict[str, dict[str, Any]]) -> Iterator[Resource]:
        """date: {code: value, ...}"""
        for day, values in entry.items():
            for code, value in values.items():
                yield self._observation("laboratory", self.codes["labs"][code], code, str(day), value)

    def _vitals(self, entry: dict[str, dict[str, Any]]) -> Iterator[Resource]:
        """date: {code: value, ...}; bp is systolic/diastolic"""
        for day, values in entry.items():
            for code, value in values.items():
                yield self._observation("vital-signs", self.codes["vitals"][code], code, str(day), value)

    def _social(self, line: str) -> Iterator[Resource]:
        """code | date | text"""
        code, day, text = _columns(line)
        yield self._observation("social-history", self.codes["social"][code], code, day, text)

    def _observation(self, category: str, entry: dict[str, Any], code: str, day: str, value: Any) -> Resource:
        content: dict[str, Any] = {}
        if "parts" in entry:
            parts = zip(entry["parts"].values(), str(value).split("/"), strict=True)
            content["component"] = [{"code": _loinc(part), **_quantity(part, _number(item))} for part, item in parts]
        elif "unit" in entry and not isinstance(value, str):
            content = {**_quantity(entry, value), **_reference_range(entry, self.patient["sex"], value)}
        else:
            content = {"valueString": str(value)}
        return self._resource(
            "Observation", f"{code} {day}", status="final", category=[_concept("observation-category", category)],
            code=_loinc(entry), subject=self.reference, effectiveDateTime=day, **content,
        )  # fmt: skip

    def _notes(self, note: dict[str, Any]) -> Iterator[Resource]:
        """{date, type, author, text}"""
        day, text = str(note["date"]), note["text"].strip()
        data = base64.b64encode(text.encode()).decode()
        yield self._resource(
            "DocumentReference", f"{note['type']} {day}", status="current", docStatus="final",
            type={"text": note["type"]}, subject=self.reference, date=f"{day}T12:00:00Z",
            author=[{"display": note["author"]}],
            content=[{"attachment": {"contentType": "text/plain; charset=utf-8", "data": data, "title": note["type"]}}],
        )  # fmt: skip

    def _immunizations(self, line: str) -> Iterator[Resource]:
        """code | date"""
        code, day = _columns(line)
        entry = self.codes["vaccines"][code]
        vaccine = {"coding": [{"system": CVX, "code": str(entry["cvx"])}], "text": entry["text"]}
        yield self._resource(
            "Immunization", f"{code} {day}", status="completed", vaccineCode=vaccine, patient=self.reference,
            occurrenceDateTime=day,
        )  # fmt: skip


def _columns(line: str) -> list[str]:
    return [part.strip() for part in str(line).split(" | ")]


def _concept(system: str, code: str) -> Resource:
    return {"coding": [{"system": HL7 + system, "code": code}]}


def _loinc(entry: dict[str, Any]) -> Resource:
    return {"coding": [{"system": LOINC, "code": str(entry["loinc"])}], "text": entry["text"]}


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _quantity(entry: dict[str, Any], value: int | float) -> Resource:
    ucum = entry.get("ucum", entry["unit"])
    return {"valueQuantity": {"value": value, "unit": entry["unit"], "system": UCUM, "code": ucum}}


def _reference_range(entry: dict[str, Any], sex: str, value: int | float) -> Resource:
    """The range of this sex, if the laboratory gives one, and the flag that follows from it."""
    low, high = entry.get(sex) or entry.get("range") or (None, None)
    bounds = {key: {"value": bound, "unit": entry["unit"]} for key, bound in (("low", low), ("high", high)) if bound}
    if not bounds:
        return {}
    flag = "L" if low and value < low else "H" if high and value > high else "N"
    return {"referenceRange": [bounds], "interpretation": [_concept("v3-ObservationInterpretation", flag)]}
