"""Every figure that the write-up quotes, and the file it was read from. Texts are templates; this fills them.

A figure whose file does not exist yet is None: the sentence around it is then left out, and a warning says so.
"""

import ast
import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
CARD = "data/edge/card.json"
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ALL = "all"
MODELS = {"edge": "heldout", "rules": "heldout_rules", "base": "heldout_base"}  # as the card names them


@dataclass(frozen=True)
class Quote:
    """One figure as a text shows it."""

    what: str
    text: str
    source: str


class Facts:
    """Reads the data files when asked and keeps what was quoted in `quotes`.

    Args:
        root: the repository.
        warn: say on stderr which file of measurements is not there yet.

    Raises:
        KeyError, FileNotFoundError: a figure that a text asks for is not in the data.
    """

    def __init__(self, root: Path = ROOT, warn: bool = True):
        self.root, self.warn = root, warn
        self.quotes: list[Quote] = []
        self.missing: list[str] = []

    @cached_property
    def card(self) -> dict[str, Any]:
        return self.read(CARD)

    def read(self, path: str) -> Any:
        return json.loads((self.root / path).read_text(encoding="utf-8"))

    def results(self, name: str) -> Any:
        """One file of data/results, or None with a warning: whoever measures it has not stored it yet."""
        path = f"data/results/{name}.json"
        return self.read(path) if (self.root / path).is_file() else self._lacks(path)

    def row(self, name: str, title: str, *start: str) -> dict[str, Any] | None:
        """One line of a benchmark's table, found by its first cells; None with a warning while it is not stored."""
        stored = self.results(name)
        if stored is None:
            return None
        table = stored["tables"].get(title, {"head": [], "rows": []})
        found = [row for row in table["rows"] if row[: len(start)] == list(start)]
        if not found:
            return self._lacks(f"{title!r}, {start} in data/results/{name}.json")
        # the first column of a name counts: "middle half" of the seconds stands before that of the ratios
        return dict(reversed(list(zip(table["head"], found[0], strict=True))))

    def _lacks(self, what: str) -> None:
        if what not in self.missing:
            self.missing.append(what)
            if self.warn:
                print(f"warning: not stored: {what}; what would quote it is left out", file=sys.stderr)

    def look_up(self, column: str = "s") -> str:
        """Of a whole turn with one tool on llama.cpp: median seconds; `n`, how many turns."""
        row = self.look_ups()
        return self.say(f"a turn with one tool: {column}", row[column], "data/results/paths.json")

    def look_up_load(self) -> str:
        """How busy the machine was: the load average at the end of the table."""
        found = self.results("paths")["tables"]["single-tool turns"]["load"]
        return self.say("a turn with one tool: load average", found, "data/results/paths.json")

    def look_ups(self) -> dict[str, Any] | None:
        return self.row("paths", "single-tool turns", "one tool", "llama.cpp")

    def reacts(self) -> dict[str, dict[str, Any]] | None:
        """This graph and a ReAct agent on the same questions and weights; None unless both are stored."""
        names = {"here": "v3, adapter", "plain": "ReAct, no adapter", "adapted": "ReAct, adapter"}
        found = {key: self.row("react", "v3 and ReAct", name) for key, name in names.items()}
        return found if all(found.values()) else None

    def react(self, agent: str, column: str = "right first tool (95 %)") -> str:
        """`51/60`. `agent`: here, plain or adapted."""
        value = self.reacts()[agent][column]
        text = value.split(" = ")[0] if isinstance(value, str) else value
        return self.say(f"comparison with ReAct, {agent}: {column}", text, "data/results/react.json")

    def load(self, what: str) -> str:
        """Of the run with many users at once: `users`, `turns`, `errors`, `crosstalk`, `median_s`, `rss_mb.end` …"""
        found: Any = self.results("load_users")
        for part in what.split("."):
            found = found[part]
        value = int(found) if isinstance(found, float) and found.is_integer() else found
        return self.say(f"many users at once: {what}", value, "data/results/load_users.json")

    def say(self, what: str, value: Any, source: str) -> str:
        """Note a figure and give it as text."""
        text = value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.1f}"
        self.quotes.append(Quote(what, text, source))
        return text

    def rows(self, model: str) -> dict[tuple[str, str], dict[str, Any]]:
        """Held-out rows by capability and difficulty. `model`: one of `MODELS`."""
        key = MODELS[model]
        if key not in self.card:
            raise KeyError(f"{CARD} has no {key}: run docgemma edge eval --model {model}")
        found = self.card[key]["rows"]
        return {(row["capability"], row["difficulty"]): row for row in found}

    def share(self, capability: str, model: str = "edge", difficulty: str = ALL) -> str:
        """`93.3 %`: the share that was right."""
        row = self.rows(model)[capability, difficulty]
        return self.say(f"{capability} ({difficulty}), {model}: right", percent(row), CARD)

    def interval(self, capability: str, model: str = "edge", difficulty: str = ALL) -> str:
        """`89.9–95.6`: its 95 % interval (Wilson), in percent."""
        row = self.rows(model)[capability, difficulty]
        text = f"{100 * row['low']:.1f}–{100 * row['high']:.1f}"
        return self.say(f"{capability} ({difficulty}), {model}: interval", text, CARD)

    def right(self, capability: str, model: str = "edge", difficulty: str = ALL) -> str:
        """`291/312`."""
        row = self.rows(model)[capability, difficulty]
        return self.say(f"{capability} ({difficulty}), {model}: count", f"{row['right']}/{row['n']}", CARD)

    def items(self, capability: str, difficulty: str = ALL) -> str:
        """How many decisions were judged."""
        return self.say(f"{capability} ({difficulty}): n", self.rows("edge")[capability, difficulty]["n"], CARD)

    def behind(self, capability: str, model: str = "edge", than: str = "rules") -> bool:
        """Whether one does worse than the other at it: by default the edge model than the rules alone."""
        first, second = (self.rows(name)[capability, ALL]["share"] for name in (model, than))
        return first < second

    def has(self, capability: str, difficulty: str = ALL, model: str = "edge") -> bool:
        return MODELS[model] in self.card and (capability, difficulty) in self.rows(model)

    def training(self, name: str) -> str:
        """A figure of the training run, `training("turns")`; a recipe's by `training("recipe.rank")`."""
        found: Any = self.card["training"]
        for part in name.split("."):
            found = found[part]
        text = str(found) if name == "recipe.seed" or isinstance(found, float) else f"{found:,}"
        return self.say(f"training: {name}", text, CARD)

    def training_minutes(self) -> str:
        return self.say("training: minutes", round(self.card["training"]["seconds"] / 60), CARD)

    def training_calls(self) -> str:
        calls = self.card["training"]["calls"]
        text = ", ".join(f"{count:,} {name}" for name, count in calls.items())
        return self.say("training: model calls", text, CARD)

    def base(self) -> str:
        return self.say("base model", self.card["base"], CARD)

    def adapter_format(self) -> str:
        return self.say("adapter's format", self.card["format"], CARD)

    def adapter_hash(self) -> str:
        return self.say("adapter's SHA-256", self.card["adapter_sha256"], CARD)

    def tools_measured(self) -> list[str]:
        """Tools whose arguments were judged, the best first."""
        rows = [row for (name, level), row in self.rows("edge").items() if "arguments " in name and level == ALL]
        return [row["capability"].split()[1] for row in sorted(rows, key=lambda row: -row["right"] / row["n"])]

    def settled_results(self) -> str:
        """How many of the judged results code classifies by their content, so that the edge model is not asked."""
        from docgemma.edge import items
        from docgemma.edge.quality import settled_quality
        from docgemma.rules.routing import known_quality

        judged = [item for item in items.load("heldout") if item["kind"] == "result" and item["quality"]]
        last = [(item["question"], items.stored_result(item["results"][-1])) for item in judged]
        settled = sum(bool(known_quality(result) or settled_quality(asked, result)) for asked, result in last)
        return self.say("results that code classifies", settled, "data/edge/heldout.jsonl")

    def weakest_tools(self) -> str:
        """The two tools whose arguments are least often right, with their counts."""
        from plots import label

        named = [f"{label(tool)} ({self.right(f'arguments {tool}')})" for tool in self.tools_measured()[-2:]]
        return " and ".join(reversed(named))

    def no_better(self) -> str:
        """Where the model adds nothing that could be shown, in words."""
        from plots import PLAIN

        edge, rules = self.rows("edge"), self.rows("rules")
        over = [name for name in PLAIN if edge[name, ALL]["low"] <= rules[name, ALL]["share"]]
        if not over:
            return "It is better than the rules everywhere, beyond chance."
        return "No gain could be shown for: " + "; ".join(f"“{PLAIN[name]}”" for name in over) + "."

    def count(self, kind: str) -> str:
        """How many there are of what ships with the project."""
        number, source = COUNTS[kind](self.root)
        return self.say(f"number of {kind}", number, source)

    def word(self, kind: str) -> str:
        """The same in words, up to twelve."""
        number, source = COUNTS[kind](self.root)
        return self.say(f"number of {kind}", WORDS[number] if number < len(WORDS) else f"{number:,}", source)

    def megabytes(self, path: str) -> str:
        size = (self.root / path).stat().st_size
        return self.say(f"size of {path}, MB", size / 1e6, path)

    def gpu_gigabytes(self) -> str:
        """What MedGemma in 4 bits would take on a T4, by arithmetic."""
        from docgemma.kaggle import t4
        from docgemma.llm.compute import compute_type

        total = sum(t4.memory(compute_type("cuda", t4.CAPABILITY).name).values())
        return self.say("MedGemma on a T4, GB, by arithmetic", total / 1e9, "docgemma/kaggle/t4.py")


def percent(row: dict[str, Any]) -> str:
    share = 100 * row["right"] / row["n"]
    return f"{share:.1f} %" if row["right"] not in (0, row["n"]) else f"{share:.0f} %"


def _lines(path: str, heading: int = 0) -> Any:
    def counted(root: Path) -> tuple[int, str]:
        return len((root / path).read_text(encoding="utf-8").splitlines()) - heading, path

    return counted


def _entries(path: str) -> Any:
    def counted(root: Path) -> tuple[int, str]:
        return len(yaml.safe_load((root / path).read_text(encoding="utf-8"))), path

    return counted


def _injections(root: Path) -> tuple[int, str]:
    path = "tests/test_injection.py"
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "INJECTIONS"]
    return len(ast.literal_eval(found[0].value)), path


def _tools(root: Path) -> tuple[int, str]:
    from docgemma.tools import toolbox

    return len(list(toolbox())), "docgemma/tools"


def _questions(root: Path) -> tuple[int, str]:
    from docgemma.tour import QUESTIONS

    return len(QUESTIONS), "docgemma/tour.py"


COUNTS = {
    "held-out items": _lines("data/edge/heldout.jsonl"),
    "development items": _lines("data/edge/dev.jsonl"),
    "definitions": _lines("data/edge/definitions.jsonl"),
    "drugs": _lines("data/knowledge/drugs.jsonl", heading=1),
    "interaction pairs": _lines("data/knowledge/interactions.jsonl", heading=1),
    "synthetic patients": _entries("data/ehr/patients.yaml"),
    "scenarios": _entries("docgemma/demo/scenarios.yaml"),
    "planted instructions": _injections,
    "tools": _tools,
    "questions of the first run": _questions,
}
