"""What stands on a card: doses with all of their words, and each detail of the entry that it was said of."""

from datetime import date
from decimal import Decimal

import pytest

from docgemma.reading.reader import _joined
from docgemma.rules.typed import typed_lines, typed_values
from docgemma.text.clauses import unmarked
from docgemma.text.frequency import times_per_day


@pytest.mark.parametrize(
    ("said", "card"),
    [
        # a leading point
        ("prescribe lorazepam .5 mg nocte for Rebecca Goldstein", {"dosage": "0.5 mg"}),
        ("order levothyroxine .075 mg om for Maria Garcia", {"dosage": "0.075 mg"}),
        # a range, and none
        ("order tramadol 50 to 100 mg qds prn for Lindqvist", {"dosage": "50 to 100 mg"}),
        ("order tramadol 50-100 mg qds prn for Lindqvist", {"dosage": "50-100 mg"}),
        # a course of two doses, whole
        ("order doxycycline for John Smith: 200 on day one then 100 for 6 days",
         {"dosage": "200 on day one then 100 for 6 days", "frequency": "as written in the dose"}),
        ("order prednisolone for John Smith: 30 mg om for 7 days, then 15 mg om for 7 days",
         {"dosage": "30 mg om for 7 days then 15 mg om for 7 days"}),
        ("John Smith, order prednisolone 30 mg daily for 7 days then 20 mg daily for 7 days then 10 mg daily",
         {"dosage": "30 mg daily for 7 days", "notes": "then 20 mg daily for 7 days then 10 mg daily"}),
        # a unit of one letter
        ("heparin 5000 u sc bd for John Smith", {"dosage": "5000 u", "notes": "subcutaneously"}),
        # values and doses are no instructions
        ("order salbutamol 100 mcg 1 to 2 puffs qds prn for John Smith", {"dosage": "100 mcg 1 to 2 puffs"}),
        ("John Smith dalteparin 100 units/kg sc od, order pls, wt 84", 
         {"notes": "subcutaneously; 100 units/kg at 91 kg (2026-10-12)"}),
        ("Patricia Lindqvist - methotrexate 15 mg po weekly, folic acid 5 weekly - prescribe both",
         {"notes": "by mouth"}),
    ],
)  # fmt: skip
def test_a_card_holds_the_dose_as_it_was_written(offline_agent, said, card):
    args = offline_agent.ask(said)["pending_write"]["args"]
    assert args | card == args


@pytest.mark.parametrize(
    ("typed", "card"),
    [
        # tablets in the morning, at noon and at night
        ("candesartan 8mg 1-0-0", {"frequency": "in the morning"}),
        ("carbamazepine 200 1-0-1", {"frequency": "in the morning and at night"}),
        ("ursodiol 250 1-1-1 pc", {"frequency": "in the morning, at noon and at night", "notes": "after meals"}),
        ("levocetirizine 5mg 0-0-1 x 10d", {"frequency": "at night", "notes": "for 10 days"}),
        ("telmisartan 40 1-0-0 empty stomach", {"frequency": "in the morning", "notes": "empty stomach"}),
        ("lansoprazole 30 bbf 4/52", {"frequency": "before breakfast", "notes": "for 4 weeks"}),
        # how often with all of its words
        ("testosterone undecanoate 1 g IM q12 weeks", {"frequency": "q12 weeks", "notes": "intramuscularly"}),
        ("leuprolide 22.5 mg IM q 3 months", {"frequency": "q 3 months", "notes": "intramuscularly"}),
        ("codeine 30mg q6 hours prn", {"frequency": "q6 hours as needed"}),
        ("ferrous fumarate 210 alt days 3/12", {"frequency": "every other day", "notes": "for 3 months"}),
        ("erythromycin 250mg q6hrly 7/7", {"frequency": "every 6 hours", "notes": "for 7 days"}),
        ("cefixime 400mg po qday x7d", {"frequency": "once daily", "notes": "by mouth; for 7 days"}),
        ("empagliflozin 10 q am", {"frequency": "in the morning"}),
        ("clonazepam 0.5 mg q pm", {"frequency": "in the evening"}),
        ("sitagliptin 100mg with breakfast", {"frequency": "with breakfast"}),
        ("carvedilol 6.25 mg daily with supper", {"frequency": "once daily", "notes": "with supper"}),
        ("doxazosin 4mg on, recheck bp 2/52", {"frequency": "at night", "notes": "recheck bp in 2 weeks"}),
        ("melatonin 2mg on 3/52", {"frequency": "at night", "notes": "for 3 weeks"}),
        ("stat chlorphenamine 10 mg iv", {"frequency": "once, now (stat)", "dosage": "10 mg"}),
        # a length is no date
        ("indometacin 25 tds with food 4/7", {"notes": "with food for 4 days"}),
        # how many, and how much is in them
        ("2 tabs co-dydramol 10/500 qds prn", {"dosage": "10/500 2 tabs"}),
        ("hyoscine butylbromide 10mg ii tabs qds prn", {"dosage": "10mg ii tabs"}),
        ("2 caps loperamide stat", {"dosage": "2 caps", "frequency": "once, now (stat)"}),
        ("dulcolax ii tabs po nocte", {"dosage": "ii tabs", "notes": "by mouth"}),
        ("novomix 30 12 units bd", {"dosage": "30 12 units"}),
        # routes
        ("dalteparin 5000u s/c od", {"notes": "subcutaneously"}),
        ("timolol 0.5% 1 gtt OU bid", {"dosage": "1 gtt", "notes": "both eyes"}),
    ],
)  # fmt: skip
def test_shorthand_of_a_prescription_is_read_whole(offline_agent, typed, card):
    args = offline_agent.ask(f"John Smith: start {typed}")["pending_write"]["args"]
    assert args | card == args


@pytest.mark.parametrize(
    ("often", "times"),
    [("q12 weeks", Decimal(1) / 84), ("q4 hours", 6), ("before meals and at bedtime", 4), ("with breakfast", 1),
     ("breakfast and dinner", 2), ("twice daily with lunch", 2), ("in the morning, at noon and at night", 3)],
)  # fmt: skip
def test_doses_a_day_are_those_of_the_whole_phrase(often, times):
    assert times_per_day(often) == pytest.approx(times)


@pytest.mark.parametrize(
    ("correction", "dosage"),
    [
        ("25 to 50 mg", "25 to 50 mg"),
        ("make it .5 mg", "0.5 mg"),
        ("2 mg stat then 1 mg after 6 hrs", "2 mg stat then 1 mg after 6 hrs"),
        ("100 first day then 50 for 2 more days", "100 first day then 50 for 2 more days"),
    ],
)
def test_a_correction_holds_the_dose_as_it_was_written(offline_agent, correction, dosage):
    thread = offline_agent.ask("order tramadol 50 mg qds prn for Lindqvist")["thread"]
    assert offline_agent.ask(correction, thread=thread)["pending_write"]["args"]["dosage"] == dosage


@pytest.mark.parametrize(
    ("said", "second"),
    [
        (
            "add allergies for Dorothy Okafor: ibuprofen - angioedema, severe; and latex - itching",
            {"reaction": "itching"},
        ),
        ("allergies for Dorothy Okafor: peanut (hives, mild), kiwi (vomiting). add", {"reaction": "vomiting"}),
        ("add allergy for Dorothy Okafor: egg hives mild, severe latex anaphylaxis", {"severity": "severe"}),
        ("add allergy for Dorothy Okafor: egg rash mild, shellfish vomiting", {"reaction": "vomiting"}),
    ],
)
def test_a_second_allergy_has_its_own_reaction_and_severity(offline_agent, said, second):
    thread = offline_agent.ask(said)["thread"]
    args = offline_agent.decide(thread, "approve")["pending_write"]["args"]
    assert {key: args[key] for key in ("reaction", "severity") if key in args} | second == {
        key: args[key] for key in {"reaction", "severity"} & {*args}
    }
    assert ("severity" in args) == ("severity" in second)


@pytest.mark.parametrize(
    ("said", "frequency"),
    [
        ("bisoprolol 5 mg od po and ipratropium neb 500 mcg for Aroha Ngata, order pls", None),
        ("order flucloxacillin 500 mg qds 5 days and codeine 30 mg for John Smith", None),
        ("order codeine 30 mg and paracetamol 1 g qds for John Smith", "four times daily"),
    ],
)
def test_what_stands_between_two_drugs_is_of_the_first(offline_agent, said, frequency):
    thread = offline_agent.ask(said)["thread"]
    then = offline_agent.decide(thread, "approve")
    assert (then["pending_write"] or {"args": {"frequency": None}})["args"]["frequency"] == frequency
    assert frequency or "frequency" in then["answer"]


def test_two_drugs_that_are_compared_have_their_own_frequency(offline_agent):
    answer = offline_agent.ask("John Smith diclofenac 50 tds or celecoxib 200 mg, which is better")["answer"]
    assert "50 mg three times daily is 150 mg a day" in answer
    assert "200 mg three times daily" not in answer


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("James Wilson born 1949 lithium level", []),
        ("Kim b. 7 oct 1980 ferritin", []),
        ("wilson 11/02/1949 tsh", []),
        ("INR 3 weeks ago vs today", []),
        ("hb 4 mths back", []),
        ("tsh 2024?", []),
        ("ferritin 2010", [("ferritin", "2010")]),
        ("zolpidem 10 mg?", []),
        ("2 mg, again after 1 hr", []),
        ("K 5.4 HR 90", [("potassium", "5.4"), ("heart rate", "90")]),
        ("k 4.2, 88 creat", [("potassium", "4.2"), ("creatinine", "88")]),
        ("aged 77, sats 77", [("oxygen saturation", "77")]),
        ("mg 0.6", [("magnesium", "0.6")]),
    ],
)
def test_no_year_time_or_dose_is_a_value(said, values):
    assert [*typed_values(said)] == values


@pytest.mark.parametrize(("typed", "lines"), [("461", 0), ("502", 1)])
def test_a_value_of_a_note_is_not_denied(typed, lines):
    note = {"type": "ECG", "text": "Sinus rhythm, QTc 461 ms.", "date": "2026-10-01", "author": ""}
    chart = {"labs": [], "vitals": [], "allergies": [], "notes": [note]}
    request = {"patients": [], "drugs": [], "orders": [], "asks": [], "said": f"qtc {typed}"}
    assert len(typed_lines(request, chart, date(2026, 11, 1))) == lines


@pytest.mark.parametrize(
    ("text", "at", "joined"), [("dose .5 mg", 6, True), (".5 mg", 1, True), ("dose.5", 5, False), ("at. 5", 2, False)]
)
def test_a_leading_point_is_part_of_its_number(text, at, joined):
    assert _joined(text, at) == joined


def test_marks_go_and_a_leading_point_stays():
    assert unmarked("- .5 mg,", " -.,") == ".5 mg"
    assert unmarked(". 5 mg.", " -.,") == "5 mg"
