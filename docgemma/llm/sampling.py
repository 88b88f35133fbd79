"""From masked logits to the next token: greedy, or sampled as transformers' `generate` would with the same settings."""

from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from docgemma.llm.kv_cache import UnsupportedError

GENERATE_TOP_K = 50  # what `generate` takes where a model's generation config says nothing

# what else a generation config can ask of `generate` that would change its answer, with the value that asks nothing
NEUTRAL = {
    "repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "bad_words_ids": None, "min_length": 0, "num_beams": 1,
    "min_new_tokens": None, "suppress_tokens": None, "begin_suppress_tokens": None, "sequence_bias": None,
    "forced_bos_token_id": None, "forced_eos_token_id": None, "exponential_decay_length_penalty": None,
    "guidance_scale": None, "typical_p": 1.0, "min_p": None, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
    "top_h": None, "watermarking_config": None, "stop_strings": None, "penalty_alpha": None,
}  # fmt: skip


def require_plain(config: GenerationConfig) -> None:
    """
    Raises:
        UnsupportedError: the model's generation config asks for what only `generate` does.
    """
    for name, neutral in NEUTRAL.items():
        if getattr(config, name, None) not in (None, neutral):
            raise UnsupportedError(f"a generation config with {name}")


class Sampler:
    """Picks one answer's tokens. Temperature 0 is greedy; a seed makes sampling repeatable on one device."""

    def __init__(self, config: GenerationConfig, temperature: float, seed: int | None, device: Any):
        self.greedy, self.generator = temperature <= 0, None
        if self.greedy:
            return
        top_k = GENERATE_TOP_K if config.top_k is None else config.top_k
        top_p = 1.0 if config.top_p is None else config.top_p
        self.warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
        self.warpers += [TopKLogitsWarper(top_k)] if top_k else []
        self.warpers += [TopPLogitsWarper(top_p)] if top_p < 1 else []
        if seed is not None:
            self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """`logits`: (vocabulary,) float32, forbidden tokens at minus infinity. Returns a token id on its device."""
        if self.greedy:
            return logits.argmax()
        warped = self.warpers(None, logits.unsqueeze(0))
        return torch.multinomial(warped.softmax(-1), 1, generator=self.generator).reshape(())
