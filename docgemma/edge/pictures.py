"""The pictures of the edge model's notebook, drawn from stored figures only. Needs the notebooks extra."""

import json
from collections.abc import Sequence
from typing import Any

from docgemma.paths import data_root

COLOURS = {"base": "#9e9e9e", "rules": "#f9a825", "edge": "#1565c0"}
WORDS = {"base": "base model", "rules": "rules alone", "edge": "adapter"}
CAPABILITIES = (
    "intent", "first tool", "next tool", "arguments", "result class", "answer has the critical fact",
    "nothing invented",
)  # fmt: skip
TARGETS = dict(zip(CAPABILITIES, (0.98, 0.96, 0.94, 0.94, 0.95, 0.95, 1.0), strict=True))  # set before training

Row = dict[str, Any]


def evaluations(name: str = "heldout") -> dict[str, dict[str, Any]]:
    """The stored evaluations of a set, by what decided: base, rules, edge; those that are there."""
    folder = data_root() / "edge" / "results"
    paths = {who: folder / f"{name}-{who}.json" for who in COLOURS}
    return {who: json.loads(path.read_text(encoding="utf-8")) for who, path in paths.items() if path.is_file()}


def row(figures: dict[str, Any], capability: str, difficulty: str = "all") -> Row | None:
    """n, right, share, low and high of one capability; None where it was not judged."""
    wanted = {"capability": capability, "difficulty": difficulty}
    return next((item for item in figures["rows"] if wanted.items() <= item.items()), None)


def mistakes(capability: str, who: str = "edge", name: str = "heldout") -> list[Row]:
    """Every wrong decision of a capability, with its question."""
    folder = data_root() / "edge"
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {item["id"]: item["question"] for item in map(json.loads, lines)}
    found = map(json.loads, (folder / "results" / f"{name}-{who}.jsonl").read_text(encoding="utf-8").splitlines())
    wrong = [mark for mark in found if mark.get("capability") == capability and not mark["right"]]
    return [{**mark, "question": questions[mark["item"]]} for mark in wrong]


def measured(benchmark: str) -> dict[str, Any] | None:
    """A benchmark's stored figures (`data/results`); None where it was not run."""
    path = data_root() / "results" / f"{benchmark}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def columns(table: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of a stored table, row by row; of two of one name the first."""
    places = [table["head"].index(name) for name in names]
    return [tuple(line[place] for place in places) for line in table["rows"]]


def stored_table(figures: dict[str, Any] | None, title: str, width: int | None = None) -> Any:
    """A benchmark's stored table as a page, its first `width` columns, with when it was measured."""
    from IPython.display import Markdown

    if figures is None:
        return Markdown("*Not measured in this checkout; `benchmarks/README.md` says how.*")
    table = figures["tables"][title]
    lines = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
    cells = [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in line[:width]] for line in lines]
    text = "\n".join(f"| {' | '.join(line)} |" for line in cells)
    return Markdown(f"{text}\n\n*Measured {table['measured']}, load average {table['load']}. {table['note']}*")


def draw_scores(found: dict[str, dict[str, Any]], difficulty: str = "all") -> Any:
    """Share right with its 95 % interval, a line a capability; a bar marks the target."""
    plt = _plt()
    figure, axes = plt.subplots(figsize=(8.5, 0.62 * len(CAPABILITIES) + 1))
    for place, capability in enumerate(reversed(CAPABILITIES)):
        axes.plot([TARGETS[capability]] * 2, [place - 0.36, place + 0.36], color="#c62828", lw=2, zorder=1)
        for shift, (who, figures) in zip((0.2, 0, -0.2), found.items(), strict=False):
            if (item := row(figures, capability, difficulty)) is None:
                continue
            axes.plot([item["low"], item["high"]], [place + shift] * 2, color=COLOURS[who], lw=2)
            axes.plot(item["share"], place + shift, "o", color=COLOURS[who], ms=7)
    for who in found:
        axes.plot([], [], "o-", color=COLOURS[who], label=WORDS[who])
    axes.plot([], [], color="#c62828", lw=2, label="target")
    axes.set_yticks(range(len(CAPABILITIES)), [_with_n(found, name, difficulty) for name in reversed(CAPABILITIES)])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlim(-0.02, 1.02)
    return _finish(figure, axes, legend={"loc": "upper center", "bbox_to_anchor": (0.4, -0.08), "ncols": 4})


def _with_n(found: dict[str, dict[str, Any]], capability: str, difficulty: str) -> str:
    rows = [item for figures in found.values() if (item := row(figures, capability, difficulty))]
    return f"{capability}\n(n {rows[-1]['n']})" if rows else capability


def draw_confusion(figures: dict[str, Any], capability: str) -> Any:
    """What was right across what was said; the diagonal is right."""
    plt = _plt()
    pairs = [(str(want), str(got), count) for want, got, count in figures["confusion"][capability]]
    wanted = sorted({want for want, _, _ in pairs})
    said = wanted + sorted({got for _, got, _ in pairs} - set(wanted))
    figure, axes = plt.subplots(figsize=(0.62 * len(said) + 3, 0.45 * len(wanted) + 2.4))
    totals = {want: sum(count for other, _, count in pairs if other == want) for want in wanted}
    for want, got, count in pairs:
        x, y, share = said.index(got), wanted.index(want), count / totals[want]
        shade = plt.cm.Blues(0.15 + 0.7 * share) if want == got else plt.cm.Reds(0.15 + 0.7 * share)
        axes.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, color=shade))
        axes.text(x, y, count, ha="center", va="center", color="white" if share > 0.6 else "black", fontsize=9)
    axes.set_xlim(-0.5, len(said) - 0.5)
    axes.set_ylim(len(wanted) - 0.5, -0.5)
    axes.set_xticks(range(len(said)), said, rotation=40, ha="right")
    axes.set_yticks(range(len(wanted)), wanted)
    axes.set_xlabel("said")
    axes.set_ylabel("right")
    return _finish(figure, axes)


def draw_bars(rows: Sequence[tuple[str, float]], unit: str, *, mark: float | None = None, note: str = "") -> Any:
    """Horizontal bars with their values; `mark` draws a line, for a target."""
    plt = _plt()
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(rows) + 0.9))
    names, values = zip(*rows, strict=True)
    places = range(len(rows), 0, -1)
    axes.barh(places, values, color=["#1565c0" if "llama.cpp" in name or "fast" in name else "#9e9e9e"
                                     for name in names])  # fmt: skip
    for place, value in zip(places, values, strict=True):
        axes.text(value, place, f" {value:.3g}", va="center", fontsize=9)
    if mark is not None:
        axes.axvline(mark, color="#c62828", lw=2)
        axes.text(mark, len(rows) + 0.55, f" {note}", color="#c62828", fontsize=8, va="bottom")
    axes.set_yticks(places, names)
    axes.set_xlabel(unit)
    axes.set_xlim(0, max([*values, mark or 0]) * 1.12)
    return _finish(figure, axes)


def draw_tokens(rows: Sequence[tuple[str, int, int, int, int]]) -> Any:
    """Where a turn's tokens go: (name, prompt, kept of these, new, forced of these); only the blue and orange cost."""
    plt = _plt()
    parts = [
        ("prompt, kept", "#bbdefb", lambda prompt, kept, new, forced: kept),
        ("prompt, computed", "#1565c0", lambda prompt, kept, new, forced: prompt - kept),
        ("new, forced by the grammar", "#ffe0b2", lambda prompt, kept, new, forced: forced),
        ("new, decided one by one", "#e65100", lambda prompt, kept, new, forced: new - forced),
    ]
    figure, axes = plt.subplots(figsize=(8.5, 0.45 * len(rows) + 1.3))
    places = range(len(rows), 0, -1)
    left = [0.0] * len(rows)
    for label, colour, size in parts:
        values = [size(*item[1:]) for item in rows]
        axes.barh(places, values, left=left, color=colour, label=label)
        left = [start + value for start, value in zip(left, values, strict=True)]
    axes.set_yticks(places, [item[0] for item in rows])
    axes.set_xlabel("tokens a turn (median)")
    return _finish(figure, axes, legend={"loc": "upper center", "bbox_to_anchor": (0.4, -0.3), "ncols": 2})


def _plt() -> Any:
    import matplotlib.pyplot as plt

    return plt


def _finish(figure: Any, axes: Any, legend: dict[str, Any] | None = None) -> Any:
    import matplotlib.pyplot as plt

    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if legend:
        axes.legend(frameon=False, fontsize=9, **legend)
    figure.tight_layout()
    plt.close(figure)
    return figure
