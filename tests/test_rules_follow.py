"""What a message takes over from the one before: never a patient into another's chart, never an order by itself."""

import pytest

from docgemma.rules.follow import carried, corrected, ordered_after_all, recorded_before
from tests.rules_help import drug, failed, order, person, request, result

MARIA = person("def-456", "Maria Garcia")
LAST = request("rx", meant="ordered", patients=[person()], orders=[order("lisinopril", "10 mg", "once daily")])


def test_a_first_message_takes_over_nothing() -> None:
    asked = request("labs")
    assert carried(asked, None, False) == asked


def test_a_correction_changes_one_detail_and_keeps_the_rest() -> None:
    found = carried(request("fix", details={"dose": "5 mg"}, said="no, 5 mg"), LAST, False)
    assert found["orders"] == [order("lisinopril", "5 mg", "once daily")]
    assert found["patients"] == LAST["patients"] and found["corrects"] and found["meant"] == "ordered"


def test_a_correction_of_the_drug_keeps_the_details() -> None:
    found = corrected(request("fix", drugs=[drug("enalapril")]), LAST)
    assert (found["orders"][0]["drug"], found["orders"][0]["dose"]) == ("enalapril", "10 mg")


def test_a_correction_of_the_patient_replaces_the_patient() -> None:
    found = corrected(request("fix", patients=[MARIA]), LAST)
    assert [patient["id"] for patient in found["patients"]] == ["def-456"]
    nobody = corrected(request("fix", unclear=["James Wilson"]), LAST)
    assert nobody["patients"] == [] and nobody["unclear"] == ["James Wilson"], "an unclear name is not the old patient"


def test_an_allergy_is_corrected_too() -> None:
    last = request("allergy", allergies=[{"substance": "penicillin", "reaction": "rash", "severity": "mild"}])
    found = corrected(request("fix", details={"reaction": "anaphylaxis", "severity": "severe"}), last)
    assert found["allergies"] == [{"substance": "penicillin", "reaction": "anaphylaxis", "severity": "severe"}]


def test_a_follow_up_on_drugs_means_the_drugs_before() -> None:
    last = request("safe", drugs=[drug("metformin")])
    assert [item["name"] for item in carried(request("ddi"), last, True)["drugs"]] == ["metformin"]
    assert [item["name"] for item in carried(request("may"), LAST, True)["drugs"]] == ["lisinopril"]


def test_a_new_question_takes_over_no_drug_no_order_and_no_patient() -> None:
    found = carried(request("labs", patients=[MARIA], said="labs of Maria"), LAST, True)
    assert found["orders"] == [] and found["drugs"] == [] and found["meant"] == ""
    assert [patient["id"] for patient in found["patients"]] == ["def-456"]


def test_the_same_measure_of_another_patient_is_asked_for() -> None:
    last = request("labs", patients=[person()], measures=["potassium"])
    assert carried(request("labs", patients=[MARIA]), last, True)["measures"] == ["potassium"]


def test_only_an_entry_that_was_made_counts_as_recorded() -> None:
    made = result("add_allergy")
    rejected = result("add_allergy", data={"decision": "rejected"})
    assert recorded_before({"tool_results": [made]})
    for other in (rejected, failed("add_allergy", "timeout"), result("get_patient_chart")):
        assert not recorded_before({"tool_results": [other]})


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("oops sats were 90 not 91", "sats 90, advised 111"),
        ("no, 90 instead of 91 please", "sats 90, advised 111"),
        ("not 112", "sats 91, advised 111"),
    ],
)
def test_a_word_of_a_waiting_note_is_corrected(said, text):
    last = request("note", notes=[{"note_type": "note", "note_text": "sats 91, advised 111"}], meant="ordered")
    assert carried(request("fix", said=said), last, True)["notes"][0]["note_text"] == text


def test_the_drug_that_was_asked_about_is_ordered_after_all_and_keeps_its_dose() -> None:
    asked = request(
        "may", drugs=[drug("doxycycline")],
        details={"dose": "100 mg", "frequency": "bd"}, said="is doxy 100 mg bd ok for her?",
    )  # fmt: skip
    then = request("fix", details={"frequency": "on", "notes": "5/7"}, said="pop that on for 5/7")
    order = ordered_after_all(then, asked)
    assert order and order["meant"] == "ordered" and order["asks"] == ["rx"]
    assert [(item["drug"], item["dose"], item["frequency"], item["notes"]) for item in order["orders"]] == [
        ("doxycycline", "100 mg", "bd", "5/7")
    ]


@pytest.mark.parametrize(
    ("said", "asks", "meant"),
    [
        ("ok thanks", ["ok"], ""),
        ("no dont start it", ["cancel"], "refused"),
        ("if i start it what then", ["ok"], ""),
        ("what is his potassium", ["labs"], ""),
    ],
)
def test_thanks_a_refusal_and_another_question_order_nothing(said, asks, meant) -> None:
    asked = request("may", drugs=[drug("doxycycline")], said="doxycycline ok?")
    assert ordered_after_all(request(*asks, meant=meant, said=said), asked) is None


def test_of_two_drugs_that_were_asked_about_none_is_ordered() -> None:
    two = request("may", drugs=[drug("doxycycline"), drug("ciprofloxacin")], said="doxycycline or ciprofloxacin?")
    assert ordered_after_all(request("ok", said="ok prescribe it"), two) is None
    beside = {**two, "orders": [order("doxycycline", "100 mg", "bd")]}  # one of the two with its dose
    assert ordered_after_all(request("ok", said="ok prescribe it"), beside) is None


def test_the_side_of_a_note_is_corrected_and_nothing_else() -> None:
    wrong = request("note", meant="ordered", notes=[{"note_type": "note", "note_text": "puncture R foot from nail"}])
    found = corrected(request("fix", said="no its the LEFT foot. redo"), wrong)
    assert found["notes"] == [{"note_type": "note", "note_text": "puncture L foot from nail"}]
    assert found["meant"] == "ordered"


def test_a_correction_that_was_not_understood_puts_no_card_up_again() -> None:
    assert corrected(request("fix", said="actually thats wrong"), LAST)["meant"] == "unsure"


def test_a_deed_that_names_a_drug_is_no_drug_check() -> None:
    asked = request("oos", drugs=[drug("amoxicillin")], patients=[person()], said="call cvs and cancel his amoxicillin")
    assert carried(asked, None, False)["asks"] == ["oos"]
    tests = request("oos", patients=[person()], said="order an inr for smith")
    assert carried(tests, None, False)["asks"] == ["oos", "labs"], "what is on file is shown beside the refusal"


def test_another_value_takes_the_place_of_the_one_value_of_a_note():
    note = request("note", meant="ordered", notes=[{"note_type": "clinical note", "note_text": "bp 168/94 at home"}])
    found = carried(request("fix", said="no i misheard its 158/94, put that one in instead"), note, patient_open=True)
    assert found["notes"][0]["note_text"] == "bp 158/94 at home"


def test_an_order_without_a_drug_is_of_the_one_that_was_asked_about_with_its_own_details() -> None:
    asked = request("safe", drugs=[drug("paracetamol")], said="max single dose of paracetamol for him?")
    then = request("rx", meant="ordered", details={"dose": "1g", "frequency": "qds prn"}, said="go on then, 1g qds prn")
    found = ordered_after_all(then, asked)
    assert found and [(one["drug"], one["dose"], one["frequency"]) for one in found["orders"]] == [
        ("paracetamol", "1g", "qds prn")
    ]
    elsewhat = carried(request("may", said="ok what would you give so"), asked, True)
    assert elsewhat["drugs"] and ordered_after_all(then, elsewhat) is None, "that message named no drug"


def test_a_question_without_a_drug_goes_on_with_the_drug_before() -> None:
    last = request("may", drugs=[drug("apixaban")], said="apixaban ok?")
    assert [one["name"] for one in carried(request(said="dose right?"), last, True)["drugs"]] == ["apixaban"]
