"""docgemma/README.md is true: imports follow its arrows, nothing imports in a circle, and its budgets hold."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docgemma.paths import PACKAGE

MAP = (PACKAGE / "README.md").read_text(encoding="utf-8")
EVERYBODY = {"errors", "settings", "paths", "state", "text", "docgemma"}  # `docgemma`: its version
DOES_IO = {"asyncio", "http", "httpx", "requests", "shutil", "socket", "sqlite3", "subprocess", "tempfile", "urllib"}
TOO_LONG = {
    "top level, cli",
    "reading",
    "rules, text",
    "tools",
    "ehr",
    "knowledge",
    "demo, api",
    "graphs, nodes",
    "rcm",
    "everything",
}


def module_names() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = module_names()


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions; not what only a type checker reads."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in inside)


IMPORTS = {name: set(imported(path)) - {name} for name, path in MODULES.items()}
OURS = {name: others & set(MODULES) for name, others in IMPORTS.items()}


def part(module: str) -> str:
    """The folder or top-level module: "rules" of docgemma.rules.plan."""
    return module.split(".")[1] if "." in module else module


def table(heading: str) -> list[tuple[str, str]]:
    """The rows of two columns below a heading of the map, marks left out."""
    text = MAP.split(f"# {heading}")[1].split("\n# ")[0].replace("`", "")
    rows = re.findall(r"^\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    return [(left.strip(), right.strip()) for left, right in rows][2:]


def allowed() -> dict[str, set[str]]:
    rows = [(name, right) for left, right in table("What may import what") for name in left.split(", ")]
    parts = {name for name, _ in rows}
    below = parts - {name for name, right in rows if right.startswith("everything")}
    meaning = {"everything": parts, "everything below": below}
    return {name: meaning.get(right, set(filter(None, right.split(", ")))) | EVERYBODY for name, right in rows}


def test_imports_follow_the_arrows() -> None:
    may = allowed() | {"docgemma": set(), "__main__": {"cli"}}
    across = {(name, other) for name, others in OURS.items() for other in others if part(other) != part(name)}
    assert {(name, other) for name, other in across if part(other) not in may[part(name)]} == set()


def test_every_part_of_the_package_is_on_the_map() -> None:
    assert {part(name) for name in MODULES if "." in name} - {"__main__"} <= set(allowed())


def test_rules_read_no_file_and_reach_no_network() -> None:
    for name, others in IMPORTS.items():
        if part(name) == "rules":
            assert not {other.split(".")[0] for other in others} & DOES_IO, name


def test_nothing_imports_in_a_circle() -> None:
    assert list(circles_of(OURS)) == []


def circles_of(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """The sets of modules that can all reach each other."""
    reach = {name: reachable(name, graph) for name in graph}
    seen: set[str] = set()
    for name in graph:
        if name in reach[name] and name not in seen:
            circle = {other for other in reach[name] if name in reach[other]}
            seen |= circle
            yield circle


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


@pytest.mark.parametrize(("parts", "most"), table("How long it may be"))
def test_a_part_stays_within_its_lines(parts: str, most: str) -> None:
    def counts(name: str) -> bool:
        names = parts.split(", ")
        top = MODULES[name].parent == PACKAGE
        return parts == "everything" or (part(name) in names and not top) or (top and "top level" in names)

    lines = sum(len(MODULES[name].read_text("utf-8").splitlines()) for name in MODULES if counts(name))
    if lines > int(most.replace(",", "")) and parts in TOO_LONG:
        pytest.xfail(f"{lines} lines")
    assert lines <= int(most.replace(",", ""))


def test_every_file_of_the_map_exists() -> None:
    for name in re.findall(r"`([\w./]+\.(?:py|md)|[\w/]+/)`", MAP):
        assert (PACKAGE / name).exists() or (PACKAGE.parent / name).exists(), name
