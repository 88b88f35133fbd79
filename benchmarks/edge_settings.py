"""How the edge model is best run on llama.cpp: the adapter merged or applied, drafts, threads, batch, slots.

    python benchmarks/edge_settings.py [--repeats N] [--items N] [--threads N] [--only NAME …]

Each variant reads the same new prompts and writes the same number of tokens, interleaved. `same choice`: held-out
questions on which it chooses the same tool as the first variant. `times the limit`: a decode step, without drafts, by
the time in which memory can hand over the weights; the bandwidth is measured between the steps of all variants.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import Report, apart, middle, prepared, say, spread

from docgemma.edge import items
from docgemma.edge.prompts import EdgeProfile
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.llm.load import edge_adapter, edge_weights
from docgemma.tools import toolbox

FILLER = "the patient was seen in clinic with mild pain no fever stable blood pressure and reports better sleep"
NEW_TOKENS = 24
BANDWIDTH_BYTES = 2**29  # far past any processor's cache
FIRST = "as it is (merged to 8 bits, drafts)"


class Variant(LlamaCppLLM):
    """The edge model with some of llama.cpp's parameters changed."""

    def __init__(self, change: Callable[[Any], Any] = lambda params: None, **given: Any):
        self.change = change
        super().__init__("edge", **{"weights": edge_weights(), "profile": "edge", **given})

    def _parameters(self, mmproj: Path | None) -> Any:
        params = super()._parameters(mmproj)
        self.change(params)
        return params


def setting(name: str, value: Any) -> Callable[[Any], None]:
    return lambda params: setattr(params, name, value)


def as_it_is(params: Any) -> None:
    """As shipped."""


def no_drafts(params: Any) -> None:
    params.speculative.types = []


VARIANTS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    FIRST: (as_it_is, {}),
    "no drafts": (no_drafts, {}),
    "adapter at run time": (as_it_is, {"merge_into": None}),
    "adapter at run time, no drafts": (no_drafts, {"merge_into": None}),
    "no adapter, no drafts": (no_drafts, {"adapter": None}),
    "one thread": (as_it_is, {"threads": 1}),
    "smaller batches (64)": (setting("n_ubatch", 64), {}),
    "one slot": (setting("n_parallel", 1), {}),
}


def variant(name: str, folder: Path, threads: int) -> Callable[[tuple], Any]:
    """One variant's process: answers a measure's name and what it needs."""
    change, given = VARIANTS[name]
    llm = Variant(change, **{"adapter": edge_adapter(), "merge_into": folder, "threads": threads, **given})
    measures = {"times": times, "step": step, "size": size, "choices": choices}
    return lambda asked: measures[asked[0]](llm, *asked[1:])


def times(llm: LlamaCppLLM, text: str) -> tuple[float, float]:
    """Seconds until a new prompt is read; milliseconds a token of what is then written."""
    seconds = []
    for new in (1, 1 + NEW_TOKENS):  # the second time the prompt is known
        start = time.perf_counter()
        llm.complete(Prompt(text), GenConfig(max_tokens=new), node="bench")
        seconds.append(time.perf_counter() - start)
    return seconds[0], 1000 * seconds[1] / (1 + NEW_TOKENS)


def size(llm: LlamaCppLLM) -> int:
    """Bytes that a step reads."""
    files = [llm.merged] if llm.merged else [file for file in (llm.weights, llm.adapter) if file]
    return sum(file.stat().st_size for file in files)


def bandwidth(matrix: Any, vector: Any) -> float:
    """Bytes a second, of a matrix that no cache holds, times a vector, on the threads that the library takes."""
    start = time.perf_counter()
    _ = matrix @ vector
    seconds = time.perf_counter() - start
    time.sleep(0.2)  # its threads wait by spinning for a while
    return matrix.nbytes / seconds


def step(llm: LlamaCppLLM) -> float:
    """Seconds a token of free text, from two lengths of the same answer; the prompt is known by then."""
    prompt, found = Prompt("Tell a long story about a hospital."), []
    for length in (1, 4, 36):
        start = time.perf_counter()
        done = llm.complete(prompt, GenConfig(max_tokens=length), node="bench")
        found.append((time.perf_counter() - start, done.completion_tokens))
    _, (short, few), (long, many) = found
    return (long - short) / max(many - few, 1)


def against_the_limit(asked: dict[str, Callable[[tuple], Any]], repeats: int) -> tuple[list[list[Any]], str]:
    """Rows of the table, and what to say below it."""
    import numpy as np

    matrix, vector = np.ones((BANDWIDTH_BYTES // 4 // 4096, 4096), "f4"), np.ones(4096, "f4")
    steps: dict[str, list[float]] = {name: [] for name in asked if "no drafts" in name}
    rates = []
    for _ in range(repeats):
        for name, found in steps.items():
            rates.append(bandwidth(matrix, vector))
            found.append(1000 * asked[name](("step",)))
    rows = []
    for name, found in steps.items():
        weights = asked[name](("size",))
        limit = 1000 * weights / middle(rates)
        rows.append([name, repeats, weights / 1e6, middle(found), spread(found), limit, middle(found) / limit])
    return rows, f"Bandwidth {middle(rates) / 1e9:.1f} GB/s (median of {len(rates)}; best {max(rates) / 1e9:.1f})."


def choices(llm: LlamaCppLLM, count: int) -> list[str]:
    """What it answers to the first call of held-out questions."""
    drugs, profile, tools = load_drug_names(), EdgeProfile(), list(toolbox())
    asked = [item for item in items.load("heldout") if item["kind"] in ("tool", "direct", "several")]
    said = []
    for item in asked[:: max(len(asked) // count, 1)][:count]:
        ask = profile.intent(items.state_of(item, drugs), tools)
        said.append(llm.complete(ask.prompt, ask.config, node="bench", schema=ask.schema, layout=ask.layout).text)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--only", nargs="+", default=[], help="variants whose name begins so; the first always runs")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    about = " ".join(__doc__.partition("]\n\n")[2].split())
    with prepared(), tempfile.TemporaryDirectory() as folder:
        report = Report("edge_settings", about, threads=chosen.threads, repeats=chosen.repeats, items=chosen.items)
        wanted = ("as it is", "no drafts", *chosen.only) if chosen.only else ("",)
        names = [name for name in VARIANTS if name.startswith(wanted)]
        reads: dict[str, list[float]] = {name: [] for name in names}
        writes: dict[str, list[float]] = {name: [] for name in names}
        dice = random.Random(0)
        with apart(variant, names, Path(folder), chosen.threads) as asked:
            for name in names:
                asked[name](("step",))  # loads
            for repeat in range(chosen.repeats):
                say(f"repetition {repeat + 1} of {chosen.repeats}")
                text = f"{repeat} " + " ".join(dice.choices(FILLER.split(), k=200)) + " Tell a long story."
                for name in names if repeat % 2 else reversed(names):
                    read, written = asked[name](("times", text))
                    reads[name].append(read)
                    writes[name].append(written)
            limits, bandwidths = against_the_limit(asked, chosen.repeats)
            said = {name: asked[name](("choices", chosen.items)) for name in names}
    first, rows = names[0], []
    for name in names:
        same = sum(one == other for one, other in zip(said[name], said[first], strict=True))
        reading = middle([one / other for one, other in zip(reads[name], reads[first], strict=True)])
        writing = middle([one / other for one, other in zip(writes[name], writes[first], strict=True)])
        rows.append([name, len(reads[name]), middle(reads[name]), spread(reads[name]), reading, middle(writes[name]),
                     spread(writes[name]), writing, f"{same}/{len(said[name])}"])  # fmt: skip
    report.table("settings", HEAD, rows)
    report.table("a step and the limit", LIMITS, limits, bandwidths)


HEAD = ["variant", "n", "reading 200 words, s", "middle half", "of the first", "writing a token, ms", "middle half",
        "of the first", "same choice"]  # fmt: skip
LIMITS = ["variant", "n", "weights, MB", "decode step, ms", "middle half", "limit, ms", "times the limit"]


if __name__ == "__main__":
    main()
