"""The size of the house: what is read in an afternoon stays so."""

import re
from pathlib import Path

import pytest

from docgemma.paths import PACKAGE

PATTERN = re.compile(r"\bre\.(?:compile|search|match|fullmatch|sub|split|findall|finditer)\(|\b_?rule\(r?[\"']")


def lines(*folders: str) -> int:
    files = [path for folder in folders for path in (PACKAGE / folder).rglob("*.py")]
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)


@pytest.mark.parametrize(("folder", "most"), [("reading", 2_335), ("rules", 6_380), ("", 35_708)])
def test_a_part_stays_within_its_lines(folder: str, most: int) -> None:
    assert lines(folder) <= most


def test_no_module_is_longer_than_can_be_read_at_once() -> None:
    long = {path.name: count for path in PACKAGE.rglob("*.py") if (count := length(path)) > 345}
    assert not long


def test_what_was_replaced_is_gone() -> None:
    gone = "asked asked_words phrases note_spans allergy_spans subject_spans names name_words candidates orders again"
    assert not [name for name in gone.split() if (PACKAGE / "rules" / f"{name}.py").exists()]


def test_patterns_do_not_come_back() -> None:
    """A wording that is misread becomes a labelled line, never another pattern."""
    assert sum(len(PATTERN.findall(path.read_text("utf-8"))) for path in PACKAGE.rglob("*.py")) <= 70


def length(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())
