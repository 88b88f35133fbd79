"""How the edge model is best run on llama.cpp: threads, batch, flash attention, the adapter applied or merged.

    python benchmarks/edge_settings.py [--repeats N] [--items N] [--threads N] [--only NAME …]

Each variant reads the same new prompts and writes the same number of tokens, interleaved. `merged` adds the adapter to
the dequantized weights and quantizes them again: to 8 bits, and to the 4 bits of the base (Q4_1), which rounds what the
adapter learnt. `same choice`: held-out questions on which it chooses the same tool as with the adapter at run time.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import Report, middle, prepared, say, spread

from docgemma.edge import items
from docgemma.edge.prompts import EdgeProfile
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.llm.load import edge_adapter, edge_weights
from docgemma.tools import toolbox

FILLER = "the patient was seen in clinic with mild pain no fever stable blood pressure and reports better sleep"
NEW_TOKENS = 24


class Variant(LlamaCppLLM):
    """The edge model with some of llama.cpp's parameters changed."""

    def __init__(self, change: Callable[[Any], Any] = lambda params: None, **given: Any):
        self.change = change
        super().__init__("edge", **{"weights": edge_weights(), "profile": "edge", **given})

    def _parameters(self, mmproj: Path | None) -> Any:
        params = super()._parameters(mmproj)
        self.change(params)
        return params


def merge(folder: Path, kind: str) -> Path:
    """The base with the adapter added, as a GGUF file of the given quantization."""
    import gguf
    import numpy as np

    low = gguf.GGUFReader(str(edge_adapter()))
    alpha = float(low.fields["adapter.lora.alpha"].contents())
    sides = {tensor.name: tensor.data.astype(np.float32) for tensor in low.tensors}
    base, target = gguf.GGUFReader(str(edge_weights())), gguf.GGMLQuantizationType[kind]
    path = folder / f"merged-{kind}.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    for field in base.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], inner)
    for tensor in base.tensors:
        values, found = gguf.quants.dequantize(tensor.data, tensor.tensor_type), tensor.tensor_type
        if f"{tensor.name}.lora_a" in sides:
            a, b = (sides[f"{tensor.name}.lora_{side}"] for side in "ab")
            values, found = values + alpha / a.shape[0] * (b @ a), target
        elif found != gguf.GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=found)  # the embedding, as it was
            continue
        data = gguf.quants.quantize(np.ascontiguousarray(values), found)
        writer.add_tensor(tensor.name, data, raw_dtype=found)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def setting(name: str, value: Any) -> Callable[[Any], None]:
    return lambda params: setattr(params, name, value)


def variants(folder: Path, threads: int, wanted: tuple[str, ...]) -> dict[str, LlamaCppLLM]:
    tuned = {"adapter": edge_adapter(), "threads": threads}
    makers = {
        "as it is (adapter at run time)": lambda: Variant(**tuned),
        "one thread": lambda: Variant(adapter=edge_adapter(), threads=1),
        "two threads": lambda: Variant(adapter=edge_adapter(), threads=2),
        "smaller batches (64)": lambda: Variant(setting("n_ubatch", 64), **tuned),
        "one slot": lambda: Variant(setting("n_parallel", 1), **tuned),
        "no adapter": lambda: Variant(threads=threads),
        "merged, Q8_0": lambda: Variant(weights=merge(folder, "Q8_0"), threads=threads),
        "merged, Q4_1": lambda: Variant(weights=merge(folder, "Q4_1"), threads=threads),
    }
    return {name: make() for name, make in makers.items() if name.startswith(wanted)}


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
        found = variants(Path(folder), chosen.threads, ("as it is", *chosen.only) if chosen.only else ("",))
        reads: dict[str, list[float]] = {name: [] for name in found}
        writes: dict[str, list[float]] = {name: [] for name in found}
        dice = random.Random(0)
        for repeat in range(chosen.repeats):
            say(f"repetition {repeat + 1} of {chosen.repeats}")
            prompt = Prompt(f"{repeat} " + " ".join(dice.choices(FILLER.split(), k=200)) + " Tell a long story.")
            for name in found if repeat % 2 else reversed(found):
                seconds = []
                for new in (1, 1 + NEW_TOKENS):  # the second time the prompt is known
                    start = time.perf_counter()
                    found[name].complete(prompt, GenConfig(max_tokens=new), node="bench")
                    seconds.append(time.perf_counter() - start)
                reads[name].append(seconds[0])
                writes[name].append(1000 * seconds[1] / (1 + NEW_TOKENS))
        said = {name: choices(llm, chosen.items) for name, llm in found.items()}
    first = next(iter(found))
    rows = []
    for name in found:
        same = sum(one == other for one, other in zip(said[name], said[first], strict=True))
        reading = middle([one / other for one, other in zip(reads[name], reads[first], strict=True)])
        writing = middle([one / other for one, other in zip(writes[name], writes[first], strict=True)])
        rows.append([name, len(reads[name]), middle(reads[name]), spread(reads[name]), reading, middle(writes[name]),
                     spread(writes[name]), writing, f"{same}/{len(said[name])}"])  # fmt: skip
    report.table("settings", HEAD, rows)


HEAD = ["variant", "n", "reading 200 words, s", "middle half", "of the first", "writing a token, ms", "middle half",
        "of the first", "same choice"]  # fmt: skip


if __name__ == "__main__":
    main()
