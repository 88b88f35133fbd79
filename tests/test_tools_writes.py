"""The three writes: valid FHIR R4 in the record, once per key, and never a silent failure."""

import base64
import json
from dataclasses import replace

import pytest

from docgemma.ehr.open import open_store
from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.knowledge import open_knowledge
from docgemma.paths import data_file
from docgemma.tools import ToolContext, toolbox

PRESCRIPTION = {"patient_id": "abc-123", "medication_name": "amlodipine", "dosage": "5 mg", "frequency": "once daily"}
ALLERGY = {"patient_id": "abc-123", "substance": "penicillin", "reaction": "hives", "severity": "severe"}
NOTE = {"patient_id": "abc-123", "note_type": "progress note", "note_text": "Blood pressure controlled."}
WRITES = [("prescribe_medication", PRESCRIPTION), ("add_allergy", ALLERGY), ("save_clinical_note", NOTE)]
SECTION = {"prescribe_medication": "medications", "add_allergy": "allergies", "save_clinical_note": "notes"}


@pytest.fixture
def context(settings):
    store = open_store(settings)
    yield ToolContext(settings, store, open_knowledge(settings), thread="t-1", write_key="key-1", approved=())
    store.close()


def count(context, name: str) -> int:
    return len(getattr(context.store.chart("abc-123"), SECTION[name]))


@pytest.mark.parametrize(("name", "args"), WRITES)
def test_a_write_is_in_the_record_once_per_key(context, name, args):
    before = count(context, name)
    first = toolbox().call(name, args, context)
    again = toolbox().call(name, args, context)
    assert first["error"] is None and again["error"] is None
    assert first["result"]["resource_id"] == again["result"]["resource_id"]
    assert count(context, name) == before + 1
    toolbox().call(name, args, replace(context, write_key="key-2"))
    assert count(context, name) == before + 2


@pytest.mark.parametrize(("name", "args"), WRITES)
def test_a_write_says_what_it_wrote_for_whom(context, name, args):
    result = toolbox().call(name, args, context)
    assert result["result"]["patient"] == {"id": "abc-123", "name": "John Smith"}
    assert {"resource_type", "resource_id", "recorded"} <= set(result["result"])
    assert "John Smith (patient ID abc-123)" in result["formatted_result"]
    assert result["result"]["resource_id"] in result["formatted_result"]


@pytest.mark.parametrize(("name", "args"), WRITES)
def test_an_unknown_patient_is_not_found_and_nothing_is_written(context, name, args):
    result = toolbox().call(name, args | {"patient_id": "zzz-000"}, context)
    assert result["error_type"] == "not_found" and result["result"] == {}


@pytest.mark.parametrize(("name", "args"), WRITES)
def test_a_write_without_a_key_is_refused(context, name, args):
    before = count(context, name)
    assert toolbox().call(name, args, replace(context, write_key=""))["error_type"] == "not_permitted"
    assert count(context, name) == before


@pytest.mark.parametrize(
    ("name", "args", "change"),
    [("prescribe_medication", PRESCRIPTION, {"medication_name": "warfarin"}),
     ("prescribe_medication", PRESCRIPTION, {"dosage": "10 mg"}), ("add_allergy", ALLERGY, {"substance": "latex"}),
     ("save_clinical_note", NOTE, {"note_text": "Other words."})],
)  # fmt: skip
def test_a_key_that_was_used_for_something_else_is_a_failure_and_not_a_success(context, name, args, change):
    assert toolbox().call(name, args, context)["error"] is None
    before = count(context, name)
    assert toolbox().call(name, args | change, context)["error_type"] == "not_permitted"
    assert count(context, name) == before


class Refusing:
    """The real store, except that a write fails in one way."""

    def __init__(self, store, error: Exception):
        self.store, self.error, self.name = store, error, store.name

    def patient(self, patient_id):
        return self.store.patient(patient_id)

    def create(self, resource, provenance):
        raise self.error


@pytest.mark.parametrize(("name", "args"), WRITES)
@pytest.mark.parametrize(
    ("error", "error_type"),
    [(ToolError(ErrorType.NOT_PERMITTED), "not_permitted"), (ToolError(ErrorType.INVALID_ARGS), "invalid_args"),
     (StoreError("locked"), "service_unavailable"), (ToolError(ErrorType.TIMEOUT), "timeout")],
)  # fmt: skip
def test_a_failed_write_is_a_typed_error_and_never_silent(context, name, args, error, error_type):
    result = toolbox().call(name, args, replace(context, store=Refusing(context.store, error)))
    assert result["error_type"] == error_type and result["result"] == {}
    assert not any(word in result["formatted_result"] for word in ("Prescribed", "Recorded", "Saved"))


def test_a_prescription_is_a_medication_request(context):
    toolbox().call("prescribe_medication", PRESCRIPTION | {"notes": "With food."}, context)
    order = next(
        item for item in context.store.chart("abc-123").medications
        if item["medicationCodeableConcept"].get("text") == "amlodipine"
    )  # fmt: skip
    assert (order["status"], order["intent"]) == ("active", "order")
    assert order["subject"]["reference"] == "Patient/abc-123"
    dosage = order["dosageInstruction"][0]
    assert dosage["text"] == "5 mg once daily"
    assert dosage["doseAndRate"][0]["doseQuantity"] == {"value": 5.0, "unit": "mg"}
    assert order["note"][0]["text"] == "With food."


@pytest.mark.parametrize("dosage", ["one tablet", "5-10 mg", "2 puffs", "97/103 mg"])
def test_a_dosage_that_is_no_single_quantity_stays_text(context, dosage):
    result = toolbox().call("prescribe_medication", PRESCRIPTION | {"dosage": dosage}, context)
    assert result["error"] is None
    stored = [item["dosageInstruction"][0] for item in context.store.chart("abc-123").medications]
    assert [item for item in stored if item["text"] == f"{dosage} once daily" and "doseAndRate" not in item]


@pytest.mark.parametrize(
    ("said", "stored"),
    [("severe", "severe"), ("Life-threatening", "severe"), ("anaphylaxis", "severe"), ("Moderate", "moderate"),
     ("mild", "mild"), (None, None), ("unknown", None)],
)  # fmt: skip
def test_a_severity_as_said_becomes_fhirs_word(context, said, stored):
    result = toolbox().call("add_allergy", ALLERGY | {"severity": said}, context)
    assert result["result"]["severity"] == stored
    entry = next(i for i in context.store.chart("abc-123").allergies if i["code"].get("text") == "penicillin")
    assert entry["reaction"][0].get("severity") == stored
    assert entry["category"] == ["medication"]


def test_a_severity_that_is_none_is_asked_about(context):
    before = count(context, "add_allergy")
    result = toolbox().call("add_allergy", ALLERGY | {"severity": "purple"}, context)
    assert result["error_type"] == "invalid_args" and result["details"]["missing_fields"] == ["severity"]
    assert count(context, "add_allergy") == before


def test_an_outage_of_the_name_service_does_not_lose_an_allergy(context):
    class Down:
        def generic_name(self, name):
            raise ToolError(ErrorType.TIMEOUT)

    result = toolbox().call("add_allergy", ALLERGY, replace(context, knowledge=Down()))
    assert result["error"] is None


def test_a_note_is_stored_as_it_was_written(context):
    words = "Línea uno.\nZeile zwei — ≥ 3 mg."
    toolbox().call("save_clinical_note", NOTE | {"note_text": words}, context)
    texts = [item["content"][0]["attachment"]["data"] for item in context.store.chart("abc-123").notes]
    assert base64.b64encode(words.encode()).decode() in texts


@pytest.mark.parametrize(
    ("said", "loinc"),
    [("progress note", "11506-3"), ("Consult Note", "11488-4"), ("procedure note", "28570-0"), ("other", None)],
)  # fmt: skip
def test_a_known_note_type_is_coded(context, said, loinc):
    toolbox().call("save_clinical_note", NOTE | {"note_type": said}, context)
    types = [item["type"] for item in context.store.chart("abc-123").notes if item["type"].get("text") == said]
    assert types and all(item.get("coding", [{}])[0].get("code") == loinc for item in types)


@pytest.mark.parametrize(
    ("ordered", "code"),
    [("apixaban", "1364430"), ("Eliquis 5 mg", "1364430"), ("lisinopril", "29046"),
     ("foozle", None), ("Zestoretic", None)],
)  # fmt: skip
def test_an_order_carries_the_rxnorm_code_of_its_one_ingredient(context, monkeypatch, ordered, code):
    sent = []
    create = type(context.store).create
    monkeypatch.setattr(
        type(context.store), "create", lambda self, item, by: sent.append(item) or create(self, item, by)
    )
    result = toolbox().call("prescribe_medication", PRESCRIPTION | {"medication_name": ordered}, context)
    concept = sent[0]["medicationCodeableConcept"]
    assert result["error"] is None and concept["text"] == ordered
    assert [item["code"] for item in concept.get("coding", [])] == ([code] if code else [])


def test_rxnorm_codes_are_of_drugs_that_the_labels_list_and_name_their_source():
    lines = data_file("knowledge", "rxnorm.jsonl").read_text("utf-8").splitlines()
    listed = " ".join(line for line in data_file("knowledge", "drugs.jsonl").read_text("utf-8").splitlines()[1:])
    codes = [list(json.loads(line).values()) for line in lines]
    assert all(len(row) == 3 and row[1].isdigit() and row[2] and row[0] in listed for row in codes)
    assert len({row[1] for row in codes}) == len(codes)
