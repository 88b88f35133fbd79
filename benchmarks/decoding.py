"""What constrained decoding costs on transformers: in fewer passes (`llm/decoding.py`) against plain Outlines.

    python benchmarks/decoding.py [--part PART …] [--model NAME …] [--questions N] [--threads N]

Prints Markdown tables to stdout. Every comparison is interleaved in one run, over questions that differ, and gives
medians. Another program on the machine changes the seconds, less the ratios: the load average stands in the head, and
the processor's time beside the clock's. Needs the transformers extra; `--model` takes what
`docgemma ask --model` takes for transformers.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from common import Report, middle

from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.decoding import Decoding, GrammarMask
from docgemma.llm.grammar import grammar
from docgemma.llm.hf_load import load_transformers
from docgemma.llm.prompt_cache import PromptCache, affordable_bytes
from docgemma.llm.transformers_ import TransformersLLM
from docgemma.paths import data_root
from docgemma.prompts import Ask, ask_arguments, ask_intent, ask_quality, ask_tool, generation
from docgemma.rules.known import NOTHING
from docgemma.settings import Settings
from docgemma.tools import toolbox

EVIDENCE = "Boxed warning: dofetilide must be started in a facility with continuous ECG monitoring for three days."
TOOLS = toolbox()
Table = Callable[..., None]  # (head, rows, note)
CALLS: set[str] = set()  # all, where empty
BANDWIDTH_BYTES = 2**29  # far past any processor's cache


@dataclass
class Timing:
    """One generation. `wall` and `cpu` in seconds."""

    wall: float
    cpu: float
    ids: list[int]
    prompt: int = 0
    cached: int = 0
    forced: int = 0
    passes: int = 0


@dataclass(frozen=True)
class Request:
    """One answer to generate. `rules` None is free text."""

    prompt: list[int]
    limit: int
    rules: str | None = None


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


class Paths:
    """One model and both ways through it."""

    def __init__(self, name: str, settings: Settings):
        self.name = name
        self.llm: TransformersLLM = load_transformers(name, settings, lambda line: print(line, file=sys.stderr))
        self.model, self.tokenizer = self.llm.loaded.model, self.llm.loaded.tokenizer
        self.prompts = self.new_prompts()

    def new_prompts(self) -> PromptCache:
        return PromptCache(affordable_bytes(self.model.device))

    def request(self, prompt: Prompt, config: GenConfig, rules: str | None) -> Request:
        return Request(self.llm.encode(prompt)["input_ids"][0].tolist(), config.max_tokens, rules)

    def run_fast(self, request: Request, prompts: PromptCache | None = None) -> Timing:
        def run() -> Decoding:
            mask = GrammarMask(self.llm.grammar_tokenizer, request.rules) if request.rules else None
            decoding = Decoding(prompts or self.prompts, self.llm.stop_ids, request.limit, mask)
            self._generate(request, mask, custom_generate=decoding)
            return decoding

        done, wall, cpu = timed(run)
        new = [token for token in done.ids if token not in self.llm.stop_ids]
        return Timing(wall, cpu, new, len(request.prompt), done.cached, done.forced, done.passes)

    def run_plain(self, request: Request) -> Timing:
        rules = self.llm._outlines.get_cfg_logits_processor(request.rules) if request.rules else None
        ids, wall, cpu = timed(lambda: self._generate(request, rules))
        new = [token for token in ids[len(request.prompt) :] if token not in self.llm.stop_ids]
        return Timing(wall, cpu, new, len(request.prompt), passes=len(ids) - len(request.prompt))

    def _generate(self, request: Request, rules: Any, **options: Any) -> list[int]:
        ids = torch.tensor([list(request.prompt)], device=self.model.device)
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
            done = self.model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=request.limit,
                eos_token_id=self.llm.stop_ids, pad_token_id=self.llm.stop_ids[0],
                logits_processor=[rules] if rules else None, **options,
            )  # fmt: skip
        return done[0].tolist()


def items() -> list[dict[str, Any]]:
    """The stored held-out questions that need one tool, with its arguments."""
    lines = (data_root() / "edge" / "heldout.jsonl").read_text(encoding="utf-8").splitlines()
    return [item for item in map(json.loads, lines) if len(item.get("steps", [])) == 1 and "before" not in item]


def state_of(item: dict[str, Any]) -> dict[str, Any]:
    tool = TOOLS[item["steps"][0]["tool"]]
    result = {"tool_name": tool.name, "tool_label": tool.label, "formatted_result": EVIDENCE, "error": None}
    question = item["question"]
    return {
        "user_query": question, "request": NOTHING, "tool_results": [], "history": [],
        "task_summary": question[:200], "suggested_tool": None, "_result": result, "_tool": tool,
    }  # fmt: skip


def asks(state: dict[str, Any]) -> Iterator[Ask[Any]]:
    """The calls of a turn with one tool."""
    tool = state["_tool"]
    yield ask_intent(state, list(TOOLS))
    yield ask_tool(state, list(TOOLS), False)
    yield ask_arguments(state, tool, tool.args)
    yield ask_quality({**state, "tool_results": [state["_result"]]}, state["_result"])


def part_nodes(paths: Paths, states: Sequence[dict[str, Any]], table: Table) -> None:
    """Each call of a turn with MedGemma's full prompts: the first question warms the prefixes and is not counted."""
    pairs: dict[str, list[tuple[Timing, Timing]]] = {}
    for index, state in enumerate(states):
        for ask in asks(state):
            if CALLS and ask.node not in CALLS:
                continue
            request = paths.request(ask.prompt, generation(ask.node), grammar(ask.schema))
            order = (paths.run_fast, paths.run_plain) if index % 2 else (paths.run_plain, paths.run_fast)
            done = {run.__name__: run(request) for run in order}
            if index:
                pairs.setdefault(ask.node, []).append((done["run_fast"], done["run_plain"]))
    rows = []
    for node, found in pairs.items():
        fast, plain = [pair[0] for pair in found], [pair[1] for pair in found]
        rows.append([
            node, len(found), middle([item.wall for item in plain]), middle([item.wall for item in fast]),
            middle([a.wall / b.wall for a, b in found]), middle([a.cpu / b.cpu for a, b in found]),
            f"{sum(a.ids == b.ids for a, b in found)}/{len(found)}", middle([item.prompt for item in fast]),
            middle([item.cached for item in fast]), middle([item.passes for item in plain]),
            middle([item.passes for item in fast]), middle([item.forced for item in fast]),
        ])  # fmt: skip
    head = "call|n|plain s|fast s|fast/plain|cpu fast/plain|identical|prompt tokens|of these kept"
    note = f"Kept key values at the end: {paths.prompts.nbytes / 1e6:.0f} MB."
    table([*head.split("|"), "plain passes", "fast passes", "forced tokens"], rows, note)


def part_bandwidth(paths: Paths, states: Sequence[dict[str, Any]], table: Table) -> None:
    """A decode step reads every weight once: its limit is weights over memory bandwidth, measured between the steps."""
    matrix, vector = torch.ones(BANDWIDTH_BYTES // 4 // 4096, 4096), torch.ones(4096)
    free = paths.request(Prompt("Tell a long story about a hospital."), GenConfig(max_tokens=24), None)

    def step(run: Callable[[Request], Timing]) -> float:
        long, short = run(free), run(replace(free, limit=4))
        return (long.wall - short.wall) / max(len(long.ids) - len(short.ids), 1)

    whole = paths.model.get_memory_footprint()
    ways = {"transformers, fast": (whole, lambda: step(paths.run_fast)),
            "transformers, plain": (whole, lambda: step(paths.run_plain))}  # fmt: skip
    steps: dict[str, list[float]] = {name: [] for name in ways}
    rates = []
    for _ in range(12):
        for name, (_, measure) in ways.items():
            rates.append(BANDWIDTH_BYTES / timed(lambda: torch.mv(matrix, vector))[1])
            steps[name].append(measure())
    rows = []
    for name, (size, _) in ways.items():
        limit = size / middle(rates)
        found = steps[name]
        rows.append([name, len(found), size / 1e6, 1000 * middle(found), 1000 * min(found), 1000 * limit,
                     middle(found) / limit])  # fmt: skip
    head = ["path", "n", "weights, MB", "decode step, ms", "fastest, ms", "limit, ms", "times the limit"]
    note = f"Bandwidth {middle(rates) / 1e9:.1f} GB/s (median of {len(rates)}; best {max(rates) / 1e9:.1f})."
    table(head, rows, note)


def part_growth(paths: Paths, states: Sequence[dict[str, Any]], table: Table) -> None:
    """A tool selection behind ever more history: computed anew, behind a known beginning, and plain."""
    ask = list(asks(states[0]))[1]
    filler, rows = "The patient was seen in clinic and reported no change in symptoms. ", []
    for count in (0, 20, 40, 80):
        prompt = replace(ask.prompt, system=ask.prompt.system + filler * count)
        request = paths.request(prompt, generation(ask.node), grammar(ask.schema))
        found = {"plain": [], "new": [], "known": []}
        for _ in range(3):
            fresh = paths.new_prompts()
            found["plain"].append(paths.run_plain(request).wall)
            found["new"].append(paths.run_fast(request, fresh).wall)
            changed = replace(prompt, user=prompt.user + " Thanks.")
            found["known"].append(
                paths.run_fast(paths.request(changed, generation(ask.node), request.rules), fresh).wall
            )
        rows.append([len(request.prompt), *(middle(found[name]) for name in found)])
    table(["prompt tokens", "plain s", "fast, nothing known, s", "fast, beginning known, s"], rows)


PARTS = {
    "nodes": part_nodes,
    "bandwidth": part_bandwidth,
    "growth": part_growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--model", nargs="+", required=True)
    parser.add_argument("--call", nargs="+", default=[], help="of the part nodes: tool_select, tool_arguments, …")
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    CALLS.update(chosen.call)
    settings = Settings(threads=chosen.threads)
    with_args = [item for item in items() if item["steps"][0].get("args")]
    for name in chosen.model:
        paths, short = Paths(name, settings), re.sub(r"-[0-9a-f]{12}$", "", name.rstrip("/").rsplit("/", 1)[-1])
        about = f"{short} on transformers, {paths.model.dtype}, {chosen.threads} threads"
        report = Report(f"decoding-{short}", about, adds=True, threads=chosen.threads, questions=chosen.questions)
        for part in chosen.part:
            every = max(len(with_args) // chosen.questions, 1)
            picked = with_args[::every][: chosen.questions]
            states = [{**state_of(item), "_expected": item["steps"][0]["args"]} for item in picked]
            PARTS[part](paths, states, partial(show, report, part))


def show(report: Report, part: str, head: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
    title = " ".join([part, *sorted(CALLS)]) if part == "nodes" else part
    report.table(title, head, rows, f"{PARTS[part].__doc__.strip()} {note}".strip())


if __name__ == "__main__":
    main()
