"""What the benchmarks share: tables, the figures kept as JSON, a prepared data home."""

import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docgemma.ehr.open import open_store
from docgemma.experiments.statistics import wilson
from docgemma.knowledge.sources import open_knowledge
from docgemma.paths import data_root
from docgemma.settings import Settings


def middle(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def spread(values: Sequence[float]) -> str:
    """The middle half of what was measured, "0.81-0.95"."""
    if len(values) < 2:
        return "-"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.3g}-{high:.3g}"


def share(right: int, total: int) -> str:
    """A count as a share with its 95 % interval."""
    low, high = wilson(right, total)
    return f"{right}/{total} = {right / total:.1%} ({low:.1%}-{high:.1%})" if total else "0/0"


class Report:
    """One benchmark's tables: printed as they are made, and kept in `data/results/<name>.json`.

    A table replaces the one of the same title; with `adds`, the others of the file stay.
    """

    def __init__(self, name: str, about: str, *, adds: bool = False, **setup: Any):
        self.path = data_root() / "results" / f"{name}.json"
        known = json.loads(self.path.read_text(encoding="utf-8")) if adds and self.path.is_file() else {}
        tables = known.get("tables", {})
        self.figures: dict[str, Any] = {"benchmark": name, "about": about, "machine": machine(), "tables": tables}
        self.setup = setup
        print(f"## {name}\n\n{about}\n\n{self.figures['machine']}.\n", flush=True)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
        """Print and keep a table."""
        busy = f"Load average at the end: {os.getloadavg()[0]:.1f}."
        print(f"### {title}\n\n{note} {busy}\n\n{markdown(head, rows)}\n".replace("\n\n ", "\n\n"), flush=True)
        cells = [[round(cell, 5) if isinstance(cell, float) else cell for cell in row] for row in rows]
        self.figures["tables"][title] = {
            "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "load": round(os.getloadavg()[0], 1),
            "setup": self.setup, "note": note, "head": list(head), "rows": cells,
        }  # fmt: skip
        self.save()

    def keep(self, key: str, value: Any) -> None:
        """Keep what no table shows: every run, every item."""
        self.figures[key] = value
        self.save()

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.figures, indent=1, ensure_ascii=False)
        self.path.write_text(text + "\n", encoding="utf-8")


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
    return "\n".join(lines)


def machine() -> str:
    model = next((line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    return f"{model or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def prepared(**given: Any):
    """Settings on a fresh data home as a first start leaves it, offline; converted weights are the user's own."""
    with tempfile.TemporaryDirectory(prefix="docgemma-bench-") as folder:
        settings = Settings(**{"home": Path(folder), "sources": "offline", **given})
        open_store(settings).close()
        open_knowledge(settings).close()
        models = Settings().home / "models"
        models.mkdir(parents=True, exist_ok=True)
        (Path(folder) / "models").symlink_to(models)
        yield settings
