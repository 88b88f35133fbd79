"""What the benchmarks share: tables, the figures kept as JSON, a prepared data home, the edge model on transformers."""

import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from docgemma.edge.score import wilson
from docgemma.ehr.open import open_store
from docgemma.knowledge.sources import open_knowledge
from docgemma.paths import data_root
from docgemma.settings import Settings


def middle(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def spread(values: Sequence[float]) -> str:
    """The middle half of what was measured, "0.81-0.95"."""
    if len(values) < 2:
        return "-"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.3g}-{high:.3g}"


def share(right: int, total: int) -> str:
    """A count as a share with its 95 % interval."""
    low, high = wilson(right, total)
    return f"{right}/{total} = {right / total:.1%} ({low:.1%}-{high:.1%})" if total else "0/0"


class Report:
    """One benchmark's tables: printed as they are made, and kept in `data/results/<name>.json`.

    A table replaces the one of the same title; with `adds`, the others of the file stay.
    """

    def __init__(self, name: str, about: str, *, adds: bool = False, **setup: Any):
        self.path = data_root() / "results" / f"{name}.json"
        known = json.loads(self.path.read_text(encoding="utf-8")) if adds and self.path.is_file() else {}
        tables = known.get("tables", {})
        self.figures: dict[str, Any] = {"benchmark": name, "about": about, "machine": machine(), "tables": tables}
        self.setup = setup
        print(f"## {name}\n\n{about}\n\n{self.figures['machine']}.\n", flush=True)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
        """Print and keep a table."""
        busy = f"Load average at the end: {os.getloadavg()[0]:.1f}."
        print(f"### {title}\n\n{note} {busy}\n\n{markdown(head, rows)}\n".replace("\n\n ", "\n\n"), flush=True)
        cells = [[round(cell, 5) if isinstance(cell, float) else cell for cell in row] for row in rows]
        self.figures["tables"][title] = {
            "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "load": round(os.getloadavg()[0], 1),
            "setup": self.setup, "note": note, "head": list(head), "rows": cells,
        }  # fmt: skip
        self.save()

    def keep(self, key: str, value: Any) -> None:
        """Keep what no table shows: every run, every item."""
        self.figures[key] = value
        self.save()

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.figures, indent=1, ensure_ascii=False)
        self.path.write_text(text + "\n", encoding="utf-8")


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
    return "\n".join(lines)


def machine() -> str:
    model = next((line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    return f"{model or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def prepared(**given: Any):
    """Settings on a fresh data home as a first start leaves it, offline; converted weights are the user's own."""
    with tempfile.TemporaryDirectory(prefix="docgemma-bench-") as folder:
        settings = Settings(**{"home": Path(folder), "sources": "offline", **given})
        open_store(settings).close()
        open_knowledge(settings).close()
        models = Settings().home / "models"
        models.mkdir(parents=True, exist_ok=True)
        (Path(folder) / "models").symlink_to(models)
        yield settings


@contextmanager
def apart(
    serve: Callable[..., Callable[[Any], Any]], names: Sequence[str], *given: Any
) -> Iterator[dict[str, Callable]]:
    """By name, a function that is answered in a process of its own, where `serve(name, *given)` made what answers.

    The others wait without computing. In one process a second model, or torch, makes llama.cpp up to twice as slow: GNU
    OpenMP lets threads wait by spinning only while there are no more of them than cores.
    """
    context, running, asked = multiprocessing.get_context("spawn"), [], {}
    for name in names:
        ours, theirs = context.Pipe()
        process = context.Process(target=_answer, args=(serve, name, given, theirs), daemon=True)
        process.start()
        theirs.close()  # else a process that died would be waited for
        asked[name] = lambda request, ours=ours: ours.send(request) or ours.recv()
        running.append((process, ours))
    try:
        yield asked
    finally:
        for process, ours in running:
            ours.close()
            process.join()


def _answer(serve: Callable[..., Callable[[Any], Any]], name: str, given: tuple, pipe: Connection) -> None:
    answer = serve(name, *given)
    with suppress(EOFError):  # the other end is closed: done
        while True:
            pipe.send(answer(pipe.recv()))


def edge_on_transformers(settings: Settings, threads: int, *, adapter: bool = True) -> Callable[[bool], Any]:
    """The edge model on transformers: the dequantized weights with the adapter merged into them.

    Returns:
        makes a model: True on the fast path, False plain Outlines; all share the weights. With the adapter they are
        told what the edge model is told on llama.cpp; without it they are a chat model with MedGemma's prompts.
    """
    import torch

    from docgemma.llm.chat import chatml
    from docgemma.llm.load import edge_adapter, edge_weights
    from docgemma.llm.transformers_ import TransformersLLM, load_transformers

    llm = load_transformers(str(edge_weights().parent), settings, say)
    torch.set_num_threads(threads)
    if adapter:
        merge_adapter(llm.loaded.model, edge_adapter())

    def make(fast: bool) -> TransformersLLM:
        made = TransformersLLM("edge on transformers", llm.loaded, fast=fast)
        made.__dict__["_grammar_tokenizer"] = llm._grammar_tokenizer  # a second's work, once a process
        if adapter:
            made.profile, made.chat = "edge", replace(made.chat, render=chatml)
        return made

    return make


def merge_adapter(model: Any, adapter: Path) -> None:
    """Add a GGUF LoRA to a transformers Llama: W + alpha / r * B A, the rows of q and k back in transformers' order."""
    import gguf
    import torch

    from docgemma.edge.export import NAMES

    reader = gguf.GGUFReader(str(adapter))
    alpha = float(reader.fields["adapter.lora.alpha"].contents())
    found = {tensor.name: torch.tensor(tensor.data.astype("float32")) for tensor in reader.tensors}
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    for number, layer in enumerate(model.model.layers):
        for path, name in NAMES.items():
            a, b = (found[f"blk.{number}.{name}.weight.lora_{side}"] for side in "ab")
            if name in heads:
                b = b.reshape(heads[name], len(b) // heads[name] // 2, 2, -1).swapaxes(1, 2).reshape(b.shape)
            weight = layer.get_submodule(path).weight
            weight.data += (alpha / a.shape[0] * b @ a).to(weight.dtype)
