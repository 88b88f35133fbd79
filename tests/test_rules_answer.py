"""The composed answer: from this turn's results alone, and what it does not serve is said with the reason."""

import pytest

from docgemma.rules.answer import compose
from docgemma.rules.layout import Answer
from docgemma.rules.order_check import CONTRAINDICATED, Finding
from tests.rules_help import (
    allergic,
    chart,
    dictionary,
    drug,
    failed,
    measured,
    order,
    patient_found,
    person,
    request,
    result,
    turn,
)

SMITH = [person()]
METFORMIN = {"drug_name": "metformin"}


def answer(asked, *results, checks=None, **more) -> tuple[str, list[dict]]:
    made = composed(asked, *results, checks=checks, **more)
    return made.text, made.missing


def composed(asked, *results, checks=None, **more) -> Answer:
    return compose(turn(asked, *results, **more), dictionary(), checks or {})


def label(**given) -> dict:
    data = {
        "drug": "metformin", "asked": "metformin", "has_boxed_warning": True, "boxed_warning": "Lactic acidosis.",
        "contraindications": ["eGFR below 30"], "warnings": ["vitamin B12 deficiency"], "max_daily_dose": "2550 mg",
        "interactions": "", "basis": "label 123, version 2", **given,
    }  # fmt: skip
    return result("check_drug_safety", METFORMIN, data=data, text="Metformin label.")


def test_each_block_names_its_patient() -> None:
    two = [*SMITH, person("def-456", "Maria Garcia")]
    charts = chart("metformin"), chart("sumatriptan", patient_id="def-456", name="Maria Garcia")
    text, _ = answer(request("meds", patients=two), *charts)
    first, second, *rest = text.split("\n\n")
    assert [block.split(" [")[0] for block in rest] == [
        "Also in the chart of John Smith", "Also in the chart of Maria Garcia",
    ]  # fmt: skip
    assert "abc-123" in first and "metformin" in first and "sumatriptan" not in first
    assert "def-456" in second and "sumatriptan" in second and "metformin" not in second


def test_nothing_of_the_question_is_evidence() -> None:
    said = "he is allergic to penicillin and takes warfarin, what are his labs?"
    text, _ = answer(request("labs", patients=SMITH, said=said), chart(labs=[measured("Potassium", "5.0", "mmol/L")]))
    assert "5.0 mmol/L" in text and "penicillin" not in text and "warfarin" not in text


def test_no_sentence_about_a_patient_without_their_chart() -> None:
    text, _ = answer(request("labs", patients=SMITH), failed("get_patient_chart", "timeout", {"patient_id": "abc-123"}))
    assert "recorded" not in text and "Patient:" not in text
    assert "unavailable" in text or "did not respond" in text or "could not" in text


def test_what_an_outage_left_open_is_listed_as_not_answered() -> None:
    _, missing = answer(
        request("labs", patients=SMITH), failed("get_patient_chart", "timeout", {"patient_id": "abc-123"})
    )
    assert [item["ask"] for item in missing] == ["laboratory results"]


def test_each_ask_that_nothing_serves_is_listed_with_a_reason() -> None:
    text, missing = answer(request("labs", "gk", patients=SMITH), chart(labs=[measured("Potassium", "5.0")]))
    assert [item["ask"] for item in missing] == ["general question"] and missing[0]["reason"] in text


def test_a_name_that_is_no_drug_is_said_to_be_none() -> None:
    asked = request("safe", drugs=[drug("metformin"), drug("blorbitol", how="unknown")])
    text, missing = answer(asked, label())
    reason = "not recognised as a drug, so it was not checked: write its full name"
    assert {"ask": "blorbitol", "reason": reason} in missing and "blorbitol" in text


@pytest.mark.parametrize(
    ("said", "ask", "told"),
    [
        ("metformin with QZX ok?", "may", "Not answered: QZX (not recognised as a drug, so it was not checked: write"),
        ("can she have QZX 50 mg", "may", "Not answered: QZX (not recognised"),
        ("QZX for her?", "safe", "Not answered: QZX (not recognised"),
        (
            "azt and metformin?",
            "ddi",
            "Not answered: azt (may mean zidovudine or azathioprine or aztreonam, so it was not checked",
        ),
        ("metformin with CKD, eGFR 40, 500 mg BD for T2DM on HD?", "may", ""),
    ],
)
def test_what_stands_where_a_drug_stands_and_is_none_that_is_known_is_said(said, ask, told) -> None:
    text, _ = answer(request(ask, drugs=[drug("metformin")], said=said), label())
    assert told in text and ("Not answered" in text) == (told != "")


def test_a_spelling_that_was_corrected_is_said() -> None:
    text, _ = answer(request("safe", drugs=[drug("metformin", how="near", said="metfornin")]), label())
    assert "metfornin was read as metformin." in text


def test_a_label_leads_with_its_boxed_warning_or_with_the_dose_that_was_asked_for() -> None:
    asked = request("safe", drugs=[drug("metformin")], said="metformin warnings")
    assert "boxed warning: Lactic acidosis" in answer(asked, label())[0].splitlines()[0]
    asked = request("safe", drugs=[drug("metformin")], measures=["max daily dose"], said="max daily dose of metformin")
    lead, rest = answer(asked, label())[0].split("\n\n")
    assert "2550 mg" in lead and "boxed warning: Lactic acidosis" in rest.splitlines()[0]
    assert (
        "no boxed warning (label 123, version 2)" in answer(asked, label(has_boxed_warning=False, boxed_warning=""))[0]
    )


def test_a_check_lists_its_findings_and_never_says_safe() -> None:
    asked = request("may", patients=SMITH, drugs=[drug("ibuprofen")])
    found = [Finding(CONTRAINDICATED, "Allergy to aspirin (bronchospasm): ibuprofen may cross-react.")]
    text, _ = answer(
        asked,
        chart("warfarin", allergies=[allergic("aspirin", "bronchospasm")]),
        checks={("abc-123", "ibuprofen"): found},
    )
    assert found[0].text in text and "is safe" not in text
    text, _ = answer(asked, chart("warfarin"), checks={("abc-123", "ibuprofen"): []})
    assert "does not prove that it is safe" in text


def test_an_order_that_was_asked_about_says_that_nothing_was_prepared() -> None:
    asked = request("rx", meant="asked", patients=SMITH, orders=[order("metformin", "500 mg")])
    text, _ = answer(asked, chart("warfarin"))
    assert "No entry was prepared" in text and "Prescribed" not in text


def test_prescribed_is_said_only_of_a_result_of_this_turn() -> None:
    made = result(
        "prescribe_medication", {"medication_name": "lisinopril"}, text="Prescribed lisinopril 10 mg for John Smith."
    )
    asked = request("rx", meant="ordered", patients=SMITH, orders=[order("lisinopril", "10 mg")])
    assert "Prescribed lisinopril" in answer(asked, made)[0]
    refused = failed("prescribe_medication", "not_permitted", {"medication_name": "lisinopril"})
    assert "Prescribed" not in answer(asked, refused)[0]


def test_a_change_that_no_tool_can_make_is_refused_and_what_stands_is_shown() -> None:
    asked = request("change", patients=SMITH, drugs=[drug("metformin")])
    text, _ = answer(asked, chart("metformin", "lisinopril"))
    assert text.startswith("I cannot remove, stop or change") and "metformin" in text.split("\n\n")[1]


def test_a_dead_patient_is_said_to_be_dead_first() -> None:
    text, _ = answer(request("meds", patients=SMITH), chart("metformin", deceased="2026-03-22T10:00:00Z"))
    assert "deceased on 2026-03-22" in text.splitlines()[0]


def test_a_search_that_found_somebody_by_guess_says_so() -> None:
    guessed = patient_found()
    guessed["formatted_result"] += "\nThe record spells the name otherwise; this is the closest match. Please confirm."
    text, _ = answer(request("meds", patients=[person(search="Jhon Smiht")]), guessed, chart("metformin"))
    assert "closest match" in text and "metformin" in text


def test_a_judgement_is_quoted_as_not_answered_unless_a_check_is_the_answer() -> None:
    asked = request("labs", patients=[person()], said="hb trend, is the iron working, good idea to go on?")
    text, missing = answer(asked, chart("warfarin"))
    assert "Not answered: “is the iron working” (this needs a clinician's judgement" in text
    assert len(missing) == 2
    checked = request("may", patients=[person()], drugs=[drug("ibuprofen")], said="ibuprofen, good idea? is she fine?")
    assert [item["ask"] for item in answer(checked, chart("warfarin"))[1]] == ["“is she fine”"]


def test_a_part_of_the_question_that_no_entry_matches_is_said_and_what_is_answered_is_not() -> None:
    said = "meds for John Smith, and is his slot still on friday"
    made_answer = composed(request("meds", patients=SMITH, said=said), chart("metformin"))
    assert made_answer.missing == [
        {"ask": "“is his slot still on friday”", "reason": "no entry of the chart has these words"}
    ]
    assert made_answer.text.endswith("(look above for it): “is his slot still on friday”.")
    for said in ("smith - meds, on metformin?", "smith vomiting since last night, daughter is at bedside. meds please"):
        assert not composed(
            request("meds", patients=SMITH, said=said), chart("metformin")
        ).missing  # a remark asks nothing


def test_what_speaks_against_the_drug_that_is_asked_about_leads_before_a_symptom_and_a_refusal() -> None:
    said = "smith stop his metformin, temp and sore throat, can he have ibuprofen"
    asked = request("may", "change", drugs=[drug("ibuprofen")], patients=SMITH, said=said)
    found = [Finding(CONTRAINDICATED, "Allergy to ibuprofen (anaphylaxis): ibuprofen is the same drug.")]
    lead = composed(asked, chart("metformin"), checks={("abc-123", "ibuprofen"): found}).lead
    assert lead and lead.text.startswith("Contraindicated: ibuprofen for John Smith. Allergy to ibuprofen")


def test_a_result_that_is_missing_leads_only_where_nothing_else_that_was_asked_for_is_told() -> None:
    qtc = {"type": "Cardiology note", "date": "2026-10-22", "author": "Cardiology", "text": "Sinus rhythm, QTc 438 ms."}
    asked = request("labs", patients=SMITH, measures=["qtc", "ecg"], said="qtc on last ecg")
    made_answer = composed(asked, chart(notes=[qtc]))
    assert made_answer.lead is None and "QTc 438 ms" in made_answer.text
    assert composed(asked, chart()).lead.text.startswith("Not among the results: ")
