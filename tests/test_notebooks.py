"""The notebooks are stored with their outputs; these say what the data say, and come out again."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from docgemma.agent import Agent
from docgemma.errors import ErrorType
from docgemma.experiments.statistics import wilson
from docgemma.paths import data_file, kit
from docgemma.settings import Settings

plots, stored = kit("experiments", "plots"), kit("experiments", "kept").stored
ROOT = Path(__file__).parents[1]
STORED = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXPERIMENTS = [path for path in STORED if path.stem[:2] in ("10", "11", "12", "13")]
FORTY = data_file("experiments", "scenarios", "forty.yaml")
sys.path.insert(0, str(ROOT / "benchmarks"))  # its scripts run from their own folder
import architectures  # noqa: E402

sys.path.remove(str(ROOT / "benchmarks"))


def outputs(notebook: dict, tag: str = "") -> list[dict]:
    cells = [cell for cell in notebook["cells"] if not tag or tag in cell["metadata"].get("tags", [])]
    return [output for cell in cells for output in cell.get("outputs", [])]


def said(notebook: dict) -> str:
    """What the cells tagged `conclusion` print."""
    return "".join("".join(output.get("text", "")) for output in outputs(notebook, "conclusion"))


# -- the notebooks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_notebook_comes_to_its_stored_conclusions_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("DOCGEMMA_MODEL", "edge")
    monkeypatch.setenv("DOCGEMMA_HOME", str(tmp_path))
    stored = nbformat.read(path, as_version=4)
    now = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(now, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert said(stored).strip() and said(now) == said(stored), "run: python writeup/build.py --notebooks"


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_page_that_does_not_run_it_shows_its_results(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    kinds = {kind for output in outputs(notebook) for kind in output.get("data", {})}
    assert {"image/png", "text/html"} & kinds and not [
        item for item in outputs(notebook) if item["output_type"] == "error"
    ]
    here, shown = (str(ROOT), str(Path.home()), "/tmp/", "/home/"), json.dumps(outputs(notebook))
    assert not [place for place in here if place in text] and "http://127.0.0.1" not in shown
    assert len(text) < 500_000 and notebook["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("path", [*STORED, ROOT / "writeup" / "writeup.ipynb"], ids=lambda path: path.stem)
def test_every_picture_says_what_it_shows(path: Path) -> None:
    """nbconvert and GitHub read `alt` of the cell; whoever cannot see the picture hears it."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        draws = ("draw_", "plots.draw", "SVG(", "plots.by", "plots.arguments", "beside(", "plane(", "cascade(",
            "Image(", ".resize(")  # fmt: skip
        if cell["cell_type"] == "code" and any(line.startswith(draws) for line in cell["source"]):
            assert len(cell["metadata"].get("alt", "")) > 10, cell["source"]
        pictures = [kind for output in cell.get("outputs", []) for kind in output.get("data", {}) if "image/" in kind]
        assert not pictures or cell["metadata"].get("alt"), cell["source"]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_a_notebook_of_experiments_is_mostly_text_and_pictures(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert "image/png" in {kind for output in outputs(notebook) for kind in output.get("data", {})}
    code = ["".join(cell["source"]).splitlines() for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert max(map(len, code)) <= 25 and sorted(map(len, code))[len(code) // 2] < 8
    assert "ccc" not in "".join(cell["cell_type"][0] for cell in notebook["cells"])


# -- the forty requests ------------------------------------------------------------------------------------------------


def test_the_forty_are_the_specifications_and_one_of_each_role_by_rule() -> None:
    cases = {case["id"]: case for case in yaml.safe_load(FORTY.read_text(encoding="utf-8"))["cases"]}
    assert len(kit("golden", "cases").load_cases(FORTY)) == len(cases) == 40
    rounds = json.loads(data_file("results", "natural.json").read_text(encoding="utf-8"))["rounds"]
    later = {name for item in rounds if item["round"] > 4 for name in item["sets"]}  # written after the forty
    found = sorted(data_file("natural").glob("*.yaml"))
    apart = ("no_entry", "entries", "conversations", "drug_questions", "orders_or_not", "follow_ups", "chart_asks",
        "two_asks", "described", "evidence_asks", "orders_warned", "asides",
        "circumstances", "judgements", "shift_talk")  # of no round  # fmt: skip
    sets = [path for path in found if not path.stem.startswith(apart) and path.stem not in later]
    for k, path in enumerate(sets):
        asked = yaml.safe_load(path.read_text(encoding="utf-8"))["cases"]
        single = [case for case in asked if "turns" not in case]
        assert cases.pop(single[k]["id"]) == single[k]
    assert len(cases) == 23 and all(name.startswith("spec-") for name in cases)


def test_the_stored_comparison_counts_its_failures() -> None:
    stored = json.loads(data_file("results", "architectures.json").read_text(encoding="utf-8"))
    assert [row["condition"] for row in stored["edge"]["rows"]] == ["v1", "v2", "v3"]
    for run in stored.values():
        assert run["commit"] and run["date"]
        for row in run["rows"]:
            assert row["n"] == 40 and row["correct"] == 40 - len(row["failed"])
            assert (row["low"], row["high"]) == pytest.approx(wilson(row["correct"], 40), abs=1e-4)


def test_react_calls_a_tool_answers_and_is_counted(settings: Settings, scripted) -> None:
    scripted.enqueue("react", {"tool": "check_drug_safety", "arguments": {"drug_name": "dofetilide"}})
    scripted.enqueue("react", {"answer": "Boxed warning: torsade de pointes; monitor the ECG."})
    (case,) = [case for case in architectures.scenarios() if case.id == "spec-dofetilide"]
    found = architectures.run_react(case, settings, scripted, architectures.REACT)
    assert found.passed and found.turns[0].llm_calls == 2 and not scripted.pending()
    assert "torsade" in scripted.history[1][1].user.lower(), "the second round reads what the tool found"


def test_a_write_of_react_waits_and_is_not_carried_out(settings: Settings, scripted) -> None:
    args = {"patient_id": "abc-123", "medication_name": "metformin", "dosage": "500 mg", "frequency": "daily"}
    scripted.enqueue("react", {"tool": "prescribe_medication", "arguments": args}).enqueue("react", {"answer": "Done."})
    (case,) = [case for case in architectures.scenarios() if case.id == "spec-order-metformin"]
    with Agent(settings, llm=scripted) as agent:
        before = agent.store.chart("abc-123").medications
        found = architectures.run_react(case, settings, scripted, architectures.REACT)
        assert agent.store.chart("abc-123").medications == before
    assert found.passed and found.turns[0].status == "needs_approval" and not found.turns[0].tools[0]["ok"]


def test_react_that_never_answers_has_failed(settings: Settings, scripted) -> None:
    for _ in range(9):
        scripted.enqueue("react", {"tool": "search_patient", "arguments": {"name": "John Smith"}})
    found = architectures.run_react(
        kit("golden", "cases").load_cases(FORTY)[0], settings, scripted, architectures.REACT
    )
    assert "no answer" in found.why and len(found.turns[0].tools) <= 4


# -- what they are made from -------------------------------------------------------------------------------------------


def test_what_the_kernel_brought_home_stands_beside_the_stored_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert next(iter(stored())) == "edge"
    for name, suites in (("experiments/edge.json", {"retry": {"rows": []}}), ("medgemma/experiments.json", [])):
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"suites": suites}), encoding="utf-8")
    ran = {"suites": [{"suite": "retry", "rows": []}, {"suite": "skip", "not_run": "out of memory"}]}
    path.write_text(json.dumps(ran), encoding="utf-8")
    monkeypatch.setenv("DOCGEMMA_DATA", str(tmp_path))
    assert {model: list(suites) for model, suites in stored().items()} == {
        "edge": ["retry"],
        "medgemma": ["retry"],
    }


def test_a_line_that_was_not_run_has_a_diamond_and_no_bar() -> None:
    kept = {model: suites["results"]["rows"] for model, suites in stored().items() if "results" in suites}
    empty = plots.beside({"edge": kept["edge"]}).axes[0]
    assert [label.get_text() for label in empty.get_yticklabels()] == ["temperature 0.0", "temperature 0.3"]
    assert not empty.patches and list(empty.lines[0].get_xdata()) == [0.941]
    row = {**kept["edge"][0], "n": 8, "correct": 4, "low": 0.2, "high": 0.8}
    both = plots.beside({"edge": kept["edge"], "other": [row]}).axes[0]
    assert [bar.get_width() for bar in both.patches] == [0.5] and [text.get_text() for text in both.texts] == ["4/8"]


def test_every_kind_of_error_has_a_way_out_in_the_notebook() -> None:
    notebook = json.loads((ROOT / "notebooks" / "11_results_and_routing.ipynb").read_text(encoding="utf-8"))
    printed = "".join("".join(output.get("text", "")) for output in outputs(notebook))
    assert not [kind for kind in ErrorType if f"\n{kind.value} " not in f"\n{printed}"]
