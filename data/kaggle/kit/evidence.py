"""What the kernel measures, one method a part; each leaves one JSON file in the output folder. `collect.py` reads it.

    manifest.json     format, version, model, date, machine; `sample`: items of each set that were run, null where all
    sections.json     turns: the report of each turn of the sections, with its question
    heldout.json      rows: as `data/edge/results/heldout.json`; judged: every item
    natural.json      sets: set, passed, total, failed, metrics (as `docgemma eval --json`)
    scenarios.json    film: whether a browser was there; unmet: promises that were not kept; files in scenarios/
    speed.json        calls: seconds of a generation by node; load, decoding, peak memory of each GPU
    experiments.json  suites: as `docgemma experiments run SUITE --quick --json` (of a sample: `--n` cases)

A part that failed holds {"not_run": why} instead; the parts after it are run.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from docgemma.agent import Agent
from docgemma.demo.scenarios import Scenario, load_scenarios, take
from docgemma.errors import ConfigError, DocGemmaError, kind_and_place
from docgemma.llm.base import Call
from docgemma.notebook import release, shared_model, turns
from docgemma.paths import data_file, kit
from docgemma.settings import read_settings

golden = kit("golden", "golden")
FORMAT = 1
PARTS = ("sections", "heldout", "natural", "scenarios", "speed", "experiments")
WORKING = Path("/kaggle/working")
KEPT = ("quantization", "compute", "decoding", "devices", "device", "context_tokens", "vision")
SUITE_S = 7200


class Evidence:
    """The parts, in the order of `PARTS`.

    Args:
        model: the name that `start.ready` returned.
        sample: how many items of each set are run; None for all of them.
        out: the output folder; None takes `docgemma-results` in Kaggle's working folder, or here.
    """

    def __init__(self, model: str, sample: int | None = None, out: Path | None = None):
        self.model, self.sample = model, sample
        self.out = out or (WORKING if WORKING.is_dir() else Path()) / "docgemma-results"
        self.out.mkdir(parents=True, exist_ok=True)
        self.llm = shared_model(model, read_settings())
        self.calls: list[Call] = []
        self.llm.on_call = self.calls.append
        about = {key: value for key, value in self.llm.describe().items() if key in KEPT}
        self._write("manifest", {
            "format": FORMAT, "version": version("docgemma"), "model": self.llm.name, "sample": sample, "about": about,
            "date": datetime.now(UTC).date().isoformat(), "gpus": [name for name, _ in _gpus()],
        })  # fmt: skip

    def run(self, part: str) -> None:
        """Measure one part and store it; what it cannot do is stored and said."""
        measure: Callable[[], dict[str, Any]] = getattr(self, part)
        try:
            found = measure()
        except Exception as error:
            line = error.line() if isinstance(error, DocGemmaError) else kind_and_place(error)
            found = {"not_run": line}
        self._write(part, found)
        print(f"{part}: {found.get('not_run') or found.get('says') or 'stored'}")

    def sections(self) -> dict[str, Any]:
        """What was asked in the sections above, and the reports."""
        return {"turns": list(turns), "says": f"{len(turns)} turns"}

    def heldout(self) -> dict[str, Any]:
        """The held-out requests, decided by the model: is a look-up needed, which tool, which arguments."""
        evaluate = kit("edge", "evaluate")
        judged = evaluate.judge_all("heldout", self.llm, self.sample)
        rows = evaluate.table(judged)
        right = {row["capability"]: f"{row['right']}/{row['n']}" for row in rows if row["difficulty"] == "all"}
        return {"items": len(judged), "rows": rows, "judged": judged, "says": f"{len(judged)} items, {right}"}

    def natural(self) -> dict[str, Any]:
        """The sets of the latest sealed round, checked by code; `edge` is how the edge model did when they were new."""
        latest = json.loads(data_file("results", "natural.json").read_text(encoding="utf-8"))["rounds"][-1]
        found = []
        for name in latest["sets"]:
            cases = kit("golden", "cases").load_cases(data_file("natural", f"{name}.yaml"))[: self.sample]
            found.append({"set": name, **golden.summarize(golden.run_cases(cases, read_settings(), self.llm))})
        passed, total = (sum(item[key] for item in found) for key in ("passed", "total"))
        return {"sets": found, "edge": latest.get("checks"), "says": f"{passed} of {total} passed the checks"}

    def scenarios(self) -> dict[str, Any]:
        """Films where a Chromium is there and every scenario can be played; else traces and pictures of the paths."""
        record = kit("film", "record").record  # needs the demo extra
        folder, why = self.out / "scenarios", ""
        chosen = load_scenarios()[: self.sample]
        said: list[str] = []
        try:  # in a thread of its own: Playwright cannot wait inside a notebook's event loop
            names = [item.id for item in chosen]
            with ThreadPoolExecutor(1) as thread:
                thread.submit(record, folder, names, llm=self.llm, on_progress=said.append).result()
        except Exception as error:
            why = error.line() if isinstance(error, ConfigError) else kind_and_place(error)
            folder.mkdir(exist_ok=True)
            said = [line for scenario in chosen for line in self._play(scenario, folder)]
        unmet = [line for line in said if line.startswith("not as promised")]
        files = sorted(path.name for path in folder.iterdir())
        says = f"{'no film: ' + why if why else 'filmed'}; {len(files)} files, {len(unmet)} promises not kept"
        return {"film": not why, "why": why, "unmet": unmet, "files": files, "says": says}

    def _play(self, scenario: Scenario, folder: Path) -> list[str]:
        """Play it without a browser: its trace, and a picture of its paths. Returns what was not as promised."""
        fresh_settings = kit("film", "record").fresh_settings
        done: list[dict[str, Any]] = []
        lines: list[str] = []
        with TemporaryDirectory() as home, Agent(fresh_settings(Path(home)), llm=self.llm) as agent:
            for number, step in enumerate(scenario.steps):
                try:
                    done.append(take(agent, scenario, number, scenario.id, done[-1] if done else None))
                except DocGemmaError as error:
                    lines.append(f"not as promised: {scenario.id}, step {number + 1}: {error.line()}")
                    break
                lines += [f"not as promised: {scenario.id}: {line}" for line in step.unmet(done[-1])]
        if done:
            kit("film", "traces").store_trace(folder, scenario.id, done)
            captions = [step.caption for step in scenario.steps[: len(done)]]
            kit("experiments", "plots").draw_paths(done, captions).savefig(
                folder / f"{scenario.id}.png", bbox_inches="tight"
            )
        return lines

    def speed(self) -> dict[str, Any]:
        """Seconds of every generation since this object was made, by node; peak memory since the model was loaded."""
        nodes: dict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            nodes[call.node].append(call)
        rows = [
            {"node": node, "n": len(calls), "median_s": round(median(call.seconds for call in calls), 3),
             "p95_s": round(sorted(call.seconds for call in calls)[int(0.95 * (len(calls) - 1))], 3),
             "prompt_tokens": round(median(call.prompt_tokens for call in calls)),
             "completion_tokens": round(median(call.completion_tokens for call in calls))}
            for node, calls in sorted(nodes.items())
        ]  # fmt: skip
        loaded, peaks = kit("kaggle", "start").loaded(self.llm), [peak for _, peak in _gpus()]
        says = f"{len(self.calls)} generations; {loaded} Peak memory, GB: {peaks or 'no GPU'}"
        return {"calls": rows, "generations": len(self.calls), "peak_gb": peaks, "says": says}

    def experiments(self) -> dict[str, Any]:
        """Every suite's quick form, or of a sample its cases, in a process each: the model here is closed first."""
        release()
        try:
            suites = [suite["name"] for suite in self._command("list")["suites"]][: self.sample]
        except ConfigError as error:
            return {"not_run": error.line()}
        found = []
        few = ["--n", str(self.sample)] if self.sample else ["--quick"]
        for name in suites:
            try:
                found.append(self._command("run", name, *few))
            except (ConfigError, subprocess.TimeoutExpired) as error:
                found.append({"suite": name, "not_run": str(error)[:200]})
        return {"suites": found, "says": f"{len(found)} suites"}

    def _command(self, *words: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "docgemma", "experiments", *words, "--json"]
        environment = os.environ | {"DOCGEMMA_MODEL": self.model}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SUITE_S)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no word of why"]
            raise ConfigError(f"docgemma experiments {' '.join(words)}: {lines[-1]}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _write(self, name: str, value: dict[str, Any]) -> None:
        text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
        (self.out / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _gpus() -> list[tuple[str, float]]:
    """Name and peak memory in GB of every GPU that torch can use."""
    if importlib.util.find_spec("torch") is None:
        return []
    from torch import cuda

    numbers = range(cuda.device_count())
    return [(cuda.get_device_name(number), round(cuda.max_memory_allocated(number) / 1e9, 2)) for number in numbers]
