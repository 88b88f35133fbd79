"""The word lists of `data/clinical`: what clinicians say, and what charts, labels and dictionaries call it."""

import hashlib
import json
import uuid
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.text.characters import fold

T = TypeVar("T")
_HOME: list[Path] = []  # where the lists are kept compiled; YAML takes a hundred times as long to read


def keep_in(home: Path) -> None:
    """Keep the lists compiled in a folder, from now on. One that cannot be written is gone without."""
    _HOME[:] = [home]


def clinical(name: str) -> dict[str, Any]:
    """One file of `data/clinical` as it stands.

    Raises:
        ConfigError: one is missing or is no YAML.
    """
    lists: dict[str, Any] = _lists()[name]
    return lists


@lru_cache(maxsize=20)
def listed(name: str, key: str) -> frozenset[str]:
    """A list of words in a file of `data/clinical`, as a set."""
    return frozenset(clinical(name)[key])


@lru_cache(maxsize=1)
def _lists() -> dict[str, Any]:
    """Every list, from its compiled file where it is as new as the YAML."""
    files = sorted(data_file("clinical").glob("*.yaml"))
    state = repr([(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files])
    kept = _HOME[0] / f"clinical-{hashlib.sha256(state.encode()).hexdigest()[:12]}.json" if _HOME else None
    try:
        lists: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept else _compile(files)
    except (OSError, ValueError):
        lists = _compile(files)
        _keep(kept, lists)
    return lists


def _compile(files: list[Path]) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return {path.stem: yaml.load(path.read_text(encoding="utf-8"), Loader=loader) for path in files}
    except yaml.YAMLError as error:
        raise ConfigError("A word list of data/clinical cannot be read.", hint="Reinstall docgemma.") from error


def _keep(path: Path | None, lists: dict[str, Any]) -> None:
    """Whole or not at all; a copy that cannot be kept is only slower."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("clinical-*.json"):
            old.unlink(missing_ok=True)
        own = path.with_suffix(f".{uuid.uuid4().hex}")
        own.write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")
        own.replace(path)
    except OSError:
        return


def phrases_in(folded: str, known: Iterable[tuple[str, T]]) -> tuple[list[T], str]:
    """The values of the phrases that stand in a folded text as whole words, in order of appearance, and the rest of it.

    Args:
        known: (phrase, value), the longest phrase first.
    """
    left, places = f" {folded} ", []
    for phrase, value in known:
        at = left.find(f" {phrase} ")
        if at >= 0:
            places.append((at, value))
            left = left.replace(f" {phrase} ", f" {';' * len(phrase)} ")
    return [value for _, value in sorted(places, key=lambda place: place[0])], left.replace(";", " ")


@lru_cache(maxsize=20_000)
def plain(text: str) -> str:
    """For comparing: lower case, without accents, single blanks; `+`, `-` and `/` stay ("k+", "x-ray")."""
    kept = "".join(char if char.isalnum() or char in "+-/'&%" else " " for char in fold(text).replace("’", "'"))
    return " ".join(kept.split())
