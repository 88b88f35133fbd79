"""What a message tells of a patient's state counts: an allergy's class, a name's problem, an ended pregnancy."""

import pytest


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # a severe reaction to a class that the label names
        ("can aisha rahman have cefazolin", "Contraindicated: cefazolin for Aisha Rahman. Allergy to penicillin"),
        ("john smith had anaphylaxis to cephalexin, tazocin ok?", "by the label: allergic reaction to any"),
        # a problem behind "had", or right behind a name
        ("patricia lindqvist had an mi on sunday, diclofenac ok?", "has myocardial infarction (as you wrote)"),
        ("Amara Diallo breast feeding, tramadol ok?", "The patient has breast feeding (as you wrote)"),
        ("John Smith epilepsy, bupropion ok?", "Contraindicated: bupropion for John Smith"),
        ("Alexander Papadopoulos adenoids out last week, tramadol?", "Contraindicated: tramadol"),
        # each drug has its verdict
        ("john smith egfr 21 now: metformin alright? and naproxen", "Contraindicated: metformin for John Smith"),
        # a pregnancy that is over
        ("Priya Raghunathan gave birth on sunday, is enalapril ok?", "29 weeks of pregnancy, you wrote “gave birth”"),
        ("Priya Raghunathan delivered last night and is nursing, codeine ok?", "present breastfeeding (as you wrote)"),
        # what the notes hold
        ("Hiroshi Tanaka qtc 530 this morning", "the chart has no result of it, a note has 438 (Cardiology note"),
        # after surgery
        ("James Wilson born 1949 postop day 1, enoxaparin prophylaxis?", "recent surgery, postoperative (as"),
        # what is denied, told or left
        ("John Smith isn't taking lisinopril. potassium?", "You wrote that lisinopril is not taken; the record has"),
        ("Elena Petrova ct contrast on friday, alright?", "Not answered: “Elena Petrova ct contrast"),
        ("James Wilson born 1949 hip surgery, when do i stop warfarin?", "Not answered: “when do i stop warfarin"),
        # what is taken, for what is told
        ("Maria Garcia chest pain and st depression, paracetamol ok?", "sumatriptan: must not be used in coronary"),
        ("Grace Kim pneumonia, doxycycline ok?", "For what you wrote (serious infection): methotrexate"),
        ("Elena Petrova neutrophils 0.3 today, amoxicillin ok?", "severe neutropenia. What warns of it: methimazole"),
    ],
)  # fmt: skip
def test_an_answer_weighs_what_is_told(offline_agent, said, told):
    assert told.casefold() in offline_agent.ask(said)["answer"].casefold()


@pytest.mark.parametrize(
    ("said", "untold"),
    [
        ("can aisha rahman have ceftriaxone", "contraindicated by the label"),
        ("is John Smith epileptic? bupropion ok?", "as you wrote"),
        ("Amara Diallo, she's pregnant? ibuprofen ok?", "present pregnancy"),
        ("Priya Raghunathan miscarried on friday. methotrexate ok?", "The patient has Gestational"),
        ("Maria Garcia post-op, ketorolac ok?", "preoperative"),
        ("Hiroshi Tanaka qtc 530 this morning", "the chart has none"),
        ("is John Smith not on lisinopril?", "is not taken"),
        ("John Smith pneumonia vaccine due?", "serious infection"),
        ("John Smith CT contrast on friday, metformin ok?", "Not answered"),
        ("John Smith penicillin allergy?", "You wrote"),
    ],
)
def test_an_answer_does_not_tell_it(offline_agent, said, untold):
    assert untold not in offline_agent.ask(said)["answer"]


def test_a_drug_that_is_asked_of_a_recorded_class_allergy_meets_it(offline_agent):
    entry = offline_agent.ask("record allergy for Walter Kowalczyk: iodinated contrast - hives")
    offline_agent.decide(entry["thread"], "approve")
    answer = offline_agent.ask("and is contrast ok for him then", thread=entry["thread"])["answer"]
    assert "Allergy to iodinated contrast (hives): iodinated contrast media belongs to the same class" in answer
