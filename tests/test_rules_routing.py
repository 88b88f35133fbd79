"""The deterministic router: v3 section 9 and node 6, row by row. It ends a turn at `MAX_STEPS` calls, 8."""

import pytest

from docgemma.errors import RETRYABLE, ErrorType
from docgemma.rules.plan import MAX_STEPS
from docgemma.rules.routing import known_quality, route
from tests.rules_help import drug, failed, patient_found, person, request, result, turn

SAFETY = "check_drug_safety"
WILSONS = [{"id": f"w-{n}", "label": f"James Wilson {n}"} for n in range(3)]
METFORMIN = {"drug_name": "metformin"}


@pytest.mark.parametrize("kind", list(ErrorType))
def test_code_types_every_error(kind):
    expected = "error_retryable" if kind in RETRYABLE else "error_fatal"
    assert known_quality(failed(SAFETY, kind)) == expected


def test_an_empty_result_is_no_error_and_a_payload_is_the_models_to_judge():
    assert known_quality(result(SAFETY, empty=True)) == "no_results"
    assert known_quality(result(SAFETY, text="a boxed warning")) is None


LOOK_UP = request("safe", drugs=[drug("metformin")])
HIS_CHART = request("find", "chart", "safe", patients=[person(search="John Smith")], drugs=[drug("metformin")])

ROUTES = [
    ("three patients match", turn(request("find", unclear=["James Wilson"]),
     failed("search_patient", "multiple_patient_matches", {"name": "James Wilson"}, options=WILSONS),
     last_result_classification="error_fatal"), "error_handler"),
    ("timeout", turn(LOOK_UP, failed(SAFETY, "timeout", METFORMIN), last_result_classification="error_retryable"),
     "error_handler"),
    ("missing argument", turn(request("chart"), failed("get_patient_chart", "missing_required_args"),
     last_result_classification="error_fatal"), "error_handler"),
    ("rich and done",
     turn(LOOK_UP, result(SAFETY, METFORMIN), last_result_classification="success_rich"), "synthesize"),
    ("partial and done", turn(LOOK_UP, result(SAFETY, METFORMIN), last_result_classification="success_partial"),
     "synthesize"),
    ("nothing found and done", turn(LOOK_UP, result(SAFETY, METFORMIN, empty=True),
     last_result_classification="no_results"), "synthesize"),
    ("rich, more needed", turn(HIS_CHART, patient_found(), last_result_classification="success_rich"), "tool_select"),
    ("one step left", turn(HIS_CHART, patient_found(), step_count=MAX_STEPS - 1,
     last_result_classification="success_rich"), "tool_select"),
    ("the last step", turn(HIS_CHART, patient_found(), step_count=MAX_STEPS,
     last_result_classification="success_rich"), "synthesize"),
    ("a question to the clinician is open", turn(HIS_CHART, clarification={"question": "Which?"}), "synthesize"),
    ("no tool proposed, nothing needed", turn(request("chat"), proposed_none=True), "synthesize"),
    ("no tool proposed, more needed", turn(HIS_CHART, patient_found(), proposed_none=True,
     last_result_classification="success_rich"), "tool_select"),
    ("the model calls a payload an error", turn(LOOK_UP, result(SAFETY, METFORMIN, text="fine"),
     last_result_classification="error_fatal"), "synthesize"),
    ("nothing at all", turn(request()), "synthesize"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "state", "expected"), ROUTES, ids=[row[0] for row in ROUTES])
def test_each_row_of_the_router(case, state, expected):
    assert route(state) == expected
