"""The write-up's figures, each a function of the facts. `build.py` saves them, the notebook shows them."""

import hashlib
import json
from pathlib import Path
from typing import Any

from facts import ALL, Facts, percent

PLAIN = {  # capability -> what it decides, in plain words
    "intent": "Is a look-up needed?",
    "first tool": "Which tool first?",
    "exact set of tools": "Exactly the tools needed",
    "arguments": "Arguments, exactly right",
}
LEVELS = {
    "easy": ("#2e7d32", "o"),
    "medium": ("#b26a00", "D"),
    "hard": ("#b71c1c", "s"),
}  # told apart without colour too
EDGE, GRID = ("#1565c0", "o"), "#e4e4e4"


def by_difficulty(facts: Facts) -> Any:
    """The edge model's share right on easy, medium and hard items."""
    names = [name for name in PLAIN if all(facts.has(name, level) for level in LEVELS)]
    figure, axes = _axes(0.78 * len(names) + 1.3)
    for place, name in enumerate(reversed(names)):
        for number, (level, look) in enumerate(LEVELS.items()):
            row = facts.rows[name, level]
            _point(axes, row, place + 0.24 * (1 - number), look, level if place == 0 else None)
    _labels(axes, [PLAIN[name] for name in reversed(names)])
    axes.legend(loc="upper center", bbox_to_anchor=(0.35, -0.08), ncols=3, frameon=False, fontsize=10)
    axes.set_title("The edge model by difficulty: share right, with 95 % intervals", loc="left", fontsize=11)
    return figure


def arguments_by_tool(facts: Facts) -> Any:
    """How often every argument of a tool was exactly right, the weakest at the bottom."""
    rows = [row for (name, level), row in facts.rows.items() if name.startswith("arguments ") and level == ALL]
    rows.sort(key=lambda row: row["right"] / row["n"])
    figure, axes = _axes(0.42 * len(rows) + 1.0)
    for place, row in enumerate(rows):
        _point(axes, row, place, EDGE, None)
    _labels(axes, [f"{label(row['capability'].split()[1])} (n = {row['n']})" for row in rows])
    axes.set_title("Arguments exactly right, by tool, with 95 % intervals", loc="left", fontsize=11)
    return figure


FIGURES = {"difficulty": by_difficulty, "arguments": arguments_by_tool}


def label(tool: str) -> str:
    """A tool's name as clinicians read it."""
    from docgemma.tools import toolbox

    return toolbox()[tool].label


def fingerprint(facts: Facts) -> str:
    """Of the data that the figures show: stored in each file, so that a stale figure is seen."""
    return hashlib.sha256(json.dumps(sorted(facts.rows.items())).encode()).hexdigest()[:16]


def save(folder: Path, facts: Facts) -> None:
    """Every figure as PNG, with the fingerprint of its data in the file's description."""
    import matplotlib.pyplot as plt

    folder.mkdir(exist_ok=True)
    for name, draw in FIGURES.items():
        figure = draw(facts)
        figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Description": fingerprint(facts), "Software": ""})
        plt.close(figure)


def _axes(height: float) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, height), layout="constrained")
    axes.set_xlim(0, 116)
    axes.set_xticks(range(0, 101, 20), [f"{share} %" for share in range(0, 101, 20)], fontsize=10)
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    axes.spines["bottom"].set_bounds(0, 100)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    plt.close(figure)
    return figure, axes


def _labels(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(names) - 0.4)


def _point(axes: Any, row: dict[str, Any], height: float, look: tuple[str, str], name: str | None) -> None:
    """One share with its interval, and the figure at the right. `look`: colour and marker."""
    colour, marker = look
    share = 100 * row["right"] / row["n"]
    axes.plot([100 * row["low"], 100 * row["high"]], [height, height], color=colour, lw=2.2, alpha=0.55)
    axes.plot(share, height, marker, color=colour, ms=6.5, label=name)
    axes.text(102.5, height, percent(row), color=colour, fontsize=9, va="center")
