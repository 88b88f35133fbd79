"""The synthetic patients: valid FHIR, right in themselves, and everybody whom the specifications mention."""

import base64
import re
from collections import Counter
from datetime import date

import pytest

from docgemma.ehr import facts
from docgemma.ehr.fhir import date_of, display_name, patient_id_of, problems_of
from docgemma.ehr.open import seed_resources
from docgemma.errors import StoreError

RESOURCES = list(seed_resources())
PATIENTS = [item for item in RESOURCES if item["resourceType"] == "Patient"]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TODAY = "2026-11-21"  # nothing in the file is later than the day it was written
SYSTEMS = {"http://snomed.info/sct", "http://loinc.org",
           "http://hl7.org/fhir/sid/icd-10-cm", "http://hl7.org/fhir/sid/cvx"}  # fmt: skip
each_patient = pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: display_name(patient))


def entries(patient: dict, kind: str) -> list[dict]:
    return [item for item in RESOURCES if item["resourceType"] == kind and patient_id_of(item) == patient["id"]]


def by_id(patient_id: str) -> dict:
    return next(item for item in PATIENTS if item["id"] == patient_id)


def called(given: str, family: str) -> list[dict]:
    return [item for item in PATIENTS if display_name(item) == f"{given} {family}"]


def problems(patient: dict) -> set[str]:
    return {item["code"]["text"] for item in entries(patient, "Condition")}


def medications(patient: dict) -> list[dict]:
    return [facts.medication(item) for item in entries(patient, "MedicationRequest")]


def labs(patient: dict) -> dict[str, dict[str, float]]:
    """Day -> name -> value, newest first."""
    days: dict[str, dict[str, float]] = {}
    for item in entries(patient, "Observation"):
        if "valueQuantity" in item:
            days.setdefault(item["effectiveDateTime"], {})[item["code"]["text"]] = item["valueQuantity"]["value"]
    return dict(sorted(days.items(), reverse=True))


def having(problem: str) -> list[dict]:
    return [item for item in PATIENTS if any(problem in name for name in problems(item))]


def test_every_resource_is_valid_fhir() -> None:
    assert {item["id"]: found for item in RESOURCES if (found := problems_of(item))} == {}


def test_no_id_is_used_twice() -> None:
    assert [key for key, n in Counter((item["resourceType"], item["id"]) for item in RESOURCES).items() if n > 1] == []


def test_every_entry_belongs_to_a_patient() -> None:
    known = {item["id"] for item in PATIENTS}
    assert {patient_id_of(item) for item in RESOURCES} == known
    assert len(known) == len(PATIENTS) >= 40


def test_ids_are_uuids_but_for_those_that_the_specifications_name() -> None:
    short = {item["id"] for item in PATIENTS if not UUID.fullmatch(item["id"])}
    assert short == {"abc-123", "def-456", "ghi-789", "555", "402"}


@each_patient
def test_a_drug_on_the_list_has_a_problem_that_explains_it(patient: dict) -> None:
    known = {f"Condition/{item['id']}": item["code"]["text"] for item in entries(patient, "Condition")}
    for order in entries(patient, "MedicationRequest"):
        (reason,) = order["reasonReference"]
        assert known[reason["reference"]] == reason["display"], order["medicationCodeableConcept"]
        assert order["dosageInstruction"][0]["text"] and order["authoredOn"] >= patient["birthDate"]
        assert order["status"] in ("active", "stopped", "completed")


@each_patient
def test_no_active_drug_is_one_the_patient_is_allergic_to(patient: dict) -> None:
    substances = {item["code"]["text"] for item in entries(patient, "AllergyIntolerance")}
    assert not substances & {item["name"] for item in medications(patient) if item["active"]}


@each_patient
def test_nothing_happens_before_birth_after_death_or_in_the_future(patient: dict) -> None:
    last = patient.get("deceasedDateTime", TODAY)
    for item in RESOURCES:
        if patient_id_of(item) == patient["id"] and item["resourceType"] not in ("Patient", "Condition"):
            assert patient["birthDate"] <= date_of(item)[:10] <= last, item["id"]


@each_patient
def test_egfr_follows_from_the_creatinine_beside_it(patient: dict) -> None:
    for day, values in labs(patient).items():
        if {"eGFR (CKD-EPI)", "Creatinine"} <= values.keys():
            years = age(patient["birthDate"], day)
            expected = ckd_epi_2021(values["Creatinine"], years, patient["gender"])
            assert values["eGFR (CKD-EPI)"] == pytest.approx(expected, abs=2)


def test_kidney_disease_stages_fit_the_latest_egfr() -> None:
    bounds = {"stage 3a": (45, 60), "stage 3b": (30, 45), "stage 4": (15, 30), "diabetic chronic kidney": (15, 60)}
    for stage, (low, high) in bounds.items():
        assert having(stage)
        for patient in having(stage):
            assert low <= next(iter(labs(patient).values()))["eGFR (CKD-EPI)"] < high


def test_every_code_is_well_formed_and_means_one_thing() -> None:
    named: dict[tuple[str, str], set[str]] = {}
    for item in RESOURCES:
        for concept in [item.get("code"), item.get("vaccineCode"), *(p["code"] for p in item.get("component", []))]:
            for coding in (concept or {}).get("coding", []):
                named.setdefault((coding["system"], coding["code"]), set()).add(concept["text"])
    assert {system for system, _ in named} == SYSTEMS
    assert {key: texts for key, texts in named.items() if len(texts) > 1 and "icd" not in key[0]} == {}
    for system, code in named:
        assert "snomed" not in system or verhoeff(code)
        assert "loinc" not in system or luhn(code)
        assert "icd" not in system or re.fullmatch(r"[A-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?", code)


def test_the_text_of_a_note_for_people_is_the_text_of_the_note() -> None:
    notes = [item for item in RESOURCES if item["resourceType"] == "DocumentReference"]
    assert [item["description"] for item in notes] == [facts.document(item)["text"] for item in notes]


def test_john_smith_takes_metformin_with_failing_kidneys() -> None:
    (john,) = called("John", "Smith")
    assert john["id"] == "abc-123"
    assert {"metformin", "lisinopril"} <= {item["name"] for item in medications(john)}
    assert 30 < labs(john)["2026-10-12"]["eGFR (CKD-EPI)"] < 45


def test_the_people_of_the_specifications_are_there() -> None:
    assert [item["id"] for item in called("Maria", "Garcia")] == ["def-456"]
    assert len({item["birthDate"] for item in called("James", "Wilson")}) == len(called("James", "Wilson")) == 3
    (penicillin,) = [
        item for entry in entries(by_id("ghi-789"), "AllergyIntolerance") if (item := facts.allergy(entry))
        and item["substance"] == "penicillin"
    ]  # fmt: skip
    assert (penicillin["reaction"], penicillin["severity"]) == ("anaphylaxis after amoxicillin", "severe")
    smoking = [facts.observation(item)["value"] for item in entries(by_id("555"), "Observation")]
    assert any("42 pack-years" in value for value in smoking) and by_id("555") in having("Mass of right upper lobe")
    (ckd,) = [
        item for item in having("stage 3a")
        if any(drug["name"] == "amlodipine" and "10 mg" in drug["dosage"] for drug in medications(item))
    ]  # fmt: skip
    assert (ckd["gender"], age(ckd["birthDate"], "2026-11-02")) == ("female", 67)
    assert next(iter(labs(ckd).values()))["Potassium"] == 4.8
    (mesothelioma,) = having("mesothelioma")
    assert (mesothelioma["gender"], age(mesothelioma["birthDate"], "2026-11-01")) == ("male", 61)
    notes = [item["description"] for item in RESOURCES if item["resourceType"] == "DocumentReference"]
    for text in ("bilateral knee pain for 6 months", "MRI of the right leg", "Low back pain is stable", "No locking"):
        assert sum(text in " ".join(note.split()) for note in notes) == 1


def test_there_are_a_child_a_pregnancy_a_death_and_a_planted_instruction() -> None:
    assert any(age(item["birthDate"], "2026-11-01") < 12 for item in PATIENTS)
    assert having("Pregnancy")
    assert [item["resourceType"] for item in RESOURCES if "deceasedDateTime" in item] == ["Patient"]
    notes = [item for item in RESOURCES if item["resourceType"] == "DocumentReference"]
    texts = [base64.b64decode(item["content"][0]["attachment"]["data"]).decode() for item in notes]
    assert sum("ignore previous instructions" in " ".join(text.split()) for text in texts) == 1


def test_values_outside_the_range_are_flagged() -> None:
    flags = {
        (item["code"]["text"], item["valueQuantity"]["value"]): item["interpretation"][0]["coding"][0]["code"]
        for item in RESOURCES
        if "interpretation" in item
    }
    assert flags["eGFR (CKD-EPI)", 41] == "L"
    assert flags["Potassium", 5.3] == "H"
    assert flags["Potassium", 4.8] == "N"
    assert flags["Hemoglobin A1c", 7.6] == "H"
    for item in RESOURCES:
        if "interpretation" in item:  # the flag is what the range beside it says
            written = item["interpretation"][0]["coding"][0]["code"]
            without = facts.observation({key: value for key, value in item.items() if key != "interpretation"})
            assert facts.FLAGS[written] == without["flag"]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe"])
def test_an_unreadable_seed_file_is_a_clear_error(tmp_path, monkeypatch, content) -> None:
    (tmp_path / "ehr").mkdir()
    (tmp_path / "ehr" / "patients.ndjson").write_bytes(content)
    monkeypatch.setenv("DOCGEMMA_DATA", str(tmp_path))
    with pytest.raises(StoreError, match="cannot be read"):
        list(seed_resources())


def age(birth_date: str, on: str) -> int:
    born, day = date.fromisoformat(birth_date), date.fromisoformat(on)
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def ckd_epi_2021(creatinine_mg_dl: float, age_years: int, sex: str) -> float:
    """mL/min/1.73 m², without race. Source: Inker et al., N Engl J Med 2021;385:1737."""
    k, alpha, factor = (0.7, -0.241, 1.012) if sex == "female" else (0.9, -0.302, 1.0)
    ratio = creatinine_mg_dl / k
    return 142 * min(ratio, 1) ** alpha * max(ratio, 1) ** -1.2 * 0.9938**age_years * factor


def luhn(loinc: str) -> bool:
    """True for a LOINC code whose check digit is right."""
    number, check = loinc.split("-")
    doubled = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(number))]
    return (10 - sum(value // 10 + value % 10 for value in doubled) % 10) % 10 == int(check)


def verhoeff(sctid: str) -> bool:
    """True for a SNOMED CT identifier whose check digit is right (Technical Implementation Guide, appendix B)."""
    shuffle = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
    total = 0
    for place, digit in enumerate(map(int, reversed(sctid))):
        for _ in range(place % 8):
            digit = shuffle[digit]
        total = dihedral(total, digit)
    return total == 0


def dihedral(a: int, b: int) -> int:
    """The product in the symmetry group of a pentagon."""
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5
