"""Pictures of what was measured: bars with intervals, the null cascade, accuracy against latency; and of a turn.

Each takes rows of `tables.table` and returns a matplotlib figure; the same rows give the same picture.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[dict[str, Any]]
MEASURED, REPORTED, EMPTY, LETTERS = "#7fb2d1", "#c1121f", "#e9ecef", "#212529"
MODELS = (MEASURED, "#f4a259", "#8cb369", "#9d8ec7")  # a colour a model

COLOURS = {  # of the nodes in the order in which they run: code, a constrained choice, a handled problem, prose
    "input_assembly": "#2e7d32", "intent_classify": "#1565c0", "tool_select": "#1565c0", "tool_execute": "#2e7d32",
    "result_classify": "#1565c0", "router": "#2e7d32", "error_handler": "#c62828", "synthesize": "#e65100",
}  # fmt: skip
V3 = tuple(COLOURS)
COLOURS |= {  # of the nodes that only v1 and v2 have
    "image_detection": "#2e7d32", "context_assembler": "#2e7d32", "complexity_router": "#1565c0", "triage": "#1565c0",
    "decompose": "#1565c0", "plan_tool": "#1565c0", "fast_path": "#2e7d32", "validate_call": "#2e7d32",
    "fix_args": "#1565c0", "check_result": "#2e7d32", "assess_result": "#2e7d32", "error_strategy": "#c62828",
    "think": "#e65100", "extract_needs": "#1565c0", "think_again": "#e65100",
}  # fmt: skip


def beside(measured: dict[str, Rows], title: str = "") -> "Figure":
    """A line a condition: the specification's share, and every model that was asked, with its 95 % interval. A line
    without a bar was not run."""
    every = {row["condition"]: row for rows in measured.values() for row in rows}
    lines, high = {name: at for at, name in enumerate(every)}, 0.8 / max(1, len(measured))
    figure, axes = _drawing(list(every), title)
    for number, (model, rows) in enumerate(measured.items()):
        rows = [row for row in rows if row["n"]]
        at = [lines[row["condition"]] - 0.4 + high * (number + 0.5) for row in rows]
        shares, colour = [row["correct"] / row["n"] for row in rows], MODELS[number % len(MODELS)]
        below = [max(0.0, share - row["low"]) for share, row in zip(shares, rows, strict=True)]
        above = [max(0.0, row["high"] - share) for share, row in zip(shares, rows, strict=True)]
        ends = [below, above] if rows else None
        axes.barh(at, shares, high, xerr=ends, color=colour, capsize=2, label=model if rows else None)
        for place, row in zip(at, rows, strict=True):
            axes.text(1.03, place, f"{row['correct']}/{row['n']}", va="center", fontsize=7, color=LETTERS)
    told = [(row["reported"], lines[name]) for name, row in every.items() if row["reported"] is not None]
    label = "MedGemma, as reported" if told else None
    axes.plot([share for share, _ in told], [at for _, at in told], "D", color=REPORTED, label=label)
    axes.set(xlim=(0, 1.02), ylim=(len(lines) - 0.4, -0.6), xlabel="share right")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def cascade(rows: Rows, title: str = "Which arguments were filled") -> "Figure":
    """A line a condition, a cell an argument: how many are not null. A cascade of nulls empties the cells."""
    rows = [row for row in rows if row["filled"]]
    figure, axes = _drawing([row["condition"] for row in rows], title)
    for at, row in enumerate(rows):
        for place, (wanted, filled) in enumerate(row["filled"]):
            axes.barh(at, 0.94, left=place, color=EMPTY)
            axes.barh(at, 0.94 * filled / wanted, left=place, color=MEASURED)
            axes.text(place + 0.9, at, f"{filled}/{wanted}", ha="right", va="center", fontsize=7, color=LETTERS)
    axes.set_xticks([])
    axes.set_xlabel("first argument of the tool, second, …")
    return figure


def plane(rows: Rows, title: str = "") -> "Figure":
    """Share right against seconds a trial: better is up and left."""
    figure, axes = _drawing([], title)
    rows = sorted((row for row in rows if row["n"] and row["seconds_a_trial"]), key=lambda row: row["seconds_a_trial"])
    for number, row in enumerate(rows):
        place = (row["seconds_a_trial"], row["correct"] / row["n"])
        axes.plot(*place, "o", color=MEASURED)
        axes.annotate(row["condition"], place, xytext=(4, 4 + 8 * (number % 4)), textcoords="offset points", fontsize=7)
    axes.set(xlabel="seconds a trial", ylabel="share right", ylim=(-0.03, 1.15))
    axes.set_xlim(left=0)
    return figure


def _drawing(lines: list[str], title: str) -> "tuple[Figure, Axes]":
    """A figure with a line of this name each, the first on top; without names a plane."""
    figure, axes = empty_figure(7, 1 + 0.32 * len(lines) if lines else 4.2)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    if lines:
        axes.set_yticks(range(len(lines)), lines)
        axes.invert_yaxis()
    return figure, axes


def trend(runs: Rows, targets: Mapping[str, float]) -> "Figure":
    """The shares of runs of a golden set, one after the other, each that has a target with it as a dotted line."""
    figure, axes = empty_figure(7, 4)
    for name in ("pass_rate", "verification_accuracy", "citation_accuracy", "hallucination_rate", "review_loop_rate"):
        (line,) = axes.plot([run["metrics"][name] for run in runs], marker="o", label=name.replace("_", " "))
        if name in targets:
            axes.axhline(targets[name], linestyle=":", color=line.get_color(), linewidth=1)
    axes.set(ylim=(-0.02, 1.02), xlabel="run", ylabel="share", xticks=range(len(runs)))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def empty_figure(width: float, height: float) -> "tuple[Figure, Axes]":
    """A figure of inches, and its axes.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("A plot needs matplotlib.", hint="pip install 'docgemma[notebooks]'") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def save(figure: "Figure", file: Path) -> None:
    """Write a figure.

    Raises:
        ConfigError: the file cannot be written, or is none that matplotlib writes.
    """
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be written as a plot.", hint="Name a .png, .svg or .pdf file.") from error


def draw_paths(results: Sequence[dict[str, Any]], titles: Sequence[str]) -> Any:
    """One row a turn: the nodes as they ran, loops included. Green is code, blue a constrained choice, orange prose;
    a dot is hollow where no model was called."""
    import matplotlib.pyplot as plt

    longest = max(len(result["path"]) for result in results)
    figure, axes = plt.subplots(figsize=(min(1.0 + 0.62 * longest, 12), 0.9 + 0.75 * len(results)))
    for row, (result, title) in enumerate(zip(results, titles, strict=True)):
        y = len(results) - row
        axes.plot(range(len(result["path"])), [y] * len(result["path"]), color="#bbb", zorder=1)
        colours = [COLOURS[node] for node in result["path"]]
        called = [step.get("calls", result["llm_calls"]) for step in result["timeline"]]
        filled = [colour if count else "white" for colour, count in zip_longest(colours, called[: len(colours)])]
        axes.scatter(range(len(colours)), [y] * len(colours), s=140, zorder=2, color=filled, edgecolors=colours)
        axes.text(-0.3, y + 0.28, title, fontsize=9, ha="left")
    ran = {node for result in results for node in result["path"]}
    for node in V3 if ran <= set(V3) else [name for name in COLOURS if name in ran]:
        axes.scatter([], [], color=COLOURS[node], label=node.replace("_", " "))
    axes.legend(ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.02), frameon=False)
    axes.set_ylim(0.4, len(results) + 0.8)
    axes.axis("off")
    figure.tight_layout()
    plt.close(figure)
    return figure
