"""What the fifth sealed round showed, held as behaviour on the real edge model: whom a message means among namesakes,
corrections of waiting entries, questions that no tool can serve, oblique questions about a drug."""

import pytest

from docgemma.rules.described import description

OLD_WILSON = "5dff2ce3-8fe9-47ad-b61b-b73febca1765"


@pytest.mark.parametrize(
    "message",
    [
        "last INR of wilson (5dff2ce3)",
        f"james wilson {OLD_WILSON}: last INR",
        "the warfarin Wilson, last INR?",
        "James Wilson, the one with HFrEF on coumadin. last INR?",
    ],
)
def test_a_namesake_is_told_apart_by_an_id_or_by_what_only_his_chart_has(offline_agent, message):
    done = offline_agent.ask(message)
    assert "1949-02-11" in done["answer"] and "2.6" in done["answer"] and done["status"] == "answered"


def test_a_drug_that_is_ordered_describes_nobody(offline_agent):
    assert offline_agent.ask("start warfarin 5 mg daily for James Wilson")["status"] == "needs_clarification"


@pytest.mark.parametrize("name", ["anna volkov", "Peter Volkov"])
def test_another_given_name_is_another_person(offline_agent, name):
    done = offline_agent.ask(f"labs for {name}")
    assert "Dmitri" not in done["answer"] and f"No patient named {name}" in done["answer"]


def test_an_initial_behind_a_name_is_nobody_else(offline_agent):
    answer = offline_agent.ask("Shevchenko O. metoclopramide ok?")["answer"]
    assert "Shevchenko" in answer and "O'Brien" not in answer


@pytest.mark.parametrize(
    ("message", "name", "said"),
    [
        ("the warfarin Wilson wants advil", "Wilson", "warfarin"),
        ("James Wilson, the one w HFrEF. INR?", "James Wilson", "the one w HFrEF"),
        ("compare Thornton and HFrEF-wilson", "wilson", "HFrEF"),
        ("start warfarin for James Wilson", "James Wilson", ""),
    ],
)
def test_a_description_stands_beside_the_name(message, name, said):
    assert description(message, name) == said


def test_a_combination_does_not_interact_with_its_own_ingredients(offline_agent):
    answer = offline_agent.ask("Thornton's meds")["answer"]
    assert "valsartan with sacubitril" not in answer and "sacubitril and valsartan with spironolactone" in answer


def test_a_correction_of_a_waiting_allergy_and_note_changes_the_card(offline_agent):
    first = offline_agent.ask("allergy okafor: amlodipine - ankle edema mild")
    done = offline_agent.ask("hmm moderate not mild", thread=first["thread"])
    assert done["pending_write"]["args"]["severity"] == "moderate"
    note = offline_agent.ask("save a note on ngata - rang today, breathless at rest, sats 91, advised 111 if worse")
    done = offline_agent.ask("oops sats were 90 not 91", thread=note["thread"])
    assert "sats 90," in done["pending_write"]["args"]["note_text"]


def test_a_bare_dose_takes_the_unit_of_its_usual_doses_and_says_so(offline_agent):
    card = offline_agent.ask("prescribe pantoprazole 40 po daily for haddad")["pending_write"]
    assert (card["args"]["dosage"], card["original"]["dosage"]) == ("40 mg", "40")
    assert any("40 is taken as 40 mg" in line for line in card["findings"])
    bare = offline_agent.ask("prescribe levothyroxine 0.1 po daily for benali")["pending_write"]
    assert bare["args"]["dosage"] == "0.1" and any("has no unit" in line for line in bare["findings"])


def test_a_question_across_all_patients_is_refused_plainly(offline_agent):
    done = offline_agent.ask("who do we have on warfarin")
    assert "one chart at a time" in done["answer"] and done["unanswered"][0]["ask"] == "list of patients"


def test_what_has_to_be_arranged_is_named_as_not_done(offline_agent):
    done = offline_agent.ask("can you ring the hospice and get volkov a bed for tomorrow")
    assert "cannot call, book" in done["answer"]


def test_a_drug_of_unclear_name_is_asked_about(offline_agent):
    told = offline_agent.ask("can i run dex 4mg od in Mrs Nguyen for appetite?")["answer"]
    assert told.startswith("Did you mean dexamethasone")


@pytest.mark.parametrize(
    "message", ["Sondergaard covid pos this AM. paxlovid?", "ED wants toradol iv for maria garcia s migraine"]
)
def test_a_drug_that_is_thought_of_for_a_patient_is_checked(offline_agent, message):
    answer = offline_agent.ask(message)["answer"]
    assert answer.startswith(("Contraindicated", "Warning"))


def test_a_value_of_a_note_is_not_called_absent(offline_agent):
    answer = offline_agent.ask("Tanaka: most recent QTc and K")["answer"]
    assert "438" in answer and "Not among the results" not in answer


def test_trials_are_searched_for_what_the_chart_has_where_no_condition_is_named(offline_agent):
    assert "DEMO-TRIAL-021" in offline_agent.ask("is there a trial Kamau would fit")["answer"]


def test_a_part_of_a_query_is_searched_where_nothing_matches_the_whole(offline_agent):
    answer = offline_agent.ask("papers on dapagliflozin in hfref vs biventricular pacing?")["answer"]
    assert "Nothing matches all of" in answer and "PMID 31535829" in answer


def test_a_drug_named_beside_one_that_is_taken_is_checked(offline_agent):
    answer = offline_agent.ask("Zoe Lefevre Dubois med rec: duloxetine dose? interacts with tramadol prn brought in?")[
        "answer"
    ]
    assert "60 mg" in answer and "serotonin" in answer


def test_biktarvy_is_not_said_to_interact_with_itself(offline_agent):
    answer = offline_agent.ask("Tegretol for Souza's mood swings, he takes Biktarvy")["answer"]
    assert "Major interaction with bictegravir" in answer and "Both contain tenofovir" not in answer


def test_a_loose_number_beside_two_drugs_is_nobodys_dose(offline_agent):
    answer = offline_agent.ask("can Nowak have fluoxetine, he takes duloxetine 60")["answer"]
    assert "has no unit" not in answer and "duloxetine" in answer
