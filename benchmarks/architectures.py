"""v1, v2, v3 and LangGraph's prebuilt ReAct agent on the same forty requests, the same tools and the same model.

    python benchmarks/architectures.py [--model NAME] [--graph NAME …] [--n N]

Keeps the rows in data/results/architectures.json: for each model and design the share of requests that pass every
check (data/experiments/scenarios/forty.yaml) with its 95 % interval, calls of the model, tokens and seconds. Each
request is asked in a new conversation on its own copy of the shipped records. ReAct needs a language model.
"""

import argparse
import json
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

from common import machine, say
from react import ask_react

from docgemma.agent import Agent
from docgemma.errors import kind_and_place
from docgemma.experiments.statistics import wilson
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.llm.load import default_model
from docgemma.paths import data_file, data_root, kit
from docgemma.settings import Settings, read_settings

golden, load_cases = kit("golden", "golden"), kit("golden", "cases").load_cases
REACT = "ReAct"
DESIGNS = ("v1", "v2", "v3", REACT)


def scenarios(n: int | None = None) -> list[Any]:
    """The forty, or every k-th of them, always the same."""
    cases = load_cases(data_file("experiments", "scenarios", "forty.yaml"))
    return cases if n is None or n >= len(cases) else [cases[at * len(cases) // n] for at in range(n)]


def compare(cases: list[Any], llm: LLM, settings: Settings, designs: tuple[str, ...] = DESIGNS) -> list[dict[str, Any]]:
    """A row for each design. On the edge model, which writes no text, ReAct is left out."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="docgemma-designs-") as folder:
        prepared = golden.prepare_home(Path(folder, "prepared"), settings)
        for design in (name for name in designs if name != REACT or llm.profile != "edge"):
            one = run_react if design == REACT else golden.run_case
            found = [one(case, prepared, llm, design) for case in cases]
            rows.append(summed(design, found))
    return rows


def run_react(case: Any, prepared: Settings, llm: LLM, design: str) -> Any:
    """As `run_case`, for the agent that has no graph here. Nothing is written, so the records need no copy."""
    turn = case.turns[0]
    out = golden.TurnResult(case.id, case.id, turn.ask)
    start = time.perf_counter()
    try:
        with Agent(prepared, llm=llm) as agent:
            start = time.perf_counter()
            result = ask_react(agent, turn.ask)
        out.status, out.answer, out.card = result["status"], result["answer"], result["pending_write"]
        out.tools, out.llm_calls, out.tokens = result["tools"], result["llm_calls"], result["tokens"]
        out.failed = golden.failed_checks(turn, result) + ([] if out.answer.strip() or out.card else ["no answer"])
    except Exception as error:  # whatever it is, the other requests are still asked
        out.failed = [f"stopped: {kind_and_place(error)}"]
    out.seconds = round(time.perf_counter() - start, 3)
    return golden.CaseResult(case.id, [out])


def summed(design: str, found: list[Any]) -> dict[str, Any]:
    turns = [case.turns[0] for case in found]
    low, high = wilson(sum(case.passed for case in found), len(found))
    tokens = {kind: fmean(turn.tokens.get(kind, 0) for turn in turns) for kind in ("prompt", "completion")}
    return {
        "condition": design, "n": len(found), "correct": sum(case.passed for case in found),
        "low": round(low, 4), "high": round(high, 4), "reported": None,
        "calls": round(fmean(turn.llm_calls for turn in turns), 2),
        "tokens": {kind: round(count) for kind, count in tokens.items()},
        "tools": round(fmean(len(turn.tools) for turn in turns), 2),
        "seconds_a_trial": round(median(turn.seconds for turn in turns), 3),
        "failed": {case.id: case.why for case in found if not case.passed},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="as `docgemma ask --model` takes it")
    parser.add_argument("--graph", nargs="+", choices=DESIGNS, default=DESIGNS)
    parser.add_argument("--n", type=int, help="requests; without it all forty")
    chosen = parser.parse_args()
    settings = read_settings()
    model = chosen.model or settings.model or default_model(settings)
    llm, path = load_llm(model, settings), data_root() / "results" / "architectures.json"
    rows = []
    for design in chosen.graph:
        rows += compare(scenarios(chosen.n), llm, settings, (design,))
        say(f"{len(rows)} of {len(chosen.graph)} designs")
    llm.close()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=path.parent, capture_output=True, text=True)
    stamp = {"commit": git.stdout.strip() or None, "date": datetime.now(UTC).date().isoformat(), "machine": machine()}
    kept[Path(model).name.removesuffix(".gguf")] = {**stamp, "rows": rows}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
