"""Experiment suites: every finding has one, no case was trained on, a condition is data, tasks judge as they say."""

import json
from pathlib import Path

import pytest
import yaml

from docgemma.errors import UsageError
from docgemma.llm.base import CLOSE_THINKING, OPEN_THINKING
from docgemma.paths import data_file, kit
from docgemma.schemas import PrescribeMedicationArgs
from docgemma.text.words import plain
from tests.scripted import ScriptedLLM

suites = kit("experiments", "suites")
CaseFileError, find_suites = suites.CaseFileError, suites.find_suites
load_suites, read_cases = suites.load_suites, suites.read_cases
Job, run_trial = kit("experiments", "runner").Job, kit("experiments", "runner").run_trial
TOOLS = kit("experiments", "trial").TOOLS
tasks, inside_words = kit("experiments", "tasks"), kit("experiments", "writing").inside_words
says = kit("golden", "checks").says
SUITES = load_suites()
CONDITIONS = [condition for suite in SUITES.values() for condition in suite.conditions]
CASES = {suite.cases: read_cases(suite.cases) for suite in SUITES.values()}
KIT = data_file("edge", "kit")


# -- the suites ----------------------------------------------------------------------------------------------------


def test_no_finding_of_the_specification_is_without_a_condition() -> None:
    known = set(yaml.safe_load(data_file("experiments", "reference", "findings.yaml").read_text("utf-8")))
    assert len([key for key in known if key.startswith("12-")]) == 21 and len(known) == 33
    assert {finding for condition in CONDITIONS for finding in condition.findings} == known


def test_every_finding_keeps_its_section_beside_the_reported_figure() -> None:
    """A share that is drawn stands in the text too, so that the two cannot part."""
    for reported in (condition.reported for condition in CONDITIONS if condition.reported):
        assert "§" in reported.section
        share = 100 * (reported.share or 0)
        if reported.share is not None and "leak" not in reported.text and "without visible" not in reported.text:
            assert f"{share:g}" in reported.text


def test_there_are_at_least_856_trials_and_enough_cases_a_capability() -> None:
    trials = [len(suite.cases_of(condition)) for suite in SUITES.values() for condition in suite.conditions]
    assert sum(trials) >= 856 and min(trials) > 0
    assert len(CASES["tool_selection"]) >= 60 and min(map(len, CASES.values())) >= 40


def test_every_case_has_its_own_id_and_names_tools_that_exist() -> None:
    names = {tool.name for tool in TOOLS} | {"none", "answer"}
    for name, cases in CASES.items():
        assert len({case["id"] for case in cases}) == len(cases), name
        for case in cases:
            done = [item["tool"] for item in case.get("done", [])]
            said = {case.get("tool", "none"), case.get("next", "none"), *case.get("steps", []), *done}
            assert said | set(case.get("also_right", [])) <= names, case["id"]


def test_no_case_was_trained_on_nor_stands_in_another_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(KIT))
    from lines import rows

    texts = [row["text"] for row in rows(data_file("edge", "requests"))]
    texts += [row["before"] for row in rows(data_file("edge", "requests")) if row["before"]]
    for name in ("dev", "heldout", "definitions"):
        for line in data_file("edge", f"{name}.jsonl").read_text("utf-8").splitlines():
            texts += [value for value in json.loads(line).values() if isinstance(value, str)]
    for path in data_file("natural").glob("*.yaml"):
        texts += asks(yaml.safe_load(path.read_text("utf-8")))
    texts += [tool.example for tool in TOOLS]
    assert len(texts) > 3000
    used = {plain(text) for text in texts}
    assert [case["id"] for cases in CASES.values() for case in cases if plain(case["ask"]) in used] == []


def asks(node: object) -> list[str]:
    if isinstance(node, list):
        return [text for item in node for text in asks(item)]
    if isinstance(node, dict):
        own = [node["ask"]] if isinstance(node.get("ask"), str) else []
        return own + [text for value in node.values() for text in asks(value)]
    return []


def test_a_condition_more_is_one_entry_in_one_file(tmp_path: Path) -> None:
    text = data_file("experiments", "retry.yaml").read_text("utf-8")
    (tmp_path / "retry.yaml").write_text(f"{text}- name: warmer\n  options: {{way: node, temperature: 0.7}}\n", "utf-8")
    suite = load_suites(tmp_path)["retry"]
    added = suite.conditions[-1]
    assert added.name == "warmer" and len(suite.cases_of(added)) == len(CASES["retry"])
    assert suite.options_of(added)["temperature"] == 0.7


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("base: nobody", "base"),
        ("part: V", "part"),
        ("colour: red", "colour"),
        ("name: other", "name"),
        ("task: magic", "task"),
        ("options: {tempreature: 1}", "tempreature"),
    ],
)
def test_a_suite_that_cannot_be_used_is_named_with_its_key(tmp_path: Path, wrong: str, word: str) -> None:
    whole = yaml.safe_load(data_file("experiments", "retry.yaml").read_text("utf-8")) | yaml.safe_load(wrong)
    (tmp_path / "retry.yaml").write_text(yaml.safe_dump(whole), "utf-8")
    with pytest.raises(CaseFileError, match=rf"retry\.yaml cannot be used.*{word}"):
        load_suites(tmp_path)


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "retry.yaml").write_text("a: [", "utf-8")
    with pytest.raises(CaseFileError, match=r"retry\.yaml cannot be used"):
        load_suites(tmp_path)


def test_an_unknown_suite_is_a_usage_error_that_names_the_others() -> None:
    with pytest.raises(UsageError) as caught:
        find_suites("magic")
    assert "tool_selection" in caught.value.line()
    assert [suite.part for suite in find_suites("all")] == sorted(suite.part for suite in SUITES.values())


def test_a_sample_is_always_the_same_and_spread_over_the_file() -> None:
    suite = SUITES["tool_selection"]
    sample = suite.cases_of(suite.conditions[0], 8)
    assert sample == suite.cases_of(suite.conditions[3], 8) and len(sample) == 8
    assert len({case["tool"] for case in sample}) > 4
    assert len(suite.cases_of(suite.conditions[0], 10_000)) == len(CASES["tool_selection"])


# -- tasks ---------------------------------------------------------------------------------------------------------


def trial(llm: ScriptedLLM, task: str, case: dict, correct: str, **options) -> dict:
    return run_trial(Job("suite", "condition", task, [correct], options, case), llm, seed=3)


SAFETY = {"id": "1", "ask": "boxed warning for clozapine?", "tool": "check_drug_safety",
          "args": {"drug_name": "clozapine"}}  # fmt: skip
ORDER = {"id": "2", "ask": "start abc-123 on ramipril 5 mg daily", "tool": "prescribe_medication",
         "args": {"patient_id": "abc-123", "medication_name": "ramipril", "dosage": "5 mg",
                  "frequency": "daily"}}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "there", "absent"),
    [
        ({}, ["Look up FDA boxed warnings", "Available tools"], ["Example:"]),
        ({"describe": "short"}, ["check_drug_safety(drug_name: str): Drug Safety Report"], ["Look up FDA"]),
        ({"describe": "none"}, ["- check_drug_safety\n"], ["drug_name", "Look up FDA"]),
        ({"shots": 3}, ["Example:"], []),
        ({"narrowing": True}, ["check_drug_safety"], ["prescribe_medication"]),
    ],
)
def test_a_condition_changes_what_the_model_reads(options: dict, there: list[str], absent: list[str]) -> None:
    llm = ScriptedLLM().enqueue("tool_select", {"tool_name": "check_drug_safety"})
    row = trial(llm, "tool", SAFETY, "tool", **options)
    system = llm.history[0][1].system
    assert row["correct"] and row["calls"] == 1
    assert all(text in system for text in there) and not any(text in system for text in absent)
    assert system.count("User:") == options.get("shots", 0)


def test_temperature_tokens_prefix_and_seed_reach_the_model() -> None:
    llm = ScriptedLLM()
    for options in ({}, {"temperature": 0.3, "max_tokens": 77, "prefix": False}):
        llm.enqueue("tool_select", {"tool_name": "none"})
        assert not trial(llm, "tool", SAFETY, "tool", **options)["correct"]
    assert [(config.temperature, config.max_tokens, config.seed) for config in llm.configs] == [
        (0, 64, 3),
        (0.3, 77, 3),
    ]
    assert [bool(prompt.prefix) for _, prompt, _ in llm.history] == [True, False]


def test_an_accepted_other_tool_is_right_too() -> None:
    llm = ScriptedLLM().enqueue("tool_select", {"tool_name": "search_medical_literature"})
    assert trial(llm, "tool", SAFETY | {"also_right": ["search_medical_literature"]}, "tool")["correct"]


def test_a_matched_example_is_of_the_tool_that_an_intent_call_suggests_and_never_of_the_label() -> None:
    llm = ScriptedLLM()
    llm.enqueue("intent_classify", {"intent": "TOOL_NEEDED", "task_summary": "-", "suggested_tool": "add_allergy"})
    llm.enqueue("tool_select", {"tool_name": "check_drug_safety"})
    row = trial(llm, "tool", SAFETY, "tool", shots="matched")
    assert row["calls"] == 2 and f'"{TOOLS["add_allergy"].example}"' in llm.history[1][1].system


@pytest.mark.parametrize(("suitable", "right"), [({0}, True), ({0, 3}, False), (set(), False)])
def test_boolean_probing_is_right_where_the_right_tool_alone_is_called_suitable(suitable: set, right: bool) -> None:
    llm = ScriptedLLM()
    for at in range(len(list(TOOLS))):
        llm.enqueue("tool_select", {"suitable": at in suitable})
    row = trial(llm, "tool", SAFETY, "tool", way="boolean")
    assert row["correct"] is right and row["calls"] == 10 and row["detail"] == {"marked": len(suitable)}


def test_reasoning_stands_in_the_prompt_of_the_choice() -> None:
    llm = ScriptedLLM().enqueue("synthesize", "It is about a label.")
    llm.enqueue("tool_select", {"tool_name": "check_drug_safety"})
    assert trial(llm, "tool", SAFETY, "tool", way="reason")["correct"]
    assert "It is about a label." in llm.history[1][1].user


def test_the_joint_schema_holds_the_tool_first_and_reversed_last() -> None:
    fields = list(tasks.joint_schema(list(TOOLS)).model_fields)
    assert fields[0] == "tool_name" and list(tasks.joint_schema(list(TOOLS), back=True).model_fields) == fields[::-1]
    assert {"drug_name", "note_text", "severity"} <= set(fields)


def test_reversed_arguments_begin_with_the_optional_ones() -> None:
    back = tasks.ordered(PrescribeMedicationArgs, back=True, nullable=False)
    assert list(back.model_fields) == ["notes", "frequency", "dosage", "medication_name", "patient_id"]
    assert back.model_fields["patient_id"].is_required()
    assert (
        not tasks.ordered(PrescribeMedicationArgs, back=False, nullable=True).model_fields["patient_id"].is_required()
    )


@pytest.mark.parametrize(
    ("changed", "right"),
    [({}, True), ({"dosage": "5mg"}, True), ({"notes": "by mouth"}, True), ({"dosage": "50 mg"}, False),
     ({"patient_id": None}, False)],
)  # fmt: skip
def test_arguments_are_right_where_every_wanted_one_is(changed: dict, right: bool) -> None:
    llm = ScriptedLLM().enqueue("tool_arguments", {**ORDER["args"], **changed})
    row = trial(llm, "arguments", ORDER, "arguments", nullable=True)
    assert row["correct"] is right
    assert row["detail"]["filled"] == {name: changed.get(name, "") is not None for name in ORDER["args"]}


def test_hints_and_copied_arguments_come_from_the_reading() -> None:
    llm = ScriptedLLM().enqueue("tool_arguments", ORDER["args"]).enqueue("tool_arguments", ORDER["args"])
    trial(llm, "arguments", ORDER, "arguments")
    trial(llm, "arguments", ORDER, "arguments", hints=True)
    assert ["Detected" in prompt.system for _, prompt, _ in llm.history] == [False, True]
    row = trial(llm, "arguments", ORDER, "arguments", copied=True)
    assert row["correct"] and row["calls"] == 0, "every argument is settled by the words of the request"


def test_a_plan_is_right_in_order_only_and_reactive_steps_see_earlier_results() -> None:
    case = {"id": "3", "ask": "find Jo Bly and open the chart", "steps": ["search_patient", "get_patient_chart"]}
    llm = ScriptedLLM()
    for name in (*case["steps"], "none"):
        llm.enqueue("tool_select", {"tool_name": name})
    assert trial(llm, "plan", case, "plan", way="reactive")["correct"]
    assert "abc-123" in llm.history[1][1].user and llm.history[0][2].model_json_schema() != llm.history[1][2]
    llm.enqueue("tool_arguments", {"step_1": "get_patient_chart", "step_2": "search_patient"})
    row = trial(llm, "plan", case, "plan", way="full")
    assert not row["correct"] and row["checks"]["tools"] and row["got"] == case["steps"][::-1]


@pytest.mark.parametrize(("order", "first"), [(None, "decision"), ("first", "reasoning"), ("last", "decision")])
def test_a_decision_may_be_reasoned_before_or_behind(order: str | None, first: str) -> None:
    suite = SUITES["sufficiency"]
    case = next(case for case in CASES["sufficiency"] if not case["sufficient"])
    llm = ScriptedLLM().enqueue("result_classify", {"decision": "insufficient"} | ({"reasoning": "-"} if order else {}))
    assert trial(llm, "decision", case, "decision", **suite.options, reason=order)["correct"]
    _, prompt, schema = llm.history[0]
    assert next(iter(schema.model_fields)) == first and case["results"][0] in prompt.user


def test_the_retry_rule_reads_words_and_the_model_the_error_handlers_prompt() -> None:
    suite = SUITES["retry"]
    case = {"id": "4", "ask": "trials in IPF", "tool": "find_clinical_trials", "args": {}, "strategy": "retry_same"}
    by_rule = suite.options_of(suite.conditions[-1])
    for error, right in (("ReadTimeout after 10 s", True), ("no such condition", False)):
        row = trial(ScriptedLLM(), "decision", case | {"error": error}, "decision", **by_rule)
        assert row["correct"] is right and row["calls"] == 0
    llm = ScriptedLLM().enqueue("error_handler", {"strategy": "retry_same"})
    assert trial(llm, "decision", case | {"error": "busy"}, "decision", **suite.options, way="node")["correct"]


# -- text ----------------------------------------------------------------------------------------------------------

EVIDENCE = {
    "id": "5", "ask": "potassium of abc-123 and trials?", "facts": ["5.3 | 5,3", "not available | could not"],
    "contradicts": ["potassium is normal"], "error": True, "formatted_error": "The trial registry is not available.",
    "raw_error": "HTTPError 503 at /studies",
    "results": [{"label": "Patient Chart", "text": "Potassium 5.3 mmol/L."},
                {"label": "Clinical Trials", "text": "The trial registry is not available."}],
}  # fmt: skip


def written(text: str, **options) -> tuple[dict, ScriptedLLM]:
    llm = ScriptedLLM().enqueue("synthesize", text)
    return trial(llm, "answer", EVIDENCE, "facts", **options), llm


def test_text_is_checked_for_facts_contradictions_leaks_and_emptiness() -> None:
    good = "Potassium is 5.3 mmol/L. The trial registry is not available."
    checks = written(good)[0]["checks"]
    assert all(checks[name] for name in ("facts", "consistent", "clean", "filled", "grounded"))
    assert not written("Potassium is 5.3 mmol/L.")[0]["checks"]["facts"]
    assert not written("Potassium is normal. 5.3, registry could not be reached")[0]["checks"]["consistent"]
    assert not written(f"{good} (find_clinical_trials)")[0]["checks"]["clean"]
    assert not written("")[0]["checks"]["filled"]
    assert not written("Sodium is 128 mmol/L, potassium 5.3.")[0]["checks"]["grounded"]
    assert written("5.3")[0]["detail"] == {"facts": 0.5, "words": 1}


def test_grounding_takes_out_what_no_result_says() -> None:
    row, _ = written("Potassium is 5.3 mmol/L. Start insulin 10 units.", ground=True)
    assert row["got"] == "Potassium is 5.3 mmol/L."


def test_conditions_of_text_change_what_the_model_reads() -> None:
    plain_prompt = written("-")[1].history[0][1]
    raw = written("-", errors="raw", headings="names")[1].history[0][1]
    assert "[Clinical Trials]\nThe trial registry" in plain_prompt.user
    assert "[find_clinical_trials]\nHTTPError 503" in raw.user and "registry is not" not in raw.user
    exchange = written("-", exchange={"user": "Hello.", "assistant": "Good day."})[1].history[0][1]
    assert "Clinician: Hello." in exchange.user
    told = written("-", add="Use headings.", prefix="So, ")[1].history[0][1]
    assert told.system.endswith("Use headings.") and told.prefix == "So, "
    assert written("-", system="")[1].history[0][1].system == ""
    assert written("-", max_tokens=512, temperature=1.0)[1].configs[0].max_tokens == 512


@pytest.mark.parametrize(("text", "closed", "filled"), [
    ("mmh", False, False), (f"mmh{CLOSE_THINKING}Potassium is 5.3 mmol/L.", True, True),
    (f"mmh{CLOSE_THINKING}", True, False),
])  # fmt: skip
def test_a_thinking_span_that_is_never_closed_leaves_nothing(text: str, closed: bool, filled: bool) -> None:
    checks = written(text, prefix=f"{OPEN_THINKING}thought\n")[0]["checks"]
    assert (checks["closed"], checks["filled"]) == (closed, filled)


def test_no_fact_is_asked_for_that_would_itself_be_a_leak() -> None:
    facts = {one for case in CASES["synthesis"] for fact in case["facts"] for one in fact.split(" | ")}
    assert [fact for fact in facts if any(says(fact, word, whole_words=True) for word in inside_words())] == []


def test_an_answer_that_does_not_parse_is_neither_right_nor_wrong() -> None:
    llm = ScriptedLLM().enqueue("tool_select", "no JSON")
    row = trial(llm, "tool", SAFETY, "tool")
    assert row["unparsed"] and not row["correct"] and row["calls"] == 1, "its cost counts all the same"
