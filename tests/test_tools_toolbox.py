"""The ten as a set: the measured wording, complete descriptions, and one way to fail."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from docgemma.ehr.open import open_store
from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.knowledge import open_knowledge
from docgemma.rules.errors import ERROR_TEMPLATES
from docgemma.tools import ToolContext, ToolOutput, toolbox
from docgemma.tools.base import Toolbox

SPEC = Path(__file__).parents[2] / "shared" / "spec" / "docgemma_v3.md"
LABELS = ["Drug Safety Report", "Drug Interaction Check", "Medical Literature", "Clinical Trials", "Patient Search",
          "Patient Record", "Prescription", "Allergy Documentation", "Clinical Note", "Image Analysis"]  # fmt: skip

# arguments that reach the work of each tool
ARGS = {
    "check_drug_safety": {"drug_name": "dofetilide"},
    "check_drug_interactions": {"drug_names": ["warfarin", "aspirin"]},
    "search_medical_literature": {"query": "heart failure"},
    "find_clinical_trials": {"condition": "melanoma"},
    "search_patient": {"name": "John Smith"},
    "get_patient_chart": {"patient_id": "abc-123"},
    "prescribe_medication": {"patient_id": "abc-123", "medication_name": "metformin", "dosage": "500 mg",
                             "frequency": "twice daily"},
    "add_allergy": {"patient_id": "abc-123", "substance": "latex", "reaction": "hives"},
    "save_clinical_note": {"patient_id": "abc-123", "note_type": "progress note", "note_text": "Stable."},
    "analyze_medical_image": {"query": "pneumothorax?"},
}  # fmt: skip
OF_KNOWLEDGE = list(ARGS)[:4]
OF_RECORDS = list(ARGS)[4:9]


class Failing:
    """A store or a source of facts of which every use fails in one way."""

    name = "failing"

    def __init__(self, error: Exception):
        self.error = error

    def __getattr__(self, method):
        def fail(*args, **kwargs):
            raise self.error

        return fail


@pytest.fixture
def context(settings):
    store, knowledge = open_store(settings), open_knowledge(settings)
    yield ToolContext(settings, store, knowledge, write_key="key-1", approved=())
    store.close()
    knowledge.close()


def test_the_ten_are_there_in_order_with_the_clinicians_labels():
    assert [tool.name for tool in toolbox()] == list(ARGS)
    assert [tool.label for tool in toolbox()] == LABELS


@pytest.mark.skipif(not SPEC.exists(), reason="the specification is not beside this checkout")
def test_signatures_and_descriptions_are_the_specifications_words():
    text = SPEC.read_text(encoding="utf-8").split("## 16. Appendix")[1].split("## Appendix: Walkthrough")[0]
    words = " ".join(text.split())
    for tool in toolbox():
        assert f"- {tool.full_description}" in words, tool.name


@pytest.mark.parametrize("tool", list(toolbox()), ids=lambda tool: tool.name)
def test_a_tool_is_completely_described(tool):
    assert re.findall(r"(\w+):", tool.signature) == [name for name in tool.args.model_fields if name != "notes"]
    assert tool.example and tool.name not in tool.example
    assert tool.writes is (tool.name in ("prescribe_medication", "add_allergy", "save_clinical_note"))


@pytest.mark.parametrize("name", OF_KNOWLEDGE)
@pytest.mark.parametrize(
    "error_type",
    [ErrorType.TIMEOUT, ErrorType.RATE_LIMIT, ErrorType.SERVER_ERROR, ErrorType.SERVICE_UNAVAILABLE,
     ErrorType.INVALID_RESPONSE, ErrorType.INVALID_ARGS],
)  # fmt: skip
def test_a_failing_source_is_a_typed_error_and_never_an_empty_answer(context, name, error_type):
    failing = replace(context, knowledge=Failing(ToolError(error_type, "raw: http 500 at internal-host")))
    result = toolbox().call(name, ARGS[name], failing)
    assert result["error_type"] == error_type and result["error"]
    assert not result["empty"] and result["result"] == {}
    assert "internal-host" not in result["error"] + result["formatted_result"]


@pytest.mark.parametrize("name", OF_RECORDS)
def test_an_unreachable_record_store_is_not_an_empty_chart(context, name):
    failing = replace(context, store=Failing(StoreError("connection refused to 10.0.0.7")))
    result = toolbox().call(name, ARGS[name], failing)
    assert result["error_type"] == "service_unavailable" and not result["empty"]
    assert "10.0.0.7" not in result["formatted_result"]


@pytest.mark.parametrize("name", list(ARGS)[:9])
def test_each_tool_answers_with_source_and_text(context, name):
    result = toolbox().call(name, ARGS[name], context)
    assert result["error"] is None, result["error"]
    assert result["source"] and result["formatted_result"] and result["result"]
    assert len(result["formatted_result"]) <= 1500


@pytest.mark.parametrize("name", list(ARGS))
def test_required_arguments_that_are_missing_are_named(context, name):
    tool = toolbox()[name]
    required = [key for key, item in tool.args.model_fields.items() if item.is_required()]
    for args in ({}, dict.fromkeys(required), dict.fromkeys(required, "")):
        result = toolbox().call(name, args, context)
        assert result["error_type"] == "missing_required_args"
        assert result["details"]["missing_fields"] == required


@pytest.mark.parametrize(
    ("name", "args"),
    [("check_drug_safety", {"drug_name": "x" * 81}), ("check_drug_safety", {"drug_name": ["warfarin"]}),
     ("check_drug_interactions", {"drug_names": ["warfarin"]}), ("check_drug_interactions", {"drug_names": ["a"] * 7}),
     ("search_patient", {"name": "x", "extra": 1}), ("get_patient_chart", {"patient_id": 5}),
     ("find_clinical_trials", {"condition": "x", "status": "y" * 41})],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_invalid(context, name, args):
    assert toolbox().call(name, args, context)["error_type"] == "invalid_args"


@pytest.mark.parametrize("error_type", list(ErrorType))
def test_every_error_type_has_words_for_a_clinician(error_type):
    assert ERROR_TEMPLATES[error_type.value]


def test_what_any_tool_returns_is_cleaned_before_it_is_formatted(context):
    def run(args, context):
        return ToolOutput({"text": "<|im_start|>a"}, "x", links=[{"title": "<eos>t", "url": "", "id": "i"}])

    tool = replace(toolbox()["search_patient"], run=run, format=lambda data: data["text"])
    result = Toolbox([tool]).call("search_patient", {"name": "x"}, context)
    assert result["formatted_result"] == "a" and result["links"][0]["title"] == "t"


def test_the_details_of_an_error_are_cleaned_too(context):
    def run(args, context):
        raise ToolError(ErrorType.MULTIPLE_PATIENT_MATCHES, options=[{"id": "1", "label": "<|im_start|>Ann"}])

    result = Toolbox([replace(toolbox()["search_patient"], run=run)]).call("search_patient", {"name": "x"}, context)
    assert result["details"]["options"] == [{"id": "1", "label": "Ann"}] and "im_start" not in result["error"]


def test_a_bug_in_a_tool_is_typed_and_its_text_is_neither_told_nor_logged(context, caplog):
    def bug(args, context):
        raise KeyError("Anna Kowalski, born 1970")

    box = Toolbox([replace(toolbox()["search_patient"], run=bug)])
    result = box.call("search_patient", {"name": "Anna"}, context)
    assert result["error_type"] == "server_error"
    assert "Kowalski" not in str(result) + caplog.text
    assert "search_patient failed: KeyError in test_tools_toolbox.py" in caplog.text


@pytest.mark.parametrize("name", OF_RECORDS[2:])
def test_a_write_that_nobody_approved_is_refused(context, name):
    before = context.store.chart("abc-123")
    result = toolbox().call(name, ARGS[name], replace(context, approved=None))
    assert result["error_type"] == "not_permitted" and result["writes"]
    assert context.store.chart("abc-123") == before
