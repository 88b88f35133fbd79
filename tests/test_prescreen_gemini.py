"""Gemini as orchestrator, against a local server that speaks its REST protocol and plays scripted turns."""

import base64
import builtins
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from docgemma.errors import ConfigError, ModelError
from docgemma.graphs.prescreen import Tools, run
from docgemma.memory import open_memory
from docgemma.paths import kit
from docgemma.prescreen import gemini
from docgemma.prescreen.gemini import Gemini
from docgemma.prescreen.records import Evidence, Facts, Search
from docgemma.prescreen.registry import Registry
from docgemma.prescreen.toolset import Toolset
from docgemma.settings import Settings
from tests.gemini_server import DONE, REFUSAL, SIGNATURE, Server, calls, failure, playing, turn
from tests.prescreen_records import study, write

serving = kit("prescreen", "mock_server").serving
KEY = "test-key-of-nobody"
FACTS = Facts(
    age=61, sex="MALE", diagnoses=["pulmonary sarcoidosis"], stage="", histology="", biomarkers=[],
    prior_lines=["prednisone"], comorbidities=[], findings=[], note="61-year-old man with sarcoidosis of the lungs.",
)  # fmt: skip
STUDIES = [
    study(1, "Drug A", ["Sarcoidosis"]),
    study(2, "Drug B", ["Interstitial Lung Disease"]),
    study(3, "Drug C", ["Cough"]),
]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with serving(write(tmp_path / "records.jsonl", STUDIES)) as url:
        registry = Registry(Settings(home=tmp_path, ctgov_url=url))
        yield registry
        registry.close()


def search(
    registry: Registry, *script: Any, budget: int = 25, timeout_s: float = 5
) -> tuple[Evidence, Server, list[Search]]:
    """The loop that the graph runs."""
    evidence, traced = Evidence(), []
    tools = Toolset(registry, budget=budget)
    tools.trace = traced.append
    with playing(*script) as (url, server):
        agent = Gemini(Settings(gemini_url=url, google_api_key=KEY), budget=budget, timeout_s=timeout_s)
        while (left := tools.left(evidence)) and (asked := agent.next_calls(FACTS, evidence, left)):
            evidence.answers = [tools.execute(call, evidence) for call in asked]
            evidence = Evidence(**json.loads(json.dumps(vars(evidence))))  # as a checkpoint keeps it
    return evidence, server, traced


def condition(*words: str) -> dict[str, Any]:
    return calls(*(("search_trials", {"condition": word}) for word in words), text="Broad terms first.")


def answers(server: Server, request: int) -> list[dict[str, Any]]:
    return [part["functionResponse"] for part in server.requests[request]["contents"][-1]["parts"]]


def test_parallel_calls_are_all_executed_and_answered_together(registry: Registry) -> None:
    evidence, server, traced = search(registry, condition("sarcoidosis", "cough"), DONE)
    assert set(evidence.studies) == {"SYN-TRIAL-00001", "SYN-TRIAL-00003"}
    assert [(one["id"], one["response"]["new"]) for one in answers(server, 1)] == [("call-0", 1), ("call-1", 1)]
    assert evidence.calls["search_trials"] == len(traced) == 2 and not evidence.partial
    assert traced[0]["why"] == "Broad terms first."


def test_thought_signatures_go_back_unchanged_and_the_model_is_asked_for_by_name(registry: Registry) -> None:
    _, server, _ = search(registry, condition("cough"), condition("sarcoidosis"), DONE)
    signed = [part["thoughtSignature"] for said in server.requests[2]["contents"] for part in said["parts"]
              if "thoughtSignature" in part]  # fmt: skip
    assert [base64.urlsafe_b64decode(one.translate(str.maketrans("+/", "-_"))) for one in signed] == [
        base64.b64decode(SIGNATURE)
    ] * 2
    path, headers = server.seen[0]
    assert path == f"/v1beta/models/{gemini.MODEL}:generateContent" and headers["x-goog-api-key"] == KEY
    declared = server.requests[0]["tools"][0]["functionDeclarations"]
    assert [tool["name"] for tool in declared] == ["search_trials", "get_trial_details", "consult_medical_expert"]


def test_tokens_and_cost_are_counted(registry: Registry) -> None:
    evidence, _, _ = search(registry, condition("cough"), DONE)
    assert evidence.tokens == {"prompt": 2000, "completion": 200}
    assert evidence.cost == pytest.approx((2000 * 2 + 200 * 12) / 1e6)


def test_calls_beyond_the_budget_are_answered_and_not_executed(registry: Registry) -> None:
    evidence, server, traced = search(registry, condition("cough"), condition("sarcoidosis", "lung", "drug"), budget=2)
    assert sum(evidence.calls.values()) == len(traced) == 2
    assert [("error" in answer) for answer in evidence.answers] == [False, True, True]
    assert len(server.requests) == 2  # nobody is asked once the budget is spent


def test_a_call_that_cannot_be_is_answered_with_an_error_and_costs_nothing(registry: Registry) -> None:
    wrong = calls(
        ("find_everything", {}), ("search_trials", {"diagnosis": "cough"}), ("search_trials", {"condition": 7})
    )
    evidence, server, _ = search(registry, wrong, condition("cough"), DONE)
    told = [one["response"]["error"] for one in answers(server, 1)]
    assert "no tool" in told[0] and "no argument diagnosis" in told[1] and "must be string" in told[2]
    assert evidence.calls["search_trials"] == 1 and list(evidence.studies) == ["SYN-TRIAL-00003"]


@pytest.mark.parametrize(
    "malformed",
    [turn([], "MALFORMED_FUNCTION_CALL"), turn([{"functionCall": {"name": "search_trials", "args": "cough"}}])],
)
def test_a_call_that_gemini_could_not_write_is_asked_for_again(registry: Registry, malformed: dict[str, Any]) -> None:
    evidence, server, _ = search(registry, condition("sarcoidosis"), malformed, condition("cough"), DONE)
    assert len(evidence.studies) == 2 and not evidence.partial
    assert server.requests[2]["contents"][-1]["parts"][0]["text"] == gemini.AGAIN


def test_calls_that_stay_malformed_end_the_search_as_partial(registry: Registry) -> None:
    evidence, server, _ = search(registry, condition("cough"), *[turn([], "MALFORMED_FUNCTION_CALL")] * 9)
    assert "could not be read" in evidence.partial and len(server.requests) == 1 + gemini.MALFORMED_TRIES


@pytest.mark.parametrize(
    ("bad", "says"),
    [(REFUSAL, "refused the request (PROHIBITED_CONTENT)"), (turn([], "SAFETY"), "early (SAFETY)"),
     (turn([{"text": "I was"}], "MAX_TOKENS"), "early (MAX_TOKENS)"), ({"candidates": []}, "refused the request"),
     (failure(400, "INVALID_ARGUMENT"), "HTTP 400"), (failure(403, "PERMISSION_DENIED"), "refused the key")],
)  # fmt: skip
def test_a_refusal_half_way_keeps_what_was_found_and_says_so(registry: Registry, bad: Any, says: str) -> None:
    evidence, _, _ = search(registry, condition("cough"), bad)
    assert says in evidence.partial and "secret" not in evidence.partial
    assert list(evidence.studies) == ["SYN-TRIAL-00003"]


@pytest.mark.parametrize("bad", [REFUSAL, turn([], "SAFETY"), failure(403, "PERMISSION_DENIED")])
def test_a_refusal_before_the_first_search_is_an_error_and_never_nothing_found(registry: Registry, bad: Any) -> None:
    with pytest.raises(ModelError) as error:
        search(registry, bad)
    assert "secret" not in error.value.line()


def test_a_busy_or_broken_server_is_asked_again(registry: Registry) -> None:
    script = failure(429, "RESOURCE_EXHAUSTED"), failure(503, "UNAVAILABLE"), condition("cough"), DONE
    evidence, server, _ = search(registry, *script)
    assert len(evidence.studies) == 1 and not evidence.partial and len(server.requests) == 4


def test_an_outage_half_way_is_marked(registry: Registry) -> None:
    evidence, server, _ = search(registry, condition("cough"), *[failure(500, "INTERNAL")] * 9)
    assert "Gemini failed (HTTP 500)" in evidence.partial and len(evidence.studies) == 1
    assert len(server.requests) == 1 + gemini.ATTEMPTS


def test_a_turn_that_never_comes_ends_at_its_timeout(registry: Registry) -> None:
    evidence, _, _ = search(registry, condition("cough"), *[4] * 9, timeout_s=0.5)
    assert "did not answer in time" in evidence.partial and len(evidence.studies) == 1


def test_a_server_that_is_not_there_is_one_clear_line() -> None:
    agent = Gemini(Settings(gemini_url="http://127.0.0.1:9", google_api_key=KEY))
    with pytest.raises(ModelError, match="could not be reached"):
        agent.next_calls(FACTS, Evidence(), 25)


def test_a_long_conversation_loses_old_trials_and_no_call() -> None:
    answer = {"new": 40, "new_trials": [{"id": "SYN-TRIAL-00001", "title": "x" * 90}] * 40}
    pages = [{"function_response": {"name": "search_trials", "response": dict(answer)}} for _ in range(60)]
    said = [{"role": "user", "parts": [page]} for page in pages]
    gemini._shorten(said)
    kept = [len(part["function_response"]["response"]["new_trials"]) for turn_ in said for part in turn_["parts"]]
    assert len(json.dumps(said)) <= gemini.CONTEXT and kept[0] == gemini.KEPT and kept[-1] == 40 and len(kept) == 60


def test_without_the_package_or_a_key_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as no_key:
        Gemini(Settings(google_api_key=None))
    assert "GOOGLE_API_KEY" in no_key.value.line()
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("google"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError) as no_package:
        Gemini(Settings(google_api_key=KEY))
    assert "docgemma[prescreen]" in no_package.value.line()


def test_the_key_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    settings = Settings()
    assert settings.google_api_key == KEY and KEY not in repr(settings)


def test_a_run_that_was_killed_between_parallel_calls_goes_on_with_the_same_conversation(
    registry: Registry, tmp_path: Path
) -> None:
    def killed(done: Search) -> None:
        if done["args"]["condition"] == "cough":
            raise KeyboardInterrupt

    memory = open_memory(str(tmp_path / "memory.sqlite"))
    with playing(condition("sarcoidosis", "cough", "lung"), DONE) as (url, server), closing(memory.conn):
        settings = Settings(home=tmp_path, gemini_url=url, google_api_key=KEY)
        with pytest.raises(KeyboardInterrupt):
            run(FACTS, Tools(Toolset(registry), Gemini(settings), settings), memory, "gemini", killed)
        done = run(FACTS, Tools(Toolset(registry), Gemini(settings), settings), memory, "gemini")
    assert done["resumed"] and not done["partial"] and done["calls"]["search_trials"] == 3
    assert [item["args"]["condition"] for item in done["searches"]] == ["sarcoidosis", "cough", "lung"]
    assert len(server.requests) == 2 and [one["id"] for one in answers(server, 1)] == ["call-0", "call-1", "call-2"]
