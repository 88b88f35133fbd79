"""Loads a Hugging Face model as its device needs it: NF4 for MedGemma, a compute type that works, PIL for images."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.compute import ComputeType, compute_type, usable_cores
from docgemma.llm.medgemma import HUB_ID, find_weights, hub_reachable, hub_token
from docgemma.llm.transformers_ import Loaded, TransformersLLM
from docgemma.settings import Settings

INSTALL = "Run: pip install torch==2.13.0, then pip install 'docgemma[transformers]'"
NEEDED = ("torch", "transformers", "accelerate", "outlines", "llguidance")
# not quantized: small, and what the model sees. transformers matches from the start of a module's full name.
KEPT_WHOLE = ["lm_head", "model.vision_tower", "model.multi_modal_projector", "vision_tower", "multi_modal_projector"]


def load_transformers(
    name: str, settings: Settings, on_progress: Callable[[str], object], *, nf4: bool | None = None, gpu: int = 0
) -> TransformersLLM:
    """Load `medgemma`, a model folder or a hub id.

    Args:
        nf4: quantize to 4 bits (NF4, double quantization); None does so for MedGemma.
        gpu: the number of the GPU that takes it, where there is one.

    Raises:
        ConfigError: a library is missing.
        ModelError: no such model, no access to it, or too little memory.
    """
    nf4 = name == "medgemma" if nf4 is None else nf4
    needed = (*NEEDED, "bitsandbytes") if nf4 else NEEDED
    if missing := [library for library in needed if importlib.util.find_spec(library) is None]:
        raise ConfigError(f"This model needs {', '.join(missing)}.", hint=INSTALL)
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    capability = torch.cuda.get_device_capability(gpu) if device == "cuda" else None
    compute = compute_type(device, capability)
    if device == "cpu":
        torch.set_num_threads(settings.threads or usable_cores())
    source = locate(name, settings)
    on_progress(f"Loading {source} on {device} in {compute.name} ({compute.why}) …")
    loaded = _load(source, gpu if device == "cuda" else "cpu", compute, nf4)
    memory = loaded.model.get_memory_footprint() / 2**30
    on_progress(f"Loaded {source}: {loaded.quantization}, {compute.name}, {memory:.2f} GiB.")
    return TransformersLLM(name, loaded, fast=settings.fast_decoding)


def locate(name: str, settings: Settings) -> str:
    """A folder that transformers can load, or a hub id."""
    if name == "medgemma":
        return str(find_weights(settings.home) or HUB_ID)
    folder = Path(name).expanduser()
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(f"{folder} is not a model folder.", hint="It needs a config.json.")
    return str(folder) if folder.is_dir() else name


def _load(source: str, place: int | str, compute: ComputeType, nf4: bool) -> Loaded:
    import torch
    import transformers

    access = {} if Path(source).is_dir() else {"token": hub_token(), "local_files_only": not hub_reachable()}
    dtype = getattr(torch, compute.name)
    options: dict[str, Any] = {"dtype": dtype, "device_map": {"": place}, **access}
    if nf4:
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
            llm_int8_skip_modules=KEPT_WHOLE,
        )
    try:
        config = transformers.AutoConfig.from_pretrained(source, **access)
        sees = hasattr(config, "vision_config")
        kind: Any = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
        model = kind.from_pretrained(source, **options).eval()
        processor: Any = transformers.AutoProcessor.from_pretrained(source, backend="pil", **access) if sees else None
        tokenizer = processor.tokenizer if sees else transformers.AutoTokenizer.from_pretrained(source, **access)
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"{source} does not fit into this GPU's memory.", hint="Close other programs on it."
        ) from error
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(f"The model {source} cannot be loaded ({line}).", hint=_advice(error)) from error
    return Loaded(model, tokenizer, processor, source, "NF4, double quantization" if nf4 else "none", compute)


def _advice(error: Exception) -> str:
    text = str(error).lower()
    if "gated" in text or "401" in text or "403" in text:
        return "Accept the model's licence on the hub and set HF_TOKEN."
    if any(word in text for word in ("connect", "resolve", "offline", "cached", "not a valid model identifier")):
        return "Check the name and the network, or use --model edge, which needs neither."
    return "Check that the folder or hub id holds a chat model."
