"""The wheel as a user meets it: an empty directory, an empty home, the checkout nowhere on the path."""

import json
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import fresh
from tests.fresh import ROOT, empty_environment, fresh_python, run


@pytest.fixture(scope="module")
def wheel() -> Path:
    return fresh.wheel()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `docgemma` command of a fresh environment."""
    folder = tmp_path_factory.mktemp("installed")
    python = fresh_python(folder / "venv")
    force = "--force-reinstall"  # the checkout's own version is the same, and pip would call it done
    run(str(python), "-m", "pip", "install", "-q", "--no-deps", force, str(wheel), env=empty_environment(folder))
    return python.with_name("docgemma")


def test_the_wheel_carries_all_data_and_every_file_of_the_package(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    data = {f"docgemma/{path.relative_to(ROOT)}" for path in (ROOT / "data").rglob("*") if path.is_file()}
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "docgemma").rglob("*") if path.is_file()}
    package = {name for name in package if "__pycache__" not in name}
    assert data | package == {name for name in inside if ".dist-info/" not in name}


def test_help_works_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    done = run(str(installed), "--help", cwd=tmp_path, env=empty_environment(tmp_path))
    assert "ask" in done.stdout and "doctor" in done.stdout


def test_a_question_is_answered_from_the_wheel_alone(installed: Path, tmp_path: Path, valid) -> None:
    environment = empty_environment(tmp_path, DOCGEMMA_SOURCES="offline", DOCGEMMA_MODEL="edge")
    question = "Find patient John Smith and check his chart"
    done = run(str(installed), "ask", question, "--json", cwd=tmp_path, env=environment)
    result = valid(json.loads(done.stdout))
    assert [tool["args"] for tool in result["tools"]] == [{"name": "John Smith"}, {"patient_id": "abc-123"}]


def test_no_part_of_the_checkout_is_used(installed: Path, tmp_path: Path) -> None:
    code = "import docgemma.paths as p; print(p.data_root(), p.data_file('edge', 'reader.npz'))"
    done = run(str(installed.with_name("python")), "-c", code, cwd=tmp_path, env=empty_environment(tmp_path))
    root, reader = map(Path, done.stdout.split())
    assert ROOT not in root.parents and ROOT not in reader.parents
    assert root.parent.name == "docgemma"


def test_requirements_are_those_of_the_project() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    testing = {line for line in extras["test"] if line.startswith(("nbmake", "pytest>"))}
    assert listed == {
        *project["dependencies"],
        *extras["transformers"],
        *extras["demo"],
        *extras["notebooks"],
        *testing,
    }
