"""MedGemma and any Hugging Face chat model, through transformers; constrained by Outlines on llguidance."""

import logging
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from docgemma.errors import ModelError
from docgemma.llm.base import CONTEXT, LLM, OPEN_THINKING, Completion, GenConfig, OnToken, Prompt
from docgemma.llm.chat import messages
from docgemma.llm.compute import ComputeType
from docgemma.llm.grammar import grammar

if TYPE_CHECKING:
    from docgemma.llm.decoding import AnswerText

logger = logging.getLogger(__name__)

END_OF_TURN = ("<end_of_turn>", "<|im_end|>", "<|eot_id|>", "<|end|>")  # not always in generation_config
NO_SYSTEM_ROLE = ("gemma", "gemma2")  # their templates refuse it


@dataclass
class Loaded:
    """What `hf_load.load` made. `processor` is None for a text model."""

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
        fast: decode in fewer passes (`decoding.py`); False is plain `generate` under Outlines.
    """

    profile = "full"

    def __init__(self, name: str, loaded: Loaded, *, fast: bool = True):
        self.name, self.loaded, self.fast = name, loaded, fast
        self.vision = loaded.processor is not None
        self.stop_ids = stop_ids(loaded)
        self._lock = threading.Lock()
        text_config = loaded.model.config.get_text_config()
        self.context: int = min(CONTEXT, getattr(text_config, "max_position_embeddings", CONTEXT))

    def complete(
        self,
        prompt: Prompt,
        config: GenConfig,
        *,
        node: str,
        schema: type[BaseModel] | None = None,
        on_token: OnToken | None = None,
    ) -> Completion:
        if self.loaded.model is None:
            raise ModelError(f"The model {self.name} is closed.", hint="Load it again.")
        import torch

        rules = grammar(schema) if schema else None
        with self._lock:
            inputs = self.encode(prompt)
            length = inputs["input_ids"].shape[1]
            if length >= self.context:
                raise ModelError(
                    f"The text is too long for the model {self.name}: {length} tokens, it can read {self.context}.",
                    hint="Ask about less at a time.",
                )
            try:
                return self._generate_either_way(inputs, config, rules, on_token)
            except torch.OutOfMemoryError as error:
                self.__dict__.pop("prompts", None)
                torch.cuda.empty_cache()
                raise ModelError(
                    f"The GPU has too little memory for this text on {self.name}.", hint="Ask about less at a time."
                ) from error

    def _generate_either_way(
        self, inputs: Any, config: GenConfig, rules: str | None, on_token: OnToken | None
    ) -> Completion:
        """In fewer passes, until that fails for the first time; plainly from then on: the answers are the same."""
        import torch

        from docgemma.llm.decoding import AnswerText

        text = AnswerText(self.loaded.tokenizer, self.stop_ids, on_token)
        if self.fast:
            try:
                return self._generate(inputs, config, rules, text, fast=True)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                if text.text and on_token:  # the listener stopped it, or has part of the answer already
                    raise
                logger.warning("%s is decoded plainly from here on: the fast way failed (%r)", self.name, error)
                self.fast, text = False, AnswerText(self.loaded.tokenizer, self.stop_ids, on_token)
                self.__dict__.pop("prompts", None)
        return self._generate(inputs, config, rules, text, fast=False)

    def _generate(
        self, inputs: Any, config: GenConfig, rules: str | None, text: "AnswerText", *, fast: bool
    ) -> Completion:
        import torch

        from docgemma.llm.decoding import Decoding, GrammarMask

        length = inputs["input_ids"].shape[1]
        limit = min(config.max_tokens, self.context - length)
        options: dict[str, Any] = {"do_sample": False}
        if config.temperature > 0:
            options = {"do_sample": True, "temperature": config.temperature}
        if rules is None:
            options["suppress_tokens"] = self._no_thinking
        decoding = None
        if fast:
            mask = GrammarMask(self.grammar_tokenizer, rules) if rules else None
            others = {key: value for key, value in inputs.items() if key not in ("input_ids", "attention_mask")}
            images = others if "pixel_values" in others else {}
            decoding = Decoding(self.prompts, self.stop_ids, limit, mask, images, text)
            options |= {"custom_generate": decoding, "logits_processor": [mask] if mask else None}
        elif rules:
            options["logits_processor"] = [self._outlines.get_cfg_logits_processor(rules)]
        if config.seed is not None:
            torch.manual_seed(config.seed)
        # eager: compiling llguidance's mask takes longer than a whole answer, and a C++ compiler
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
            ids = self.loaded.model.generate(
                **inputs,
                **options,
                max_new_tokens=limit,
                eos_token_id=self.stop_ids,
                pad_token_id=self.loaded.tokenizer.pad_token_id or self.stop_ids[0],
                streamer=text,
            )
        new = ids[0, length:].tolist()
        return Completion(
            text.text,
            prompt_tokens=length,
            completion_tokens=len(new),
            truncated=not new or new[-1] not in self.stop_ids,
            cached_tokens=decoding.cached if decoding else 0,
            forced_tokens=decoding.forced if decoding else 0,
        )

    def encode(self, prompt: Prompt) -> Any:
        """Token ids, attention mask and, with images, pixel values, on the model's device.

        Raises:
            ModelError: the model has no chat template, or it fails.
        """
        import jinja2

        processor, tokenizer = self.loaded.processor, self.loaded.tokenizer
        turns = messages(prompt, lambda image: {"type": "image"})
        if self.loaded.model.config.model_type in NO_SYSTEM_ROLE and prompt.system:
            system, user = turns
            turns = [{**user, "content": f"{system['content']}\n\n{user['content']}"}]
        template = getattr(processor, "chat_template", None) or tokenizer.chat_template
        try:
            text = tokenizer.apply_chat_template(
                turns, chat_template=template, tokenize=False, add_generation_prompt=True
            )
        except (ValueError, jinja2.TemplateError) as error:
            raise ModelError(
                f"The chat template of {self.name} cannot be used ({error}).", hint="Use a chat model."
            ) from error
        options = {"return_tensors": "pt", "add_special_tokens": False}  # a template writes them itself
        if prompt.images:
            images = [image.convert("RGB") for image in prompt.images]
            inputs = processor(text=[text + prompt.prefix], images=[images], **options)
        else:
            inputs = tokenizer(text + prompt.prefix, **options)
        return inputs.to(self.loaded.model.device)

    @cached_property
    def prompts(self) -> Any:
        """The key values of the last prompts."""
        from docgemma.llm.decoding import require_key_values
        from docgemma.llm.prompt_cache import PromptCache, affordable_bytes

        require_key_values(self.loaded.model.config)
        return PromptCache(affordable_bytes(self.loaded.model.device))

    @cached_property
    def _no_thinking(self) -> list[int] | None:
        """The token that opens a thinking span, where the model has it: free text must not, it seldom closes one."""
        token = self.loaded.tokenizer.get_vocab().get(OPEN_THINKING)
        return None if token is None else [token]

    @cached_property
    def _outlines(self) -> Any:
        """Outlines' llguidance backend, built once: its tokenizer takes a second."""
        import outlines
        from outlines.backends.llguidance import LLGuidanceBackend

        backend = LLGuidanceBackend(outlines.from_transformers(self.loaded.model, self.loaded.tokenizer))
        backend.llg_tokenizer = self.grammar_tokenizer  # Outlines' own knows one end of turn; Gemma has two
        return backend

    @cached_property
    def grammar_tokenizer(self) -> Any:
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
            "decoding": "in fewer passes" if self.fast else "plain",
        }

    def close(self) -> None:
        import gc

        import torch

        with self._lock:
            self.loaded.model = None
            for made in ("_outlines", "prompts", "grammar_tokenizer"):
                self.__dict__.pop(made, None)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def stop_ids(loaded: Loaded) -> list[int]:
    """Every token that ends an answer: those of the generation config, and the end of a turn."""
    tokenizer, configured = loaded.tokenizer, loaded.model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    ids += [tokenizer.eos_token_id, *(tokenizer.get_vocab().get(token) for token in END_OF_TURN)]
    return sorted({token for token in ids if token is not None})
