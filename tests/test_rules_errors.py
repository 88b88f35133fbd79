"""Error texts and decisions: every row of v3 section 9, the templates word for word, the boundaries of retries."""

import pytest

from docgemma.errors import RETRYABLE, ErrorType
from docgemma.rules.errors import ERROR_TEMPLATES, error_message, handle_error
from tests.rules_help import failed, result

WILSONS = [{"id": f"w-{n}", "label": f"James Wilson, male, born 19{n}0-01-01"} for n in (5, 6, 7)]


def test_the_templates_of_the_specification_stand_word_for_word():
    spec = {
        "timeout": "The {tool_label} was temporarily unavailable. Please try again shortly.",
        "not_found": "No results were found for {entity} in the {tool_label}.",
        "invalid_args": "The request to {tool_label} could not be completed — additional information is needed.",
        "rate_limit": "The {tool_label} is temporarily busy. The system will retry automatically.",
        "server_error": "The {tool_label} experienced a temporary error. The system will retry automatically.",
    }
    assert {name: ERROR_TEMPLATES[name] for name in spec} == spec


def test_every_error_type_has_a_template_and_there_is_a_generic_one():
    assert {kind.value for kind in ErrorType} | {"generic"} <= set(ERROR_TEMPLATES)


@pytest.mark.parametrize("kind", list(ErrorType))
def test_every_error_type_gives_one_clean_line(kind):
    text = error_message(kind, "Drug Safety Report", {"drug_name": "a\nb{c}"}, "drug_name", {})
    assert text and "\n" not in text and "{tool" not in text and "drug_safety" not in text


@pytest.mark.parametrize("kind", ["", "KeyError: 'x'", "500"])
def test_an_unknown_error_gets_the_generic_text_and_shows_nothing_of_itself(kind):
    assert error_message(kind, "Patient Record", {}, "patient_id", {}) == "The Patient Record could not be completed."


@pytest.mark.parametrize(
    ("kind", "args", "details", "text"),
    [
        ("timeout", {}, {}, "The Drug Safety Report was temporarily unavailable. Please try again shortly."),
        ("not_found", {"drug_name": "foozle"}, {}, "No results were found for foozle in the Drug Safety Report."),
        ("drug_not_in_database", {"drug_name": "foozle"}, {},
         "foozle was not found in the drug database, so the Drug Safety Report did not check it."),
        ("service_unavailable", {}, {}, "Drug Safety Report is currently unavailable."),
        (
            "multiple_patient_matches", {"drug_name": "James Wilson"}, {"options": WILSONS[:2]},
            "I found 2 patients matching 'James Wilson'. Which one did you mean? "
            "(1) James Wilson, male, born 1950-01-01; (2) James Wilson, male, born 1960-01-01",
        ),
        ("multiple_patient_matches", {}, {}, "Multiple patients found. Which patient did you mean?"),
        ("missing_required_args", {}, {"missing_fields": ["patient_id"]},
         "I need a patient ID to proceed. Could you provide one? A name or a birth date will do."),
        ("missing_required_args", {}, {"missing_fields": ["dosage", "frequency"]},
         "I need more information: dosage, frequency"),
        ("ambiguous_drug_name", {}, {"suggestions": ["a", "b"]}, "Did you mean a or b?"),
        ("ambiguous_drug_name", {}, {"suggestions": ["a", "b", "c"]}, "Did you mean a, b or c?"),
        ("ambiguous_drug_name", {"drug_name": "met"}, {"suggestions": []}, "Which drug did you mean by met?"),
    ],
)  # fmt: skip
def test_messages_are_worded_as_specified(kind, args, details, text):
    assert error_message(kind, "Drug Safety Report", args, "drug_name", details) == text


# condition, failed call, retries of the tool, retries of the turn, action, message (v3 section 9)
ROWS = [
    ("patient_matches > 1",
     failed("search_patient", "multiple_patient_matches", {"name": "James Wilson"}, options=WILSONS),
     0, 0, "ask_user", "I found 3 patients matching 'James Wilson'."),
    ("missing_patient_id", failed("get_patient_chart", "missing_required_args", missing_fields=["patient_id"]),
     0, 0, "ask_user", "I need a patient ID to proceed. Could you provide one? A name or a birth date will do."),
    ("ambiguous_drug_name", failed("check_drug_safety", "ambiguous_drug_name", suggestions=["metformin", "metoprolol"]),
     0, 0, "ask_user", "Did you mean metformin or metoprolol?"),
    ("missing_required_fields", failed("prescribe_medication", "missing_required_args", missing_fields=["dosage"]),
     0, 0, "ask_user", "I need more information: dosage"),
    ("asking beats the retry limit", failed("search_patient", "multiple_patient_matches", options=WILSONS),
     2, 4, "ask_user", "I found 3 patients"),
    ("retry_count >= MAX_RETRIES", failed("check_drug_safety", "timeout"), 2, 2, "skip",
     "The drug label service did not respond. Nothing was checked."),
    ("retries of the turn used up", failed("check_drug_safety", "timeout"), 0, 4, "skip",
     "The drug label service did not respond. Nothing was checked."),
    ("drug_not_in_database", failed("check_drug_safety", "drug_not_in_database", {"drug_name": "foozle"}),
     0, 0, "skip", "foozle was not found in the drug database, so the Drug Safety Report did not check it."),
    ("service_unavailable after 1 retry", failed("check_drug_safety", "service_unavailable"), 1, 1, "skip",
     "Drug Safety Report is currently unavailable."),
    ("service_unavailable at first", failed("check_drug_safety", "service_unavailable"), 0, 0, "retry", ""),
    ("timeout at first", failed("check_drug_safety", "timeout"), 0, 0, "retry", ""),
    ("timeout after one retry", failed("check_drug_safety", "timeout"), 1, 1, "retry", ""),
    ("timeout after three", failed("check_drug_safety", "timeout"), 3, 3, "skip", "did not respond"),
    ("three retries in the turn", failed("check_drug_safety", "timeout"), 1, 3, "retry", ""),
    ("rate limit", failed("find_clinical_trials", "rate_limit"), 0, 0, "retry", ""),
    ("server error", failed("find_clinical_trials", "server_error"), 1, 1, "retry", ""),
    ("unreadable answer", failed("find_clinical_trials", "invalid_response"), 0, 0, "retry", ""),
    ("nothing under that name", failed("search_patient", "not_found", {"name": "X"}), 0, 0, "retry", ""),
    ("still nothing is said as such", failed("search_patient", "not_found", {"name": "X"}), 2, 2, "skip",
     "No results were found for X in the Patient Search."),
    ("an unknown patient id is never guessed at", failed("get_patient_chart", "not_found", {"patient_id": "zzz-999"}),
     0, 0, "skip", "No results were found for zzz-999 in the Patient Record."),
    ("bad arguments", failed("find_clinical_trials", "invalid_args"), 0, 0, "retry", ""),
    ("not permitted", failed("add_allergy", "not_permitted"), 0, 0, "skip", "does not permit it"),
    ("no vision", failed("analyze_medical_image", "no_vision"), 0, 0, "skip", "images cannot be read"),
    ("an error nobody knows",
     result("check_drug_safety", error="Something.", error_type="weird"), 0, 0, "skip", "Something."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "call", "retries", "total", "action", "message"), ROWS, ids=[row[0] for row in ROWS]
)
def test_each_row_of_the_rules_for_errors(condition, call, retries, total, action, message):
    decision = handle_error(call, retries, total)
    assert decision.action == action
    assert message in decision.message
    assert (decision.clarification is not None) == (action == "ask_user")


def test_no_decision_promises_a_retry_that_will_not_happen():
    for kind in RETRYABLE:
        assert "retry" not in handle_error(failed("find_clinical_trials", kind), 2, 2).message


def test_a_clarification_carries_the_choices_and_where_to_go_on():
    call = failed("search_patient", "multiple_patient_matches", {"name": "James Wilson"}, options=WILSONS)
    asked = handle_error(call, 0, 0).clarification
    assert asked["kind"] == "patient"
    assert [item["id"] for item in asked["options"]] == ["w-5", "w-6", "w-7"]
    assert (asked["tool"], asked["args"], asked["missing"]) == (
        "search_patient",
        {"name": "James Wilson"},
        ["patient_id"],
    )


@pytest.mark.parametrize(
    ("tool", "args", "field"),
    [
        ("check_drug_safety", {"drug_name": "met"}, "drug_name"),
        ("check_drug_interactions", {"drug_names": ["met", "x"]}, "drug_names"),
        ("prescribe_medication", {"medication_name": "met", "patient_id": "abc-123"}, "medication_name"),
    ],
)
def test_an_unclear_drug_is_asked_for_in_its_own_argument(tool, args, field):
    asked = handle_error(failed(tool, "ambiguous_drug_name", args, suggestions=["metformin"]), 0, 0).clarification
    assert asked["missing"] == [field]
    assert asked["options"] == [{"id": "metformin", "label": "metformin"}]
