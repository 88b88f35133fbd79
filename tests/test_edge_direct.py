"""Direct answers of the edge model: curated, referenced, and never to another question than the one asked."""

import json

import pytest

from docgemma.edge.direct import ABOUT, GOODBYE, GREETING, NEEDS_FULL_MODEL, THANKS, WELL, define, direct_answer, index
from docgemma.paths import data_file


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("What is hypertension?", "hypertension"),
        ("what's HTN", "hypertension"),
        ("Hi, what is high blood pressure please?", "hypertension"),
        ("Define sepsis", "sepsis"),
        ("explain MS to me", "multiple sclerosis"),
        ("Can you tell me what nephrotic syndrome is?", "nephrotic syndrome"),
        ("no I don't need the chart, just tell me what gout is", "gout"),
        ("in simple terms what is anaemia", "anemia"),
        ("what does prn stand for", "prn"),
        ('what does "boxed warning" actually mean?', "boxed warning"),
        ("what are beta-blockers", "beta blockers"),
        ("What is a beta blocker?", "beta blockers"),
        ("how do statins work, roughly?", "statins"),
        ("Explain the mechanism of action of metformin", "mechanism of metformin"),
        ("Explain metformin MOA", "mechanism of metformin"),
        ("What does HbA1c measure?", "HbA1c"),
        ("delirium?", "delirium"),
        ("Define Crohn’s disease", "Crohn's disease"),
    ],
)
def test_a_definition_answers_the_question_that_asks_for_it(question, term):
    assert [item.term for item in define(question)] == [term]


@pytest.mark.parametrize(
    "question",
    [
        "what is the treatment of hypertension",
        "What is hypertension and how is it treated?",
        "What is hypertension in pregnancy?",
        "What are the symptoms of hypothyroidism?",
        "what causes gout",
        "Is type 2 diabetes hereditary?",
        "how does warfarin work",
        "How does sepsis work?",
        "What is the dose of insulin?",
        "what is that condition exactly?",
        "normal range for potassium",
        "What is informed consent in clinical trials?",
        "gout",
        "",
    ],
)
def test_another_question_is_not_answered_with_a_definition(question):
    assert define(question) == []
    assert direct_answer(question).text == NEEDS_FULL_MODEL


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("what is the difference between type 1 and type 2 diabetes", ["type 1 diabetes", "type 2 diabetes"]),
        ("difference between type 1 and 2 diabetes?", ["type 1 diabetes", "type 2 diabetes"]),
        ("whats the diff btwn CT and MRI", ["CT", "MRI"]),
        ("How do anticoagulants and antiplatelets differ?", ["anticoagulants", "antiplatelets"]),
        ("difference between sensitivity and specificity", ["sensitivity and specificity"]),
        ("difference between gout and a virus", []),
    ],
)
def test_a_difference_is_answered_by_both_definitions_or_not_at_all(question, terms):
    assert [item.term for item in define(question)] == terms


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ("Hello", GREETING),
        ("hi there, how's it going?", GREETING),
        ("Good evening, it's Dr Coumadin here from ward 7", GREETING),
        ("Thanks, that's all for now", THANKS),
        ("ta", THANKS),
        ("bye", GOODBYE),
        ("ok got it", WELL),
        ("who made you?", ABOUT),
        ("what kinds of questions can you answer?", ABOUT),
    ],
)
def test_manners_are_answered(message, reply):
    assert direct_answer(message).text == reply


def test_a_greeting_before_a_medical_question_does_not_hide_that_it_was_not_answered():
    assert direct_answer("hello, what is the dose of amoxicillin?").text == NEEDS_FULL_MODEL


def test_a_definition_names_its_reference_in_the_text_and_in_the_sources():
    answer = direct_answer("What is hypertension?")
    assert "130 mmHg" in answer.text
    assert "(Source: ACC/AHA 2017 guideline" in answer.text
    assert answer.sources[0]["title"].startswith("ACC/AHA 2017 guideline")


def test_every_entry_is_short_referenced_and_found_by_all_its_names():
    lines = data_file("edge", "definitions.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    assert len(entries) >= 150
    for entry in entries:
        assert entry["reference"].strip() and 20 < len(entry["text"]) < 420, entry["term"]
        for name in (entry["term"], *entry["aliases"]):
            found = define(f"define {name}")
            assert found and found[0].text == entry["text"], name


def test_no_name_stands_for_two_things():
    lines = data_file("edge", "definitions.jsonl").read_text(encoding="utf-8").splitlines()
    names: dict[str, str] = {}
    for entry in map(json.loads, lines):
        for name in (entry["term"], *entry["aliases"]):
            assert names.setdefault(name.casefold(), entry["term"]) == entry["term"], name
    assert len(index()) > 300
