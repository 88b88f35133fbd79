"""The synthetic patients: valid FHIR, right in themselves, and everybody whom the specifications mention."""

import base64
import re
from collections import Counter
from datetime import date

import pytest
import yaml

from docgemma.ehr.fhir import patient_id_of
from docgemma.ehr.seed import seed_resources
from docgemma.ehr.validate import problems_of
from docgemma.errors import StoreError
from docgemma.paths import data_file

CODES = yaml.safe_load(data_file("ehr", "codes.yaml").read_text(encoding="utf-8"))
PATIENTS = yaml.safe_load(data_file("ehr", "patients.yaml").read_text(encoding="utf-8"))
RESOURCES = list(seed_resources())
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TODAY = "2026-11-21"  # nothing in the files is later than the day they were written


def columns(line: str) -> list[str]:
    return [part.strip() for part in line.split(" | ")]


def by_id(patient_id: str) -> dict:
    return next(item for item in PATIENTS if item["id"] == patient_id)


def called(given: str | None, family: str) -> list[dict]:
    return [item for item in PATIENTS if item.get("given") == given and item["family"] == family]


def has(patient: dict, kind: str, word: str) -> bool:
    return any(word in str(line) for line in patient.get(kind, []))


def test_every_resource_is_valid_fhir() -> None:
    assert {item["id"]: found for item in RESOURCES if (found := problems_of(item))} == {}


def test_no_id_is_used_twice() -> None:
    assert [key for key, n in Counter((item["resourceType"], item["id"]) for item in RESOURCES).items() if n > 1] == []


def test_every_entry_belongs_to_a_patient() -> None:
    known = {item["id"] for item in RESOURCES if item["resourceType"] == "Patient"}
    assert {patient_id_of(item) for item in RESOURCES} == known
    assert len(known) == len(PATIENTS) >= 40


def test_ids_are_uuids_but_for_those_that_the_specifications_name() -> None:
    short = {item["id"] for item in PATIENTS if not UUID.fullmatch(str(item["id"]))}
    assert short == {"abc-123", "def-456", "ghi-789", "555", "402"}


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient["family"])
def test_a_drug_on_the_list_has_a_problem_that_explains_it(patient: dict) -> None:
    problems = {columns(line)[0] for line in patient.get("problems", [])}
    for line in patient.get("medications", []):
        drug, dose, frequency, since, reason, *status = columns(line)
        assert reason in problems, f"{drug} for {reason}"
        assert dose and frequency and date.fromisoformat(since) >= patient["born"]
        assert status in ([], ["stopped"], ["completed"])


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient["family"])
def test_no_active_drug_is_one_the_patient_is_allergic_to(patient: dict) -> None:
    substances = {columns(line)[0] for line in patient.get("allergies", [])}
    active = {columns(line)[0] for line in patient.get("medications", []) if len(columns(line)) == 5}
    assert not substances & active


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient["family"])
def test_nothing_happens_before_birth_after_death_or_in_the_future(patient: dict) -> None:
    text = str({key: value for key, value in patient.items() if key not in ("notes", "problems", "born")})
    days = [str(day) for kind in ("labs", "vitals") for entry in patient.get(kind, []) for day in entry]
    days += re.findall(r"\| (\d{4}-\d\d-\d\d)", text) + [str(note["date"]) for note in patient.get("notes", [])]
    assert all(str(patient["born"]) <= day <= str(patient.get("died", TODAY)) for day in days)


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient["family"])
def test_egfr_follows_from_the_creatinine_beside_it(patient: dict) -> None:
    for entry in patient.get("labs", []):
        for day, values in entry.items():
            if {"egfr", "creatinine"} <= values.keys():
                expected = ckd_epi_2021(values["creatinine"], age(patient["born"], day), patient["sex"])
                assert values["egfr"] == pytest.approx(expected, abs=2)


def test_kidney_disease_stages_fit_the_latest_egfr() -> None:
    bounds = {"ckd3a": (45, 60), "ckd3b": (30, 45), "ckd4": (15, 30), "t2dm_ckd": (15, 60)}
    for patient in PATIENTS:
        for stage in {columns(line)[0] for line in patient["problems"]} & bounds.keys():
            low, high = bounds[stage]
            assert low <= next(iter(patient["labs"][0].values()))["egfr"] < high


@pytest.mark.parametrize("kind", ["problems", "labs", "vitals", "vaccines", "social"])
def test_every_code_is_used_and_well_formed(kind: str) -> None:
    entries = [line for patient in PATIENTS for line in patient.get({"vaccines": "immunizations"}.get(kind, kind), [])]
    used = {columns(line)[0] for line in entries if isinstance(line, str)}
    used |= {code for line in entries if isinstance(line, dict) for values in line.values() for code in values}
    assert used == CODES[kind].keys()
    for entry in CODES[kind].values():
        assert "snomed" not in entry or verhoeff(str(entry["snomed"]))
        assert re.fullmatch(r"[A-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?", entry.get("icd10", "I10"))
        assert luhn(entry.get("loinc"))


def test_john_smith_takes_metformin_with_failing_kidneys() -> None:
    (john,) = called("John", "Smith")
    assert john["id"] == "abc-123"
    assert has(john, "medications", "metformin") and has(john, "medications", "lisinopril")
    assert 30 < john["labs"][0][date(2026, 10, 12)]["egfr"] < 45


def test_the_people_of_the_specifications_are_there() -> None:
    assert [item["id"] for item in called("Maria", "Garcia")] == ["def-456"]
    assert len({item["born"] for item in called("James", "Wilson")}) == len(called("James", "Wilson")) == 3
    assert has(by_id("ghi-789"), "allergies", "penicillin | anaphylaxis after amoxicillin | severe")
    assert has(by_id("555"), "social", "42 pack-years") and has(by_id("555"), "problems", "lung_mass")
    (ckd,) = [
        item for item in PATIENTS if has(item, "problems", "ckd3a") and has(item, "medications", "amlodipine | 10 mg")
    ]
    assert (ckd["sex"], age(ckd["born"], date(2026, 11, 2))) == ("female", 67)
    assert next(iter(ckd["labs"][0].values()))["potassium"] == 4.8
    (mesothelioma,) = [item for item in PATIENTS if has(item, "problems", "mesothelioma")]
    assert (mesothelioma["sex"], age(mesothelioma["born"], date(2026, 11, 1))) == ("male", 61)
    for text in ("bilateral knee pain for 6 months", "MRI of the right leg", "Low back pain is stable", "No locking"):
        assert sum(has(item, "notes", text) for item in PATIENTS) == 1


def test_there_are_a_child_a_pregnancy_a_death_and_a_planted_instruction() -> None:
    assert any(age(item["born"], date(2026, 11, 1)) < 12 for item in PATIENTS)
    assert any(has(item, "problems", "pregnancy") for item in PATIENTS)
    assert [item["resourceType"] for item in RESOURCES if "deceasedDateTime" in item] == ["Patient"]
    notes = [item for item in RESOURCES if item["resourceType"] == "DocumentReference"]
    texts = [base64.b64decode(item["content"][0]["attachment"]["data"]).decode() for item in notes]
    assert sum("ignore previous\ninstructions" in text or "ignore previous instructions" in text for text in texts) == 1


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


def test_unreadable_seed_files_are_a_clear_error(tmp_path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        list(seed_resources(tmp_path))
    (tmp_path / "codes.yaml").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        list(seed_resources(tmp_path))


def age(born: date, day: date) -> int:
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def ckd_epi_2021(creatinine_mg_dl: float, age_years: int, sex: str) -> float:
    """mL/min/1.73 m², without race. Source: Inker et al., N Engl J Med 2021;385:1737."""
    k, alpha, factor = (0.7, -0.241, 1.012) if sex == "female" else (0.9, -0.302, 1.0)
    ratio = creatinine_mg_dl / k
    return 142 * min(ratio, 1) ** alpha * max(ratio, 1) ** -1.2 * 0.9938**age_years * factor


def luhn(loinc: str | None) -> bool:
    """True for no code, or for a LOINC code whose check digit is right."""
    if loinc is None:
        return True
    number, check = str(loinc).split("-")
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
