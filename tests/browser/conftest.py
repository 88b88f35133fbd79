"""A real server process and a real Chromium for the tests of what people see; skipped where there is no Chromium.

`BROWSER_SHOTS=FOLDER` keeps a screenshot of each page as its test leaves it, to look at.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from data.film.kit.stage import browser, find_chromium
from docgemma.errors import ConfigError
from tests.browser.person import Person
from tests.browser.serve import LOGINS

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
START_S = 120
TEST_S = 180  # no wait of a browser's may hold up everything else
SHOTS = os.environ.get("BROWSER_SHOTS")


class Server:
    """The demo in a process of its own. `outside`: everything it tried to reach beyond this machine."""

    def __init__(self, home: Path, model: str, log: Path):
        self.home, self.model, self.log = home, model, log
        self.port = free_port()  # the same after a restart: a browser's storage is tied to it
        self.start()

    def start(self) -> None:
        self.lines: Queue[str] = Queue()
        command = [sys.executable, "-m", "tests.browser.serve", str(self.home), self.model, str(self.port)]
        root = Path(__file__).parents[2]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=root
            )
        Thread(target=lambda: [self.lines.put(line.strip()) for line in self.process.stdout], daemon=True).start()
        self.outside = []
        self.url = self._address()

    def _address(self) -> str:
        for _ in range(START_S):
            try:
                line = self.lines.get(timeout=1)
            except Empty:
                assert self.process.poll() is None, self.log.read_text(encoding="utf-8")[-2000:]
                continue
            if line.startswith("http"):
                return line
            self.outside.append(line)
        raise AssertionError(f"the server did not start within {START_S} s")

    def left_this_machine(self) -> list[str]:
        while True:
            try:
                self.outside.append(self.lines.get_nowait())
            except Empty:
                return [line for line in self.outside if line.startswith("outside")]

    def stop(self) -> None:
        """Without warning, as a crash would."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def free_port() -> int:
    """Below the ports of outgoing connections: a page that calls a stopped server must not take its port."""
    for port in random.Random().sample(range(20_000, 30_000), 50):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


@pytest.fixture(scope="module")
def serve(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """One server for each model, started when a test first asks for it."""
    servers: dict[str, Server] = {}

    def get(model: str) -> Server:
        if model not in servers:
            home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp(model) / "home"))
            servers[model] = Server(home, model, home.parent / "log.txt")
        return servers[model]

    yield get
    for server in servers.values():
        server.stop()


@pytest.fixture(scope="module")
def chromium():
    """For this module only: while Playwright runs, its event loop is this thread's, and whatever else needs one there
    (a notebook, the MCP tests) would fail or wait forever."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("gradio", reason="the demo extra is not installed")
    try:
        find_chromium()
    except ConfigError as error:
        pytest.skip(error.line())
    with browser() as running:
        yield running


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """A call that never returns fails the test that made it."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"the test took more than {TEST_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TEST_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def visit(chromium, serve, request: pytest.FixtureRequest) -> Iterator[Callable[..., Person]]:
    """`visit("scripted", "phone", dark=True)`: somebody opens the demo in a browser of their own. `touch`: no mouse."""
    contexts = []

    def open_page(
        model: str = "scripted", width: str = "desktop", dark: bool = False, touch: bool = False, user: str = ""
    ) -> Person:
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        context = chromium.new_context(
            viewport=size, color_scheme="dark" if dark else "light", has_touch=touch, is_mobile=touch
        )
        contexts.append(context)
        if user:
            sign_in(context, serve(model), user)
        return Person(context.new_page(), serve(model))

    yield open_page
    for number, context in enumerate(contexts):
        if SHOTS:
            name = re.sub(r"[^\w-]+", "_", f"{request.node.name}-{number}")
            context.pages[0].screenshot(path=Path(SHOTS, f"{name}.png"), full_page=True)
        context.close()


def sign_in(context, server: Server, user: str) -> None:
    sent = context.request.post(f"{server.url}login", form={"username": user, "password": dict(LOGINS)[user]})
    assert sent.ok


@pytest.fixture(params=list(WIDTHS))
def width(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ct() -> Path:
    from pydicom.data import get_testdata_file

    return Path(get_testdata_file("CT_small.dcm", download=False))
