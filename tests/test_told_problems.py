"""What a message tells that its patient has: abbreviations in full, and nothing that is asked, denied or another's."""

import pytest

from docgemma.text.told import spelled, told_problems


@pytest.mark.parametrize(
    ("said", "problems"),
    [
        ("70F HTN PVD - atenolol ok?", ["hypertension", "peripheral arterial disease"]),
        ("known asthmatic, sotalol ok?", ["asthma"]),
        ("T2DM/CKD3b, diclofenac?", ["diabetes", "chronic kidney disease stage 3b"]),
        ("on HD - pregabalin 75 bd ok?", ["hemodialysis"]),
        ("prochlorperazine in PD?", ["parkinson disease"]),
        ("she's myasthenic, azithromycin?", ["myasthenia gravis"]),
        ("hx of HIT, dalteparin ok?", ["heparin-induced thrombocytopenia"]),
        ("new heart failure. rosiglitazone?", ["heart failure"]),
        ("TIA 3 h ago, aspirin 300?", ["transient ischemic attack"]),
        ("does he have COPD?", []),
        ("any hx of TIA?", []),
        ("not asthmatic, sotalol ok?", []),
        ("mother has epilepsy", []),
        ("stroke clinic on monday", []),
        ("screen for TB", []),
        ("he hit his head", []),
        ("thinks she's pregnant", []),
        ("hx of gestational diabetes", []),
    ],
)
def test_problems_that_are_told(said: str, problems: list[str]) -> None:
    assert told_problems(said) == problems


def test_an_abbreviation_keeps_its_marks_and_a_word_its_meaning() -> None:
    assert spelled("?PE, UC (CKD4)") == "?pulmonary embolism, ulcerative colitis (chronic kidney disease stage 4)"
    assert spelled("pad the dressing, he hit it") == "pad the dressing, he hit it"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("naproxen in CKD4?", "Warning (naproxen)"),
        ("prochlorperazine in PD?", "parkinson disease (as you wrote)"),
        ("John Smith now on HD, ok pregabalin 150 tds?", "hemodialysis, counted as an eGFR up to 14 (as you wrote)"),
        ("haddad in cardiogenic shock, bisoprolol 2.5 ok?", "cardiogenic shock (as you wrote)"),
        ("john smith asthmatic, sotalol 80 bd ok?", "asthma (as you wrote)"),
    ],
)
def test_what_is_told_is_weighed(offline_agent, asked: str, told: str) -> None:
    assert told in offline_agent.ask(asked)["answer"]


def test_the_problem_of_a_relative_is_not_weighed(offline_agent) -> None:
    assert "as you wrote" not in offline_agent.ask("john smith mother has asthma, sotalol 80 bd ok?")["answer"]
