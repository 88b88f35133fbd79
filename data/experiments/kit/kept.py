"""What was measured and is kept in data/results: written by `docgemma experiments run --save`, read by notebooks."""

import json
import subprocess
from datetime import UTC, datetime
from typing import Any

from docgemma.paths import data_root


def stored() -> dict[str, dict[str, dict[str, Any]]]:
    """What was measured and kept, by model and suite: `rows`, with commit and date. MedGemma's is the kernel's."""
    folder = data_root() / "results"
    files = sorted(folder.glob("experiments/*.json"), key=lambda path: (path.stem != "edge", path.stem))
    found = {path.stem: json.loads(path.read_bytes())["suites"] for path in files}
    if (path := folder / "medgemma" / "experiments.json").is_file():
        ran = json.loads(path.read_bytes()).get("suites", [])
        found["medgemma"] = {suite["suite"]: suite for suite in ran if "rows" in suite}
    return found


def save(model: str, measured: dict[str, list[dict[str, Any]]], **how: Any) -> str:
    """Keep the rows in data/results/experiments/<model>.json, each suite with commit and date; others stay."""
    folder = data_root() / "results" / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{model.replace('/', '-')}.json"
    kept: dict[str, Any] = (
        json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"model": model, "suites": {}}
    )
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
    stamp = {"commit": git.stdout.strip() or None, "date": datetime.now(UTC).strftime("%Y-%m-%d"), **how}
    kept["suites"] |= {name: {**stamp, "rows": rows} for name, rows in measured.items()}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return str(path)
