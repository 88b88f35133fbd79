"""The MCP server as the inspector's command line sees it: a client that is not ours, in another language."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docgemma.tools import toolbox
from tests.test_mcp_server import TOKEN, environment, http_server

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SERVER = [sys.executable, "-m", "docgemma", "mcp"]
ERAS = ["legacy", "modern"]


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs it, installed into a temporary folder."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        pytest.skip("Node is not installed")
    folder = tmp_path_factory.mktemp("inspector")
    (folder / "package.json").write_text('{"private": true}')
    install = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", INSPECTOR]
    try:
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip("the inspector could not be installed within five minutes")
    if done.returncode:
        pytest.skip(f"the inspector could not be installed: {done.stderr.strip().splitlines()[-1:]}")
    return [node, str(folder / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"]


def inspect(inspector: list[str], home: Path, *arguments: str) -> tuple[int, dict]:
    """Run it with a home of its own: its exit status, and the JSON it printed."""
    patient = ["--connect-timeout", "100000"]  # milliseconds; a busy machine is no failure
    done = subprocess.run(
        [*inspector, *arguments, *patient], capture_output=True, text=True, timeout=120, cwd=Path.cwd(),
        env={**environment(home), "HOME": str(home), "XDG_DATA_HOME": str(home / "data"),
             "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )  # fmt: skip
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    return done.returncode, json.JSONDecoder().raw_decode(done.stdout.lstrip())[0]


def test_the_server_is_usable_with_no_configuration(inspector, tmp_path):
    _, listed = inspect(inspector, tmp_path, *SERVER, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]] == list(toolbox().tools)
    status, found = inspect(
        inspector, tmp_path, *SERVER, "--method", "tools/call", "--tool-name", "search_patient",
        "--tool-arg", "name=Maria Garcia",
    )  # fmt: skip
    assert status == 0
    assert found["structuredContent"]["data"]["patients"][0]["id"] == "def-456"


@pytest.mark.parametrize("era", ERAS)
def test_every_schema_is_portable(inspector, home, era):
    status, listed = inspect(
        inspector, home, *SERVER, "-e", f"DOCGEMMA_HOME={home}", "--method", "tools/list", "--strict",
        "--protocol-era", era,
    )  # fmt: skip
    assert status == 0
    assert len(listed["tools"]) == 10


CALLS = [
    ("check_drug_safety", ["drug_name=dofetilide"], True, "boxed warning"),
    ("check_drug_interactions", ['drug_names=["warfarin", "aspirin"]'], True, "Warfarin"),
    ("get_patient_chart", ["patient_id=def-456"], True, "Maria Garcia"),
    ("get_patient_chart", ["patient_id=nobody"], False, "No results were found"),
    ("save_clinical_note", ["patient_id=def-456", "note_type=progress", "note_text=Stable."], False, "cannot ask"),
]


@pytest.mark.parametrize(("name", "arguments", "ok", "text"), CALLS, ids=[f"{item[0]}-{item[2]}" for item in CALLS])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_call_from_the_inspector_is_answered(inspector, home, transport, name, arguments, ok, text):
    call = ["--method", "tools/call", "--tool-name", name, "--tool-arg", *arguments]
    if transport == "stdio":
        offline = ["-e", f"DOCGEMMA_HOME={home}", "-e", "DOCGEMMA_SOURCES=offline"]
        status, answer = inspect(inspector, home, *SERVER, *offline, *call)
    else:
        with http_server(home, DOCGEMMA_MCP_TOKEN=TOKEN) as (url, _):
            header = ["--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]
            status, answer = inspect(inspector, home, "--server-url", url, *header, *call)
    assert answer["structuredContent"]["ok"] is ok
    assert re.search(text, answer["content"][0]["text"], re.IGNORECASE)
    assert (status == 0) is ok
