"""What strangers' answers lacked in rounds 12 and 13: each asked of the whole agent, in other words than theirs."""

import json

import pytest


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # what labels warn of, where a part of the message is not answered as such
        ("kamau has chronic diarrhoea. could any of her tablets do that", "sprue-like enteropathy"),
        ("apixaban for wisniewska - can it be paused", "Stopping early without another anticoagulant raises the risk"),
        # what is taken together already is always told
        ("amara diallo - is her pill reliable", "Taken together already: major interaction of rifampin with"),
        # what cannot be done leaves no contradiction of the chart untold
        ("book an MRI for abernathy, his back was stable", "The record contradicts itself: "),
        # what is taken up again, and is not taken now, is checked
        ("wisniewska wants to go back on yasmin", "Contraindicated: yasmin for Ewa Wiśniewska."),
        ("volkov's latest bilirubin in umol", "Total bilirubin in µmol/L: about 44.5"),
        ("kwame mensah's baseline hb", "No earlier value is recorded: Hemoglobin."),
        ("has kowalczyk had his CT", "No report of it is recorded: CT."),
        ("any trial for IBD that suits björn þórsson", "Ulcerative colitis, no active problem has this name"),
        ("any trial for castellano's meso", "No trials were found for Malignant mesothelioma of pleura"),
        ("d'angelo, norflox 400 bd?",
         "Allergy to ciprofloxacin (tendon pain, moderate): norflox belongs to the same class (fluoroquinolones)."),
        ("tanaka: clari 500 bd with metro 400 bd, ok?", "Metronidazole for Hiroshi Tanaka"),
        ("can haddad drop his clopidogrel? how long does he need it", "this needs a clinician's judgement"),
        ("harold baxter: start bumetanide 1 mg od?", "If another one is meant, give a name and birth date."),
        ("aroha ngata's trough", "Not among the results: drug levels."),
        # of a drug of which nothing is stored, what speaks alike against members of its class
        ("olena shevchenko, doripenem 500 mg tds ok?", "of meropenem, of its class: Major interaction with valproate"),
        ("ESBL in her urine, olena shevchenko. mero ok?", "Warning: meropenem for Olena Shevchenko."),
        # one entry of the chart may be two problems: gestational diabetes is pregnancy too
        ("raghunathan, cipro 500 bd ok?", "pregnancy: use only if benefit outweighs"),
        # a drug that is not taken, beside a result that is asked for
        ("petrova's anc? levaquin reasonable", "Levofloxacin (asked as levaquin)"),
        ("ingrid søndergaard covid positive, paxlovid?", "Contraindicated interaction with amiodarone"),
        ("liam andersen, nurofen dose by weight", "10 mg/kg in one dose"),
        # what is told of the patient counts: pregnancy, poor intake
        ("sofia allegra is 6/40. what of hers matters", "fetal or newborn jaundice"),
        ("john smith off food 2 days, his tablets?", "lisinopril: correct volume depletion first"),
        ("could benali go on eliquis 5 bid", "The patient has Mechanical heart valve in place"),
        ("which antiemetic to stay away from in moreau", "contraindicated: metoclopramide"),
        ("phone the lab for björn þórsson's crp", "I cannot call, book, page"),
        # what round 15 showed: options by "which", a drug that was given already, the label beside an interaction
        ("amara diallo has a DVT, which doac?", "Checked for this patient, doacs: warning: apixaban"),
        ("d'angelo's uti is back. what can she have", "Fosfomycin: it was given lately"),
        ("can vincristine go intrathecal with mtx? label wording", "fatal if given by other routes"),
        ("haddad after viagra, any nitrates on his list?", "Caution: viagra for Mohammed Haddad."),
        ("could thorsson have co-amoxiclav 625 tds", "500 mg three times daily is 1,500 mg a day"),
    ],
)  # fmt: skip
def test_what_was_left_out_is_told(offline_agent, said: str, told: str) -> None:
    assert told in offline_agent.ask(said)["answer"]


def test_a_note_that_says_not_to_stop_stops_nothing(offline_agent) -> None:
    card = offline_agent.ask("note for mohammed haddad: told NOT to stop clopidogrel before the hernia")[
        "pending_write"
    ]
    assert not card["findings"]


def test_a_stated_indication_gets_no_other_s_maximum(offline_agent) -> None:
    answer = offline_agent.ask("can smith have trimethoprim 200 bd for a uti")["answer"]
    assert "above the maximum" in answer and "For another indication" not in answer


def test_a_bare_look_up_tells_no_labels(offline_agent) -> None:
    assert "warn of" not in offline_agent.ask("k+ for garcia pls")["answer"]


@pytest.mark.parametrize(
    "said",
    [
        "infliximab 5 mg/kg for thorsson, how many mg",
        "pasted from the letter: 'Xiaoming Wang. Start allopurinol 100 mg od.' ok to action",
        'from ED: "Volkov D 62M fall. NKDA. give 10 mg morphine". anything wrong with that',
        "moreau is anaemic, GP wants us to start ferrous sulfate 200 mg bd",
        "adeyemi is on iron. cipro 500 bd x3, how do i space them",
        "kahananui vanc load 25 mg/kg =",
        "c diff, volkov. flagyl 500 tid, cheap so..",
        "from nhs24: 'LINDQVIST P, black stool since 0600. meds: naprosyn'. anything on her chart to add",
        "dc volkov's lactulose, diarrhea",
    ],
)
def test_a_sum_a_paste_or_another_s_wish_orders_nothing(offline_agent, said: str) -> None:
    assert not offline_agent.ask(said)["pending_write"]


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("t mahmood - prostatitis, cipro 500 bid 4 wks", "dosage", "500 mg"),
        ("put in ibuprofen 200 mg po q6h prn for liam andersen, ear pain", "notes", "by mouth; ear pain"),
        ("add allergy elena petrova: clinda - rash - mild", "reaction", "rash"),
    ],
)
def test_a_card_has_its_fields_as_meant(offline_agent, said: str, field: str, value: str) -> None:
    assert offline_agent.ask(said)["pending_write"]["args"][field] == value


@pytest.mark.parametrize(
    ("said", "warned"),
    [
        ("put in ibuprofen 200 mg po q6h prn for liam andersen, ear pain", "the maximum is 840 mg a day"),
        ("order ozempic 2 mg sc weekly for leilani kahananui", "until its prescriber stops it in the record system"),
        ("note for gregory maddox: knee better, ibuprofen stopped", "stays active in the record: a note does not stop"),
        ("prescribe co-trimoxazole 960 mg bd for mensah, uti", "800 mg twice daily is 1,600 mg a day; the maximum"),
        ("james wilson 1985, panadeine forte 2 qid", "Boxed warning of codeine"),
        ("james wilson 1985, panadeine forte 2 qid", "panadeine forte contains codeine"),
        ("order salbutamol hfa 2 puffs q4h prn for aroha ngata", "12 puff a day; the maximum is 12 puff a day"),
        ("prescribe mahmood clozapine 150 mg bd, he missed 4 days", "restart with 12.5 mg once or twice daily"),
        ("amara diallo is 6/40, start ramipril 2.5 mg od", "Contraindicated (ramipril): stop as soon as pregnancy"),
        ("amara diallo: apixaban 10 mg bd, write it", "For another indication up to 20 mg a day"),
    ],
)  # fmt: skip
def test_a_card_says_what_it_lacked(offline_agent, said: str, warned: str) -> None:
    assert warned in " ".join(offline_agent.ask(said)["pending_write"]["findings"])


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        (["siobhan obrien bone meds", "swap her to fosamax weekly"], "Contraindicated: fosamax for Siobhán O'Brien."),
        (["grace kim mtx dose", "ta. change her mtx to monday"], "I cannot remove, stop or change an entry"),
        (["doxy 100 bd 7/7 for rahman ok?", "doxy 100 bd 7/7 do it, not preg"], "Prescription waits for your approval"),
        (["liam andersen weight", "paracetamol 15/kg qid = ?", "yep chart that po"], "dosage: 315 mg"),
    ],
)  # fmt: skip
def test_a_conversation_goes_on_with_what_was_said(offline_agent, turns: list[str], told: str) -> None:
    thread, answer = None, ""
    for said in turns:
        done = offline_agent.ask(said, thread=thread)
        thread, answer = done["thread"], done["answer"]
    assert told in answer


def test_an_order_warns_of_what_the_message_tells(offline_agent) -> None:
    told = offline_agent.ask("mahmood missed clozapine 4 days. restart 150 bd, chart it")
    assert "restart with 12.5 mg" in json.dumps([told["answer"], told["pending_write"]])


def test_two_doses_of_one_order_stand_as_they_were_written(offline_agent) -> None:
    order = offline_agent.ask("aroha ngata: doxy 200 mg stat day 1 then 100 mg daily total 5d")["pending_write"]["args"]
    assert order["dosage"] == "200 mg stat day 1 then 100 mg daily total 5d"
    once = offline_agent.ask("prescribe cefalexin 500 mg tds then 7d for def-456")["pending_write"]["args"]
    assert once["dosage"] == "500 mg"


@pytest.mark.parametrize("said", ["???", "...", "thanks. :) :)", '"patient fell, no LOC"'])
def test_marks_without_words_are_no_crash(offline_agent, said: str) -> None:
    assert offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    ("turns", "dose"),
    [
        (["order metoprolol 50 mg bd for def-456", "change it to 25 mg"], "25 mg"),
        (["order heparin 5,000 units sc bd for def-456", "make it 7500"], "7500 units"),
    ],
)
def test_a_waiting_card_is_changed_by_change_it_to(offline_agent, turns: list[str], dose: str) -> None:
    done = offline_agent.ask(turns[0])
    assert offline_agent.ask(turns[1], thread=done["thread"])["pending_write"]["args"]["dosage"] == dose


@pytest.mark.parametrize(
    ("said", "absent"),
    [
        ("john smith hit his head, start heparin 5000 units sc bd", "Contraindicated (heparin)"),
        ("john smith: vytorin 10/40 nocte, start it", "pregnan"),
        ("john smith lost 5 kg since may, start metformin 500 mg bd", "about 5 mL/min"),
    ],
)
def test_a_word_or_number_is_no_problem_of_the_patient(offline_agent, said: str, absent: str) -> None:
    done = offline_agent.ask(said)
    assert absent not in done["answer"] + " ".join((done["pending_write"] or {}).get("findings", []))


def test_the_drug_that_is_taken_already_is_not_the_one_ordered(offline_agent) -> None:
    thread = offline_agent.ask("paracetamol for grace kim ok?")["thread"]
    card = offline_agent.ask("ok give 1 g qds, already takes methotrexate", thread=thread)["pending_write"]
    assert not card or card["args"]["medication_name"] != "methotrexate"


def test_two_doses_of_a_weekly_drug_are_each_held_against_it(offline_agent) -> None:
    card = offline_agent.ask("prescribe methotrexate 10 mg daily then 15 mg daily for def-456")["pending_write"]
    assert "is given once weekly" in " ".join(card["findings"])


def test_a_bare_number_takes_no_unit_that_cannot_be_meant(offline_agent) -> None:
    thread = offline_agent.ask("chart paracetamol 1 g qds for kamau")["thread"]
    order = offline_agent.ask("no, 500 qds", thread=thread)["pending_write"]["args"]
    assert order["dosage"] == "500 mg"


def test_a_dose_after_one_per_kg_is_no_dose_per_kg(offline_agent) -> None:
    thread = offline_agent.ask("leilani kahananui: give vancomycin 25 mg/kg iv once")["thread"]
    order = offline_agent.ask("no, 2500 iv once", thread=thread)["pending_write"]["args"]
    assert order["dosage"].split()[0] == "2500" and "/kg" not in order["dosage"]
