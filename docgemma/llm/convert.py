"""A GGUF file as a Hugging Face model folder: transformers needs a minute for it, so it is converted once."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.made import PART, fingerprint, sweep, used


def as_safetensors(weights: Path, home: Path, on_progress: Callable[[str], object]) -> Path:
    """The converted folder of a GGUF file, made on the first call.

    Args:
        weights: the GGUF file.
        home: the data home; the folder is `models/<name>-<fingerprint>` in it.

    Raises:
        ModelError: transformers cannot read the file.
        ConfigError: the data home cannot be written, or the gguf package is missing.
    """
    target = home / "models" / f"{weights.stem}-{fingerprint(weights)}"
    if (target / "config.json").is_file():
        return used(target)
    on_progress(f"Converting {weights.name} to safetensors, once (about a minute) …")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, weights.stem)
        with tempfile.TemporaryDirectory(prefix=f"{weights.stem}-", suffix=PART, dir=target.parent) as folder:
            staging = Path(folder) / "model"
            _convert(weights, staging)
            staging.chmod(0o755)
            if not (target / "config.json").is_file():  # another process may have been faster
                os.replace(staging, target)
    except OSError as error:
        raise ConfigError(
            f"The model cannot be stored in {target.parent} ({error}).", hint="Set DOCGEMMA_HOME."
        ) from error
    return target


def _convert(weights: Path, folder: Path) -> None:
    try:
        import gguf  # noqa: F401  (transformers reads GGUF through it)
    except ImportError as error:
        raise ConfigError("The gguf package is not installed.", hint="Run: pip install gguf") from error
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    try:
        model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
        tokenizer = AutoTokenizer.from_pretrained(**source)
    except (ValueError, KeyError, RuntimeError, AttributeError) as error:
        raise ModelError(
            f"transformers cannot read {weights} ({error}).", hint="Use the llama.cpp back end."
        ) from error
    # the weights are plain now, but the model still says that they are GGUF and refuses to be saved
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model, "quantization_method"):
        model.quantization_method = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = folder / "config.json"
    values = json.loads(config.read_text())
    if values.pop("quantization_config", None) is not None:
        config.write_text(json.dumps(values, indent=2))
