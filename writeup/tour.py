"""Tables of the judge's tour, as Markdown: held-out figures, wrong decisions, the safety case, every quoted figure."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from facts import ALL, Facts, Quote
from IPython.display import Markdown
from plots import PLAIN, label

from docgemma.schemas import TOOL_ARG_SCHEMAS

SAFETY = Path(__file__).resolve().parent / "safety_case.md"
TEST = re.compile(r"`(tests/\w+\.py)::(\w+)`")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markdown:
    lines = [head, ["---"] * len(head), *rows]
    return Markdown("\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in lines))


def held_out(facts: Facts) -> Markdown:
    """Each decision: edge model and rules alone."""
    return table(
        ["decision", "right", "edge model (95 % interval)", "rules alone"],
        [
            [words, facts.right(name), f"{facts.share(name)} ({facts.interval(name)})", facts.share(name, "rules")]
            for name, words in PLAIN.items()
        ],
    )


def wrong(facts: Facts, capability: str, count: int) -> Markdown:
    """Stored held-out decisions that were wrong, at even distances: question, what was right, what was said."""
    items = {item["id"]: item for item in _lines(facts, "data/edge/heldout.jsonl")}
    found = [
        entry
        for entry in _lines(facts, "data/edge/results/heldout-edge.jsonl")
        if entry.get("capability") == capability and not entry["right"]
    ]
    chosen = found[:: max(1, len(found) // count)][:count]
    return table(
        ["question", "difficulty", "right", "said"],
        [
            [items[entry["item"]]["question"], entry["difficulty"], _said(entry["expected"]), _said(entry["got"])]
            for entry in chosen
        ],
    )


def _said(decision: str) -> str:
    """A tool by its label; arguments as `drug name: venlafaxine`, accepted forms side by side."""
    if not decision.startswith("{"):
        return label(decision) if decision in TOOL_ARG_SCHEMAS else decision
    shown = []
    for name, value in json.loads(decision).items():
        forms = value if isinstance(value, list) else [value]
        shown.append(
            f"{name.replace('_', ' ')}: {' / '.join('(none)' if form is None else str(form) for form in forms)}"
        )
    return "; ".join(shown)


def stored(facts: Facts, name: str, title: str, columns: Sequence[str]) -> Markdown:
    """Some columns of a benchmark's table as it was stored, or a line that says that it was not."""
    found = facts.results(name)
    if not found or title not in found["tables"]:
        return Markdown(f"*Not measured yet: `data/results/{name}.json`, {title}.*")
    kept = found["tables"][title]
    places = [kept["head"].index(column) for column in columns]
    return table(columns, [[_number(row[place]) for place in places] for row in kept["rows"]])


def users(facts: Facts) -> Markdown:
    """The run with many users at once, or a line that says that there is none."""
    found = facts.results("load_users")
    if not found:
        return Markdown("*Not measured yet: `data/results/load_users.json`.*")
    memory = ", ".join(f"{name} {value}" for name, value in found["rss_mb"].items())
    rows = [[name.replace("_", " "), found[key]] for key, name in USERS.items()]
    return table(["many users at once, over REST", ""], [*rows, ["server's memory, MB", memory]])


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


def count_of(facts: Facts, capability: str) -> tuple[int, int]:
    """Right decisions, and all of them."""
    row = facts.rows("edge")[capability, ALL]
    return row["right"], row["n"]


def _lines(facts: Facts, path: str) -> list[dict]:
    return [json.loads(line) for line in (facts.root / path).read_text(encoding="utf-8").splitlines()]


def _number(value: object) -> object:
    return f"{value:.3g}" if isinstance(value, float) else value


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
