"""Published studies: found by their names, gone on with in the next message, looked up beside a check."""

import pytest

from docgemma.knowledge.literature import studies_in
from tests.conversation_help import spoken


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("EMPEROR and EMPA KIDNEY, mean EF?", ["EMPEROR", "EMPA-KIDNEY"]),
        ("what did fidelio-dkd show", ["FIDELIO-DKD"]),
        ("CAPE COD: steroid dose", ["CAPE COD"]),
        ("STEP 1 weight loss", ["STEP 1"]),
        ("rate, AF and time to recovery", []),
        ("PAUSE WARFARIN FOR SURGERY", []),
        ("reduced balance after stroke", []),
    ],
)
def test_a_study_is_named_as_a_whole_word(text, found):
    assert sorted(studies_in(text)) == sorted(found)


@pytest.mark.parametrize(
    ("turns", "told", "untold"),
    [
        (["AFFIRM"], "PMID 12466506", "Which patient"),
        (["and IRONMAN n?"], "IRONMAN. ", "No patient named"),
        (["ZYLOSTAR"], "No articles were found for ZYLOSTAR", "Which patient"),
        (["SPRINT HR?"], "SPRINT. ", "No image"),
        (["the PRESERVE trial"], "PRESERVE. ", "EMPEROR"),
        (["FLOW and DAPA CKD, number needed to treat"], "DAPA-CKD. ", "read as dapagliflozin"),
        (["ARISTOTLE bleeding; BRIDGE bleeding"], "BRIDGE. ", "PAUSE."),
        (["what did HYVET show, and SYSTEUR"], "SYSTEUR (no study of this name", "OPTIMISE"),
        (["MIND-USA gap?"], "MIND-USA. ", "cannot answer"),
        (["INVICTUS: could Robert Thornton have rivaroxaban?"], "INVICTUS. ", "No patient named"),
        (["does RATE-AF apply to Robert Thornton"], "whether it applies (who could be in", "Found patient"),
        # a follow-up goes on with the articles that were shown
        (["evidence for finerenone in diabetic kidney disease", "any more recent refs"], "FIDELIO", "No articles"),
        (["evidence for finerenone in diabetic kidney disease", "which year and authors"], "FIDELIO", "Which patient"),
        (["evidence for finerenone in diabetic kidney disease", "who was excluded from the trial"], "FIDELIO", "No "),
        (["antidote to rivaroxaban?", "any paper on it"], "ANNEXA-I", "for any paper"),
        (["evidence for gliflozins in HFrEF", "and in CKD?"], "DAPA-CKD. ", "label of"),
        (["gliflozins in HFpEF, hazard ratio"], "EMPEROR-Preserved. ", "label of"),
        # ages, both halves, what a title has and the question excludes, evidence beside a check
        (["evidence for statins in over 80s"], "PMID 30712900", "No articles"),
        (["lithium toxicity antidote + any papers on digoxin in HFrEF"], "PMID 16339157", "No articles"),
        (["evidence for semaglutide in kidney disease without diabetes"], "names diabetes, which", "No articles"),
        (["evidence for bridging before an operation"], "PMID 26095867", "No articles"),
        (["ocp with lamotrigine ok? any study?"], "Prospective study of 45 women", "No articles"),
    ],
)  # fmt: skip
def test_what_is_asked_of_studies(offline_agent, turns, told, untold):
    turn = spoken(offline_agent, *turns)
    assert told in turn["answer"]
    assert untold not in turn["answer"]


@pytest.mark.parametrize(
    "message", ["any evidence on bridging for Nadia before surgery", "evidence statins Inmaculada over 75"]
)
def test_a_first_name_in_what_is_searched_for_leaves_for_no_service(offline_agent, message):
    turn = offline_agent.ask(message)
    queries = [tool["args"]["query"] for tool in turn["tools"] if tool["name"] == "search_medical_literature"]
    assert queries and not any(name in query for query in queries for name in ("Nadia", "Inmaculada"))
