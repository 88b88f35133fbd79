"""The evaluation of the prescreen: its figures, its files, the shipped benchmark, and the command from end to end."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from docgemma.cli import app
from docgemma.errors import UsageError
from docgemma.experiments.statistics import wilson
from docgemma.paths import PACKAGE, data_file, kit
from docgemma.prescreen.records import TOOLS
from docgemma.prescreen.screen import split_criteria
from tests.gemini_server import DONE, calls, playing
from tests.prescreen_records import study, write

evaluate = kit("prescreen", "evaluate")
GRADES = {"A": 2, "B": 2, "C": 2, "D": 2, "N": 1}
DEV = data_file("prescreen", "benchmark", "dev")
FILES = [str(DEV / "queries.jsonl"), str(DEV / "qrels.tsv"), str(DEV / "records.jsonl.gz")]


def search(returned: str, new: str, **args: Any) -> dict[str, Any]:
    return {"tool": TOOLS[0], "args": args, "returned": list(returned), "new": list(new)}


def told(*searches: dict[str, Any], ranked: str = "") -> dict[str, Any]:
    """A run as the command prints it."""
    return {
        "searches": list(searches), "candidates": [{"nct_id": trial} for trial in ranked], "budget": 25, "cost": 0.5,
        "calls": dict.fromkeys(TOOLS, 0) | {TOOLS[0]: len(searches)}, "tokens": {"prompt": 10, "completion": 2},
        "found": len(ranked), "why_partial": "",
    }  # fmt: skip


RUN = told(
    search("AX", "AX", condition="a"), search("ABN", "BN", condition="b"), search("X", "", condition="A"), ranked="ABXN"
)


def test_recall_is_of_the_eligible_and_a_near_miss_is_none() -> None:
    row = evaluate.measured("q", "full", RUN, GRADES, 1.5)
    assert (row["found"], row["eligible"], row["recall"]) == (2, 4, 0.5)
    assert [one["recall"] for one in row["searches"]] == [0.25, 0.5, 0.5]
    assert [one["new_eligible"] for one in row["searches"]] == [1, 1, 0]
    assert [one["eligible"] for one in row["searches"]] == [1, 2, 0]
    assert row["terms"] == 2  # "a" and "A" are one
    assert (row["low"], row["high"]) == tuple(round(end, 4) for end in wilson(2, 4))


def test_a_relevant_trial_that_is_not_found_counts_against_the_ranking_of_all() -> None:
    row = evaluate.measured("q", "full", RUN, GRADES, 1.5)
    assert row["ndcg_judged"] == 1.0 and 0 < row["ndcg_all"] < 0.8
    assert evaluate.measured("q", "full", told(), GRADES, 0)["ndcg_all"] == 0.0


def test_means_are_over_patients_and_the_interval_over_trials() -> None:
    rows = [
        evaluate.measured("q", "full", RUN, GRADES, 1),
        evaluate.measured("r", "full", told(search("A", "A")), {"A": 2}, 3),
    ]
    line = evaluate.summarized(rows)[0]
    assert line["mean"]["recall"] == 0.75 and line["pooled"] == 0.6 and (line["found"], line["n"]) == (3, 5)
    assert line["calls"][TOOLS[0]] == 4 and line["tokens"] == {"prompt": 20, "completion": 4} and line["queries"] == 2


def test_a_run_that_stopped_early_stays_where_it_was() -> None:
    rows = [
        evaluate.measured("q", "full", RUN, GRADES, 1),
        evaluate.measured("r", "full", told(search("A", "A")), {"A": 2}, 3),
    ]
    assert evaluate.curves(rows, 4) == {"full": [0.0, 0.625, 0.75, 0.75, 0.75]}


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    evaluate.draw([evaluate.measured("q", "full", RUN, GRADES, 1)], 25, tmp_path / "recall.png")
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["nonsense\n", '{"text": "no id"}\n', "[]\n"])
def test_a_file_of_another_kind_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text("head\n" + text if text == "nonsense\n" else text)
    for read in (evaluate.read_queries, evaluate.read_criteria):
        with pytest.raises(UsageError, match="is no file of"):
            read(tmp_path / "file")
        with pytest.raises(UsageError):
            read(tmp_path / "absent")
    (tmp_path / "file").write_text("query-id\tcorpus-id\tscore\nonly two\tparts\n")
    with pytest.raises(UsageError):
        evaluate.read_qrels(tmp_path / "file")


def test_judged_criteria_stand_beside_the_best_answer_that_is_always_the_same() -> None:
    labels = ["met"] * 4 + ["not_met"] * 3 + ["unknown"]
    criteria: list[Any] = [
        {"kind": "inclusion", "text": f"Criterion {number}", "verdict": verdict, "sentence": ""}
        for number, verdict in enumerate(labels)
    ]
    case = {"id": "note", "note": "", "criteria": criteria}
    perfect = evaluate.judged([case], {"note": criteria})
    assert perfect["macro_f1"] == perfect["accuracy"] == 1.0 and perfect["n"] == 8
    always = [item | {"verdict": "met"} for item in criteria]
    flat = evaluate.judged([case], {"note": always})
    assert flat["macro_f1"] == flat["always_one_class"] == pytest.approx(8 / 12 / 3, abs=1e-4)
    assert flat["accuracy"] == 0.5 and flat["classes"]["unknown"] == {
        "n": 1,
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
    }
    assert evaluate.judged([case], {"note": criteria[:5]})["not_judged"] == 3


def test_the_labelled_criteria_come_back_as_they_were_written() -> None:
    cases = evaluate.read_criteria(data_file("prescreen", "criteria.jsonl"))
    assert len(cases) >= 6 and sum(len(case["criteria"]) for case in cases) >= 60
    for case in cases:
        assert split_criteria(evaluate.as_study(case)["criteria"]) == [
            (one["kind"], one["text"]) for one in case["criteria"]
        ]
    assert {one["verdict"] for case in cases for one in case["criteria"]} == {"met", "not_met", "unknown"}


def test_the_benchmark_is_what_its_families_make(tmp_path: Path) -> None:
    shutil.copy(DEV / "families.yaml", tmp_path)
    kit = PACKAGE.parent / "data" / "prescreen" / "kit" / "expand.py"
    subprocess.run([sys.executable, str(kit), str(tmp_path)], check=True, capture_output=True)
    for name in ("queries.jsonl", "qrels.tsv"):
        assert (tmp_path / name).read_bytes() == (DEV / name).read_bytes()
    made, shipped = (gzip.decompress((at / "records.jsonl.gz").read_bytes()) for at in (tmp_path, DEV))
    assert made == shipped and (DEV / "records.jsonl.gz").stat().st_size < 1_000_000


def test_no_id_of_the_benchmark_could_be_somebodys() -> None:
    lines = gzip.decompress((DEV / "records.jsonl.gz").read_bytes()).decode().splitlines()
    ids = {json.loads(line)["protocolSection"]["identificationModule"]["nctId"] for line in lines}
    assert len(ids) == len(lines) and all(one.startswith("SYN-TRIAL-") and len(one) == 15 for one in ids)
    grades = evaluate.read_qrels(DEV / "qrels.tsv")
    assert set(grades) == set(evaluate.read_queries(DEV / "queries.jsonl"))
    assert {trial for judged_ in grades.values() for trial in judged_} <= ids


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A registry of 40 trials, one patient, and the options that name them."""
    trials = [study(n, "Drug A", ["Sarcoidosis" if n < 9 else "Uveitis" if n < 16 else "Gout"]) for n in range(1, 41)]
    write(tmp_path / "records.jsonl", trials)
    note = {"_id": "one", "text": "A 52-year-old woman with sarcoidosis and uveitis."}
    (tmp_path / "queries.jsonl").write_text(json.dumps(note) + "\n")
    rows = [f"one\tSYN-TRIAL-{n:05}\t2" for n in range(1, 16)]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    monkeypatch.setenv("DOCGEMMA_HOME", str(tmp_path / "home"))
    options = [("--queries", "queries.jsonl"), ("--qrels", "qrels.tsv"), ("--records", "records.jsonl")]
    return [part for name, file in options for part in (name, str(tmp_path / file))]


def run(*args: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["trials", *args, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


def test_the_command_measures_a_registry_that_it_serves_itself(small: list[str], tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    result = run("eval", *small, "--budget", "4", "--ablation", "full", "--ablation", "flat", "--plot", str(plot))
    assert [line["ablation"] for line in result["summary"]] == ["full", "flat"]
    assert result["summary"][0]["found"] == 15 and result["summary"][0]["pooled"] == 1.0
    assert all(sum(row["calls"].values()) <= 4 and row["calls"] for row in result["rows"])
    assert "<svg" in plot.read_text() and result["model"] is None
    assert not (tmp_path / "home" / "http-cache").exists()  # answers of a stand-in are kept for nobody


def test_a_registry_that_is_down_is_no_measured_zero(small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCGEMMA_CTGOV_URL", "http://127.0.0.1:9")
    done = CliRunner().invoke(app, ["trials", "eval", *small[:4], "--ablation", "full"], catch_exceptions=False)
    assert "1 incomplete" in done.stdout and "could not be reached" in done.stdout


def test_the_edge_model_judges_no_criteria_and_says_so(small: list[str]) -> None:
    result = run("eval", "--criteria", str(data_file("prescreen", "criteria.jsonl")))
    assert result["criteria"]["n"] == 0 and "medical model" in result["criteria"]["why"]


@pytest.mark.parametrize(
    "wrong", [[], ["--queries", FILES[0]], ["--queries", FILES[0], "--qrels", FILES[1], "--ablation", "magic"]]
)
def test_wrong_options_are_a_usage_error(small: list[str], wrong: list[str]) -> None:
    with pytest.raises(UsageError):
        CliRunner().invoke(app, ["trials", "eval", *wrong], catch_exceptions=False)


def test_gemini_runs_the_same_evaluation(small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = calls((TOOLS[0], {"condition": "sarcoidosis"}), (TOOLS[0], {"condition": "uveitis"})), DONE
    with playing(*script) as (url, server):
        monkeypatch.setenv("DOCGEMMA_GEMINI_URL", url)
        monkeypatch.setenv("GOOGLE_API_KEY", "test-key-of-nobody")
        result = run("eval", *small, "--orchestrator", "gemini")
    assert result["summary"][0]["found"] == 15 and result["summary"][0]["calls"][TOOLS[0]] == 2
    assert result["rows"][0]["cost"] > 0 and len(server.requests) == 2


def test_no_identifier_of_the_note_reaches_gemini(small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    note = (
        "Ottilie Quarrendon, DOB 03/04/1974, MRN 88231177, ottilie.q@example.org, 555-0142-998. "
        "Ms. Quarrendon is a 52-year-old woman with sarcoidosis."
    )
    with playing(DONE) as (url, server):
        monkeypatch.setenv("DOCGEMMA_GEMINI_URL", url)
        monkeypatch.setenv("GOOGLE_API_KEY", "test-key-of-nobody")
        run("search", "--note", note, "--orchestrator", "gemini")
    sent = json.dumps(server.requests)
    assert "sarcoidosis" in sent and "52" in sent
    for private in ("Ottilie", "Quarrendon", "1974", "88231177", "example.org", "555-0142"):
        assert private not in sent
