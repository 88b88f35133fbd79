"""Evaluation of the edge model on the hand-written sets, through the graph's own nodes; the rules alone beside it."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from docgemma.edge import items as sets
from docgemma.edge.prompts import EdgeProfile
from docgemma.edge.score import Mark, confusion, invented, same_args, says, table
from docgemma.errors import ModelError
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import LLM
from docgemma.nodes import tool_select
from docgemma.nodes.context import Context
from docgemma.nodes.intent_classify import classify_intent
from docgemma.nodes.result_classify import classify_result
from docgemma.nodes.synthesize import evidence, synthesize
from docgemma.rules.completion import task_complete
from docgemma.schemas import NO_TOOL, RetryStrategy
from docgemma.settings import Settings
from docgemma.state import AgentState
from docgemma.tools import toolbox


class Evaluation:
    """Runs items and collects marks. `llm` None: the rules alone decide (`baseline.py`)."""

    def __init__(self, llm: LLM, settings: Settings | None = None):
        self.drugs, self.marks, self.answers = load_drug_names(), [], []
        self.context = Context(
            llm=llm,
            profile=EdgeProfile(),
            toolbox=toolbox(),
            store=None,
            knowledge=None,
            drugs=self.drugs,
            settings=settings or Settings(),
            thread="evaluation",
        )
        self.runtime: Any = SimpleNamespace(context=self.context, stream_writer=lambda event: None)

    def run(self, items: list[sets.Item], progress: Callable[[str], object] | None = None) -> list[Mark]:
        kinds = {
            "direct": self.direct,
            "tool": self.calls,
            "several": self.calls,
            "result": self.result,
            "retry": self.retry,
            "triage": self.triage,
        }
        for number, item in enumerate(items, 1):
            kinds[item["kind"]](item)
            if progress and number % 50 == 0:
                progress(f"{number} of {len(items)} items")
        return self.marks

    def direct(self, item: sets.Item) -> None:
        self._intent(item, sets.state_of(item, self.drugs), "DIRECT")

    def calls(self, item: sets.Item) -> None:
        state = sets.state_of(item, self.drugs)
        state = self._intent(item, state, "TOOL_NEEDED")
        left = list(item["steps"])
        for place, step in enumerate(item["steps"]):
            self._choice(item, state, place, step, left)
            self._arguments(item, state, step)
            state = sets.after(state, item, step)
            left.remove(step)
        if len(item["steps"]) > 1:
            self._choice(item, state, len(item["steps"]), None, [])

    def result(self, item: sets.Item) -> None:
        state = sets.state_of(item, self.drugs)
        state["intent"] = "TOOL_NEEDED"
        state["tool_results"] = [sets.stored_result(entry) for entry in item["results"]]
        if item["quality"]:
            start = time.perf_counter()
            got = classify_result(state, self.runtime)["last_result_classification"]
            self._mark(item, "result class", item["quality"], got, got == item["quality"], start)
        start = time.perf_counter()
        done = synthesize(state, self.runtime)
        text, removed = done["final_response"], done["grounding"]["removed"]
        right = says(text, item["critical"])
        self._mark(item, "answer has the critical fact", "fact", "fact" if right else "none", right, start)
        extra = invented(
            text, [*evidence(state), *(entry["tool_label"] for entry in state["tool_results"])], self.drugs
        )
        self._mark(item, "nothing invented", "nothing", ", ".join(extra) or "nothing", not extra, start)
        self.answers.append({"item": item["id"], "answer": text, "removed": removed})

    def retry(self, item: sets.Item) -> None:
        state = sets.state_of(item, self.drugs)
        failed = sets.stored_result(item["call"] | {"error_type": item["error_type"]})
        state["tool_results"] = [failed]
        start = time.perf_counter()
        value, _ = self.context.ask(self.context.profile.retry(state, failed))
        assert isinstance(value, RetryStrategy)
        self._mark(item, "retry", item["strategy"], value.strategy, value.strategy == item["strategy"], start)

    def triage(self, item: sets.Item) -> None:
        """The v2 route, by the profile's own call where it has one."""
        ask = getattr(self.context.profile, "triage", None)
        if ask is None:
            return
        start = time.perf_counter()
        value, _ = self.context.ask(ask(sets.state_of(item, self.drugs)))
        self._mark(item, "triage", item["route"], value.route, value.route == item["route"], start)

    def _intent(self, item: sets.Item, state: AgentState, expected: str) -> AgentState:
        start = time.perf_counter()
        update = classify_intent(state, self.runtime)
        self._mark(item, "intent", expected, update["intent"], update["intent"] == expected, start)
        return AgentState(**{**state, **update})

    def _choice(self, item: sets.Item, state: AgentState, place: int, step: dict | None, left: list[dict]) -> None:
        """Which tool: what the model says among the candidates, and what the graph does with it."""
        capability = "next tool" if place else "first tool"
        right = (
            {entry["tool"] for entry in left} if step and item.get("any_order") else {step["tool"] if step else NO_TOOL}
        )
        expected = step["tool"] if step else NO_TOOL
        start = time.perf_counter()
        got = tool_select._choose(state, self.context, [])
        self._mark(item, capability, expected, got, got in right, start)
        graph = NO_TOOL if place and task_complete(state) else got
        self._mark(item, f"{capability} in the graph", expected, graph, graph in right, start)

    def _arguments(self, item: sets.Item, state: AgentState, step: dict[str, Any]) -> None:
        tool = self.context.toolbox[step["tool"]]
        start = time.perf_counter()
        try:
            got = tool_select._arguments(state, tool, self.context, [])
        except ModelError as error:
            got = {"error": str(error)}
        right = same_args(step["args"], got)
        shown = json.dumps(got, ensure_ascii=False)
        expected = json.dumps(step["args"], ensure_ascii=False)
        self._mark(item, "arguments", expected, shown, right, start)
        self._mark(item, f"arguments {step['tool']}", expected, shown, right, start)

    def _mark(self, item: sets.Item, capability: str, expected: str, got: str, right: bool, start: float) -> None:
        seconds = round(time.perf_counter() - start, 4)
        self.marks.append(Mark(item["id"], capability, item["difficulty"], expected, got, right, seconds))


def summary(marks: list[Mark]) -> dict[str, Any]:
    """Rows, confusion matrices and the median seconds of a decision, by capability."""
    rows = table(marks)
    capabilities = list(dict.fromkeys(mark.capability for mark in marks))
    seconds = {name: sorted(mark.seconds for mark in marks if mark.capability == name) for name in capabilities}
    return {
        "rows": rows,
        "median_seconds": {name: found[len(found) // 2] for name, found in seconds.items()},
        "confusion": {
            name: confusion(marks, name)
            for name in ("intent", "first tool", "next tool", "result class", "retry", "triage")
        },
    }


def save(folder: Path, name: str, marks: list[Mark], answers: list[dict], figures: dict[str, Any]) -> None:
    """Every decision, a line each, and the summary beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(asdict(mark), ensure_ascii=False) for mark in marks if not mark.capability.startswith("arguments ")
    ]
    lines += [json.dumps(answer, ensure_ascii=False) for answer in answers]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def report(figures: dict[str, Any]) -> str:
    """The rows as text."""
    lines = [f"{'capability':<34}{'difficulty':<11}{'n':>4}{'right':>6}{'share':>8}   95 % interval"]
    for row in figures["rows"]:
        lines.append(
            f"{row['capability']:<34}{row['difficulty']:<11}{row['n']:>4}{row['right']:>6}{row['share']:>8.1%}"
            f"   {row['low']:.1%} to {row['high']:.1%}"
        )
    return "\n".join(lines)


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
