"""Figures: an empty one, the runs of a golden set as lines, and writing one to a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def trend(runs: Sequence[dict[str, Any]], targets: Mapping[str, float]) -> "Figure":
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
