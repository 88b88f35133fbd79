"""The README's first screen: what it is, the two commands, a real captured answer; and its commands exist."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import typer.main

from docgemma.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_screen_has_the_two_commands_and_a_captured_answer() -> None:
    first = "\n".join(README.splitlines()[:60])
    assert "make run" in first and "make test" in first
    captured = README.split("<!-- captured:begin -->")[1].split("<!-- captured:end -->")[0]
    assert "boxed warning" in captured.lower() and "model calls" in captured


def test_every_command_shown_exists_with_its_options() -> None:
    commands = typer.main.get_command(app).commands
    shown = re.findall(r"^[ \w=\":$().-]*\.venv/bin/docgemma (\w+)( \w[\w-]*)?(.*)", README, re.MULTILINE)
    assert len(shown) > 10
    for name, second, rest in shown:
        assert name in commands, name
        command = commands[name]
        command = getattr(command, "commands", {}).get(second.strip(), command)
        known = [item for parameter in command.params for item in parameter.opts]
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest.partition("#")[0]):
            assert option in known, (name, option)


def test_the_questions_shown_are_answered_or_wait_for_a_person(tmp_path: Path) -> None:
    block = re.search(r"## Ask it\n\n```\n(.*?)```", README, re.DOTALL)
    assert block
    thread = ""
    for line in block[1].splitlines():
        words = shlex.split(line, comments=True)[1:]
        if words[:1] not in (["ask"], ["ehr"], ["doctor"]) or "scan.dcm" in words:
            continue
        words = [thread if word == "THREAD" else word for word in words]
        done = run([*words, *(["--json"] if words[0] == "ask" else [])], tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        if words[0] == "ask":
            thread = json.loads(done.stdout)["thread"]
            assert json.loads(done.stdout)["answer"], line


def test_the_python_shown_runs(tmp_path: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        if "open_in_notebook" not in code:  # notebooks/30_demo runs that
            done = run(["-c", code], tmp_path, module=False)
            assert done.returncode == 0 and done.stdout.strip(), done.stderr


def run(arguments: list[str], home: Path, module: bool = True) -> subprocess.CompletedProcess[str]:
    before = [sys.executable, "-m", "docgemma"] if module else [sys.executable]
    settings = {"DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "DOCGEMMA_MODEL": "edge"}
    return subprocess.run(
        [*before, *arguments], env=os.environ | settings, cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_the_make_targets_shown_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_nothing_points_outside_the_repository() -> None:
    shown = re.findall(r"`((?:docgemma|notebooks|data|writeup)/[\w./-]+)`|\]\((?!http)([^)]+)\)", README)
    for name in filter(None, (one or two for one, two in shown)):
        assert list(ROOT.glob(name.rstrip("/") + "*")), name


def test_the_figures_of_the_trial_search_and_of_authorizations_are_the_stored_ones() -> None:
    text = " ".join(README.split())
    full, flat = (row for row in stored("prescreen")["rows"] if row["ablation"] in ("full", "flat"))
    assert f"{full['found']} of {full['n']} eligible trials ({full['recall']:.1%}".replace("%", " %") in text
    assert f"the diagnosis and its synonyms {flat['found']} " in text
    last = stored("rcm_fresh")["rounds"][-1]
    assert (
        last["n"] == 20 and f"as it should in {last['status']}; every verdict was right in {last['all_right']} " in text
    )
    assert f"interval {100 * last['low']:.0f} to {100 * last['high']:.0f} %" in text and last["unquoted"] == 0
    assert f"and {last['met_wrongly']} criteria were wrongly called met" in text


def stored(name: str) -> dict:
    return json.loads((ROOT / "data" / "results" / f"{name}.json").read_text(encoding="utf-8"))
