"""The README's first screen: what it is, the two commands, a real captured answer; and its commands exist."""

import re
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
    shown = re.findall(r"docgemma (ask|chat|demo|doctor|mcp|ehr|snapshot|edge)\b(.*)", README)
    assert shown
    for name, rest in shown:
        assert name in commands, name
        for option in re.findall(r"--[a-z-]+", rest):
            names = [item for parameter in commands[name].params for item in parameter.opts]
            assert option in names, (name, option)


def test_the_make_targets_shown_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_nothing_points_outside_the_repository() -> None:
    for name in re.findall(r"`((?:docgemma|notebooks|data|writeup)/[\w./-]+)`", README):
        assert list(ROOT.glob(name.rstrip("/") + "*")), name
