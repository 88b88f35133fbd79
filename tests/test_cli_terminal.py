"""`docgemma ask` and `docgemma chat` in a real terminal, with a model on a server that writes its answer slowly."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.test_cli import ENV, run
from tests.test_llm_server import event

QUESTION = "Why do beta blockers slow the heart?"
AT_LENGTH = "Why do beta blockers slow the heart, at length?"  # the model never comes to the end of its answer
FIRST = "They block the receptors by which adrenaline drives the heart. "
ANSWER = FIRST + "So it beats more slowly and less hard, needs less oxygen, and the blood pressure falls with it."
DIRECT = json.dumps({"intent": "DIRECT", "task_summary": "A mechanism.", "suggested_tool": None})
COLUMNS, ROWS = 70, 40


@pytest.fixture
def model(httpserver: HTTPServer) -> dict[str, str]:
    """The settings of a model whose answer comes word by word."""

    def answer(request: Request) -> Response:
        text = DIRECT if "response_format" in request.get_json() else ANSWER
        pauses = 400 if text == ANSWER and AT_LENGTH in request.get_data(as_text=True) else 0

        def pieces():
            for word in text.split(" "):
                yield event(word + " ")
                time.sleep(0.03)
            for _ in range(pauses):  # until nobody listens any more
                yield event(" and")
                time.sleep(0.1)
            yield event("", "stop") + "data: [DONE]\n\n"

        return Response(pieces(), content_type="text/event-stream")

    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "m"}]})
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    return {"DOCGEMMA_MODEL": "server", "DOCGEMMA_LLM_URL": httpserver.url_for("")}


def in_terminal(home: Path, model: dict[str, str], *args: str, says: str = "", until: str = "") -> Iterator[str]:
    """Run a command in a terminal; gives what it has written so far, each time that there is more.

    Args:
        says: typed at once; the terminal holds it until it is read.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    env = {**ENV, "DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "TERM": "xterm-256color", **model}
    process = subprocess.Popen(
        [sys.executable, "-m", "docgemma", *args], stdin=theirs, stdout=theirs, stderr=theirs, env=env,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, says.encode())
    written = b""
    while True:
        try:
            written += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if until and until in written.decode(errors="ignore"):
            process.send_signal(signal.SIGINT)
            until = ""
        yield written.decode(errors="ignore")
    os.close(ours)
    process.wait(timeout=30)


PIECES = re.compile(r"\x1b\[[?]?(\d*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def on_screen(written: str) -> str:
    """The text that stands on a terminal after all that was written to it, in one line."""
    lines, row, column = [""], 0, 0
    for number, code, back, down, text in PIECES.findall(written):
        row -= int(number or 1) if code == "A" else 0
        row, column = row + bool(down), 0 if back else column
        lines += [""] * (row + 1 - len(lines))
        if code == "K":
            lines[row] = ""
        if text:
            lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
            column += len(text)
    return " ".join(" ".join(lines).split())


def last(seen: Iterator[str]) -> str:
    *_, written = seen
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h")  # a cursor that was hidden is there again
    return on_screen(written)


def test_a_streamed_answer_stands_once_on_the_terminal(home: Path, model: dict[str, str]) -> None:
    early = [shown for shown in map(on_screen, in_terminal(home, model, "ask", QUESTION)) if FIRST.strip() in shown]
    assert "the blood pressure falls" not in early[0]  # it came as it was written
    assert [shown.count(FIRST.strip()) for shown in early] == [1] * len(early)
    assert ANSWER in early[-1] and "not checked against a source" in early[-1]
    assert "Writing the answer …" not in early[-1]


def test_each_answer_of_a_talk_stands_once(home: Path, model: dict[str, str]) -> None:
    shown = last(in_terminal(home, model, "chat", says=f"{QUESTION}\n{QUESTION}\n\n"))
    assert shown.count(ANSWER) == shown.count(FIRST.strip()) == 2
    assert shown.count("not checked against a source") == 2


def test_a_stopped_answer_leaves_the_terminal_as_it_was(home: Path, model: dict[str, str]) -> None:
    shown = last(in_terminal(home, model, "ask", AT_LENGTH, until=FIRST.strip()))
    assert FIRST.strip() not in shown and "Traceback" not in shown


def test_where_no_terminal_is_nothing_is_streamed_and_the_answer_stands_once(home: Path, model: dict[str, str]) -> None:
    done = run(home, "ask", QUESTION, **model)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).count(ANSWER) == 1
    assert "\x1b" not in done.stdout
