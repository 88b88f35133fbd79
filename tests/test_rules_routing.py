"""The deterministic router: v3 section 9 and node 6, row by row."""

import pytest

from docgemma.errors import RETRYABLE, ErrorType
from docgemma.rules.routing import known_quality, route
from tests.rules_help import failed, patient_found, result, turn

SAFETY = "check_drug_safety"
WILSONS = [{"id": f"w-{n}", "label": f"James Wilson {n}"} for n in range(3)]
LONG = "Find patient John Smith, check his chart, and verify metformin safety"


@pytest.mark.parametrize("kind", list(ErrorType))
def test_code_types_every_error(kind):
    expected = "error_retryable" if kind in RETRYABLE else "error_fatal"
    assert known_quality(failed(SAFETY, kind)) == expected


def test_an_empty_result_is_no_error_and_a_payload_is_the_models_to_judge():
    assert known_quality(result(SAFETY, empty=True)) == "no_results"
    assert known_quality(result(SAFETY, text="a boxed warning")) is None


ROUTES = [
    ("three patients match", turn("Search for patient James Wilson",
     failed("search_patient", "multiple_patient_matches", {"name": "James Wilson"}, options=WILSONS),
     last_result_classification="error_fatal"), "error_handler"),
    ("timeout", turn("metformin safety", failed(SAFETY, "timeout"), last_result_classification="error_retryable"),
     "error_handler"),
    ("missing argument", turn("his chart", failed("get_patient_chart", "missing_required_args"),
     last_result_classification="error_fatal"), "error_handler"),
    ("rich and done",
     turn("metformin safety", result(SAFETY), last_result_classification="success_rich"), "synthesize"),
    ("partial and done", turn("metformin safety", result(SAFETY), last_result_classification="success_partial"),
     "synthesize"),
    ("nothing found and done", turn("metformin safety", result(SAFETY, empty=True),
     last_result_classification="no_results"), "synthesize"),
    ("rich, more needed", turn(LONG, patient_found(), last_result_classification="success_rich"), "tool_select"),
    ("step 3 of 4", turn(LONG, patient_found(), step_count=3,
     last_result_classification="success_rich"), "tool_select"),
    ("step 4", turn(LONG, patient_found(), step_count=4, last_result_classification="success_rich"), "synthesize"),
    ("duplicate call", turn(LONG, patient_found(), patient_found(), last_result_classification="success_rich"),
     "synthesize"),
    ("a question to the clinician is open", turn(LONG, clarification={"question": "Which?"}), "synthesize"),
    ("no tool proposed, nothing needed", turn("Thanks", proposed_none=True), "synthesize"),
    ("no tool proposed, more needed", turn(LONG, patient_found(), proposed_none=True,
     last_result_classification="success_rich"), "tool_select"),
    ("the model calls a payload an error", turn("metformin safety", result(SAFETY, text="fine"),
     last_result_classification="error_fatal"), "synthesize"),
    ("nothing at all", {"user_query": ""}, "tool_select"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "state", "expected"), ROUTES, ids=[row[0] for row in ROUTES])
def test_each_row_of_the_router(case, state, expected):
    assert route(state) == expected
