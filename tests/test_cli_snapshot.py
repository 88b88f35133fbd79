"""`docgemma snapshot build` and `info`."""

import json

import pytest
from typer.testing import CliRunner

from docgemma.cli.snapshot import app
from docgemma.errors import UsageError
from tests.bulk_samples import label, label_zip, small_data


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))
    monkeypatch.setenv("DOCGEMMA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_build_prints_one_object_and_nothing_else(tmp_path, home):
    result = run("build", "--openfda", label_zip(tmp_path, [label(), "bad"]), "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0 and result.stdout.count("\n") == 1
    assert report["path"] == str(home / "snapshot.sqlite") and report["problems"][0]["count"] == 1
    assert "drug-label-0001" in result.stderr


def test_build_says_what_was_left_out_on_stderr(tmp_path):
    result = run("build", "--openfda", label_zip(tmp_path, [label(), {**label("x"), "openfda": {}}]))
    assert result.exit_code == 0
    assert "drugs: " in result.stdout and "Left out" in result.stderr and "not harmonised" in result.stderr


def test_options_are_repeated_for_several_files(tmp_path):
    paths = [label_zip(tmp_path, [label(f"zor{part}mab")], part=part) for part in (1, 2)]
    result = run("build", "--openfda", paths[0], "--openfda", paths[1], "--json")
    assert json.loads(run("info", "--json").stdout)["kinds"]["drugs"]["bulk_labels"] == 2, result.stderr


def test_a_file_without_its_option_is_explained(tmp_path):
    paths = [label_zip(tmp_path, [label()], part=part) for part in (1, 2)]
    result = run("build", "--openfda", *paths)
    assert isinstance(result.exception, UsageError) and "Repeat the option" in result.exception.line()


@pytest.mark.parametrize("arguments", [[], ["--openfda", "missing.zip"]])
def test_bad_input_is_a_usage_error(arguments):
    result = run("build", *arguments)
    assert isinstance(result.exception, UsageError) and result.stdout == ""


def test_info_before_and_after_a_build(tmp_path):
    before = json.loads(run("info", "--json").stdout)
    assert before["shipped"] and before["kinds"]["trials"]["demonstration"] == 6
    run("build", "--openfda", label_zip(tmp_path, [label()]))
    after = json.loads(run("info", "--json").stdout)
    assert not after["shipped"] and after["kinds"]["drugs"]["as_of"] == "2026-02-03"
    assert after["kinds"]["drugs"]["bulk_labels"] == 1


def test_info_for_a_person_says_how_old_and_what_is_invented(tmp_path):
    run("build", "--openfda", label_zip(tmp_path, [label()]))
    text = run("info").stdout
    assert "as of 2026-02-03" in text and "days old" in text
    assert "invented demonstration records" in text and "1 with a label from the files" in text
