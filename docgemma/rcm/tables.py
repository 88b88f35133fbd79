"""Read the rows of a page's tables: each number behind its column's title, of several days the latest first. Pure."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from docgemma.paths import data_yaml
from docgemma.text.characters import fold

LEAST, FEW = 3, 3  # columns of a table that has titles; words of a number with its unit


def rows(text: str, day_of: Callable[[str], str]) -> dict[int, str]:
    """How the rows of a page are read, by where each begins: "Right 20/70" as "Right Best corrected 20/70".

    Args:
        day_of: the ISO date of a cell, "" where it has none.
    """
    found, at = dict[int, str](), 0
    head: list[str] | None = None
    for line in text.splitlines(keepends=True):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < LEAST:
            head = None
        elif head is None:
            head = cells if _titles(cells, day_of) else []
        elif len(head) == len(cells):
            found[at] = _read(head, cells, day_of)
        at += len(line)
    return found


def _titles(cells: Sequence[str], day_of: Callable[[str], str]) -> bool:
    """Whether a first row names its columns: no numbers but days, and no result."""
    values = _words()["values"]
    return not any((_numeric(cell) and not day_of(cell)) or fold(cell) in values for cell in cells[1:])


def _read(head: Sequence[str], cells: Sequence[str], day_of: Callable[[str], str]) -> str:
    plain, days = _words()["titles"], [day_of(title) for title in head]
    dated = sorted((at for at in range(len(head)) if days[at]), key=lambda at: days[at], reverse=True)
    order = [dated.pop(0) if days[at] else at for at in range(len(head))]
    titled = [
        (
            _numeric(cells[at]) or fold(head[at]) in _words()["sides"]
        )  # "Straight leg raise Right negative Left positive"
        and not (days[at] or fold(head[at]) in plain or _words()["turning"] & {*fold(head[at]).split()})
        for at in order
    ]
    return " ".join(f"{head[at]} {cells[at]}" if named else cells[at] for at, named in zip(order, titled, strict=True))


@lru_cache(maxsize=1)
def _words() -> dict[str, frozenset[str]]:
    """Results, which title no column, and titles that name no number."""
    return {name: frozenset(words) for name, words in data_yaml("rcm", "tables.yaml").items()}


def _numeric(cell: str) -> bool:
    """Whether a cell is a number, with a unit perhaps: "20/70", "<0.35 IU/mL", no "naproxen 500 bid"."""
    return any(map(str.isdigit, cell.lstrip("<>~≥≤+- ")[:1])) and len(cell.split()) <= FEW
