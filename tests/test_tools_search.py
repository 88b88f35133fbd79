"""Literature and trial search, on the shipped records."""

import pytest

from docgemma.knowledge import open_knowledge
from docgemma.tools import ToolContext, toolbox
from docgemma.tools.literature_and_trials import LITERATURE, TRIALS

LONG = "Words of an abstract that goes on and on without an end. " * 99


@pytest.fixture
def call(settings):
    context = ToolContext(settings, store=None, knowledge=open_knowledge(settings))
    return lambda name, **args: toolbox().call(name, args, context)


def test_articles_come_with_pmid_source_and_page(call):
    result = call("search_medical_literature", query="evidence on SGLT2 inhibitors in heart failure")
    first = result["result"]["articles"][0]
    assert set(first) == {"id", "title", "authors", "journal", "year", "abstract", "url"}
    assert result["source"] == "offline collection of published articles"
    text = result["formatted_result"]
    assert f"PMID {first['id']}" in text and first["url"].endswith(f"/{first['id']}/") and len(text) <= 1500
    assert "invented" not in text


def test_no_article_is_an_empty_answer(call):
    result = call("search_medical_literature", query="unicorn horns in zebrafish")
    assert result["empty"] and result["error"] is None and result["result"]["articles"] == []
    assert result["formatted_result"] == (
        "No articles were found for unicorn horns in zebrafish in the offline collection of 380 records, "
        "which does not prove that there are none."
    )


def test_trials_come_with_id_status_and_a_warning_that_they_are_invented(call):
    result = call("find_clinical_trials", condition="breast carcinoma", status="recruiting")
    first = result["result"]["trials"][0]
    assert set(first) == {
        "id", "title", "status", "phase", "conditions", "interventions", "locations", "summary", "url", "demonstration",
    }  # fmt: skip
    assert {item["status"] for item in result["result"]["trials"]} == {"RECRUITING"}
    text = result["formatted_result"]
    assert first["id"] in text and "recruiting" in text and "nobody can enrol" in text and len(text) <= 1500


def test_no_trial_is_an_empty_answer_that_names_the_filter(call):
    result = call("find_clinical_trials", condition="covid", status="recruiting")
    assert result["empty"] and result["formatted_result"].startswith(
        "No recruiting trials were found for covid in the offline collection of 39 records (all invented for"
    )


def test_two_questions_in_one_are_each_searched(call):
    asked = "adding an inhaled corticosteroid in COPD, and on the length of antibiotics in community-acquired pneumonia"
    text = call("search_medical_literature", query=asked)["formatted_result"]
    assert text.startswith("Nothing matches all of") and "in Patients with COPD" in text and "pneumonia" in text.lower()


def test_a_live_search_that_finds_nothing_speaks_of_no_collection():
    none = {"query": "q", "articles": [], "fell_back": None, "size": None, "partial": False}
    assert LITERATURE.format(none) == "No articles were found for q."


def test_a_status_that_is_none_is_not_ignored(call):
    result = call("find_clinical_trials", condition="melanoma", status="blue")
    assert result["error_type"] == "invalid_args" and result["details"]["missing_fields"] == ["status"]


def article(number: int, **changes) -> dict:
    return {"id": f"TEST-{number}", "title": LONG, "authors": "A", "journal": LONG, "year": 2020, "abstract": LONG,
            "url": ""} | changes  # fmt: skip


def trial(number: int, **changes) -> dict:
    return {"id": f"TEST-{number}", "title": LONG, "status": "RECRUITING", "phase": "Phase 3", "conditions": [LONG],
            "interventions": [LONG] * 9, "locations": [LONG] * 99, "summary": LONG, "url": "",
            "demonstration": False} | changes  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 5])
def test_long_articles_all_appear_within_the_bound(count):
    text = LITERATURE.format({"query": "q", "articles": [article(n) for n in range(count)], "fell_back": "timeout"})
    assert len(text) <= 1500
    assert text.count("Words of an abstract") >= count
    assert "could not be reached" in text


@pytest.mark.parametrize("count", [1, 2, 5])
def test_long_trials_all_appear_with_their_ids_within_the_bound(count):
    text = TRIALS.format(
        {"condition": "c", "status": None, "trials": [trial(n) for n in range(count)], "fell_back": None}
    )
    assert len(text) <= 1500
    assert all(f"TEST-{n}" in text for n in range(count))


def test_missing_parts_leave_no_gaps():
    bare = {"phase": "", "interventions": [], "locations": [], "summary": "", "title": "Short title"}
    text = TRIALS.format({"condition": "c", "status": None, "trials": [trial(1, **bare)], "fell_back": None})
    assert text == "Short title. (TEST-1, recruiting)"
    bare = {"journal": "", "year": None, "abstract": "", "title": "Short title"}
    text = LITERATURE.format({"query": "q", "articles": [article(1, **bare)], "fell_back": None})
    assert text == "Short title. (TEST-1)"
