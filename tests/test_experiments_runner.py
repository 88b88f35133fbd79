"""The runner: an interrupted run goes on and ends with the same table; what it counts; its pictures and its command."""

import io
import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from docgemma.errors import ConfigError, ModelError
from docgemma.paths import kit
from docgemma.settings import Settings
from tests.scripted import ScriptedLLM
from tests.test_cli import ENV, assert_one_clear_line, run

plots, kept_rows, runner, tables = (kit("experiments", name) for name in ("plots", "kept", "runner", "tables"))
mcnemar = tables.mcnemar
Suite, find_suites = kit("experiments", "suites").Suite, kit("experiments", "suites").find_suites
model_key, run_suites = runner.model_key, runner.run_suites
table, NEEDS_A_MODEL = tables.table, tables.NEEDS_A_MODEL
SUITE = find_suites("retry")[0]
CASES = 48


@pytest.fixture
def scripted_model(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedLLM]:
    """Every model that is loaded answers retry_same; `[0]` is the first."""
    loaded: list[ScriptedLLM] = []

    def load(*args: object) -> ScriptedLLM:
        loaded.append(ScriptedLLM())
        for node, extra in (("error_handler", "strategy"), ("result_classify", "decision")):
            for _ in range(3 * CASES):
                loaded[-1].enqueue(node, "{" + f'"{extra}":"retry_same"' + "}")
        return loaded[-1]

    monkeypatch.setattr(runner, "load_llm", load)
    return loaded


def small(**changed: object) -> Suite:
    """Two conditions that cost one call a case each."""
    return SUITE.model_copy(update={"conditions": SUITE.conditions[:2], **changed})


def measured(suite: Suite, settings: Settings, name: str = "scripted", **options) -> list[dict]:
    return table(suite, run_suites([suite], name, settings, **options), name == "edge")


# -- figures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gained", "lost", "p"),  # (1, 9): 2 * (1 + 10) / 2**10
    [(0, 0, 1.0), (5, 5, 1.0), (1, 9, 0.021484375), (0, 5, 0.0625), (0, 6, 0.03125)],
)
def test_mcnemar_is_exact_and_knows_no_direction(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p) == mcnemar(lost, gained)


def test_a_row_holds_what_the_contract_names_and_the_paired_test(settings: Settings, scripted_model: list) -> None:
    first, second = measured(small(), settings)
    same = sum(case["strategy"] == "retry_same" for case in SUITE.cases_of(SUITE.conditions[0]))
    assert (first["n"], first["correct"], first["unparsed"]) == (CASES, same, 0)
    assert first["low"] < same / CASES < first["high"]
    assert (first["reported"], first["p_vs_base"], second["p_vs_base"]) == (0.92, None, 1.0)
    assert first["calls"] == CASES and first["tokens"]["completion"] == CASES and second["reported"] is None


def test_unparsed_answers_stand_apart_and_are_not_paired(settings: Settings, scripted_model: list) -> None:
    run_suites([small()], "scripted", settings, n=1)
    llm = scripted_model[0]
    llm._queues["error_handler"].clear()
    for at in range(CASES):
        llm.enqueue("error_handler", "no JSON" if at % 2 else {"strategy": "retry_same"})
    scripted_model.clear()
    runner.load_llm = lambda *args: llm  # undone by the fixture
    first = measured(small(), settings, fresh=True)[0]
    assert (first["n"], first["unparsed"]) == (CASES // 2, CASES // 2) and first["calls"] == CASES


def test_the_edge_model_runs_what_code_answers_and_names_the_rest(settings: Settings) -> None:
    rows = measured(SUITE, settings, "edge")
    assert [row["note"] for row in rows] == [NEEDS_A_MODEL] * 3 + [""]
    assert [row["n"] for row in rows] == [0, 0, 0, CASES]
    assert rows[0]["correct"] == 0 and rows[0]["p_vs_base"] is None


# -- going on ------------------------------------------------------------------------------------------------------


def test_what_is_stored_is_not_run_again_and_more_cases_are_added(settings: Settings, scripted_model: list) -> None:
    measured(small(), settings, n=10)
    whole = measured(small(), settings)
    assert len(scripted_model[1].history) == 2 * CASES - 2 * len(sample_in_both())
    assert measured(small(), settings) == whole and len(scripted_model) == 2, "no model was loaded a third time"


def sample_in_both() -> list[dict]:
    return SUITE.cases_of(SUITE.conditions[0], 10)


def test_seed_model_and_changed_condition_are_other_trials(settings: Settings, scripted_model: list) -> None:
    measured(small(), settings)
    measured(small(), settings, seed=1)
    measured(small(), settings, "other")
    changed = small(options={**SUITE.options, "temperature": 0.3})
    measured(changed, settings)
    assert [len(llm.history) for llm in scripted_model] == [2 * CASES] * 4


def test_an_outage_stops_the_run_and_the_next_goes_on(settings: Settings, scripted_model: list) -> None:
    run_suites([small()], "scripted", settings, n=1)
    broken = ScriptedLLM().enqueue("error_handler", {"strategy": "retry_same"})
    broken.enqueue("error_handler", ModelError("gone"))
    runner.load_llm = lambda *args: broken
    with pytest.raises(ModelError, match="gone"):
        run_suites([small()], "other", settings)
    stored = sqlite3.connect(settings.home / "experiments.sqlite")
    assert stored.execute("select count(*) from trials where model = 'other'").fetchone() == (1,)


def command(home: Path, *args: str) -> subprocess.Popen:
    whole = [sys.executable, "-m", "docgemma", "experiments", "run", *args, "--json"]
    env = {**ENV, "DOCGEMMA_HOME": str(home), "DOCGEMMA_MODEL": "edge"}
    return subprocess.Popen(whole, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_killed_half_way_ends_with_the_table_of_an_unbroken_one(tmp_path: Path, workers: str) -> None:
    args = ("tool_selection", "--n", "30", "--workers", workers)
    unbroken, errors = command(tmp_path / "a", *args).communicate(timeout=300)
    assert json.loads(unbroken)["rows"][-1]["n"] == 30, errors
    killed = command(tmp_path / "b", *args)
    deadline = time.monotonic() + 200
    while not len(before := stored(tmp_path / "b")) >= 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    children = children_of(killed.pid)
    killed.kill()
    killed.communicate()  # its pipes are closed once the last worker is gone
    assert killed.returncode == -signal.SIGKILL
    before = stored(tmp_path / "b")
    assert 3 <= len(before) < 30
    deadline = time.monotonic() + 60
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, children)), "a worker outlived the run"
    resumed, errors = command(tmp_path / "b", *args).communicate(timeout=300)
    assert json.loads(resumed) == json.loads(unbroken), errors
    after = stored(tmp_path / "b")
    assert len(after) == 30 and before.items() <= after.items(), "stored trials were run again"


def stored(home: Path) -> dict[str, int]:
    """Row ids by case: a row that is replaced gets a new one."""
    path = home / "experiments.sqlite"
    if not path.is_file() or not path.stat().st_size:
        return {}
    return dict(sqlite3.connect(path, timeout=30).execute("select case_id, rowid from trials").fetchall())


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.is_file() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(") ")[-1][0] != "Z"


# -- Ray, pictures, the command ------------------------------------------------------------------------------------


def test_without_ray_its_absence_is_said(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError) as caught:
        run_suites([SUITE], "edge", settings, ray="local")
    assert "pip install ray" in caught.value.line()


def test_on_ray_the_same_chunks_give_the_same_table(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own functions, played by a stand-in that runs at once."""
    seen: list[object] = []
    fake = SimpleNamespace(
        init=lambda address: seen.append(address), shutdown=lambda: seen.append("shut down"), get=lambda found: found,
        remote=lambda call: SimpleNamespace(remote=call), wait=lambda left: (left[:1], left[1:]),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", fake)
    rows = measured(SUITE, settings, "edge", ray="ray://head:10001")
    assert rows[-1]["n"] == CASES and seen == ["ray://head:10001", "shut down"]


def test_a_process_that_has_loaded_no_kit_can_run_what_it_is_sent(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "in_processes", lambda run, items, workers: [(None, elsewhere(run, items[0]))])
    jobs = list(runner.jobs_of([SUITE], True, 2))
    ran = list(runner._elsewhere([jobs], 2, None, "edge", settings.model_dump_json(), 0))
    assert [job for job, _ in ran] == jobs and all(type(job) is runner.Job for job, _ in ran)
    assert all(row["checks"] for _, row in ran)


def elsewhere(run: object, item: object) -> object:
    """Through pickle and back, in an interpreter that has imported nothing."""
    code = "import pickle, sys; run, item = pickle.load(sys.stdin.buffer); pickle.dump(run(item), sys.stdout.buffer)"
    sent = pickle.dumps((run, item))
    return pickle.loads(subprocess.run([sys.executable, "-c", code], input=sent, stdout=-1, env=ENV, check=True).stdout)


def test_pictures_are_the_same_bytes_from_the_same_rows(settings: Settings) -> None:
    pytest.importorskip("matplotlib")
    suite = find_suites("arguments")[0]
    rows = measured(suite, settings, "edge", n=5)
    row = rows[-1] | {"reported": 0.88, "seconds_a_trial": 0.5}
    for draw in (bars, plots.cascade, plots.plane):
        assert png(draw([row, row])) == png(draw([row, row])) != png(draw([row]))
    assert png(plots.cascade([])) and png(plots.plane(rows))
    marked, unmarked = bars([row]).axes[0], bars([row | {"reported": None}]).axes[0]
    assert diamonds(marked) == [0.88] and diamonds(unmarked) == []


def bars(rows: list[dict]) -> object:
    return plots.beside({"edge": rows})


def diamonds(axes: object) -> list[float]:
    return [float(x) for line in axes.get_lines() if line.get_marker() == "D" for x in line.get_xdata()]


def png(figure: object) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def test_a_models_key_names_no_folder(settings: Settings) -> None:
    assert model_key("/models/of/me/gemma-3-270m.gguf", settings) == "gemma-3-270m"
    assert model_key("google/medgemma-4b-it", settings) == "medgemma-4b-it" and model_key("edge", settings) == "edge"
    assert model_key("server", settings.model_copy(update={"llm_name": "medgemma"})) == "server medgemma"


def test_list_names_every_suite_with_conditions_trials_and_findings(home: Path) -> None:
    suites = json.loads(run(home, "experiments", "list", "--json").stdout)["suites"]
    assert {suite["part"] for suite in suites} == {"I", "II", "III", "IV"}
    assert all(suite["name"] and suite["conditions"] and suite["trials"] for suite in suites)
    assert sum(suite["trials"] for suite in suites) >= 856
    assert "tool_selection" in run(home, "experiments", "list").stdout


def test_run_prints_the_contracts_keys_and_for_people_a_line_a_condition(home: Path) -> None:
    done = run(home, "experiments", "run", "retry", "--quick", "--json")
    found = json.loads(done.stdout)
    assert (found["suite"], found["model"], len(found["rows"]), done.stderr) == ("retry", "edge", 4, "")
    assert {"condition", "n", "correct", "low", "high", "unparsed", "reported", "p_vs_base"} <= set(found["rows"][0])
    assert found["rows"][-1]["n"] == 8
    shown = run(home, "experiments", "run", "retry", "--quick").stdout
    assert NEEDS_A_MODEL in shown and "reported: 92 % (Part III, §35)" in shown and "/8 = " in shown


def test_an_unknown_suite_or_model_gets_one_line(home: Path) -> None:
    assert_one_clear_line(run(home, "experiments", "run", "magic"), 2, "magic", "tool_selection")
    assert_one_clear_line(run(home, "experiments", "run", "retry", "--model", "no.gguf"), 2, "no.gguf")


def test_saved_rows_carry_commit_and_date_and_leave_other_suites(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "data_root", lambda: tmp_path)
    rows = measured(SUITE, settings, "edge", n=2)
    kept_rows.save("edge", {"retry": rows}, n=2, seed=0)
    path = Path(kept_rows.save("edge", {"plans": []}, n=None, seed=0))
    kept = json.loads(path.read_text("utf-8"))
    assert kept["model"] == "edge" and set(kept["suites"]) == {"retry", "plans"}
    assert kept["suites"]["retry"]["rows"] == rows and {"commit", "date", "n", "seed"} <= set(kept["suites"]["retry"])
