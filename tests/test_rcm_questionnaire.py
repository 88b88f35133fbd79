"""Policies as FHIR questionnaires, and checklists as the responses to them."""

import importlib.util
import json
from pathlib import Path

from docgemma.ehr.fhir import problems_of
from docgemma.paths import data_file
from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.questionnaire import response
from docgemma.rcm.records import Judged

POLICY = load_policies()["CMU-IMG-002"]
_spec = importlib.util.spec_from_file_location("questionnaires", data_file("rcm", "policies", "questionnaires.py"))
assert _spec and _spec.loader
kit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kit)
build, questionnaire = kit.build, kit.questionnaire


def judged(number: int, verdict="NOT DOCUMENTED", quote="") -> Judged:
    criterion = POLICY["criteria"][number - 1]
    place = (
        {"document": "note.pdf", "page": 2, "section": "Plan"}
        if quote
        else {"document": "", "page": None, "section": ""}
    )
    return {
        "id": criterion["id"],
        "text": criterion["text"],
        "verdict": verdict,
        "quote": quote,
        "why": "test",
        **place,
    }


def test_the_stored_questionnaires_are_valid_and_are_those_of_the_policies(tmp_path: Path):
    stored = {path.name: path.read_text(encoding="utf-8") for path in data_file("rcm", "policies", "fhir").iterdir()}
    assert stored == {path.name: path.read_text(encoding="utf-8") for path in build(tmp_path)}
    assert {name.removesuffix(".json") for name in stored} == set(load_policies())
    assert not [problem for text in stored.values() for problem in problems_of(json.loads(text))]


def test_each_criterion_is_a_required_choice_with_a_quote_beneath():
    group = questionnaire(POLICY)["item"][0]
    assert [item["linkId"] for item in group["item"]] == [criterion["id"] for criterion in POLICY["criteria"]]
    for item in group["item"]:
        assert item["required"] and item["type"] == "choice"
        said = [option["valueCoding"]["display"] for option in item["answerOption"]]
        assert said == ["MET", "NOT MET", "NOT DOCUMENTED"]
        assert item["item"][0]["linkId"] == f"{item['linkId']}.quote"


def test_every_questionnaire_says_that_it_is_fictitious():
    for policy in load_policies().values():
        made = questionnaire(policy)
        assert made["experimental"] and "fictitious" in made["description"]
        assert made["url"].startswith("https://docgemma.example/")


def test_a_whole_checklist_is_a_completed_response_with_quotes_verbatim_and_their_place():
    quote = "Straight leg raise positive on the left."
    checklist = [judged(1), judged(2, "NOT MET", "PT: none."), judged(3, "MET", quote), judged(4), judged(5)]
    made = response(POLICY, list(reversed(checklist)), "abc-123", "2026-10-01")
    assert not problems_of(made)
    assert made["status"] == "completed" and made["subject"] == {"reference": "Patient/abc-123"}
    answers = {item["linkId"]: item["answer"][0] for item in made["item"][0]["item"]}
    assert list(answers) == [criterion["id"] for criterion in POLICY["criteria"]]
    assert answers["CMU-IMG-002.3"]["valueCoding"]["code"] == "met"
    values = [beneath["answer"][0]["valueString"] for beneath in answers["CMU-IMG-002.3"]["item"]]
    assert values == [quote, "note.pdf, page 2, Plan"]
    assert "item" not in answers["CMU-IMG-002.1"]


def test_every_answer_is_to_a_question_of_the_questionnaire():
    made = response(POLICY, [judged(3, "MET", "Weak.")], "abc-123", "2026-10-01T09:30:00+00:00")
    asked, answered = set(link_ids(questionnaire(POLICY))), set(link_ids(made))
    assert answered <= asked and made["questionnaire"] == f"{questionnaire(POLICY)['url']}|{POLICY['effective']}"
    assert made["status"] == "in-progress"


def test_a_patient_who_is_in_no_record_is_no_subject():
    assert "subject" not in response(POLICY, [judged(1)], "", "2026-10-01")


def link_ids(item: dict):
    """Each linkId of a questionnaire or a response."""
    for one in item.get("item", []):
        yield one["linkId"]
        yield from link_ids(one)
        for answer in one.get("answer", []):
            yield from link_ids(answer)
