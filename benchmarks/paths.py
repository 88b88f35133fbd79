"""A turn of the real agent, question in, checked answer out: the edge model on llama.cpp against transformers.

    python benchmarks/paths.py [--repeats N] [--single-repeats N] [--threads N] [--part PART …]

The same graph, prompts and weights: on llama.cpp with the adapter merged into 8-bit weights (as shipped) or applied at
run time, and on transformers with the adapter merged, on this project's fast path and under plain Outlines
(DOCGEMMA_FAST_DECODING=false). For a few single-tool turns also plain Outlines with MedGemma's full prompts and no
adapter: what a chat model of this size costs without any of it. Interleaved; every repetition begins with nothing kept,
as a new process does. Each runs in a process of its own.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import Report, apart, edge_on_transformers, middle, prepared, say, spread

from docgemma.agent import Agent
from docgemma.errors import ModelError
from docgemma.llm.base import LLM
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.llm.load import edge_adapter, edge_weights, load_edge
from docgemma.settings import Settings
from docgemma.tour import QUESTIONS

SINGLE = (
    "Is there a boxed warning on clozapine?",
    "Check interactions between warfarin, aspirin, and ibuprofen",
    "Show me the chart of abc-123",
    "Find patient Maria Garcia",
    "Any studies on SGLT2 inhibitors in heart failure?",
    "Find recruiting trials for type 2 diabetes",
    "What does the FDA say about metformin?",
    "Does clarithromycin interact with simvastatin?",
)
FULL_QUESTIONS = 3  # it takes long
EDGE, APART = "llama.cpp", "llama.cpp, adapter at run time"
FAST, PLAIN, FULL = "transformers, fast", "transformers, plain Outlines", "plain, full prompts"


@dataclass
class Turn:
    """One turn: seconds by the clock and of the processor, its tools, its answer, and the model calls that it made."""

    seconds: float
    cpu: float
    tools: list[tuple[str, str]]
    answer: str
    calls: list[dict[str, Any]] = field(default_factory=list)

    def total(self, key: str) -> int:
        return sum(call[key] for call in self.calls)

    def figures(self) -> list[int]:
        """Calls; prompt tokens, of these kept; new tokens, of these forced; tokens computed; decisions."""
        prompt, kept = self.total("prompt_tokens"), self.total("cached_tokens")
        new, forced = self.total("completion_tokens"), self.total("forced_tokens")
        read = [call for call in self.calls if call["forced_tokens"] < call["completion_tokens"]]  # else nothing is
        computed = sum(call["prompt_tokens"] - call["cached_tokens"] + call["completion_tokens"] for call in read)
        return [len(self.calls), prompt, kept, new, forced, computed, new - forced]


def ask(settings: Settings, make: Callable[[], LLM], questions: list[str]) -> list[Turn]:
    """The questions one after the other, on a model that has kept nothing; loading is not counted."""
    turns = []
    with Agent(settings, llm=make()) as agent:
        for question in questions:
            thread, start, cpu = f"bench-{time.time_ns()}", time.perf_counter(), time.process_time()
            try:
                result = agent.ask(question, thread=thread, create=True)
            except ModelError as error:
                result = {"tools": [], "answer": f"error: {error}"}
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            calls = agent.app.get_state(agent._config(thread)).values.get("calls", [])
            tools = [(tool["name"], str(tool["args"])) for tool in result["tools"]]
            turns.append(Turn(seconds, cpu, tools, result["answer"], calls))
    return turns


def maker(name: str, settings: Settings) -> Callable[[], LLM]:
    """What loads one back end; the weights on transformers are loaded once."""
    if name == EDGE:
        return lambda: load_edge(settings)
    if name == APART:
        return lambda: LlamaCppLLM("edge", edge_weights(), adapter=edge_adapter(), profile="edge",
                                   threads=settings.threads)  # fmt: skip
    make = edge_on_transformers(settings, settings.threads, adapter=name != FULL)
    keep = lambda llm: setattr(llm, "close", lambda: None) or llm  # noqa: E731  (the weights are shared)
    return lambda: keep(make(name == FAST))


def turns(name: str, settings: Settings) -> Callable[[list[str]], list[Turn]]:
    make = maker(name, settings)
    return lambda questions: ask(settings, make, questions)


def run(settings: Settings, names: Sequence[str], questions: list[str], repeats: int) -> list[dict]:
    """Rows {repeat, back end, question, turn}, the order of the back ends turned round each time."""
    rows = []
    with apart(turns, names, settings) as asked:
        for name in names:
            asked[name](questions[:1])  # loads, and makes what is made once
        for repeat in range(repeats):
            for name in names if repeat % 2 else reversed(names):
                say(f"repetition {repeat + 1} of {repeats}: {name}")
                for question, turn in zip(questions, asked[name](questions), strict=True):
                    rows.append({"repeat": repeat, "back end": name, "question": question, "turn": turn})
    return rows


def kept(turn: Turn) -> dict[str, Any]:
    figures = dict(zip(FIGURES, turn.figures(), strict=True))
    return {"seconds": round(turn.seconds, 3), "cpu": round(turn.cpu, 3), "tools": turn.tools, **figures}


def summarize(rows: list[dict], label: str) -> list[list[Any]]:
    """One line a back end."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        groups[row["back end"]].append(row)
    lines = []
    for name in (name for name in ORDER if name in groups):
        found = groups[name]
        seconds = [row["turn"].seconds for row in found]
        alike = {(row["repeat"], row["question"]): row["turn"] for row in groups[PLAIN]}
        pairs = [(row["turn"], alike[row["repeat"], row["question"]]) for row in found]
        share, cpu = [a.seconds / b.seconds for a, b in pairs], [a.cpu / b.cpu for a, b in pairs]
        tokens = [round(middle(column)) for column in zip(*(row["turn"].figures() for row in found), strict=True)]
        lines.append([
            label, name, len(found), middle(seconds), spread(seconds), middle(share), spread(share), middle(cpu),
            f"{sum(a.tools == b.tools for a, b in pairs)}/{len(pairs)}",
            f"{sum(a.answer == b.answer for a, b in pairs)}/{len(pairs)}", *tokens,
        ])  # fmt: skip
    return lines


FIGURES = ["calls", "prompt tokens", "of these kept", "new tokens", "of these forced", "computed tokens", "decisions"]
ORDER = (EDGE, APART, FAST, PLAIN, FULL)
HEAD = ["path", "model on", "n", "s", "middle half", "of plain", "middle half", "of plain, CPU", "same tools",
        "same answer", *FIGURES]  # fmt: skip


def by_node(rows: list[dict]) -> list[list[Any]]:
    """Seconds a call, by node and back end, over all turns."""
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        for call in row["turn"].calls:
            seconds[call["node"], row["back end"]].append(call["seconds"])
    nodes = list(dict.fromkeys(node for node, _ in seconds))
    return [
        [node, *(f"{middle(found):.3g} (n {len(found)})" if (found := seconds[node, name]) else "-" for name in ORDER)]
        for node in nodes
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="of the three questions of the demonstration")
    parser.add_argument("--single-repeats", type=int, default=3)
    parser.add_argument("--part", nargs="+", choices=("single", "demo"), default=["single", "demo"])
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    about = " ".join(__doc__.partition("]\n\n")[2].split())
    with prepared(threads=chosen.threads) as settings:
        report = Report("paths", about, adds=True, threads=chosen.threads, single=list(SINGLE))
        if "single" in chosen.part:
            rows = run(settings, [EDGE, APART, FAST, PLAIN], list(SINGLE), chosen.single_repeats)
            rows += run(settings, [FULL], list(SINGLE[:FULL_QUESTIONS]), 1)
            tell(report, "single-tool turns", rows, summarize(rows, "one tool"))
        if "demo" in chosen.part:
            rows = run(settings, [EDGE, FAST, PLAIN], [question for _, question in QUESTIONS], chosen.repeats)
            paths = {path: [row for row in rows if row["question"] == question] for path, question in QUESTIONS}
            lines = [line for path, found in paths.items() for line in summarize(found, path)]
            tell(report, "the demonstration's three questions", rows, lines)


def tell(report: Report, title: str, rows: list[dict], lines: list[list[Any]]) -> None:
    report.table(title, HEAD, lines, NOTE)
    report.table(f"{title}, by node", ["node", *(f"{name}, s" for name in ORDER)], by_node(rows))
    report.keep(f"runs, {title}", [{**row, "turn": kept(row["turn"])} for row in rows])


NOTE = (
    "Seconds are medians of whole turns; `of plain` is the median of the ratios to the same question in the same "
    "repetition under plain Outlines, by the clock and in processor time. `computed` are prompt tokens that were not "
    "kept and new tokens, but for calls whose whole answer is forced; `decisions` are new tokens decoded one by one."
)

if __name__ == "__main__":
    main()
