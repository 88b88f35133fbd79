"""What a clinician in a hurry types: values, emergencies, orders per kilogram, questions that stand alone."""

from datetime import date, timedelta

import pytest

from docgemma.reading.terms import refers_back
from docgemma.rules.chart_entries import lines_of
from docgemma.rules.contradictions import contradictions
from docgemma.rules.follow import carried
from docgemma.rules.known import NOTHING, replaced
from docgemma.rules.typed import typed_lines, typed_values
from tests.rules_help import chart_of

SMITH, RAHMAN = "abc-123", "ghi-789"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("pt K 6.8, ecg changes, rx?", [("potassium", "6.8")]),
        ("k6.8 on gas", [("potassium", "6.8")]),
        ("potassium is 6.8 now", [("potassium", "6.8")]),
        ("prescribe ibuprofen 400mg tds", []),
        ("eGFR below 30", []),
    ],
)
def test_a_typed_value_is_the_number_behind_a_measure(said, found):
    assert list(typed_values(said)) == found


def test_a_value_as_the_chart_has_it_is_not_repeated():
    item = {"name": "Potassium", "value": "5.0", "unit": "mmol/L", "date": "2026-10-12", "flag": "normal"}
    chart = {"labs": [item], "vitals": [], "allergies": []}
    told = typed_lines(replaced(NOTHING, said="K 6.8, rx?"), chart, date(2026, 11, 23))
    assert told == [
        "You wrote potassium 6.8; the chart's latest is Potassium 5.0 mmol/L (2026-10-12, 42 days ago), normal."
    ]
    assert typed_lines(replaced(NOTHING, said="K 5.0, rx?"), chart, date(2026, 11, 23)) == []


def test_only_a_message_that_leans_takes_the_drug_of_the_one_before():
    last = replaced(NOTHING, asks=["may"], drugs=[{"said": "x", "name": "paracetamol", "how": "named"}])
    own = replaced(NOTHING, asks=["may"], said="sepsis 6", telling=["sepsis"])
    assert not carried(own, last, True)["drugs"]
    assert carried(replaced(NOTHING, asks=["may"], said="is it safe then?"), last, True)["drugs"] == last["drugs"]
    assert refers_back("and for Souza?") and not refers_back("sepsis 6")


@pytest.mark.parametrize("question", ["pt k 6.8 on gas, what do i do", "hyperkalaemia management"])
def test_treatment_is_said_not_to_be_covered_beside_what_the_chart_holds(offline_agent, question):
    done = offline_agent.ask(question, patient=SMITH)
    assert done["status"] == "answered" and done["pending_write"] is None
    assert "not covered here" in done["answer"] and "5.0" in done["answer"]
    assert [item["ask"] for item in done["unanswered"]] == ["general question"]


def test_without_a_patient_it_is_one_line(offline_agent):
    done = offline_agent.ask("pt k 6.8 on gas, what do i do")
    assert done["tools"] == [] and "protocol" in done["answer"] and done["unanswered"]


def test_a_raised_dose_is_a_change_and_its_dose_is_checked(offline_agent):
    done = offline_agent.ask("increase lisinopril to 40mg od", patient=SMITH)
    assert done["pending_write"] is None and "cannot remove, stop or change" in done["answer"]
    assert "40 mg a day; the maximum is 80 mg a day" in done["answer"] and "lisinopril 20 mg" in done["answer"]


def test_a_dose_per_kilogram_is_computed_from_the_chart(offline_agent):
    card = offline_agent.ask("gent 5 mg/kg iv od", patient=SMITH)["pending_write"]
    assert card["args"]["medication_name"] == "gentamicin" and card["args"]["dosage"] == "455 mg"
    assert card["original"]["dosage"] == "5 mg/kg" and "91 kg" in card["args"]["notes"]
    assert list(card["args"])[:4] == ["patient_id", "medication_name", "dosage", "frequency"]


def test_what_a_drug_is_given_in_is_no_order_of_its_own(offline_agent):
    card = offline_agent.ask("give 10 units actrapid in 50ml 50% dextrose stat", patient=SMITH)["pending_write"]
    assert card["args"]["medication_name"] == "actrapid" and "50ml 50%" in card["args"]["notes"]


def test_an_order_is_one_whatever_was_said_before(offline_agent):
    thread = offline_agent.ask("can I give metformin?", patient=SMITH)["thread"]
    done = offline_agent.ask("prescribe ibuprofen 400mg tds", thread=thread)
    assert done["pending_write"]["args"]["medication_name"] == "ibuprofen"


def test_nkda_is_held_against_the_chart_and_a_drug_is_spelt_right(offline_agent):
    done = offline_agent.ask("nkda. start ceftriaxon 1g iv od", patient=RAHMAN)
    assert done["pending_write"]["args"]["medication_name"] == "ceftriaxone"
    assert "You wrote NKDA; the chart has: penicillin" in done["answer"]


def test_a_pregnant_patient_is_no_man_and_the_woman_spoken_of_is_offered(offline_agent):
    assert offline_agent.ask("pregnant pt, is doxy ok", patient=SMITH)["status"] == "needs_clarification"
    thread = offline_agent.ask("show chart", patient=RAHMAN)["thread"]
    asked = offline_agent.ask("her crp", thread=thread, patient=SMITH)
    assert [option["id"] for option in asked["options"]] == [RAHMAN, SMITH]


def test_a_duration_before_its_reason_is_read(offline_agent):
    card = offline_agent.ask("nitrofurantoin 100mg bd 5/7 for uti", patient=RAHMAN)["pending_write"]
    assert card["args"]["notes"] == "for 5 days; for uti"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("petrova sore throat and fever, last anc?", "methimazole (warning): agranulocytosis. Latest recorded"),
        ("thornton sees yellow halos, apical 50", "digoxin (warning): toxicity with renal impairment"),
        ("grace kim took her methotrexate every day", "mistaken daily instead of weekly dosing has been fatal"),
        ("volkov is sleepy, hands flapping. meds?", "furosemide (warning): hepatic coma in cirrhosis"),
        ("castellano lots of new bruising, last cbc?", "pemetrexed and carboplatin"),  # only a note tells it
        ("petrova denies fever, sore throat or chills. tsh?", ""),
        ("is grace kim's folic acid every day?", ""),  # another drug is named
        ("garcia is sleepy, hands flapping. meds?", ""),  # no liver disease
    ],
)
def test_a_symptom_that_a_label_of_what_is_taken_warns_of_is_told_first(offline_agent, asked, told) -> None:
    answer = offline_agent.ask(asked)["answer"]
    assert answer.startswith("Urgent: ") == bool(told)
    assert told in answer.split("\n")[0]
    assert not told or "This needs a clinician now." in answer.split("\n")[0]


def test_what_two_entries_cannot_both_say_leads_and_nothing_else_does(offline_agent) -> None:
    side = offline_agent.ask("boudreaux notes?")["answer"].split("\n")[0]
    assert side.startswith("The record contradicts itself: Imaging order, 2026-09-22")
    assert "Left leg pain" in side and "Left lumbosacral radiculopathy" in side
    back = offline_agent.ask("abernathy notes about his back?")["answer"]
    assert "contradicts itself: Telephone note" in back
    for other in ("lindqvist notes?", "maddox notes?", "nowak notes?", "james wilson notes?", "abernathy psa?"):
        answer = offline_agent.ask(other)["answer"]
        assert "contradicts" not in answer and "Urgent" not in answer


def test_a_new_symptom_of_a_note_is_urgent_for_thirty_days() -> None:
    def told(text: str, days: int) -> list[str]:
        day = (date.today() - timedelta(days)).isoformat()
        chart = chart_of(notes=[{"type": "Telephone note", "date": day, "author": "", "text": text}])
        return contradictions(chart, [line.text for line in lines_of(chart, "notes")])

    assert told("New numbness of the left foot.", 30)[0].startswith("Urgent: new in the note. Telephone note")
    assert not told("New numbness of the left foot.", 31)
    assert not told("No new numbness or weakness.", 1)


def test_falls_of_a_note_are_a_reason_on_the_card_and_in_the_answer(offline_agent) -> None:
    note = "falls (“Two falls in the last six months.”, Progress note, 2026-06-15)"
    card = offline_agent.ask("prescribe codeine 30 mg po qds prn for Anneliese Schäfer")["pending_write"]["findings"]
    assert [line for line in card if "avoid opioids after falls" in line and note in line]
    assert note in offline_agent.ask("zolpidem ok for Schäfer?")["answer"]
    assert "falls (" not in offline_agent.ask("zolpidem ok for Haddad?")["answer"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("liam andersen meds?", "since 2026-11-17 (its 7 days ended on 2026-11-23; still listed as active)."),
        ("moreaus wife swears the sinemet is 4x a day. what do u have", "You wrote sinemet is 4x a day; the record"),
        ("kowalczyk sat last visit? he's 90 on RA", "You wrote oxygen saturation 90; the chart's latest is Oxygen sat"),
        ("is mr kowalczyk nkda", "No allergies are recorded, and it is not documented that there are none"),
        ("clerking tomasz nowak, summarise his notes + allergies", "No opioids, respiratory depression under morphine"),
        ("wisniewska problems?", "Surveillance of contraceptive pills (since 2020-01-13, resolved 2026-08-28)."),
    ],
)
def test_what_has_ended_and_what_the_record_has_otherwise_is_said(offline_agent, asked, told) -> None:
    assert told in offline_agent.ask(asked)["answer"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "robert thornton lap chole mon, when to stop empagliflozin",
            "empagliflozin: stop at least 3 days before",
        ),
        ("kahananui tci tues for a knee replacement, meds?", "metformin: hold while fasting for surgery"),
        ("abernathy is on the cataract list, anything in his meds", "tamsulosin: cataract or glaucoma surgery: floppy"),
        ("haddad hernia op in jan, ok to stop his clopidogrel?", "Dual antiplatelet therapy until at least April 2027"),
        ("thornton k and meds", ""),
        ("no op planned for thornton, meds?", ""),
    ],
)
def test_an_operation_that_is_mentioned_leads_to_what_rules_say_of_the_medicines(offline_agent, said, told) -> None:
    answer = offline_agent.ask(said)["answer"]
    assert told in answer and ("For what you wrote (" in answer) == bool(told)
    assert "You wrote" not in answer  # "mon" and "tues" are the day of the operation


def test_smoking_that_stops_is_told_to_who_takes_clozapine(offline_agent) -> None:
    told = offline_agent.ask("mahmood quit smoking 5 days ago and is sleepy, his meds?")["answer"]
    assert told.startswith(
        "Urgent: smoking that stops. What warns of it: clozapine (warning): levels rise when smoking"
    )


def test_a_question_on_the_chart_orders_nothing(offline_agent) -> None:
    first = offline_agent.ask("petrova sore throat 2 d. amox ok w her stuff?")
    then = offline_agent.ask("fine sending her. anything in the chart about pregnancy", thread=first["thread"])
    assert then["status"] == "answered" and then["pending_write"] is None
    held = offline_agent.ask("boudreaux: write flexeril 10 tid. no wait, hold off. what gabapentin is she on")
    assert held["pending_write"] is None and "gabapentin 300 mg three times daily" in held["answer"]
