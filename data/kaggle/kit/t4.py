"""Whether the kernel can run on Kaggle's T4, told without one: model, accelerator, compute type, memory.

The shapes are those of Gemma 3 4B, which MedGemma 1.5 4B shares (config.json of google/gemma-3-4b-it; MedGemma's model
card: "Gemma 3 variants", 4.3 B parameters, images at 896 x 896 as 256 tokens). Memory follows from them by arithmetic;
nothing here was measured on a GPU.
"""

from typing import Any

from docgemma.doctor import Check
from docgemma.llm.base import CONTEXT
from docgemma.llm.compute import compute_type
from docgemma.llm.medgemma import HUB_ID

T4 = "NvidiaTeslaT4"  # two of them, in Kaggle's menu "GPU T4 x2"
LIMIT = 15e9  # bytes; a T4 has 16 GB, of which its driver and error correction take about 0.8
CAPABILITY = (7, 5)  # Turing: CUDA C++ Programming Guide, compute capabilities
PARAMETERS = {  # by how they are kept: only a text layer's matrices are quantized (`hf_load.KEPT_WHOLE`)
    "embedding": 671_252_480,
    "linear": 3_208_642_560,
    "norms": 368_128,
    "vision": 419_816_304,
}
LAYERS, HIDDEN, MLP, VOCABULARY = 34, 2560, 10240, 262_208
HEADS, KEY_HEADS, HEAD = 8, 4, 256
NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)  # bytes a weight: an int8 for each 64 of them, a float32 for each 256 of those
KEPT = 2**30  # bytes of key values kept between calls: prompt_cache.PREFIX_BYTES, which needs torch to be imported
BASE = 0.6e9  # CUDA context, cuBLAS and bitsandbytes: an allowance
SPARE = 1.05  # what an allocator loses to gaps: an allowance
BYTES = {"float32": 4, "bfloat16": 2}


def check(metadata: dict[str, Any]) -> list[Check]:
    """Every line of the static check, for the kernel with this metadata."""
    variation = HUB_ID.split("/")[1]
    models = [source for source in metadata.get("model_sources", []) if f"/{variation}/" in source]
    runs = metadata.get("enable_gpu") is True and metadata.get("machine_shape") == T4
    compute = compute_type("cuda", CAPABILITY)
    fits = compute.name in BYTES  # float16 is not there: Gemma 3 answers nothing but <pad> in it
    total = sum(memory(compute.name if fits else "float32").values())
    return [
        Check("Model", bool(models), ", ".join(models) or f"no model source for {variation}"),
        Check("Accelerator", runs, f"GPU {metadata.get('enable_gpu')}, {metadata.get('machine_shape')}"),
        Check("Internet", metadata.get("enable_internet") is True, "needed to install what Kaggle lacks"),
        Check("Compute type", fits, f"{compute.name}: {compute.why}"),
        Check("Memory", total < LIMIT, f"{total / 1e9:.1f} GB of {LIMIT / 1e9:.0f} at {CONTEXT:,} tokens"),
    ]


def memory(compute: str, tokens: int = CONTEXT) -> dict[str, float]:
    """Bytes on the GPU at the peak of a prompt of that many tokens, by what takes them.

    Attention is taken to run without a table of all scores, as torch's memory-efficient kernel does.

    Args:
        compute: "float32" on a T4.
        tokens: of the prompt and its answer together, 1,000 or more: below, an image needs more space than the text.
    """
    size = BYTES[compute]
    masks = 2 * tokens * tokens * size  # one for all layers, one for the sliding ones
    states = tokens * size * (4 * HIDDEN + 3 * MLP + 2 * HEADS * HEAD)
    weight = HIDDEN * MLP * size  # dequantized, one matrix at a time
    parts = {
        "embedding, which is also the output layer": PARAMETERS["embedding"] * size,
        "attention and MLP in NF4": PARAMETERS["linear"] * NF4,
        "norms": PARAMETERS["norms"] * size,
        "vision tower and projector": PARAMETERS["vision"] * size,
        "key values": tokens * LAYERS * 2 * KEY_HEADS * HEAD * size,
        "key values kept between calls": KEPT,
        "work space of one pass": masks + states + weight + 2 * VOCABULARY * 4,
    }
    return {**parts, "CUDA": BASE, "gaps": (SPARE - 1) * sum(parts.values())}
