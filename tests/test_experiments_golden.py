"""Golden sets: what each check accepts and refuses, bad files, cases that cannot see each other, the command."""

import json
from pathlib import Path

import pytest
import yaml

from docgemma.errors import UsageError
from docgemma.experiments.statistics import wilson
from docgemma.paths import kit
from docgemma.settings import Settings
from tests.scripted import ScriptedLLM
from tests.test_cli import assert_one_clear_line, run
from tests.test_graph_v3 import intent, rich

CaseFileError = kit("experiments", "suites").CaseFileError
cases, checks, golden = (kit("golden", name) for name in ("cases", "checks", "golden"))
Turn, load_cases, failed_checks, says = cases.Turn, cases.load_cases, checks.failed_checks, checks.says
CaseResult, TurnResult, run_cases, summarize = golden.CaseResult, golden.TurnResult, golden.run_cases, golden.summarize
ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
ARGS = {"patient_id": "def-456", "medication_name": "Sertraline", "dosage": "50mg", "frequency": "once daily"}
CARD = {
    "name": "prescribe_medication",
    "label": "Prescription",
    "patient": {"id": "def-456", "name": "Maria Garcia", "birth_date": "1970-01-02"},
    "args": ARGS,
    "findings": ["Interaction with naproxen"],
}
RESULT = {
    "status": "answered", "answer": "Potassium 4.1 mmol/L,\n normal (2026-09-15). The patient’s safety was checked.",
    "tools": [{"name": "get_patient_chart", "args": {}, "ok": False}], "pending_write": None,
}  # fmt: skip
PRESCRIBE = "prescribe_medication"


def faults(result: dict | None = None, **expected) -> list[str]:
    return failed_checks(Turn(ask="k+?", **expected), RESULT | (result or {}))


def write(folder: Path, cases: object) -> Path:
    path = folder / "set.yaml"
    path.write_text(
        cases if isinstance(cases, str) else yaml.safe_dump({"voice": "a test", "cases": cases}), encoding="utf-8"
    )
    return path


# -- checks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["4.1", "POTASSIUM", "5.3 | 4.1", "mmol/l, normal", "patient's", "safe", "2026-09"])
def test_a_must_stands_in_the_answer_up_to_case_blanks_and_quotes(text: str) -> None:
    assert faults(must=[text]) == []


@pytest.mark.parametrize("text", ["5.3", "1 mmol", "4", "5.3 | 5,3", "naproxen"])
def test_a_must_that_is_missing_is_named(text: str) -> None:
    assert faults(must=[text]) == [f"{text!r} is missing"]


def test_a_must_may_stand_on_the_card() -> None:
    assert faults({"pending_write": CARD}, must=["naproxen", "sertraline", "def-456", "1970-01-02"]) == []


def test_a_must_not_counts_as_a_whole_word_only() -> None:
    assert faults(must_not=["safe", "norm", "1 mmol"]) == []
    assert faults(must_not=["Safety"]) == ["'Safety' is there"]
    assert faults(must_not=["aspirin | 4.1 mmol/l"]) == ["'4.1 mmol/l' is there"]


def test_a_figure_is_found_as_a_whole_only() -> None:
    assert not says("50 mg", "0 mg") and not says("14.1", "4.1") and not says("4.15", "4.1") and not says("4,100", "4")
    assert says("It is 4.1.", "4.1") and says("128/80", "80")


def test_a_tool_counts_that_ran_and_failed() -> None:
    assert faults(tools=["get_patient_chart"]) == []
    assert faults(tools=["search_patient"]) == ["search_patient did not run"]


def test_the_status_has_to_be_equal() -> None:
    assert faults(status="answered") == []
    assert faults(status="refused") == ["status is answered, not refused"]


def test_card_none_means_that_nothing_waits() -> None:
    assert faults(card="none") == []
    assert faults({"pending_write": CARD}, card="none") == [f"a card waits ({PRESCRIBE})"]
    assert faults({"pending_write": CARD}) == []  # a card that nobody spoke of is not checked


@pytest.mark.parametrize(
    "fields",
    [{"patient": "garcia"}, {"patient": "DEF-456"}, {"patient": "smith | Maria"}, {"dosage": "50 mg"},
     {"medication_name": "sertraline hydrochloride"}, {"medication_name": "zoloft|sertraline"},
     {"frequency": "od | daily"}],
)  # fmt: skip
def test_a_card_that_fits(fields: dict) -> None:
    assert faults({"pending_write": CARD}, card={"name": PRESCRIBE, **fields}) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"patient": "Smith"}, "the card's patient is def-456 Maria Garcia 1970-01-02, not Smith"),
     ({"dosage": "150 mg"}, "the card's dosage is '50mg', not '150 mg'"),
     ({"dosage": "0 mg"}, "the card's dosage is '50mg', not '0 mg'"),
     ({"frequency": "twice daily | bd"}, "the card's frequency is 'once daily', not 'twice daily | bd'"),
     ({"notes": "with food"}, "the card's notes is None, not 'with food'")],
)  # fmt: skip
def test_a_card_that_does_not_fit_says_what_differs(fields: dict, reason: str) -> None:
    assert faults({"pending_write": CARD}, card={"name": PRESCRIBE, **fields}) == [reason]


def test_twice_daily_is_not_daily() -> None:
    card = CARD | {"args": ARGS | {"frequency": "Twice daily"}}
    assert faults({"pending_write": card}, card={"name": PRESCRIBE, "frequency": "once daily | daily"})


def test_a_missing_card_and_another_card_are_named() -> None:
    wanted = {"name": "add_allergy", "substance": "latex"}
    assert faults(card=wanted) == ["no card waits (add_allergy)"]
    assert faults({"pending_write": CARD}, card=wanted) == [f"the card is {PRESCRIBE}, not add_allergy"]


def test_the_patient_is_the_one_whom_the_card_names() -> None:
    card = CARD | {"patient": {"id": "abc-123", "name": "John Smith"}}
    assert faults({"pending_write": card}, card={"name": PRESCRIBE, "patient": "Garcia"})
    assert faults({"pending_write": card}, card={"name": PRESCRIBE, "patient": "smith"}) == []


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"id": "a"}, ["case a", "ask", "is missing"]),
        ({"ask": "hi"}, ["case 1", "id", "is missing"]),
        ({"id": "a", "ask": 402}, ["case a", "402", "quotes"]),
        ({"id": "a", "ask": "hi", "colour": "red"}, ["case a", "colour", "unknown key"]),
        ({"id": "a", "ask": "hi", "must": "4.1"}, ["case a", "must", "list"]),
        ({"id": "a", "ask": "hi", "must": [4.1]}, ["case a", "must", "4.1", "quotes"]),
        ({"id": "a", "ask": "hi", "must_not": [" | x"]}, ["case a", "must_not", "empty"]),
        ({"id": "a", "ask": "hi", "tools": ["guess"]}, ["case a", "tools", "'guess'", "search_patient"]),
        ({"id": "a", "ask": "hi", "status": "fine"}, ["case a", "status", "'fine'", "refused"]),
        ({"id": "a", "ask": "hi", "decide": "edit"}, ["case a", "decide", "approve"]),
        ({"id": "a", "ask": "hi", "card": "some"}, ["case a", "card", "none"]),
        ({"id": "a", "ask": "hi", "card": {"name": "remove"}}, ["case a", "card", "'remove'", "add_allergy"]),
        ({"id": "a", "ask": "hi", "card": {"patient": "X"}}, ["case a", "card", "name"]),
        ({"id": "a", "ask": "hi", "card": {"name": "add_allergy", "dosage": "5"}}, ["case a", "card", "'dosage'"]),
        ({"id": "a", "ask": "hi", "card": {"name": PRESCRIBE, "dosage": 50}}, ["case a", "card", "dosage", "quotes"]),
        ({"id": "a", "turns": []}, ["case a", "turns", "at least 1"]),
        ({"id": "a", "ask": "hi", "turns": [{"ask": "hi"}]}, ["case a", "ask", "unknown key"]),
        ({"id": "a", "turns": [{"ask": "hi"}, {"must": ["x"]}]}, ["case a", "turns.1.ask", "is missing"]),
        ("hi", ["cases.0", "dictionary"]),
    ],
)
def test_a_bad_case_is_named_with_what_is_wrong(tmp_path: Path, case: object, words: list[str]) -> None:
    with pytest.raises(CaseFileError) as failure:
        load_cases(write(tmp_path, [case]))
    assert len(failure.value.line().splitlines()) == 1
    for word in ["set.yaml", *words]:
        assert word in failure.value.line()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: [", ["line 1"]),
        ("cases:\n  - {id: a, ask: hi, must: [x], must: [y]}", ["line 2", "'must' stands twice"]),
        ("cases:\n  - {id: a, ask: hi}\n  - {id: a, ask: ho}", ["case a", "twice"]),
        ("cases: []", ["cases"]),
        ("", ["cases"]),
        ("[1, 2]", ["dictionary"]),
        ("author: me\ncases: [{id: a, ask: hi}]", ["author", "unknown key"]),
        ("cases: [{id: a, ask: hi, must: [2026-13-45]}]", ["month"]),
        ("cases: [{id: a, ask: !!python/object:os.system x}]", ["constructor"]),
    ],
)
def test_a_bad_file_gets_one_line(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(CaseFileError) as failure:
        load_cases(write(tmp_path, text))
    for word in words:
        assert word in failure.value.line()


def test_files_that_cannot_be_read_get_one_line(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00cases")
    for path in (tmp_path, tmp_path / "nowhere.yaml", binary):
        with pytest.raises(CaseFileError, match="cannot be used"):
            load_cases(path)


def test_one_case_is_chosen_by_its_id(tmp_path: Path) -> None:
    path = write(tmp_path, [{"id": "a", "ask": "hi"}, {"id": "b", "ask": "ho"}])
    assert [case.id for case in load_cases(path, "b")] == ["b"]
    with pytest.raises(UsageError, match="'c'"):
        load_cases(path, "c")


# -- runs ----------------------------------------------------------------------------------------------------------


def test_a_run_counts_what_passed_and_says_why_the_rest_failed(
    tmp_path: Path, settings: Settings, scripted: ScriptedLLM
) -> None:
    path = write(tmp_path, [{"id": "a", "ask": "Hello", "must": ["hi"]}, {"id": "b", "ask": "Hello", "must": ["lab"]}])
    for _ in range(2):
        intent(scripted).enqueue("synthesize", "Hi, how can I help?")
    seen: list[str] = []
    done = run_cases(load_cases(path), settings, scripted, progress=lambda case: seen.append(case.id))
    report = summarize(done)
    assert (report["passed"], report["total"], seen) == (1, 2, ["a", "b"])
    assert report["failed"] == [{"id": "b", "why": "'lab' is missing"}]
    assert report["metrics"]["share"] == 0.5 and report["metrics"]["median_seconds"] > 0


def test_no_case_sees_what_another_wrote(tmp_path: Path, settings: Settings, scripted: ScriptedLLM) -> None:
    order = {"ask": ORDER, "card": {"name": PRESCRIBE, "dosage": "500 mg"}, "decide": "approve"}
    path = write(tmp_path, [{"id": name, **order} for name in ("a", "b")])
    for _ in range(2):
        intent(scripted, PRESCRIBE)
        rich(scripted).enqueue("synthesize", "Amoxicillin was prescribed.")
    first, second = (case.turns[0] for case in run_cases(load_cases(path), settings, scripted))
    assert not first.failed and first.decided and first.decided == second.decided
    assert first.card and first.card == second.card  # the second would warn of a duplicate
    assert not (settings.home / "memory.sqlite").exists()


def test_a_conversation_is_one_thread_and_its_patient_is_open(
    tmp_path: Path, settings: Settings, scripted: ScriptedLLM
) -> None:
    turns = [{"ask": "What are his meds?", "must": ["metformin"]}, {"ask": "Thanks", "must": ["sunshine"]}]
    path = write(tmp_path, [{"id": "c", "patient": "abc-123", "turns": turns}])
    rich(intent(scripted, "get_patient_chart")).enqueue("synthesize", "He takes metformin.")
    intent(scripted).enqueue("synthesize", "You are welcome.")
    case = run_cases(load_cases(path), settings, scripted)[0]
    assert [turn.id for turn in case.turns] == ["c.1", "c.2"] and not case.turns[0].failed
    assert case.why == "turn 2: 'sunshine' is missing"


def test_what_goes_wrong_in_a_case_fails_the_case_only(
    tmp_path: Path, settings: Settings, scripted: ScriptedLLM
) -> None:
    cases = [{"id": "a", "ask": "Hello"}, {"id": "b", "ask": "Hello", "patient": "zzz"}, {"id": "c", "ask": "Hello"}]
    scripted.enqueue("intent_classify", ZeroDivisionError("secret"))
    intent(scripted).enqueue("synthesize", "Hi.")
    report = summarize(run_cases(load_cases(write(tmp_path, cases)), settings, scripted))
    assert [item["id"] for item in report["failed"]] == ["a", "b"]
    assert report["failed"][0]["why"].startswith("stopped: ZeroDivisionError") and "secret" not in str(report)
    assert "'zzz'" in report["failed"][1]["why"]


# -- the command ---------------------------------------------------------------------------------------------------


def test_eval_prints_one_object_and_saves_every_turn(home: Path, tmp_path: Path) -> None:
    path, saved = write(tmp_path, [{"id": "a", "ask": "Hello", "must": ["zebra"]}]), tmp_path / "out.jsonl"
    done = run(home, "eval", str(path), "--json", "--save", str(saved))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert set(report) == {"passed", "total", "failed", "metrics"} and report["total"] == 1
    assert [json.loads(line)["failed"] for line in saved.read_text().splitlines()] == [["'zebra' is missing"]]


def test_a_file_that_cannot_be_used_leaves_the_saved_one_alone(home: Path, tmp_path: Path) -> None:
    saved = tmp_path / "out.jsonl"
    saved.write_text("of an earlier run")
    done = run(home, "eval", str(write(tmp_path, [{"id": "a"}])), "--save", str(saved))
    assert_one_clear_line(done, 1, "case a", "ask", "is missing")
    assert saved.read_text() == "of an earlier run"


# -- figures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals(right: int, total: int, low: float, high: float) -> None:
    assert wilson(right, total) == pytest.approx((low, high), abs=5e-5)


def test_the_95th_percentile_is_a_time_that_was_measured() -> None:
    turns = [TurnResult("a", "a", "hi", seconds=float(number)) for number in range(100, 0, -1)]
    assert summarize([CaseResult("a", turns)])["metrics"]["p95_seconds"] == 95.0
