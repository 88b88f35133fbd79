"""A downloaded output of the kernel becomes stored results and texts, all of it or nothing.

Every output here is made up by this file, with figures that nobody measured, and lives in a temporary folder.
"""

import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docgemma.cli.kaggle import app
from docgemma.errors import ConfigError, UsageError
from docgemma.paths import kit
from tests.fresh import ROOT

for module in ("matplotlib", "nbformat", "nbclient", "nbconvert"):
    pytest.importorskip(module)

collecting, evidence = kit("kaggle", "collect"), kit("kaggle", "evidence")
FORMAT, PARTS = evidence.FORMAT, evidence.PARTS
ROW = {"capability": "intent", "difficulty": "all", "n": 312, "right": 123, "low": 0.341, "high": 0.4495}
MARKS = "<!-- medgemma:begin -->\nold\n<!-- medgemma:end -->"
SHOWN = "import json\nfrom pathlib import Path\n\nstored = Path('../data') / \"results\" / 'medgemma/manifest.json'\n"


def made_up(folder: Path) -> Path:
    """An output as the kernel leaves it. No figure in it was measured."""
    out = folder / "docgemma-results"
    (out / "scenarios").mkdir(parents=True)
    (out / "scenarios" / "direct.json").write_text("{}")
    turn = {"question": "A made-up question?", "answer": "A made-up answer.", "status": "answered", "llm_calls": 3}
    manifest = {"format": FORMAT, "version": version("docgemma"), "model": "medgemma", "sample": None, "about": {}}
    call = {"node": "tool_select", "n": 5, "median_s": 7.7, "p95_s": 9.9, "prompt_tokens": 600, "completion_tokens": 9}
    suite = {"condition": "none", "n": 60, "correct": 31, "low": 0.39, "high": 0.64, "unparsed": 0, "reported": None}
    natural = {"set": "practice_nurse", "passed": 41, "total": 86, "failed": [], "metrics": {}}
    parts = {
        "manifest": {**manifest, "date": "2001-02-03", "gpus": ["made-up GPU"]},
        "sections": {"turns": [{**turn, "seconds": 1.0}]},
        "heldout": {"items": 312, "rows": [ROW], "judged": []},
        "natural": {"sets": [natural], "edge": {"passed": 166, "n": 172}},
        "scenarios": {"film": False, "why": "no Chromium", "unmet": [], "files": ["direct.json"]},
        "speed": {"calls": [call], "generations": 5, "peak_gb": [11.11]},
        "experiments": {"suites": [{"suite": "tool_selection", "model": "medgemma", "rows": [suite]}]},
    }
    for name, value in parts.items():
        (out / f"{name}.json").write_text(json.dumps(value))
    return folder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return made_up(tmp_path / "output")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, with marks in its README and one small notebook that shows stored results."""
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "notebooks", "recordings")
    root = Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("checkout") / "root", ignore=unwanted))
    readme = (root / "README.md").read_text(encoding="utf-8").partition("<!-- medgemma:begin -->")[0]
    (root / "README.md").write_text(readme + MARKS + "\nafter\n", encoding="utf-8")
    import nbformat

    cell = nbformat.v4.new_code_cell(SHOWN + "json.loads(stored.read_text())['date']")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    (root / "notebooks").mkdir()
    nbformat.write(notebook, root / "notebooks" / "10_shown.ipynb")
    return root


def state_of(root: Path) -> dict[str, str]:
    files = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def changed(output: Path, part: str, **values) -> None:
    path = output / "docgemma-results" / f"{part}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def spoil(output: Path, how: str) -> None:
    inside = output / "docgemma-results"
    match how:
        case "another folder":
            shutil.rmtree(inside)
        case "incomplete":
            (inside / "natural.json").unlink()
        case "cut off":
            (inside / "speed.json").write_text('{"calls": [')
        case "without rows":
            (inside / "heldout.json").write_text("{}")
        case "a list":
            (inside / "manifest.json").write_text("[]")
        case "another format":
            changed(output, "manifest", format=FORMAT + 1)
        case "another version":
            changed(output, "manifest", version="9.9")
        case "another model":
            changed(output, "manifest", model="edge")
        case "a sample":
            changed(output, "manifest", sample=2)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("another folder", "no output of the kernel"), ("incomplete", "incomplete; it lacks natural"),
        ("cut off", "speed.json .* cannot be read"), ("without rows", "incomplete; it lacks heldout"),
        ("a list", "damaged"), ("another format", "format 2, not 1"), ("another version", "version 9.9"),
        ("another model", "model edge, not medgemma"), ("a sample", "sample 2, not None"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_in_gets_one_line_and_changes_nothing(
    output: Path, checkout: Path, how: str, words: str
) -> None:
    spoil(output, how)
    before = state_of(checkout)
    with pytest.raises(UsageError, match=words) as caught:
        collecting.collect(output, checkout)
    assert "\n" not in caught.value.line() and caught.value.hint
    assert state_of(checkout) == before


def test_texts_that_cannot_be_made_change_nothing(output: Path, checkout: Path) -> None:
    changed(output, "natural", sets=[{"set": "practice_nurse"}])  # no figures in it
    before = state_of(checkout)
    with pytest.raises(ConfigError, match="texts cannot be made"):
        collecting.collect(output, checkout)
    assert state_of(checkout) == before


@pytest.mark.slow
def test_an_output_becomes_stored_results_texts_page_notebooks_and_readme(output: Path, checkout: Path) -> None:
    changed(output, "experiments", not_run="docgemma experiments list: No such command.")
    report = collecting.collect(output, checkout)
    assert report["not_run"] == {"experiments": "docgemma experiments list: No such command."}
    stored = checkout / "data" / "results" / "medgemma"
    assert {path.stem for path in stored.glob("*.json")} == {"manifest", *PARTS}
    for name in ("writeup/writeup.md", "writeup/medgemma.md", "README.md"):
        text = (checkout / name).read_text(encoding="utf-8")
        assert "123/312, 39.4 % (34.1–45.0)" in text and "not yet run" not in text, name
        assert "41/86" in text and "7.7 s" in text and "11.1 GB" in text, name
        assert "Not run: experiments (docgemma experiments list: No such command.)" in text, name
    assert (checkout / "README.md").read_text(encoding="utf-8").endswith("<!-- medgemma:end -->\nafter\n")
    assert "A made-up answer." in (checkout / "writeup" / "medgemma.md").read_text(encoding="utf-8")
    assert "123/312" in (checkout / "writeup" / "writeup.html").read_text(encoding="utf-8")
    assert len((checkout / "writeup" / "writeup.md").read_text(encoding="utf-8").split()) < 1500
    shown = json.loads((checkout / "notebooks" / "10_shown.ipynb").read_text(encoding="utf-8"))["cells"][0]["outputs"]
    assert "2001-02-03" in str(shown)
    assert (checkout / "writeup" / "media" / "medgemma" / "direct.json").is_file()


def test_the_command_says_what_was_taken_in(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"model": "medgemma", "date": "2001-02-03", "not_run": {"scenarios": "no room"}, "changed": ["README.md"]}
    monkeypatch.setattr(collecting, "collect", lambda folder: found)
    done = CliRunner().invoke(app, ["collect", str(output)])
    assert done.exit_code == 0 and "1 files changed" in done.stdout and "not run: scenarios: no room" in done.stdout
    assert json.loads(CliRunner().invoke(app, ["collect", str(output), "--json"]).stdout) == found


def test_the_repository_holds_no_made_up_run() -> None:
    manifest = ROOT / "data" / "results" / "medgemma" / "manifest.json"
    assert not manifest.is_file() or json.loads(manifest.read_text())["date"] > "2026-11-22"
