"""The command line as a user meets it: real processes, one JSON object on stdout, one clear line for bad input."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import docgemma
from tests.models import smollm2_weights

ENV = {key: value for key, value in os.environ.items() if not key.startswith("DOCGEMMA_")}


def run(home: Path, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess:
    ours = {"DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "DOCGEMMA_MODEL": "edge"}
    return docgemma(args, {**ENV, **ours, **env}, stdin=stdin)


def assert_one_clear_line(done: subprocess.CompletedProcess, status: int, *words: str) -> None:
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_docgemma_alone_greets_and_suggests(home: Path) -> None:
    done = run(home)
    assert done.returncode == 0 and "docgemma ask" in done.stdout


def test_ask_json_prints_one_object_that_fits_the_contract(home: Path, valid) -> None:
    done = run(home, "ask", "Check FDA warnings for dofetilide", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    result = valid(json.loads(done.stdout))
    assert result["model"] == "edge" and result["graph"] == "v3"


def test_ask_shows_the_answer_and_its_timeline(home: Path) -> None:
    done = run(home, "ask", "Check FDA warnings for dofetilide")
    assert done.returncode == 0, done.stderr
    assert "Understanding the question" in done.stdout and "not a medical device" in done.stdout


@pytest.mark.parametrize("question", ["", "   \t\n", "\u200f\u202e"])
def test_an_empty_question_gets_one_line(home: Path, question: str) -> None:
    assert_one_clear_line(run(home, "ask", question), 2, "empty", "docgemma ask")


def test_a_megabyte_of_text_gets_one_line(home: Path) -> None:
    """No shell passes a megabyte as one argument, so the chat prompt and the agent are where it arrives."""
    done = run(home, "chat", stdin="a" * 1_000_000 + "\n\n")
    assert done.returncode == 0
    assert "1,000,000 characters; at most 20,000" in done.stderr


def test_control_characters_and_direction_marks_do_no_harm(home: Path, valid) -> None:
    done = run(home, "ask", "Check FDA\x07 warnings\x1b[31m for \u202edofe\u200ftilide\u202c", "--json")
    assert done.returncode == 0, done.stderr
    result = valid(json.loads(done.stdout))
    assert "\x1b" not in result["answer"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--model", "no-such-model"], ["no-such-model"]),
        (["--graph", "v9"], ["v9", "v3"]),
        (["--thread", "nowhere"], ["nowhere", "--thread"]),
        (["--patient", "zzz-999"], ["zzz-999", "docgemma ehr search"]),
        (["--approve", "--reject"], ["--approve"]),
        (["--edit", "not json"], ["--edit", "JSON"]),
        (["--no-such-option"], ["--no-such-option"]),
    ],
)
def test_unknown_things_get_one_line_and_status_two(home: Path, args: list[str], words: list[str]) -> None:
    assert_one_clear_line(run(home, "ask", "What is hypertension?", *args), 2, *words)


def test_no_question_and_no_thread_gets_one_line(home: Path) -> None:
    assert_one_clear_line(run(home, "ask"), 2, "--thread")


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "huge", "truncated"])
def test_an_image_that_cannot_be_read_gets_one_line(home: Path, tmp_path: Path, png: Path, kind: str) -> None:
    path = tmp_path / "scan.png"
    if kind == "empty":
        path.touch()
    elif kind == "text":
        path.write_text("this is not an image")
    elif kind == "huge":
        path.write_bytes(huge_png(20_000, 20_000))
    elif kind == "truncated":
        path.write_bytes(png.read_bytes()[:60])
    assert_one_clear_line(run(home, "ask", "What do you see?", "--image", str(path)), 2, "image")


@pytest.mark.parametrize("variable", ["DOCGEMMA_DB", "DOCGEMMA_EHR"])
def test_a_corrupt_database_gets_one_line_and_is_left_as_it_was(home: Path, tmp_path: Path, variable: str) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(b"this is not a database" * 500)
    before = path.read_bytes()
    done = run(home, "ask", "Show the chart of abc-123", **{variable: str(path)})
    assert_one_clear_line(done, 1, variable)
    assert path.read_bytes() == before


def test_a_database_that_cannot_be_written_gets_one_line(home: Path) -> None:
    assert_one_clear_line(run(home, "ask", "Hello", DOCGEMMA_DB="/proc/nowhere/memory.sqlite"), 1, "DOCGEMMA_DB")


def test_a_model_that_llama_cpp_refuses_gets_one_line(home: Path, tmp_path: Path) -> None:
    whole, cut = smollm2_weights().read_bytes(), tmp_path / "cut.gguf"
    cut.write_bytes(whole[: len(whole) // 2])  # its header is whole; the weights are missed when they are loaded
    done = run(home, "ask", "What is hypertension?", "--model", str(cut))
    assert_one_clear_line(done, 1, "llama.cpp cannot load", "Check the file")


def test_a_wrong_setting_gets_one_line(home: Path) -> None:
    assert_one_clear_line(run(home, "ask", "Hello", DOCGEMMA_SOURCES="sometimes"), 2, "DOCGEMMA_SOURCES")


def test_ctrl_c_in_a_turn_leaves_the_thread_usable(home: Path) -> None:
    first = json.loads(run(home, "ask", "Hello", "--json").stdout)
    process = subprocess.Popen(
        [sys.executable, "-m", "docgemma", "ask", "Check FDA warnings for dofetilide", "--thread", first["thread"]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**ENV, "DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "DOCGEMMA_MODEL": "edge"},
    )  # fmt: skip
    while line := process.stderr.readline():
        if "Understanding the question" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    again = run(home, "ask", "Check FDA warnings for dofetilide", "--thread", first["thread"], "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["answer"]


def test_a_killed_turn_is_taken_up_where_it_stopped(home: Path) -> None:
    waiting = json.loads(run(home, "ask", "Prescribe lisinopril 10 mg once daily for abc-123", "--json").stdout)
    assert waiting["status"] == "needs_approval"
    done = json.loads(run(home, "ask", "--thread", waiting["thread"], "--approve", "--json").stdout)
    assert done["status"] == "answered" and done["tools"][-1]["ok"]


def test_ehr_search_and_show_print_json(home: Path) -> None:
    found = json.loads(run(home, "ehr", "search", "John Smith", "--json").stdout)
    assert [item["id"] for item in found["patients"]] == ["abc-123"]
    shown = json.loads(run(home, "ehr", "show", "abc-123", "--json").stdout)
    assert shown["medications"]


def test_doctor_names_a_fix_for_what_is_missing(home: Path) -> None:
    checks = json.loads(run(home, "doctor", "--json").stdout)["checks"]
    edge = next(check for check in checks if check["name"] == "Edge model")
    assert edge["ok"], edge
    assert all(check["ok"] or check["fix"] for check in checks)


def huge_png(width: int, height: int) -> bytes:
    """A tiny file whose header promises very many pixels."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def test_the_conclusion_and_the_headings_are_bold_in_a_terminal() -> None:
    from io import StringIO

    from rich.console import Console

    from docgemma.cli.screen import Screen

    screen, shown = Screen(), StringIO()
    screen.out = Console(file=shown, force_terminal=True, highlight=False, width=80)
    result = {
        "answer": "Contraindicated: x. [1]\n\nAllergies [1]:\n- penicillin, note: [bold]",
        "lead": "Contraindicated: x.",
    }
    sources = [{"label": "Patient Record", "source": "Patient record", "as_of": None}]
    screen.result(result | {"sources": sources, "status": "answered"}, timeline=False)
    assert "\x1b[1mContraindicated: x. [1]\x1b[0m" in shown.getvalue()
    assert "\x1b[1mAllergies [1]:\x1b[0m" in shown.getvalue() and "\n- penicillin, note: [bold]\n" in shown.getvalue()
    assert "[1] Patient Record: Patient record" in shown.getvalue()
