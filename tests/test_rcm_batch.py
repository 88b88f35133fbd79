"""A batch over real PDFs in real processes: failures, deaths, kill -9 in mid-batch, copies, another question, Ray."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from docgemma.errors import ConfigError, StoreError, UsageError
from docgemma.paths import PACKAGE, data_file
from docgemma.rcm.batch import batch, read_lines

LOG = "asked.log"  # of the folder: a line for each time that a document was asked


def pdf(folder: Path, name: str, text: str) -> Path:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(folder / name), invariant=True)
    canvas.drawString(72, 720, text)
    canvas.save()
    return folder / name


def ask(path: Path, pause_s: float = 0.0) -> dict[str, Any]:
    """Read a document's first line as the agent would, or fail in the way that it says."""
    with path.with_name(LOG).open("a") as log:
        log.write(f"{path.name}\n")
    import pdfplumber

    with pdfplumber.open(path) as document:
        text = document.pages[0].extract_text().strip()
    time.sleep(pause_s)
    if text == "raise":
        raise ValueError("Maria Gonzalez, born 1958")
    if text == "outage":
        raise StoreError("The record server cannot be reached.", hint="Try again.")
    if text.startswith("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"status": "answered", "answer": text, "path": path}


def run(folder: Path, **given: Any) -> Any:
    return batch(folder, given.pop("ask", ask), folder / "out.jsonl", **given)


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    return {line["file"]: line for line in read_lines(folder / "out.jsonl")}


def asked(folder: Path) -> list[str]:
    return (folder / LOG).read_text().split()


def test_each_document_is_a_line_and_none_is_asked_twice(tmp_path: Path) -> None:
    for number in range(3):
        pdf(tmp_path, f"note {number}.pdf".replace(" ", "-"), f"Text {number}")
    pdf(tmp_path, "note-9.PDF", "Text 1")  # a copy of note-1, by another name
    (tmp_path / "readme.txt").write_text("no PDF")
    seen: list[tuple[int, int]] = []
    told = run(tmp_path, workers=2, progress=lambda done, total: seen.append((done, total)))
    assert (told["documents"], told["same"], told["asked"], told["failed"]) == (4, 1, 3, 0)
    assert told["statuses"] == {"answered": 3} and told["charts_per_hour"] > 0
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert {line["result"]["answer"] for line in lines(tmp_path).values()} == {"Text 0", "Text 1", "Text 2"}
    again = run(tmp_path)
    assert (again["before"], again["asked"], again["charts_per_hour"]) == (3, 0, None)
    assert len(asked(tmp_path)) == 3
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o077 == 0  # nobody else may read the answers


def test_a_failure_and_a_death_are_lines_and_the_rest_goes_on(tmp_path: Path) -> None:
    for number in range(3):
        pdf(tmp_path, f"good-{number}.pdf", f"Text {number}")
    for name in ("die", "outage", "raise"):
        pdf(tmp_path, f"a-{name}.pdf", name)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    told = run(tmp_path, workers=2)
    found = lines(tmp_path)
    assert told["failed"] == 4 and told["statuses"] == {"answered": 3} and len(found) == 7
    assert "ended without a result" in found["a-die.pdf"]["error"]
    assert found["a-outage.pdf"]["error"] == "The record server cannot be reached. Try again."
    assert found["a-raise.pdf"]["error"].startswith("ValueError in test_rcm_batch.py")
    assert "Gonzalez" not in (tmp_path / "out.jsonl").read_text()  # of an unexpected error only its kind is kept
    assert "error" in found["broken.pdf"]
    mended = run(tmp_path, ask=partial(said, text="Mended"))
    assert (mended["before"], mended["asked"], mended["failed"]) == (3, 4, 0)  # what failed is asked again


def said(path: Path, text: str) -> dict[str, Any]:
    return {"status": "answered", "answer": text}


def test_one_worker_survives_a_document_that_kills_it(tmp_path: Path) -> None:
    for name in ("die", "die twice", "good"):
        pdf(tmp_path, f"{name.replace(' ', '-')}.pdf", name)
    assert run(tmp_path, workers=1)["failed"] == 2
    assert lines(tmp_path)["good.pdf"]["result"]["answer"] == "good"


def test_an_answer_to_another_question_does_not_count(tmp_path: Path) -> None:
    pdf(tmp_path, "note.pdf", "Text")
    run(tmp_path, question="Knee?")
    assert run(tmp_path, question="Hip?")["asked"] == 1
    assert run(tmp_path, question="Knee?")["asked"] == 0


def test_a_changed_document_is_asked_again(tmp_path: Path) -> None:
    pdf(tmp_path, "note.pdf", "Text")
    run(tmp_path)
    pdf(tmp_path, "note.pdf", "Text, amended")
    assert run(tmp_path)["asked"] == 1 and lines(tmp_path)["note.pdf"]["result"]["answer"] == "Text, amended"


def test_kill_9_in_mid_batch_goes_on_and_asks_nothing_finished_again(tmp_path: Path) -> None:
    for number in range(8):
        pdf(tmp_path, f"{number}.pdf", f"Text {number}")
    out = tmp_path / "out.jsonl"
    code = (
        "import sys\nfrom functools import partial\nfrom pathlib import Path\n"
        "from docgemma.rcm.batch import batch\nfrom tests.test_rcm_batch import ask\n"
        "folder = Path(sys.argv[1])\nbatch(folder, partial(ask, pause_s=0.3), folder / 'out.jsonl', workers=2)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=PACKAGE.parent, start_new_session=True)
    until(lambda: out.exists() and out.read_text().count("\n") >= 3)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert workers
    until(lambda: not any(alive(pid) for pid in workers))  # none goes on without its batch
    finished = {line["file"] for line in read_lines(out) if "result" in line}
    assert 3 <= len(finished) < 8
    with out.open("a") as file:
        file.write('{"digest": "cut off in the mid')
    before = asked(tmp_path)
    told = run(tmp_path, workers=2)
    assert (told["before"], told["asked"], told["failed"]) == (len(finished), 8 - len(finished), 0)
    assert not finished & set(asked(tmp_path)[len(before) :])
    whole = [json.loads(text) for text in out.read_text().splitlines() if not text.endswith("in the mid")]
    assert sorted(line["file"] for line in whole) == [f"{number}.pdf" for number in range(8)]


def until(done: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().split(") ")[-1][0] != "Z"


def test_a_folder_without_pdf_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no PDF"):
        run(tmp_path)
    with pytest.raises(UsageError, match="no PDF"):
        run(tmp_path / "nowhere")


def test_without_ray_its_absence_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    pdf(tmp_path, "note.pdf", "Text")
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, ray="local")
    assert "pip install ray" in caught.value.line()


def test_on_ray_the_same_function_gives_the_same_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own functions, played by a stand-in that runs at once; like Ray it takes functions and no partial."""
    seen: list[object] = []

    def remote(call: Any) -> Any:
        assert hasattr(call, "__code__")
        return SimpleNamespace(remote=call)

    fake = SimpleNamespace(
        init=lambda address: seen.append(address), shutdown=lambda: seen.append("shut down"), get=lambda found: found,
        remote=remote, wait=lambda left: (left[:1], left[1:]),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", fake)
    for number in range(3):
        pdf(tmp_path, f"{number}.pdf", f"Text {number}")
    told = run(tmp_path, ray="ray://head:10001")
    assert told["statuses"] == {"answered": 3} and seen == ["ray://head:10001", "shut down"]


def test_the_command_asks_the_real_agent_and_goes_on(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("docgemma.graphs.rcm")  # comes with the graph
    from docgemma.cli.rcm_batch import batch_command

    for name, value in (("HOME", str(home)), ("MODEL", "edge"), ("SOURCES", "offline")):
        monkeypatch.setenv(f"DOCGEMMA_{name}", value)
    folder = tmp_path / "requests"
    folder.mkdir()
    shutil.copy(data_file("rcm", "notes", "gonzalez_knee_replacement.pdf"), folder)
    pdf(folder, "empty.pdf", "Nothing of a patient stands here.")
    app = typer.Typer()
    app.command()(batch_command)
    first = CliRunner().invoke(app, [str(folder), "--json"])
    told = json.loads(first.stdout)
    assert (first.exit_code, told["asked"], told["failed"]) == (0, 2, 0)
    found = {line["file"]: line["result"] for line in read_lines(Path(told["out"]))}
    report = found["gonzalez_knee_replacement.pdf"]
    assert report["thread"].startswith("rcm-batch-") and report["policy"]["id"] == "NHP-ORTH-001"
    assert found["empty.pdf"]["status"] == "needs_clarification"
    again = CliRunner().invoke(app, [str(folder)])
    assert again.exit_code == 0 and "0 asked" in again.stdout and "2 were finished before" in again.stdout
