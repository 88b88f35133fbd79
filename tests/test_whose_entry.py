"""Whose an entry is, and of which drug: relatives, wrong ids, allergies beside orders, strengths with a stroke."""

import pytest

WHOM = "For whom is this entry?"


@pytest.mark.parametrize(
    ("said", "patient", "args"),
    [
        ("Amara Diallo, sister of Kwame Mensah. add cetirizine 10 mg od", "Amara Diallo", {}),
        ("Wanjiru Kamau, mother of Kwame Mensah, start her on senna 15 mg at night", "Wanjiru Kamau", {}),
        ("Leilani Kahananui wife of Joseph Begay, he reacts to latex. prescribe her loratadine 10 mg od",
         "Leilani Kahananui", {"medication_name": "loratadine"}),
        ("Hiroshi Tanaka's daughter Amara Diallo is pale, start her on folic acid 5 mg od", "Amara Diallo", {}),
        ("Wanjiru Kamau - her husband Joseph Begay had a reaction to naproxen. add senna 15 mg od for Wanjiru",
         "Wanjiru Kamau", {"medication_name": "senna"}),
        ("prescribe senna 15 mg od for Grace Kim and cetirizine 10 mg od for Joseph Begay", "Grace Kim", {}),
        # the form stays; a rate and a strength are no other dose
        ("Gregory Maddox tramadol 100 mg SR bd, add", "Gregory Maddox", {"notes": "SR"}),
        ("Joseph Begay nicotine patch 14 mg/24h od, prescribe", "Joseph Begay",
         {"dosage": "14 mg/24h", "frequency": "once daily"}),
    ],
)  # fmt: skip
def test_an_entry_is_of_whom_it_was_ordered_for(offline_agent, said, patient, args):
    waiting = offline_agent.ask(said)["pending_write"]
    assert waiting["patient"]["name"] == patient
    assert waiting["args"] | args == waiting["args"]


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("Dorothy Okafor is aunt of Amara Diallo, she is unwell. prescribe her amoxicillin 500 mg tds", WHOM),
        ("Dorothy Okafor's niece Amara Diallo. please add senna 15 mg at night", WHOM),
        ("id ghi-789 Robert Thornton add senna 15 mg at night", WHOM),
        ("Robert Thornton's wife is itchy, prescribe her cetirizine 10 mg od", "Is this who is meant?"),
        ("ID ghi-788 Aisha Rahman - start loratadine 10 mg od", "and the message says ghi-788"),
        ("id fac448ef wilson dob 1949-02-11 add loratadine 10 mg od", "For whom is this entry?"),
        ("gregory maddox start nitro 50 mg qds", "Did you mean nitroglycerin, nitrofurantoin"),
        ("Amara Diallo add loratadine 10 mg od and record allergy to egg",
         "reaction of the allergy to egg\nAfter this entry follows: loratadine."),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_asked_before_a_card(offline_agent, said, question):
    turn = offline_agent.ask(said)
    assert not turn["pending_write"] and question in turn["answer"]


def test_an_id_of_nobody_is_said_beside_the_answer(offline_agent):
    assert "No patient named 556 was found" in offline_agent.ask("id 556 Walter Kowalczyk last K")["answer"]


def test_the_answer_to_what_was_asked_back_completes_the_allergy(offline_agent):
    thread = offline_agent.ask("liam andersen - start Calpol 250 mg qds and record allergy to soya")["thread"]
    args = offline_agent.ask("wheals, moderate", thread=thread)["pending_write"]["args"]
    assert (args["substance"], args["reaction"], args["severity"]) == ("soya", "wheals", "moderate")
    assert offline_agent.decide(thread, "approve")["pending_write"]["args"]["medication_name"] == "Calpol"


@pytest.mark.parametrize("reason", ["", "discussed with the family"])
def test_a_note_that_is_approved_against_a_warning_is_saved(offline_agent, reason):
    waiting = offline_agent.ask("Anneliese Schafer - save a note: falls discussed, lorazepam to begin on Monday")
    assert any("Warning (lorazepam)" in line for line in waiting["pending_write"]["findings"])
    assert "Saved the clinical note" in offline_agent.decide(waiting["thread"], "approve", reason=reason)["answer"]


@pytest.mark.parametrize(
    ("said", "finding", "unsaid"),
    [
        (
            "volkov co-codamol 8/500 2 tabs qid, prescribe",
            "4,000 mg a day, above the maximum of 2,000 mg a day",
            "known)",
        ),
        ("gregory maddox Tramacet 37.5/325 1 tab tds, prescribe", "975 mg a day", "how much of each ingredient"),
        ("prescribe Symbicort 100/6 1 puff bd for maria garcia", "is 2 puff a day", "no plausible dose"),
    ],
)
def test_the_strength_of_a_combination_is_read(offline_agent, said, finding, unsaid):
    told = "\n".join(offline_agent.ask(said)["pending_write"]["findings"])
    assert finding in told and unsaid not in told
