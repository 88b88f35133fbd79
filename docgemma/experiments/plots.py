"""Pictures of what was measured: bars with intervals, the null cascade, accuracy against latency.

Each takes rows of `tables.table` and returns a matplotlib figure.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[dict[str, Any]]
MEASURED, REPORTED, EMPTY = "#2a6f97", "#c1121f", "#e9ecef"


def bars(rows: Rows, title: str = "") -> "Figure":
    """A bar a condition with its 95 % interval; a mark where the specification reports a share."""
    measured = [row for row in rows if row["n"]]
    axes, places = _axes(measured, title), range(len(measured))
    shares = [row["correct"] / row["n"] for row in measured]
    below = [max(0.0, share - row["low"]) for share, row in zip(shares, measured, strict=True)]
    above = [max(0.0, row["high"] - share) for share, row in zip(shares, measured, strict=True)]
    axes.barh(places, shares, xerr=[below, above], color=MEASURED, ecolor="#333333", capsize=2, label="measured")
    told = [(row["reported"], at) for at, row in enumerate(measured) if row["reported"] is not None]
    if told:
        axes.plot(*zip(*told, strict=True), "D", color=REPORTED, label="reported for MedGemma 4B")
    axes.set_yticks(places, [f"{row['condition']}  (n {row['n']})" for row in measured])
    axes.set_xlim(0, 1)
    axes.legend(loc="lower right", fontsize=8)
    return _figure(axes)


def cascade(rows: Rows, title: str = "Arguments that were filled, by their place in the request's tool") -> "Figure":
    """Each condition a line of cells, one an argument: the share that is not null. A cascade fades to the right."""
    shown = [row for row in rows if row["filled"]]
    axes = _axes(shown, title)
    for at, row in enumerate(shown):
        for place, (wanted, filled) in enumerate(row["filled"]):
            axes.barh(at, 0.94, left=place, color=EMPTY)
            axes.barh(at, 0.94 * filled / wanted, left=place, color=MEASURED)
            axes.text(place + 0.47, at, f"{filled}/{wanted}", ha="center", va="center", fontsize=7)
    axes.set_yticks(range(len(shown)), [row["condition"] for row in shown])
    most = max((len(row["filled"]) for row in shown), default=1)
    axes.set_xticks([place + 0.47 for place in range(most)], [f"argument {place + 1}" for place in range(most)])
    return _figure(axes)


def plane(rows: Rows, title: str = "") -> "Figure":
    """Accuracy against seconds a trial: better is up and left."""
    measured = [row for row in rows if row["n"] and row["seconds_a_trial"]]
    axes = _axes((), title)
    for row in measured:
        share = row["correct"] / row["n"]
        axes.plot(row["seconds_a_trial"], share, "o", color=MEASURED)
        axes.annotate(row["condition"], (row["seconds_a_trial"], share), xytext=(4, 3), textcoords="offset points",
                      fontsize=7)  # fmt: skip
    axes.set_xlabel("seconds a trial")
    axes.set_ylabel("share right")
    axes.set_ylim(-0.03, 1.03)
    return _figure(axes)


def _axes(rows: Rows, title: str) -> "Axes":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("matplotlib is not installed.", hint="Run: pip install matplotlib") from error
    axes: Axes = Figure(figsize=(7, 0.8 + 0.32 * len(rows) if rows else 4.2), layout="constrained").add_subplot()
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    if rows:
        axes.invert_yaxis()  # the first condition on top
    return axes


def _figure(axes: "Axes") -> "Figure":
    from matplotlib.figure import Figure

    assert isinstance(axes.figure, Figure)
    return axes.figure
