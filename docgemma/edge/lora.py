"""LoRA on a frozen Llama, made for a CPU: bfloat16 matrices, a float32 residual stream, no cast more than needed.

peft does the same with autocast and casts every activation several times; on two cores that is half of the time.
"""

import math

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def add_lora(model, rank: int, alpha: int, seed: int):
    """Replace the target linears by frozen bfloat16 ones with trainable A and B (float32), norms and rotary to match.

    Parameters are named `…<module>.lora_A` (rank, in) and `…<module>.lora_B` (out, rank); B begins as zero.
    """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class LoraLinear(nn.Module):
        def __init__(self, base: nn.Linear, generator: torch.Generator):
            super().__init__()
            self.register_buffer("weight", base.weight.detach().to(torch.bfloat16))
            bound = 1 / math.sqrt(base.in_features)  # as kaiming_uniform with a = sqrt(5)
            first = torch.empty(rank, base.in_features).uniform_(-bound, bound, generator=generator)
            self.lora_A = nn.Parameter(first)
            self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))

        def forward(self, x):
            x = x.to(torch.bfloat16)
            low = F.linear(x, self.lora_A.to(torch.bfloat16))
            return F.linear(x, self.weight) + F.linear(low, (self.lora_B * (alpha / rank)).to(torch.bfloat16))

    class Norm(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.register_buffer("weight", base.weight.detach())
            self.eps = base.variance_epsilon

        def forward(self, x):
            return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps).to(torch.bfloat16)

    for parameter in model.parameters():
        parameter.requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, child in list(part.named_children()):
                if name in TARGETS:
                    setattr(part, name, LoraLinear(child, generator))
        layer.input_layernorm = Norm(layer.input_layernorm)
        layer.post_attention_layernorm = Norm(layer.post_attention_layernorm)
    model.model.norm = Norm(model.model.norm)
    rotary = model.model.rotary_emb
    plain = rotary.forward
    rotary.forward = lambda x, position_ids: tuple(item.to(torch.bfloat16) for item in plain(x, position_ids))
    model.register_buffer("head", model.lm_head.weight.detach().to(torch.bfloat16), persistent=False)
    return model
