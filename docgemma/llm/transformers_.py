"""MedGemma and any Hugging Face chat model, through transformers; constrained by Outlines on llguidance."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from docgemma.errors import ModelError
from docgemma.llm.base import LLM, Completion, GenConfig, OnToken, Prompt
from docgemma.llm.chat import ChatFormat, chatml, gemma
from docgemma.llm.compute import ComputeType
from docgemma.llm.detokenize import Detokenizer
from docgemma.llm.grammar import grammar
from docgemma.llm.layout import Layout

logger = logging.getLogger(__name__)

CONTEXT = 8192  # tokens; more fits the weights but not a T4 beside them
END_OF_TURN = ("<end_of_turn>", "<|im_end|>", "<|eot_id|>", "<|end|>")  # not always in generation_config


@dataclass
class Loaded:
    """What `load_transformers` made. `processor` is None for a text model."""

    model: Any
    tokenizer: Any
    processor: Any = None
    source: str = ""
    quantization: str = "none"
    compute: ComputeType = field(default_factory=lambda: ComputeType("float32", "the default"))


class TransformersLLM(LLM):
    """One Hugging Face model. One generation at a time; other threads wait.

    Args:
        name: what the user called it.
        loaded: model, tokenizer and processor.
        fast: code decodes what the grammar leaves no choice about, and keeps the prompts' common beginning; False is
            plain `generate` under Outlines.
    """

    profile = "full"

    def __init__(self, name: str, loaded: Loaded, *, fast: bool = True):
        self.name, self.loaded, self.fast = name, loaded, fast
        self.vision = loaded.processor is not None
        self.chat = chat_format(loaded)
        self.stop_ids = stop_ids(loaded)
        self._lock = threading.Lock()
        self._said_plain: set[str] = set()
        text_config = loaded.model.config.get_text_config()
        self.context = min(CONTEXT, getattr(text_config, "max_position_embeddings", CONTEXT))

    def complete(
        self,
        prompt: Prompt,
        config: GenConfig,
        *,
        node: str,
        schema: type[BaseModel] | None = None,
        layout: Layout = "json",
        on_token: OnToken | None = None,
    ) -> Completion:
        if self.loaded.model is None:
            raise ModelError(f"The model {self.name} is closed.", hint="Load it again.")
        with self._lock:
            inputs = self._encode(prompt)
            length = inputs["input_ids"].shape[1]
            if length >= self.context:
                raise ModelError(
                    f"The text is too long for the model {self.name}: {length} tokens, it can read {self.context}.",
                    hint="Ask about less at a time.",
                )
            limit = min(config.max_tokens, self.context - length)
            rules = grammar(schema, layout) if schema else None
            if self._fast is None:
                return self._generate(inputs, limit, config, rules, on_token)
            return self._generate_fast(inputs, limit, config, rules, on_token)

    def _generate_fast(
        self, inputs: Any, limit: int, config: GenConfig, grammar: str | None, on_token: OnToken | None
    ) -> Completion:
        """Forced tokens are not decoded, known beginnings not computed; what that path refuses is decoded plainly."""
        import torch

        from docgemma.llm.fast import Request
        from docgemma.llm.kv_cache import UnsupportedError

        prompt = inputs["input_ids"][0].tolist()
        detokenizer = Detokenizer(self.loaded.tokenizer, self.stop_ids, on_token)
        others = {key: value for key, value in inputs.items() if key not in ("input_ids", "attention_mask")}
        seen = {"images": others} if "pixel_values" in others else {}
        request = Request(prompt, limit, grammar, config.temperature, config.seed, **seen)
        try:
            done = self._fast.generate(request, detokenizer.add)
        except UnsupportedError as error:  # before the first token
            self._say_plain(error)
            return self._generate(inputs, limit, config, grammar, on_token)
        except torch.OutOfMemoryError as error:
            self._fast.close()
            raise self._too_little_memory() from error
        detokenizer.end()
        return Completion(
            detokenizer.text,
            prompt_tokens=len(prompt),
            completion_tokens=done.completion_tokens,
            truncated=not done.ended,
            cached_tokens=done.cached,
            forced_tokens=done.forced,
        )

    @cached_property
    def _fast(self) -> Any:
        """The fast path; None where it is switched off, or where this model needs plain decoding."""
        from docgemma.llm.fast import FastDecoder
        from docgemma.llm.kv_cache import UnsupportedError

        if not self.fast:
            return None
        try:
            return FastDecoder(self.loaded.model, lambda: self._grammar_tokenizer, self.stop_ids)
        except UnsupportedError as error:
            self._say_plain(error)
            return None

    def _say_plain(self, reason: Exception) -> None:
        """Once a reason: plain decoding gives the same answers, slower."""
        if str(reason) not in self._said_plain:
            self._said_plain.add(str(reason))
            logger.warning("%s is decoded on the plain path: the fast one does not support %s", self.name, reason)

    def _generate(
        self, inputs: Any, limit: int, config: GenConfig, grammar: str | None, on_token: OnToken | None
    ) -> Completion:
        import torch
        from transformers import LogitsProcessorList

        if config.seed is not None:
            torch.manual_seed(config.seed)
        detokenizer = Detokenizer(self.loaded.tokenizer, self.stop_ids, on_token)
        processors = LogitsProcessorList([self._outlines.get_cfg_logits_processor(grammar)] if grammar else [])
        greedy = config.temperature <= 0
        sampling = {"do_sample": False} if greedy else {"do_sample": True, "temperature": config.temperature}
        try:
            # eager: compiling llguidance's mask takes longer than a whole answer, and a C++ compiler
            with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
                ids = self.loaded.model.generate(
                    **inputs,
                    **sampling,
                    max_new_tokens=limit,
                    eos_token_id=self.stop_ids,
                    pad_token_id=self.loaded.tokenizer.pad_token_id or self.stop_ids[0],
                    logits_processor=processors,
                    streamer=detokenizer,
                )
        except torch.OutOfMemoryError as error:
            raise self._too_little_memory() from error
        new = ids[0, inputs["input_ids"].shape[1] :].tolist()
        return Completion(
            detokenizer.text,
            prompt_tokens=inputs["input_ids"].shape[1],
            completion_tokens=len(new),
            truncated=not new or new[-1] not in self.stop_ids,
        )

    def _too_little_memory(self) -> ModelError:
        import torch

        torch.cuda.empty_cache()
        return ModelError(f"The GPU has too little memory for this text on {self.name}.",
                          hint="Ask about less at a time.")  # fmt: skip

    def _encode(self, prompt: Prompt) -> Any:
        """Token ids, attention mask and, with images, pixel values, on the model's device."""
        processor, tokenizer = self.loaded.processor, self.loaded.tokenizer
        if prompt.images:
            mark = getattr(processor, "boi_token", None) or processor.image_token
            images = [image.convert("RGB") for image in prompt.images]
            inputs = processor(text=[self.chat(prompt, media_mark=mark)], images=[images], return_tensors="pt")
        else:
            inputs = tokenizer(self.chat(prompt), return_tensors="pt")
        return inputs.to(self.loaded.model.device)

    @cached_property
    def _outlines(self) -> Any:
        """Outlines' llguidance backend, built once: its tokenizer takes a second."""
        import outlines
        from outlines.backends.llguidance import LLGuidanceBackend

        backend = LLGuidanceBackend(outlines.from_transformers(self.loaded.model, self.loaded.tokenizer))
        backend.llg_tokenizer = self._grammar_tokenizer  # Outlines' own knows one end of turn; Gemma has two
        return backend

    @cached_property
    def _grammar_tokenizer(self) -> Any:
        import llguidance.hf

        return llguidance.hf.from_tokenizer(self.loaded.tokenizer, eos_token=self.stop_ids)

    def describe(self) -> dict[str, Any]:
        loaded = self.loaded
        return {
            "name": self.name,
            "runtime": "transformers",
            "weights": loaded.source,
            "quantization": loaded.quantization,
            "compute": f"{loaded.compute.name}: {loaded.compute.why}",
            "device": str(loaded.model.device) if loaded.model is not None else "released",
            "context_tokens": self.context,
            "memory_bytes": loaded.model.get_memory_footprint() if loaded.model is not None else 0,
            "vision": self.vision,
            "decoding": self._fast.describe() if loaded.model is not None and self._fast else "plain",
        }

    def close(self) -> None:
        import gc

        import torch

        with self._lock:
            self.loaded.model = None
            for made in ("_outlines", "_fast", "_grammar_tokenizer"):
                self.__dict__.pop(made, None)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def chat_format(loaded: Loaded) -> ChatFormat:
    """The model's own chat template, else Gemma's or ChatML by its type."""
    tokenizer, is_gemma = loaded.tokenizer, "gemma" in loaded.model.config.model_type
    template = getattr(loaded.processor, "chat_template", None) or tokenizer.chat_template

    def own(messages: list[dict[str, str]]) -> str:
        return tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=True
        )

    adds_bos = tokenizer.bos_token_id is not None and tokenizer("").input_ids[:1] == [tokenizer.bos_token_id]
    return ChatFormat(
        own if template else gemma if is_gemma else chatml,
        bos=tokenizer.bos_token if adds_bos else "",
        folds_system=is_gemma,
        control_tokens=tuple(token.content for token in tokenizer.added_tokens_decoder.values() if token.special),
    )


def stop_ids(loaded: Loaded) -> list[int]:
    """Every token that ends an answer: those of the generation config, and the end of a turn."""
    tokenizer, configured = loaded.tokenizer, loaded.model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    ids += [tokenizer.eos_token_id, *(tokenizer.get_vocab().get(token) for token in END_OF_TURN)]
    return sorted({token for token in ids if token is not None})


def load_transformers(name: str, settings: Any, on_progress: Callable[[str], object], **kwargs) -> TransformersLLM:
    """See `hf_load.load`; here so that the caller needs one import."""
    from docgemma.llm.hf_load import load

    return TransformersLLM(name, load(name, settings, on_progress, **kwargs), fast=settings.fast_decoding)
