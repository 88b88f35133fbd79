"""An order beside a question: both are read, and nothing becomes an order that nobody ordered."""

import pytest


@pytest.mark.parametrize(
    ("message", "drug", "asked"),
    [
        ("Amoxicillin 500 tds 5/7 for Fatima al zahrani. Also her WCC?", "Amoxicillin", "labs"),
        ("can you order furosemide 20 mg daily for ms okafor & what's her weight vs may", "furosemide", "vit"),
        ("Add omeprazole 20mg OD for Mohammed Haddad for gastroprotection. Hb?", "omeprazole", "labs"),
        ("prescribe tramadol 50mg qid for Elena Petrova, is she still on the omeprazole?", "tramadol", "meds"),
    ],
)
def test_an_order_beside_a_question_is_ordered_and_the_question_is_asked(read, message, drug, asked) -> None:
    found = read(message)
    assert found["meant"] == "ordered" and [order["drug"] for order in found["orders"]] == [drug]
    assert {"rx", asked} <= {*found["asks"]}


@pytest.mark.parametrize(
    "message",
    [
        "hmm propranolol 40 mg bd for Maria Garcia, she has asthma doesn't she?",
        "nitrofurantoin 100mg MR bd 5/7 for D'Angelo, egfr 68, any reason not to",
        "surgical want cipro 500 mg bd for Tariq Mahmood. levels go up right, by how much",
        "clarithro 500 bd 7/7 for Maria Garcia, that ok with the warfarin?",
        "meropenem 1 g q8 Olena Shevchenko — renal adjust?",
        "tramadol 50 mg qds prn for t. nowak, duloxetine on board. i dont love it. you?",
        "Spine clinic: 'add nortriptyline 10 mg nocte for Renee Boudreaux.' What's the sedation risk?",
    ],
)
def test_what_is_asked_of_a_dose_or_ordered_by_others_is_no_order(read, message) -> None:
    assert read(message)["meant"] != "ordered"


def test_a_note_is_not_cut_short_by_a_sentence_that_reads_like_a_question(read) -> None:
    found = read("chart note for volkov dmitri. ascitic tap 5L drained under us, 40g albumin replaced, bp 100/60 after")
    assert "5L drained" in found["notes"][0]["note_text"]


@pytest.mark.parametrize(
    "message",
    [
        "what is haddad's K? and prescribe amox 500 mg tds for garcia",
        "prescribe amox 500 mg tds for garcia. what is haddad's K?",
    ],
)
def test_the_order_is_of_the_patient_of_its_own_part(read, message) -> None:
    assert read(message)["owners"]["rx"][0] == ["def-456"]
