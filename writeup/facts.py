"""Every figure that the write-up quotes, and the file it was read from. Texts are templates; this fills them.

A figure whose file does not exist yet is None: the sentence around it is then left out, and a warning says so.
"""

import ast
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import impact
import yaml

from docgemma.experiments.statistics import wilson

ROOT = Path(__file__).resolve().parents[1]
CARD = "data/edge/card.json"
HELD_OUT = "data/edge/results/heldout.json"
NATURAL = "data/results/natural.json"
RUN = "data/results/medgemma"  # what `docgemma kaggle collect` took in
SUITES = "data/experiments"
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ALL = "all"


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

    def _lacks(self, what: str) -> None:
        if what not in self.missing:
            self.missing.append(what)
            if self.warn:
                print(f"warning: not stored: {what}; what would quote it is left out", file=sys.stderr)

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

    def natural(self) -> dict[str, Any] | None:
        """The latest graded round on requests as people type them; None while there is none."""
        found = self.results("natural")
        return found["rounds"][-1] if found and found.get("rounds") else None

    def round_date(self) -> str:
        return self.say("latest round: date", self.natural()["date"], NATURAL)

    def graded(self, name: str, kind: str = "requests") -> str:
        """Of the latest round: how many there were, "n", or the share of a grade, "A". `kind`: or "conversations"."""
        latest = self.natural()[kind]
        text = latest["n"] if name == "n" else f"{100 * latest[name] / latest['n']:.0f} %"
        return self.say(f"graded {kind}, latest round: {name}", text, NATURAL)

    def graded_interval(self, name: str, kind: str = "requests") -> str:
        """`73–85`: the 95 % interval (Wilson) of that share, in percent."""
        latest = self.natural()[kind]
        text = span(latest[name], latest["n"])
        return self.say(f"graded {kind}, latest round: {name}, interval", text, NATURAL)

    def orders(self, name: str) -> str:
        """Orders written with fresh eyes, at their first run: `155/168, 92 % (87–95)` of what was "demanded" is on the
        card, or `3/100, …` of the "harmless" ones raise a false alarm."""
        first = self.results("orders")["rounds"][-1]
        hits = first["shown"] if name == "demanded" else first["false_alarms"]
        text = f"{hits}/{first[name]}, {100 * hits / first[name]:.0f} % ({span(hits, first[name])})"
        return self.say(f"orders, first run: {name}", text, "data/results/orders.json")

    def samples(self) -> str:
        """The random samples of facts, the newest first: `0, 2 and 1 dangerous, … rows of 60 each`."""
        newest = list(reversed(self.results("facts")["samples"]))
        counted = [
            f"{listed(item['grades'][grade] for item in newest)} {grade}"
            for grade in ("dangerous", "misleading", "imprecise")
        ]
        text = f"{', '.join(counted)} rows of {listed(dict.fromkeys(item['n'] for item in newest))} each"
        return self.say("random samples of facts, newest first", text, "data/results/facts.json")

    def stated(self) -> str:
        """How many conditions and limits a label states word for word: `33 of 500 …, 6.6 % (4.7–9.1)`."""
        found = self.results("facts")["quoted"]
        hits, n = found["quoted"], found["n"]
        low, high = wilson(hits, n)
        text = f"{hits} of {n} conditions and limits of {found['labels']} drugs, {100 * hits / n:.1f} % "
        text += f"({100 * low:.1f}–{100 * high:.1f})"
        return self.say("facts that a label states", text, "data/results/facts.json")

    def misled(self) -> str:
        """How many rows of the last three samples were misleading or dangerous: `3/180, 1.7 % (0.6–4.8)`."""
        newest = self.results("facts")["samples"][-3:]
        bad = sum(item["grades"][grade] for item in newest for grade in ("dangerous", "misleading"))
        n = sum(item["n"] for item in newest)
        low, high = wilson(bad, n)
        text = f"{bad}/{n}, {100 * bad / n:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
        return self.say("rows that mislead, last samples", text, "data/results/facts.json")

    def cited(self, name: str) -> str:
        """A public figure of data/impact.yaml."""
        value = impact.stored(self.root)["cited"][name]["value"]
        text = f"{value // 10**9} billion" if value >= 10**9 else impact.shown(value)
        return self.say(f"cited: {name}", text, impact.STORED)

    def year(self, name: str) -> str:
        """When its source was published: the last number of its line."""
        source = self._source_of(name)["source"]
        return self.say(f"cited: {name}, year", source.split()[-1], impact.STORED)

    def address(self, name: str) -> str:
        return str(self._source_of(name)["url"])

    def _source_of(self, name: str) -> dict[str, Any]:
        """The entry that names a figure's source: its own, or the one before it of "the same review"."""
        kept: dict[str, Any] = {}
        for key, entry in impact.stored(self.root)["cited"].items():
            kept = kept if entry["source"] == "the same review" else entry
            if key == name:
                return kept
        raise KeyError(name)

    def price(self, name: str) -> str:
        value = impact.stored(self.root)["hardware"][name]["price"]
        return self.say(f"price in US dollars: {name}", str(value), impact.STORED)

    def assumed(self, name: str) -> str:
        """`20 % | 50 % | 80 %`: an assumption of the estimate, low, likely and high."""
        row = impact.assumptions(root=self.root)[name]
        text = " | ".join(impact.shown(row[column]) for column in impact.COLUMNS)
        return self.say(f"assumed: {name}", text, impact.STORED)

    def treated(self) -> str:
        """Patients of one clinic in a year, as the estimate assumes."""
        return self.say("assumed: patients", impact.assumptions(root=self.root)["patients"]["likely"], impact.STORED)

    def spared(self, column: str = "likely") -> str:
        """Patients a year who would be spared a preventable harm, by the estimate."""
        value = impact.spared(impact.assumptions(root=self.root))[column]
        return self.say(
            f"estimate: patients spared, {column}", f"{value:.0f}" if value > 1 else f"{value:.1f}", impact.STORED
        )

    def run(self) -> dict[str, Any] | None:
        """The manifest of the collected run of the kernel; None while there is none, which is no want of data here."""
        return self.read(f"{RUN}/manifest.json") if (self.root / RUN / "manifest.json").is_file() else None

    def medgemma(self, part: str) -> dict[str, Any] | None:
        """One part of that run (`data/kaggle/kit/evidence.py`); None where it was not run."""
        found = self.read(f"{RUN}/{part}.json") if self.run() else {"not_run": ""}
        return None if "not_run" in found else found

    def not_run(self) -> dict[str, str]:
        """Parts that failed over there, and why."""
        parts = {path.stem: self.read(f"{RUN}/{path.name}") for path in sorted((self.root / RUN).glob("*.json"))}
        return {name: found["not_run"] for name, found in parts.items() if "not_run" in found}

    def run_date(self) -> str:
        return self.say("MedGemma's run: date", self.run()["date"], f"{RUN}/manifest.json")

    def gpus(self) -> str:
        return self.say("MedGemma's run: gpus", " and ".join(self.run()["gpus"]) or "no GPU", f"{RUN}/manifest.json")

    def seconds(self, node: str) -> str:
        """Median seconds of a generation at a node; a dash where none was needed."""
        rows = {row["node"]: row for row in self.medgemma("speed")["calls"]}
        value = rows[node]["median_s"] if node in rows else "–"
        return self.say(f"MedGemma: seconds of {node}, median", value, f"{RUN}/speed.json")

    def peak(self) -> str:
        return self.say(
            "MedGemma: peak GB of a GPU", max(self.medgemma("speed")["peak_gb"] or [0.0]), f"{RUN}/speed.json"
        )

    def checked(self, whose: str = "MedGemma") -> str:
        """`150/172, 87.2 % (81.4–91.4)` of the latest round's cases pass the checks; `whose`: or "edge"."""
        found = self.medgemma("natural")
        right, total = (sum(item[key] for item in found["sets"]) for key in ("passed", "total"))
        ours, edge = {"right": right, "n": total}, {"right": found["edge"]["passed"], "n": found["edge"]["n"]}
        row = ours if whose == "MedGemma" else edge
        low, high = wilson(row["right"], row["n"])
        text = f"{row['right']}/{row['n']}, {percent(row)} ({100 * low:.1f}–{100 * high:.1f})"
        return self.say(f"checks passed: {whose}", text, f"{RUN}/natural.json")

    @cached_property
    def rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Held-out rows by capability and difficulty; none while nothing was evaluated."""
        if not (self.root / HELD_OUT).is_file():
            self._lacks(HELD_OUT)
            return {}
        return keyed(self.read(HELD_OUT)["rows"])

    def _held_out(self, run: bool) -> tuple[dict[tuple[str, str], dict[str, Any]], str]:
        """The edge model's rows, or with `run` those of MedGemma's run, and where they stand."""
        if not run:
            return self.rows, HELD_OUT
        return keyed((self.medgemma("heldout") or {"rows": []})["rows"]), f"{RUN}/heldout.json"

    def share(self, capability: str, difficulty: str = ALL, run: bool = False) -> str:
        """`93.3 %`: the share that was right."""
        rows, source = self._held_out(run)
        return self.say(f"{capability} ({difficulty}): right", percent(rows[capability, difficulty]), source)

    def interval(self, capability: str, difficulty: str = ALL, run: bool = False) -> str:
        """`89.9–95.6`: its 95 % interval (Wilson), in percent."""
        rows, source = self._held_out(run)
        row = rows[capability, difficulty]
        text = f"{100 * row['low']:.1f}–{100 * row['high']:.1f}"
        return self.say(f"{capability} ({difficulty}): interval", text, source)

    def right(self, capability: str, difficulty: str = ALL, run: bool = False) -> str:
        """`291/312`."""
        rows, source = self._held_out(run)
        row = rows[capability, difficulty]
        return self.say(f"{capability} ({difficulty}): count", f"{row['right']}/{row['n']}", source)

    def items(self, capability: str, difficulty: str = ALL) -> str:
        """How many decisions were judged."""
        return self.say(f"{capability} ({difficulty}): n", self.rows[capability, difficulty]["n"], HELD_OUT)

    def judged(self) -> str:
        """How many items were judged."""
        return self.say("held-out items that were judged", self.read(HELD_OUT)["items"], HELD_OUT)

    def scored(self) -> str:
        """How often the held-out items were scored while rules and training changed: they are no longer unseen."""
        number = self.read(HELD_OUT)["scored"]
        text = WORDS[number] if number < len(WORDS) else str(number)
        return self.say("times the held-out items were scored", text, HELD_OUT)

    def has(self, capability: str, difficulty: str = ALL, run: bool = False) -> bool:
        return (capability, difficulty) in self._held_out(run)[0]

    def training(self, name: str) -> str:
        """A figure of the reader's card, `training("requests")`; a recipe's by `training("recipe.tokens")`."""
        found: Any = self.card
        for part in name.split("."):
            found = found[part]
        return self.say(f"reader: {name}", f"{found:,}" if isinstance(found, int) else str(found), CARD)

    def digest(self) -> str:
        return self.say("reader: SHA-256", self.card["sha256"], CARD)

    def millions(self, name: str) -> str:
        return self.say(f"reader: {name}, millions", round(self.card[name] / 1e6), CARD)

    def sources(self) -> str:
        """How many files the training lines come from."""
        return self.say("files of training lines", len(self.card["lines"]), CARD)

    def tools_measured(self) -> list[str]:
        """Tools whose arguments were judged, the best first."""
        rows = [row for (name, level), row in self.rows.items() if "arguments " in name and level == ALL]
        return [row["capability"].split()[1] for row in sorted(rows, key=lambda row: -row["right"] / row["n"])]

    def weakest_tools(self) -> str:
        """The two tools whose arguments are least often right, with their counts."""
        from plots import label

        named = [f"{label(tool)} ({self.right(f'arguments {tool}')})" for tool in self.tools_measured()[-2:]]
        return " and ".join(reversed(named))

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
        from docgemma.llm.compute import compute_type
        from docgemma.paths import kit

        t4 = kit("kaggle", "t4")
        total = sum(t4.memory(compute_type("cuda", t4.CAPABILITY).name).values())
        return self.say("MedGemma on a T4, GB, by arithmetic", total / 1e9, "data/kaggle/kit/t4.py")


def keyed(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["capability"], row["difficulty"]): row for row in rows}


def listed(values: Iterable[int]) -> str:
    """`1, 2 and 3`."""
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}" if most else last


def span(hits: int, n: int) -> str:
    """A 95 % interval (Wilson), in whole percent."""
    low, high = wilson(hits, n)
    return f"{100 * low:.0f}–{100 * high:.0f}"


def percent(row: dict[str, Any]) -> str:
    share = 100 * row["right"] / row["n"]
    return f"{share:.1f} %" if row["right"] not in (0, row["n"]) else f"{share:.0f} %"


def _lines(path: str, heading: int = 0) -> Any:
    def counted(root: Path) -> tuple[int, str]:
        return len((root / path).read_text(encoding="utf-8").splitlines()) - heading, path

    return counted


def _pairs(root: Path) -> tuple[int, str]:
    """Of interactions: a line pairs its first drug with each of the others."""
    path = "data/knowledge/interactions.jsonl"
    rows = (root / path).read_text(encoding="utf-8").splitlines()[1:]
    return sum(len(json.loads(row)["drugs"]) - 1 for row in rows), path


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
    asked = (root / "Makefile").read_text(encoding="utf-8").partition("TOUR := ")[2].partition("\n\n")[0]
    return asked.count('"') // 2, "Makefile"


def _patients(root: Path) -> tuple[int, str]:
    path = "data/ehr/patients.ndjson"
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    return sum(line.startswith('{"resourceType": "Patient"') for line in lines), path


def _suites(root: Path) -> tuple[int, str]:
    return sum(
        "conditions" in yaml.safe_load(path.read_text("utf-8")) for path in (root / SUITES).glob("*.yaml")
    ), SUITES


COUNTS = {
    "experiment suites": _suites,
    "held-out items": _lines("data/edge/heldout.jsonl"),
    "development items": _lines("data/edge/dev.jsonl"),
    "definitions": _lines("data/edge/definitions.jsonl"),
    "drugs": _lines("data/knowledge/drugs.jsonl", heading=1),
    "interaction pairs": _pairs,
    "published articles": _lines("data/knowledge/literature.jsonl", heading=1),
    "synthetic patients": _patients,
    "scenarios": _entries("docgemma/demo/scenarios.yaml"),
    "planted instructions": _injections,
    "tools": _tools,
    "questions of the first run": _questions,
}
