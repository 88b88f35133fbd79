"""An answer about a drug for a patient says whose, and shows the results that the label asks for."""

from docgemma.rules.cut import complete
from docgemma.rules.patient_context import by_patient, with_patient

PATIENT = {"id": "abc-123", "name": "John Smith", "label": "John Smith, male, born 1958-04-12"}
EGFR = {"name": "eGFR", "value": "38", "unit": "mL/min/1.73 m²", "flag": "low", "date": "2026-09-30"}
LABEL = {"drug": "metformin", "boxed_warning": "", "contraindications": ["eGFR below 30"], "warnings": []}


def result(tool: str, data: dict) -> dict:
    return {"tool_name": tool, "error": None, "error_type": None, "result": data, "args": {}}


def state(*results: dict) -> dict:
    return {"user_query": "", "tool_results": list(results)}


def chart(labs: list[dict]) -> dict:
    return result("get_patient_chart", {"patient": PATIENT, "labs": labs, "vitals": []})


def test_the_patient_heads_the_answer_and_the_result_that_the_label_asks_for_follows() -> None:
    text = with_patient("Metformin is contraindicated.", state(chart([EGFR]), result("check_drug_safety", LABEL)))
    assert text.splitlines() == [
        "Patient: John Smith, male, born 1958-04-12, patient ID abc-123.",
        "Metformin is contraindicated.",
        "Latest result: eGFR 38 mL/min/1.73 m² (low, 2026-09-30).",
    ]


def test_a_result_that_is_not_on_record_is_said_to_be_missing() -> None:
    text = with_patient("For John Smith.", state(chart([]), result("check_drug_safety", LABEL)))
    assert text == "For John Smith.\nNo eGFR is recorded for this patient."


def test_without_a_chart_or_a_label_that_asks_nothing_is_added() -> None:
    assert with_patient("x", state(result("check_drug_safety", LABEL))) == "x"
    quiet = {**LABEL, "contraindications": ["hypersensitivity"]}
    assert with_patient("John Smith", state(chart([EGFR]), result("check_drug_safety", quiet))) == "John Smith"


def test_a_line_that_was_cut_short_is_completed_from_the_evidence() -> None:
    whole = "Dofetilide has an FDA boxed warning: monitor the ECG for at least 3 days."
    assert complete("Dofetilide has an FDA boxed warning: monitor …\nOther.", [f"x\n{whole}"]) == f"{whole}\nOther."
    assert complete("monitor the ECG …", [whole]) == "monitor the ECG for at least 3 days."
    assert complete("Something else entirely …", [whole]) == "Something else entirely …"
    assert complete("No mark here", [whole]) == "No mark here"


def test_two_patients_are_answered_one_after_the_other_and_one_is_not() -> None:
    ana = {"id": "def-456", "name": "Ana Popescu", "label": "Ana Popescu, female, born 1971-09-03"}
    john = chart([EGFR]) | {"formatted_result": "Patient John Smith.\nAllergy: latex."}
    other = result("get_patient_chart", {"patient": ana}) | {
        "formatted_result": "Patient Ana Popescu.\nAllergy: iodine."
    }
    label = result("check_drug_safety", LABEL) | {"formatted_result": "Metformin label."}
    assert by_patient(state(john, other, label)) == (
        "Patient John Smith.\nAllergy: latex.\n\nPatient Ana Popescu.\nAllergy: iodine.\n\nMetformin label."
    )
    assert by_patient(state(john, john, label)) is None
