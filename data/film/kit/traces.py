"""The stored plays of the guided scenarios, data/film/traces: what each step came to on the edge model."""

import json
from datetime import date
from pathlib import Path
from typing import Any

from docgemma.errors import UsageError
from docgemma.paths import data_root


def load_trace(scenario: str, folder: Path | None = None) -> dict[str, Any]:
    """A stored play: `scenario`, `model`, `recorded` (ISO date), `steps` (the result of each). Raises UsageError."""
    path = (folder or data_root() / "film" / "traces") / f"{scenario}.json"
    if not path.is_file():
        raise UsageError("There is no recording of this scenario.", hint="Play it, or record it.")
    trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return trace


def store_trace(folder: Path, scenario: str, results: list[dict[str, Any]]) -> Path:
    """What `load_trace` reads."""
    stored = {"scenario": scenario, "model": results[0]["model"], "recorded": date.today().isoformat()}
    path = folder / f"{scenario}.json"
    text = json.dumps(stored | {"steps": results}, ensure_ascii=False, indent=1, default=str)
    path.write_text(text + "\n", encoding="utf-8")
    return path
