"""The kit of sealed rounds: each case graded once, the first result kept, nothing of the code among the material."""

import json
import shutil

import pytest

from docgemma import paths
from docgemma.paths import data_file

SET = """voice: night nurse (role played, no clinician took part)
cases:
  - {id: zz-001, ask: "k+ for garcia?", expected: "4.1"}
  - id: zz-c01
    turns: [{ask: "garcia", expected: "found"}, {ask: "and her k?", expected: "4.1"}]
"""


def turn(case, question, failed=()):
    return {
        "case": case,
        "question": question,
        "status": "answered",
        "answer": f"said to {question}",
        "failed": list(failed),
    }


@pytest.fixture
def kit():
    return paths.kit("natural", "material"), paths.kit("natural", "record")


@pytest.fixture
def played(tmp_path, monkeypatch):
    """A round of one set that was run, with a data folder of its own to be recorded in."""
    data, folder = tmp_path / "data", tmp_path / "round"
    (data / "results" / "natural").mkdir(parents=True)
    (data / "natural").mkdir()
    folder.mkdir()
    shutil.copy(data_file("results", "natural.json"), data / "results" / "natural.json")
    (folder / "zz.yaml").write_text(SET)
    turns = [turn("zz-001", "k+", ["4.1"]), turn("zz-c01", "garcia"), turn("zz-c01", "her k")]
    (folder / "zz.run.jsonl").write_text("".join(json.dumps(item) + "\n" for item in turns))
    grades = [
        {"id": "zz-001", "grade": "B", "why": "says what it leaves out", "step": "chart answer"},
        {"id": "zz-c01", "grade": "A", "why": "", "step": "ok"},
    ]
    (folder / "zz.grades.jsonl").write_text("".join(json.dumps(item) + "\n" for item in grades))
    monkeypatch.setattr(paths, "data_file", lambda *parts: data.joinpath(*parts))
    return data, folder, grades


def test_a_round_is_recorded_once_with_every_failing_answer(kit, played, monkeypatch):
    record, (data, folder, _) = kit[1], played
    monkeypatch.setattr(record, "data_file", paths.data_file)
    row = record.record(99, "abc1234", folder)
    assert row.startswith("| 99 | zz | 1 | 0 = 0% (0%–79%) | 100% | 0% | 0% | 0.0% | 1 / 1, 0 |")
    entry = json.loads((data / "results" / "natural.json").read_text())["rounds"][-1]
    assert (entry["requests"]["B"], entry["conversations"]["A"], entry["checks"]) == (1, 1, {"passed": 1, "n": 2})
    failing = (data / "results" / "natural" / "round99_failing.txt").read_text()
    assert "== zz-001 B: says what it leaves out" in failing and "said to k+" in failing and "zz-c01" not in failing
    assert (data / "natural" / "zz.yaml").read_text() == SET
    with pytest.raises(ValueError, match="kept already"):
        record.record(99, "abc1234", folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda grades: grades[:1], "zz-c01"),
        (lambda grades: [*grades, grades[0]], "graded twice"),
        (lambda grades: [grades[0] | {"grade": "F"}, grades[1]], "zz-001"),
    ],
)
def test_a_case_that_is_not_graded_once_stops_the_record(kit, played, monkeypatch, capsys, change, said):
    record, (data, folder, grades) = kit[1], played
    monkeypatch.setattr(record, "data_file", paths.data_file)
    (folder / "zz.grades.jsonl").write_text("".join(json.dumps(item) + "\n" for item in change(grades)))
    assert record.main(["99", "abc1234", str(folder)]) == 1
    assert said in capsys.readouterr().err and not (data / "natural" / "zz.yaml").exists()


def test_writers_and_graders_see_charts_records_and_briefs_alone(kit, tmp_path):
    assert kit[0].main([str(tmp_path / "fresh")]) == 0
    seen = {str(path.relative_to(tmp_path / "fresh")) for path in (tmp_path / "fresh").rglob("*.*")}
    records = {f"snapshot/{name}" for name in kit[0].RECORDS}
    assert seen == {"charts.txt", "WRITER.md", "GRADER.md", *records}
    charts = (tmp_path / "fresh" / "charts.txt").read_text()
    assert charts.count("##### ") == 51 and "Maria Garcia" in charts and "Spanish" in charts
