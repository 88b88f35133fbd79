"""The estimate of what the order check could change: a product of assumptions that the reader may replace."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
STORED = "data/impact.yaml"
COLUMNS = ("low", "likely", "high")


def stored(root: Path = ROOT) -> dict[str, Any]:
    """Cited figures, the assumptions, hardware."""
    found: dict[str, Any] = yaml.safe_load((root / STORED).read_text(encoding="utf-8"))
    return found


def assumptions(changed: Mapping[str, float] | None = None, root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """The stored ones; `changed` puts a value of the reader's own in the column "likely".

    Raises:
        KeyError: there is no such assumption.
    """
    rows: dict[str, dict[str, Any]] = stored(root)["estimate"]
    for name, value in (changed or {}).items():
        rows[name] = {**rows[name], "likely": value, "from": "yours"}
    return rows


def spared(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Patients a year who are spared a preventable harm, in each column."""
    return {column: prod(row[column] for row in rows.values()) for column in COLUMNS}


def shown(value: float) -> str:
    """`7 %` of a share, `10,000` of a count, `0.4` of a small one."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{100 * value:.0f} %" if value < 1 else f"{value:.0f}"
