"""A server process for the tests of the API: `docgemma serve` itself, or the same app over a model that a test paces.

As a program, `python -m tests.api_server HOME PORT [--demo]`: the paced one. Its model answers a general question word
by word, for half a minute; a question with "briefly" for two seconds; with "break" it fails as a defect would, with a
patient's name in the error.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.databases import free_port

ROOT = Path(__file__).parents[1]
SECRETS = {name: f"{name}-0123456789abcdef" for name in ("ward", "clinic", "viewer")}
TOKENS = " ".join(f"{name}:{'read' if name == 'viewer' else 'write'}:{secret}" for name, secret in SECRETS.items())
START_S = 180


class Server:
    """Args: paced: the program of this file instead of `docgemma serve`. env: further DOCGEMMA_ settings."""

    def __init__(self, home: Path, *arguments: str, paced: bool = False, **env: str):
        self.home, self.log, self.port = home, home.parent / f"{home.name}.log", free_port()
        self.uploads = home.parent / f"{home.name}.tmp"
        self.uploads.mkdir()
        self.url = f"http://127.0.0.1:{self.port}"
        program = ["tests.api_server", str(home), str(self.port)] if paced else ["docgemma", "serve"]
        self.command = [sys.executable, "-m", *program, *([] if paced else ["--port", str(self.port)]), *arguments]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("DOCGEMMA_")}
        self.env = {
            **kept, "DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "DOCGEMMA_MODEL": "edge",
            "TMPDIR": str(self.uploads), **env,
        }  # fmt: skip
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.env, cwd=ROOT)
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.said()[-2000:]
            try:
                httpx.get(f"{self.url}/health", timeout=10)
                return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise AssertionError(f"the server did not start within {START_S} s")

    def client(self, name: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {SECRETS[name]}"} if name else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """As an operator ends it; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def paced_model():
    from tests.scripted import ScriptedLLM

    class Paced(ScriptedLLM):
        name = "paced"

        def complete(self, prompt, config, *, node, schema=None, on_token=None):
            answer = {"intent": "DIRECT", "task_summary": "x", "suggested_tool": None}
            self._queues[node].clear()
            self.enqueue(node, answer if node == "intent_classify" else "High blood pressure is a condition. " * 60)
            if "break" in prompt.user:
                raise RuntimeError("the chart of James Wilson made this fail")
            pause = 0.005 if "briefly" in prompt.user else 0.07

            def slowly(piece: str) -> None:
                time.sleep(pause)
                on_token(piece)

            return super().complete(prompt, config, node=node, schema=schema, on_token=slowly if on_token else None)

    return Paced()


def main(home: str, port: str, *options: str) -> None:
    from docgemma.agent import Agent
    from docgemma.api import server
    from docgemma.api.access import read_tokens
    from docgemma.api.app import build_app
    from docgemma.settings import read_settings

    settings = read_settings(home=Path(home))
    server.log_to_stderr()
    with (
        server.listen("127.0.0.1", int(port)) as listener,
        server.ended_by_sigterm(),
        Agent(settings, llm=paced_model()) as agent,
    ):
        server.run_app(build_app(agent, read_tokens(settings.api_tokens), demo="--demo" in options), listener)


if __name__ == "__main__":
    main(*sys.argv[1:])
