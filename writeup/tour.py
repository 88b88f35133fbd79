"""Tables of the judge's tour, as Markdown: held-out figures, the safety case, every quoted figure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import impact
from facts import NATURAL, Facts, Quote, span
from IPython.display import Markdown
from plots import PLAIN

SAFETY = Path(__file__).resolve().parent / "safety_case.md"
TEST = re.compile(r"`(tests/\w+\.py)::(\w+)`")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markdown:
    lines = [head, ["---"] * len(head), *rows]
    return Markdown("\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in lines))


def estimate(changed: Mapping[str, float] | None = None) -> Markdown:
    """The assumptions, each with what it rests on, and their product; `changed` are the reader's own."""
    rows = impact.assumptions(changed)
    lines = [
        [name, row["says"], *(impact.shown(row[column]) for column in impact.COLUMNS), row["from"]]
        for name, row in rows.items()
    ]
    product = impact.spared(rows)
    last = ["**multiplied**", "patients a year who are spared a preventable harm"]
    lines.append([*last, *(f"**{product[column]:.3g}**" for column in impact.COLUMNS), ""])
    return table(["name", "what", *impact.COLUMNS, "from"], lines)


def cited() -> Markdown:
    """The public figures of the write-up."""
    rows = impact.stored()["cited"].values()
    return table(
        ["figure", "what", "source"],
        [
            [f"{row['value']:,}" if row["value"] > 1 else impact.shown(row["value"]), row["says"], row["source"]]
            for row in rows
        ],
    )


def rounds(facts: Facts) -> Markdown:
    """Each sealed round of typed requests, the bad ones too."""
    lines = []
    for item in facts.read(NATURAL)["rounds"]:
        asked, talks = item["requests"], item["conversations"]
        right = f"{100 * asked['A'] / asked['n']:.0f} % ({span(asked['A'], asked['n'])})"
        grades = " / ".join(str(asked[grade]) for grade in "ABCDE")
        lines.append([item["date"], item["round"] or "before the reader", asked["n"], right, grades,
                      f"{talks['A']} right, {talks['E']} could harm, of {talks['n']}"])  # fmt: skip
    return table(["date", "round", "requests", "A (95 % interval)", "A / B / C / D / E", "conversations"], lines)


def held_out(facts: Facts) -> Markdown:
    """Each decision of the edge model."""
    return table(
        ["decision", "right", "share (95 % interval)"],
        [[words, facts.right(name), f"{facts.share(name)} ({facts.interval(name)})"] for name, words in PLAIN.items()],
    )


def users(facts: Facts) -> Markdown:
    """The run with many users at once, or a line that says that there is none."""
    found = facts.results("load_users")
    if not found:
        return Markdown("*Not measured yet: `data/results/load_users.json`.*")
    before = found.get("before", {})
    memory = ", ".join(f"{name} {value}" for name, value in found["rss_mb"].items())
    rows = [[name, found[key], before.get(key, "")] for key, name in USERS.items()]
    head = ["many users at once, over REST", "now", "before the reader"]
    return table(head, [*rows, ["server's memory, MB", memory, ""]])


USERS = {
    "users": "users", "seconds": "seconds", "requests": "requests", "turns": "of them turns", "errors": "errors",
    "crosstalk": "answers that named another user's patient", "median_s": "seconds a turn, median",
    "p95_s": "seconds a turn, 95th percentile",
}  # fmt: skip


def safety_case() -> list[tuple[str, list[str]]]:
    """What must never happen, and the tests that show it: read from `safety_case.md`."""
    lines = [line for line in SAFETY.read_text(encoding="utf-8").splitlines() if TEST.search(line)]
    return [(line.split("|")[1].strip(), [f"{file}::{name}" for file, name in TEST.findall(line)]) for line in lines]


def quoted(quotes: Iterable[Quote]) -> Markdown:
    """Figures and the file each was read from."""
    distinct = dict.fromkeys(quotes)
    return table(
        ["figure", "as quoted", "read from"], [[item.what, item.text, f"`{item.source}`"] for item in distinct]
    )


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
