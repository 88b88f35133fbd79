"""`docgemma demo` as a process of its own, on a data home of its own: what the recorder films."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from docgemma.errors import ConfigError

START_S = 600.0  # a large model takes minutes to load
KEPT = ("DOCGEMMA_MODEL", "DOCGEMMA_MMPROJ", "DOCGEMMA_DATA")
KEPT_FOR_A_SERVER = ("DOCGEMMA_LLM_URL", "DOCGEMMA_LLM_NAME", "DOCGEMMA_LLM_KEY")


class Server:
    """A running demo; use it as a context.

    Args:
        home: a fresh folder. Nobody's records, memory or settings are used: of the user's own settings only those that
            choose the model are passed on.
        model: as DOCGEMMA_MODEL.

    Raises:
        ConfigError: it did not start; the line is its own.
    """

    def __init__(self, home: Path, model: str | None = None):
        self.log = home / "server.log"
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/"
        command = [sys.executable, "-m", "docgemma", "demo", "--port", str(port)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(home, model))

    def __enter__(self) -> "Server":
        try:
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                said = self.log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"]
                raise ConfigError(f"The demo did not start: {said[-1]}")
            try:
                if httpx.get(self.url, timeout=5, trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.5)
        raise ConfigError(f"The demo did not answer within {START_S:.0f} s.", hint="Run: docgemma doctor")


def _environment(home: Path, model: str | None) -> dict[str, str]:
    keep = (*KEPT, *KEPT_FOR_A_SERVER)
    own = {name: value for name, value in os.environ.items() if not name.startswith("DOCGEMMA_") or name in keep}
    own |= {"DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline"}
    return own | ({"DOCGEMMA_MODEL": model} if model else {})


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
