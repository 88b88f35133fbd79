"""Whom a message means: one of several namesakes, nobody, or somebody of the other sex."""

import pytest

from docgemma.reading.terms import everyday
from docgemma.text.words import clinical


@pytest.mark.parametrize(
    ("message", "born"),
    [
        ("what did james wilson with the CHF (1949) weigh last time?", "1949-02-11"),
        ("wilson '49 inr", "1949-02-11"),
        ("wilson 77M, last inr?", "1949-02-11"),
        ("wilson in his 70s, last inr", "1949-02-11"),
        ("wilson on warfarin - inr?", "1949-02-11"),
        ("wilson dec 2001 hba1c", "2001-12-05"),
        ("meds for the codeine wilson", "1985-07-30"),
    ],
)
def test_one_is_told_from_namesakes_by_what_is_said(offline_agent, message, born):
    done = offline_agent.ask(message)
    assert done["status"] == "answered" and f"born {born}" in done["answer"]


@pytest.mark.parametrize(
    ("message", "born"),
    [
        ("james wilson the coeliac lad, last ttg", "2001-12-05"),
        ("the james wilson w afib on warf - last inr n target", "1949-02-11"),
        ("wilson james, rpt request sertraline + omep from lloyds. last review when", "1985-07-30"),
        ("young james wilson T1DM fasting for am list, skip his lantus tonight?", "2001-12-05"),
        ("t1 coeliac wilson, 01. weight & hba1c", "2001-12-05"),
        ("ibuprofen ok for james wilson, hes on warfarin", "1949-02-11"),
        ("can james wilson take ibuprofen with his coumadin?", "1949-02-11"),
        ("hba1c for the wilson who has t1dm", "2001-12-05"),
        ("wilson heart failure, nt-probnp", "1949-02-11"),
    ],
)
def test_one_is_told_from_namesakes_by_what_is_said_in_passing(offline_agent, message, born):
    done = offline_agent.ask(message)
    assert "James Wilson, male, born " + born in done["answer"] and "Which one" not in done["answer"]
    assert not done["pending_write"]


def test_a_later_message_answers_the_question(offline_agent):
    first = offline_agent.ask("james wilson - weight?")
    done = offline_agent.ask("hes got giardia, cipro ok with his lantus?", thread=first["thread"])
    assert "Patient: James Wilson, male, born 2001-12-05" in done["answer"]


@pytest.mark.parametrize(
    "message",
    [
        "can james wilson have warfarin?",
        "start warfarin for james wilson",
        "can james wilson go on warfarin",
        "cardio want james wilson on warfarin, bp",
        "wilson, should he be on warfarin",
        "james wilson on warfarin or apixaban?",
        "wilson warfarin dose?",
        "wilson AF?",
        "does wilson have AF",
        "wilson new AF, anticoagulation?",
        "hypertension or AF wilson? k",
        "james wilson coeliac screen",
        "james wilson with AF on sertraline, bp",  # fits nobody
        "old james wilson T1DM hba1c",
        "james wilson, her lantus dose?",
        "james wilson, wife on warfarin, bp",
        "save a note for james wilson on warfarin: seen in clinic",
        "amox 500 tds for james wilson, hes on warfarin, prescribe",
    ],
)
def test_what_is_asked_ordered_doubted_or_contradicted_chooses_nobody(offline_agent, message):
    done = offline_agent.ask(message)
    assert not done["pending_write"] and done["status"] == "needs_clarification"
    assert "Which one did you mean" in done["answer"]


@pytest.mark.parametrize(
    "message",
    [
        "is wilson on warfarin?",  # asked, not described
        "stop the sertraline for wilson",
        "wilson with sertraline overdose",  # more than a chart has
        "wilson jan 2001 hba1c",
        "not the 1949 wilson, allergies",
        "wilson, the older one on sertraline: allergies",  # fits nobody
        "wilson with AF needs bisoprolol 5 mg od, prescribe",
    ],
)
def test_what_describes_nobody_for_sure_is_asked(offline_agent, message):
    assert "Which one did you mean" in offline_agent.ask(message)["answer"]


@pytest.mark.parametrize(
    "answer",
    [
        "not the 1949 one",
        "is he on sertraline?",
        "and sertraline?",
        "stop sertraline",
        "the 1949 one, no wait, 1985",
        "1949, or 1985?",
    ],
)
def test_an_answer_that_excludes_asks_or_takes_back_chooses_nobody(offline_agent, answer):
    first = offline_agent.ask("wilson allergies")
    done = offline_agent.ask(answer, thread=first["thread"])
    asked = done["status"] != "answered" or "Which patient?" in done["answer"]
    assert "James Wilson, male, born 1949-02-11 (" not in done["answer"] and asked


def test_an_answer_chooses_and_asks_more(offline_agent):
    first = offline_agent.ask("wilson allergies")
    done = offline_agent.ask("the 1949 one. and his inr?", thread=first["thread"])["answer"]
    assert "INR 2.6" in done and "No allergies are recorded" in done
    other = offline_agent.ask("wilson allergies")
    done = offline_agent.ask("the older one, is he on sertraline?", thread=other["thread"])["answer"]
    assert "born 1949-02-11" in done and "No allergies are recorded" in done and "born 1985" not in done


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("margaret hughes 03/05/48, ward 7. on here?", "margaret hughes, born 1948-05-03 or 1948-03-05 was found."),
        ("maria lopez", "No patient named maria lopez was found."),
        ("john smith dob 1/1/1950 labs", "born 1950-01-01 was found. Of this name: John Smith, male, born 1958-04-12."),
    ],
)
def test_a_name_and_birth_that_fit_nobody_are_searched_and_said(offline_agent, message, said):
    assert said in offline_agent.ask(message)["answer"]


def test_a_title_of_the_other_sex_is_said_and_asked_about_before_an_entry(offline_agent):
    assert "Wanjiru Kamau is recorded as female; the message says “mr”." in offline_agent.ask("mr kamau k?")["answer"]
    first = offline_agent.ask("prescribe paracetamol 1 g po qds for mr kamau")
    assert first["status"] == "needs_clarification" and "Is this who is meant?" in first["answer"]
    assert offline_agent.ask("yes", thread=first["thread"])["status"] == "needs_approval"


def test_whom_a_noun_or_pronoun_means_while_somebody_is_open(offline_agent):
    thread = offline_agent.ask("grace kim wcc")["thread"]
    offline_agent.ask("and mensah's hb", thread=thread)
    assert "Whom do you mean" in offline_agent.ask("start the lady on folic acid 5 mg weekly", thread=thread)["answer"]
    other = offline_agent.ask("dr mills asks for okafor's k")["thread"]
    assert "Whom do you mean" in offline_agent.ask("start him on losartan 25 mg daily", thread=other)["answer"]
    then = offline_agent.ask("he called back, can she have losartan 25 mg daily?", thread=other)
    assert "Patient: Dorothy Okafor" in then["answer"]


@pytest.mark.parametrize(
    ("message", "born"),
    [
        ("3/18/1999", "1999-03-18"),
        ("1949 james wilson: last inr", "1949-02-11"),
        ("lookin for a lady sonder-something, old, afib, on xarelto. id?", "1950-11-06"),
    ],
)
def test_a_birth_alone_or_before_a_name_and_the_beginning_of_a_name_find_somebody(offline_agent, message, born):
    assert f"born {born}" in offline_agent.ask(message)["answer"]


@pytest.mark.parametrize("said", ["back to the first chap, allergies", "k for the previous pt", "the other one - bp?"])
def test_somebody_spoken_of_before_is_asked_for(offline_agent, said):
    thread = offline_agent.ask("smith egfr")["thread"]
    offline_agent.ask("sorry meant thornton", thread=thread)
    asked = offline_agent.ask(said, thread=thread)
    assert [item["label"].split(",")[0] for item in asked["options"]] == ["John Smith", "Robert Thornton"]
    assert "John Smith, male" in offline_agent.ask("the first one", thread=thread)["answer"]
    assert not offline_agent.ask("what was the previous one", thread=thread)["options"]  # the result before


@pytest.mark.parametrize("answer", ["the 41 yr old", "the 41 y/o", "41yo", "the 41-year-old"])
def test_an_age_chooses_between_candidates(offline_agent, answer):
    thread = offline_agent.ask("allergies for wilson")["thread"]
    assert "born 1985-07-30" in offline_agent.ask(answer, thread=thread)["answer"].splitlines()[0]


def test_a_ward_word_is_nobodys_beginning_and_a_prescribers_he_no_patient(offline_agent):
    done = offline_agent.ask("MAR has kim's methotrexate 15 mg DAILY?? what does her chart say")
    assert "Maria Garcia" not in done["answer"] and "Grace Kim" in done["answer"]
    assert everyday().isdisjoint(clinical("given_names")["short"])
    thread = offline_agent.ask("rahman allergies")["thread"]
    done = offline_agent.ask("he changed it to doxy 100 bid. that one good?", thread=thread)
    assert "Doxycycline for Aisha Rahman" in done["answer"]


@pytest.mark.parametrize("said", ["hes 82 on RA now", "spo2 84% ra", "sats dropped to 79 on 4L", "satting 85"])
def test_a_low_saturation_is_urgent_whoever_is_open(offline_agent, said):
    urgent = "Urgent: oxygen saturation below 90 % or breathing in distress. Get help to the bedside now"
    thread = offline_agent.ask("kowalczyk baseline o2 sat")["thread"]
    done = offline_agent.ask(said, thread=thread)
    assert urgent in done["answer"] and not done["pending_write"]
    assert offline_agent.ask(said)["answer"].startswith(urgent)
    assert urgent not in offline_agent.ask("aim sats 88 right?", thread=thread)["answer"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("volkov lactulose dose? and last bm", "Not among the results: bowel movement."),
        ("kowalczyk baseline o2 sat", "Oxygen saturation 93 % (2026-11-12"),
        ("raghunathan how far along is she", "About 29 weeks of pregnancy today"),
        ("wilson's inr?? the coumadin clinic one", "INR 2.6 (2026-11-09"),
        ("a1c for kahananui, suparman and d'angelo", "Allergies: trimethoprim-sulfamethoxazole (hyperkalemia"),
    ],
)
def test_what_is_asked_on_the_ward_is_read_as_it_is_meant(offline_agent, said, told):
    answer = offline_agent.ask(said)["answer"]
    assert told in answer and "You wrote" not in answer


@pytest.mark.parametrize(
    ("before", "message", "name"),
    [
        ("haddad and kamau K", "can the first one have omeprazole?", "Mohammed Haddad"),
        ("haddad and kamau K", "and his ldl?", "Mohammed Haddad"),
        ("haddad and kamau K", "can she have ibuprofen?", "Wanjiru Kamau"),
        ("okafor, kamau and haddad K", "the second lady's bp?", "Wanjiru Kamau"),
    ],
)
def test_one_of_those_of_the_turn_before_is_meant(offline_agent, before, message, name):
    first = offline_agent.ask(before)
    answer = offline_agent.ask(message, thread=first["thread"])["answer"]
    assert f"Patient: {name}" in answer and answer.count("Patient: ") == 1


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("thornton and smith K", "can he have ibuprofen?"),  # two men
        ("haddad and kamau K", "prescribe pantoprazole 40 mg od"),
        ("haddad and kamau K", "save a note: discussed with his wife"),
        ("haddad, okafor and kamau K", "the second lady's bp?"),  # of all, or of the ladies
        ("haddad and okafor bp", "dr mills called, he wants losartan 25 mg daily"),
    ],
)
def test_where_two_of_the_turn_before_may_be_meant_it_is_asked(offline_agent, before, message):
    first = offline_agent.ask(before)
    done = offline_agent.ask(message, thread=first["thread"])
    assert done["status"] == "needs_clarification" and "Whom do you mean?" in done["answer"]


def test_a_look_up_after_two_patients_is_of_both_and_the_order_of_whom_is_chosen(offline_agent):
    first = offline_agent.ask("haddad and kamau K")
    both = offline_agent.ask("and the egfr?", thread=first["thread"])["answer"]
    assert "Patient: Mohammed Haddad" in both and "Patient: Wanjiru Kamau" in both
    offline_agent.ask("prescribe pantoprazole 40 mg od", thread=first["thread"])
    done = offline_agent.ask("the lady", thread=first["thread"])
    assert done["status"] == "needs_approval" and "Wanjiru Kamau" in str(done["pending_write"])


def test_what_was_said_of_an_order_is_not_asked_for_again(offline_agent):
    first = offline_agent.ask("maria garcia allergies")
    asked = offline_agent.ask("prescribe 1g four times daily as needed, 3 days", thread=first["thread"])
    assert "medication name" in asked["answer"] and "dosage" not in asked["answer"]
    done = offline_agent.ask("paracetamol 500 mg", thread=first["thread"])
    assert done["status"] == "needs_approval" and done["pending_write"]["args"]["dosage"] == "500 mg"


def test_no_order_and_a_note_is_the_note(offline_agent):
    first = offline_agent.ask("moreau meds")
    done = offline_agent.ask("dont order anything, just save a note: avoid dopamine blockers", thread=first["thread"])
    assert done["pending_write"]["name"] == "save_clinical_note"
