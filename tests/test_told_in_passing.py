"""What a message tells in passing, a symptom, an event, an age, is held against what is taken; what it only asks,
denies or tells of others is not. And second messages that lean on the first."""

import pytest

from docgemma.rules.alarms import alarms_told
from docgemma.rules.patient_state import UNKNOWN, as_told
from docgemma.text.births import age_and_sex
from docgemma.text.shorthand import expanded


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("siobhan o'brien drip yesterday, hands cramping, lips tingling", "zoledronic acid (warning): hypocalcemia"),
        ("t mahmood on clozapine, BNO 5/7, belly distended", "Urgent: constipation"),
        ("abernathy, priapism since last night", "tamsulosin"),
        ("kamau has had the squits for 3 months", "sprue-like enteropathy"),
        ("d'angelo's joints sore, can't get up", "sitagliptin (warning): severe joint pain"),
        ("haddad no tabs since monday, chest heavy", "12-lead ECG and emergency assessment now"),
        ("wilson born 5/12/2001 vomiting, skipped his lantus", "basal insulin is not left out"),
        ("olena shevchenko says her period is 9 days late", "fetal risk"),
        ("grace kim: chest infxn, mtx as usual?", "active infection: hold"),
        ("olena shevchenko has a +ve preg test, stop valproate tonight?", "do not stop abruptly in epilepsy"),
        ("begay had a previous seizure in 2010, and a seizure this morning", "Urgent: a seizure"),
        ("tariq mahmood, 2 day history of sore throat", "Urgent: fever, sore throat"),
        ("haddad's daughter says he has chest pain", "Urgent: chest pain"),
        # a described patient of no record
        ("AF, 84 yr F, 55kg, Cr 1.1. Apixaban what dose", "2.5 mg in one dose"),
        ("fast AF, her EF 30%. She's 75. diltiazem ok?", "avoid with reduced ejection fraction"),
        ("man of 78 w Lewy body dementia, haloperidol 0.5 ok?", "Contraindicated (haloperidol)"),
        ("levetiracetam dose for status epilepticus, 70 kg", "load 60 mg/kg"),
        # the first group of a UUID is an id; weeks by the due date
        ("915cc218 what is she on", "donepezil"),
        ("how far on is priya raghunathan today", "weeks and"),
    ],
)  # fmt: skip
def test_what_is_told_is_held_against_what_is_taken(offline_agent, said: str, told: str) -> None:
    assert told in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    "said",
    [
        "haddad is chest pain free since discharge", "haddad: seen in chest pain clinic",
        "haddad's wife had chest pain",
        "does volkov have encephalopathy", "no chest pain", "any bleeding?", "goldstein seen by gastro",
        "begay had hearing aids fitted", "schafer's sodium fell in hospital", "wilson uses his pen correctly",
        "his sputum is a bit yellow", "kim walks the dog every morning", "volkov just stopped drinking",
    ],
)  # fmt: skip
def test_what_is_asked_denied_or_of_others_is_no_alarm(said: str) -> None:
    assert not alarms_told(said)


def test_what_treats_anaphylaxis_is_no_allergy_and_what_caused_it_is(offline_agent) -> None:
    assert "Contraindicated" not in offline_agent.ask("adrenaline im anaphylaxis adult dose, how soon repeat")["answer"]
    told = offline_agent.ask("30F anaphylaxis to hydrocortisone, prednisolone ok?")["answer"]
    assert "(prednisolone): Allergy to hydrocortisone" in told


@pytest.mark.parametrize(
    ("said", "told"),
    [("84 yr F", (84, "female")), ("76 yr lady", (76, "female")), ("she's 75. ok?", (75, "female")),
     ("hes 99, sats", (None, "")), ("pack a day 40 years, female", (None, "")), ("egfr 28 female", (None, ""))],
)  # fmt: skip
def test_ages_as_they_are_typed(said: str, told: tuple[int | None, str]) -> None:
    assert age_and_sex(said) == told


def test_a_result_stands_for_a_problem_of_the_patient_alone() -> None:
    assert any("reduced ejection fraction" in one for one in as_told("EF 30", UNKNOWN).problems)
    assert not as_told("his wife's EF 30", UNKNOWN).problems
    assert not as_told("EF 55", UNKNOWN).problems


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("bd stat", "twice daily, first dose now (stat)"),
        ("stat", "once, now (stat)"),
        ("stat x1", "once, now (stat) x1"),
    ],
)
def test_a_first_dose_now(written: str, plain: str) -> None:
    assert expanded(written, "routes", "frequencies") == plain


def test_a_note_for_the_dead_says_so(offline_agent) -> None:
    card = offline_agent.ask("document harold baxter visit: chest clear, sats 96")["pending_write"]
    assert "This patient is recorded as deceased." in card["findings"]


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        ("wanjiru kamau k+ pls", "and okafors?", "Potassium 4.8"),
        ("allergies james wilson, the young one w diabetes", "no the other one, w the reflux", "Allergies: codeine"),
        ("alexander papadopoulos what dose methylphenidate", "up it to 54 please", "I cannot remove, stop or change"),
        ("sofia allegra, ramipril 2.5 od to add, any probs?", "shes 7 wks late btw", "ramipril for Sofia Allegra"),
        ("mensah hb", "and his warfarin dose", "Warfarin is not among the recorded medications"),
        ("smith uti. trimethoprim 200 bd ok?", "nitro instead then?", "Contraindicated: nitrofurantoin for John Smith"),
        ("goldstein, ibuprofen 400 w lithium?", "any ref for that?", "Drug-induced lithium toxicity in the elderly"),
        ("smith potassium", "???", ""),
    ],
)
def test_a_second_message_leans_on_the_first(offline_agent, first: str, then: str, told: str) -> None:
    thread = offline_agent.ask(first)["thread"]
    assert told in offline_agent.ask(then, thread=thread)["answer"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("is amoxicillin 500 mg tds safe in pregnancy?", "ok start on rahman"),
        ("is amoxicillin 500 mg tds safe in pregnancy?", "put up garcia's meds"),
        ("prescribe for smith 500 mg tds", "and stop the lorazepam"),
    ],
)
def test_a_second_message_that_orders_nothing_gets_no_card(offline_agent, first: str, then: str) -> None:
    thread = offline_agent.ask(first)["thread"]
    assert offline_agent.ask(then, thread=thread)["pending_write"] is None


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("Note for Nowak. Amlodipine 10 mg od please", "prescribe_medication"),
        ("please note Smith. Allergic to penicillin, anaphylaxis", "add_allergy"),
    ],
)
def test_no_entry_is_swallowed_by_a_note(offline_agent, said: str, tool: str) -> None:
    assert offline_agent.ask(said)["pending_write"]["name"] == tool


def test_the_note_that_was_offered_is_prepared(offline_agent) -> None:
    thread = offline_agent.ask("increase leilani kahananui's ozempic to 2mg")["thread"]
    card = offline_agent.ask("ok do the note. semaglutide to go up to 2 mg weekly", thread=thread)["pending_write"]
    assert card["args"]["note_text"] == "semaglutide to go up to 2 mg weekly"
