"""schemathesis against the real server: what fits its OpenAPI document is handled, and what does not is refused.

It is run as a user runs it, from the command line with every check. A question costs a turn of the model, so the
examples are few; most of what it tries is refused before a turn begins.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api_server import ROOT, SECRETS, TOKENS, Server

PROGRAM = Path(sys.executable).with_name("schemathesis")
EXAMPLES = 5  # of fuzzing, a route


@pytest.fixture(scope="module")
def server(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("schema") / "home"))
    running = Server(home, "--no-demo", DOCGEMMA_API_TOKENS=TOKENS, DOCGEMMA_API_RATE="100000", DOCGEMMA_API_TURNS="50")
    yield running
    running.kill()


def test_every_route_has_examples_and_its_problems(server: Server) -> None:
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    assert set(paths) == {
        "/health", "/agent/query", "/agent/resume", "/agent/threads", "/agent/forget",
        "/api/rcm/verify", "/eval/run", "/eval/results",
        "/cds-services", "/cds-services/{service}", "/cds-services/{service}/feedback",
    }  # fmt: skip
    for operation in (operation for path in paths.values() for operation in path.values()):
        for code, answer in operation["responses"].items():
            kind = "application/json" if "application/json" in answer["content"] else "application/problem+json"
            assert answer["content"][kind]["example"], code
        if body := operation.get("requestBody"):
            assert body["content"]["application/json"]["examples"]


@pytest.mark.skipif(not PROGRAM.exists(), reason="schemathesis is not installed")
def test_the_server_keeps_to_its_openapi_document(server: Server, tmp_path: Path) -> None:
    config, token = ROOT / "schemathesis.toml", f"Authorization: Bearer {SECRETS['ward']}"
    done = subprocess.run(
        [
            PROGRAM, "--config-file", config, "run", f"{server.url}/openapi.json", "--header", token, "--no-color",
            "--checks", "all", "--max-examples", str(EXAMPLES), "--generation-deterministic",
            "--request-timeout", "120", "--max-response-time", "120",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "11 selected / 11 total" in done.stdout
    assert "Traceback" not in server.said()
