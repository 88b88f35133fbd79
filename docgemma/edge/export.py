"""The trained LoRA as a GGUF file for llama.cpp, half precision."""

from pathlib import Path

NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}  # fmt: skip


def write_adapter(model, path: Path, alpha: float) -> None:
    """Write the LoRA that `lora.add_lora` put on a Llama.

    llama.cpp keeps the rows of q and k in another order than transformers (its rotary embedding pairs neighbours,
    not halves), so the B matrices of q and k are permuted in the same way as the weights were.
    """
    import gguf
    import numpy as np

    config = model.config
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(alpha))
    writer.add_name("DocGemma edge adapter for SmolLM2-135M-Instruct")
    for name, weight in sorted(model.named_parameters()):
        if "lora_" not in name:
            continue
        layer, module, side = _parts(name)
        values = weight.detach().float().numpy()
        if side == "b" and module in heads:
            values = _permute(values, heads[module])
        tensor = np.ascontiguousarray(values.astype(np.float16))
        writer.add_tensor(f"blk.{layer}.{module}.weight.lora_{side}", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _parts(name: str) -> tuple[str, str, str]:
    """ "model.layers.3.mlp.up_proj.lora_A" -> ("3", "ffn_up", "a")."""
    head, _, tail = name.partition(".lora_")
    layer, _, module = head.rpartition("layers.")[2].partition(".")
    return layer, NAMES[module], tail[0].lower()


def _permute(rows, heads: int):
    """Rows of q or k, (heads * d, r): from halves to neighbours, as llama.cpp's converter does."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)
