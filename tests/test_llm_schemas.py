"""A schema means the same on every back end: each of the project's, through each, comes back valid."""

import inspect

import pytest

from docgemma import schemas
from docgemma.llm import load_llm
from docgemma.llm.base import GenConfig, Prompt
from docgemma.schemas import (
    AddAllergyArgs,
    ClinicalNoteArgs,
    ClinicalTrialsArgs,
    Complexity,
    Decomposition,
    DrugInteractionArgs,
    DrugSafetyArgs,
    ImageAnalysisArgs,
    ImageFindings,
    IntentClassification,
    LiteratureSearchArgs,
    PatientChartArgs,
    PatientSearchArgs,
    PrescribeMedicationArgs,
    ResultAssessment,
    RetryStrategy,
    Schema,
    ToolCall,
    ToolNeeds,
    ToolSelection,
    Triage,
)
from docgemma.settings import Settings
from tests import models

CALL = ToolCall(tool_name="check_drug_safety", query="dofetilide")
EXAMPLES = [
    IntentClassification(intent="TOOL_NEEDED", task_summary="Check warnings.", suggested_tool="check_drug_safety"),
    ToolSelection(tool_name="check_drug_safety"),
    DrugSafetyArgs(drug_name="dofetilide"),
    DrugInteractionArgs(drug_names=["warfarin", "aspirin"]),
    LiteratureSearchArgs(query="metformin in heart failure"),
    ClinicalTrialsArgs(condition="melanoma"),
    PatientSearchArgs(name="John Smith"),
    PatientChartArgs(patient_id="abc-123"),
    PrescribeMedicationArgs(patient_id="abc-123", medication_name="metformin", dosage="500 mg", frequency="daily"),
    AddAllergyArgs(patient_id="abc-123", substance="penicillin", reaction="rash", severity="mild"),
    ClinicalNoteArgs(patient_id="abc-123", note_type="progress", note_text="Feels well."),
    ImageAnalysisArgs(query="Is there a fracture?"),
    ResultAssessment(quality="success_rich", brief_summary="A boxed warning."),
    RetryStrategy(strategy="retry_same"),
    Complexity(complexity="direct", reasoning="A definition."),
    Triage(route="lookup", tool="check_drug_safety", query="dofetilide"),
    ToolCall(tool_name="check_drug_safety", query="dofetilide"),
    Decomposition(requires_clarification=False, subtasks=[CALL]),
    ToolNeeds(calls=[CALL]),
    ImageFindings(
        modality="ct", findings=["Clear lungs."], impression="Normal.", confidence=0.9, requires_specialist_review=False
    ),
]


def name(example: Schema) -> str:
    return type(example).__name__


def test_every_schema_of_the_project_is_among_the_examples():
    defined = {
        item
        for item in vars(schemas).values()
        if inspect.isclass(item) and issubclass(item, Schema) and item is not Schema
    }
    assert defined == {type(example) for example in EXAMPLES}


def check(llm, example: Schema, config: GenConfig) -> None:
    """The prompt shows an answer, so that a small model comes to an end; what it says instead is its own affair."""
    prompt = Prompt(f"Answer with exactly this:\n{example.model_dump_json()}")
    made = llm.structured(prompt, type(example), config, node="x")
    assert type(made.value) is type(example)
    assert made.calls[-1].completion_tokens > 0 and not made.calls[-1].truncated


CONFIG = GenConfig(max_tokens=256)


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_on_llama_cpp(example):
    check(models.smollm2(), example, CONFIG)


@pytest.fixture(scope="module")
def server():
    settings = Settings(llm_url=models.llama_server().listening_address, llm_key=models.SERVER_KEY)
    llm = load_llm("server", settings)
    yield llm
    llm.close()


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_on_a_server(server, example):
    check(server, example, CONFIG)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_on_transformers(example):
    """By a random model, at temperature 1: whatever the grammar lets through comes out."""
    check(models.tiny_gemma3(), example, GenConfig(temperature=1.0, max_tokens=256, seed=7))
