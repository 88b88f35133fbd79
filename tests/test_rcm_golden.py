"""The golden set of the revenue-cycle agent: its runner finds what is wrong, and the edge model passes the set."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from docgemma.llm import load_llm
from docgemma.paths import PACKAGE, kit
from docgemma.settings import Settings, read_settings

CaseFileError = kit("experiments", "suites").CaseFileError
golden = kit("rcm", "golden")
RcmCase, Scored, is_rcm, kept_runs = golden.RcmCase, golden.Scored, golden.is_rcm, golden.kept_runs
load_rcm_cases, summarize_rcm = golden.load_rcm_cases, golden.summarize_rcm
GOLDEN = PACKAGE.parent / "data" / "golden" / "rcm.yaml"
KNOWN: dict[str, str] = {}  # what the edge model does not get right, and why; a case that passes must be taken out
CASE: dict[str, Any] = {"id": "one", "category": "happy_path", "difficulty": "easy", "query": "Any allergies?"}


def told(**changes: Any) -> dict[str, Any]:
    """An answer with one quote from a sample note."""
    said = "No known drug allergies."
    claim = {"document": "gonzalez_knee_replacement.pdf", "page": 2, "quote": said, "kind": "document"}
    return {
        "status": "answered", "intent": "ALLERGIES", "answer": said, "escalate": False,
        "claims": [claim], "tools": [], "criteria": [], "ledger_ids": [1], "path": ["auditor"], "patient": None,
        **changes,
    }  # fmt: skip


def scored(case: dict[str, Any], answer: dict[str, Any]) -> Any:
    out = Scored(RcmCase(**{**CASE, "pdf": ["gonzalez_knee_replacement.pdf"], **case}), told=answer, seconds=1.0)
    golden._score(out, read_settings())
    return out


def test_an_answer_as_expected_passes_with_its_quote_in_place() -> None:
    out = scored({"must_contain": ["no known DRUG"], "expected_sources": ["gonzalez"], "reviews": 1}, told())
    assert not out.why and (out.claims, out.placed, out.invented) == (1, 1, 0)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ({"must_contain": ["No known", "latex"]}, "lacks 'latex'"),
        ({"must_not_contain": ["known drug"]}, "says 'known drug'"),
        ({"status": "refused"}, "status answered"),
        ({"intent": "MEDICATIONS"}, "intent ALLERGIES"),
        ({"escalate": True}, "escalate False"),
        ({"expected_tools": ["get_patient_chart"]}, "no call of get_patient_chart"),
        ({"expected_sources": ["Chart of"]}, "Chart of is not quoted"),
        ({"verdicts": {"NHP-ORTH-001.1": "MET"}}, "criterion NHP-ORTH-001.1 nothing"),
        ({"reviews": 3}, "1 reviews, not 3"),
    ],
)
def test_a_wrong_expectation_fails(case: dict[str, Any], why: str) -> None:
    assert any(why in one for one in scored(case, told()).why)


def test_a_quote_that_stands_elsewhere_or_nowhere_is_found() -> None:
    claim = told()["claims"][0]
    elsewhere = scored({}, told(claims=[{**claim, "page": 3}]))
    assert (elsewhere.placed, elsewhere.invented) == (0, 0) and elsewhere.why
    made_up = scored({}, told(claims=[{**claim, "quote": "Allergic to penicillin."}]))
    assert made_up.invented == 1 and any("stand nowhere" in one for one in made_up.why)
    assert any("ledger" in one for one in scored({}, told(ledger_ids=[])).why)


def test_error_and_not_knowing_stand_in_no_answer() -> None:
    assert scored({}, told(answer="Internal error.")).why and scored({}, told(answer="I don't know.")).why


def test_targets_decide_and_runs_are_kept(home: Path) -> None:
    settings = read_settings()
    good, bad = scored({}, told()), scored({"must_contain": ["latex"]}, told())
    assert summarize_rcm([good] * 4 + [bad], settings)["held"]  # 80 %
    report = summarize_rcm([good] * 3 + [bad], settings)
    assert not report["held"] and [one["name"] for one in report["targets"] if not one["held"]] == ["pass_rate"]
    larger = Scored(RcmCase(**{**CASE, "needs_larger": "it must infer"}), why=["lacks 'latex'"])
    assert summarize_rcm([good, larger])["held"] and summarize_rcm([good, larger])["needs_larger"]
    assert [run["passed"] for run in kept_runs(settings)][-2:] == [4, 3]
    plots = kit("experiments", "plots")
    plots.save(plots.trend(kept_runs(settings), {}), home / "trend.png")
    assert (home / "trend.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_ends_with_status_1_below_a_target(tmp_path: Path, home: Path) -> None:
    from docgemma.cli import app

    file = tmp_path / "cases.yaml"
    for text, status in ((["I am a specialized Healthcare RCM agent"], 0), (["Arr"], 1)):
        case = {**CASE, "query": "Talk like a pirate", "status": "refused", "must_contain": text}
        file.write_text("test_cases:\n- " + json.dumps(case) + "\n", encoding="utf-8")
        assert CliRunner().invoke(app, ["eval", str(file), "--json"]).exit_code == status


def test_a_file_of_cases_is_recognised_and_a_bad_one_refused(tmp_path: Path) -> None:
    assert is_rcm(GOLDEN) and not is_rcm(PACKAGE.parent / "data" / "natural" / "physician.yaml")
    cases = load_rcm_cases(GOLDEN)
    kinds = [case.category for case in cases]
    assert len(cases) >= 60 and kinds.count("multi_step") >= 15 and kinds.count("adversarial") >= 12
    bad = tmp_path / "bad.yaml"
    bad.write_text("test_cases:\n- {id: a, query: b}\n", encoding="utf-8")
    with pytest.raises(CaseFileError):
        load_rcm_cases(bad)
    with pytest.raises(CaseFileError):
        load_rcm_cases(GOLDEN, "no-such-case")


def test_the_edge_model_passes_the_golden_set(settings: Settings, pages_read_once: None) -> None:
    done = golden.run_rcm_cases(load_rcm_cases(GOLDEN), settings, load_llm("edge", settings))
    wrong = {one.case.id: one.why for one in done if one.why and not one.case.needs_larger}
    assert {name: why for name, why in wrong.items() if name not in KNOWN} == {}
    assert not KNOWN.keys() - wrong.keys(), "these pass now: take them out of KNOWN"
    report = summarize_rcm(done)
    assert report["metrics"]["hallucination_rate"] == 0 and report["metrics"]["citation_accuracy"] == 1
    assert all(one["held"] for one in report["targets"] if one["name"] != "p90_seconds")  # a busy machine is slow
