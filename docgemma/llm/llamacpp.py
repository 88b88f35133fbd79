"""Any GGUF model on llama.cpp, in process: for example a quantized MedGemma on a laptop.

No torch. llama.cpp's own server runs in this process and is asked over loopback, as any other server is. It keeps the
key values of earlier prompts, so a call computes only what its prompt does not share with one of the last ones. Several
threads may call one model; their generations are batched.
"""

import json
import secrets
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.base import CONTEXT, OPEN_THINKING, GenConfig, Prompt
from docgemma.llm.compute import usable_cores
from docgemma.llm.grammar import grammar
from docgemma.llm.server import Chunks, ServerLLM

SLOTS = 4  # prompts whose key values are kept ready, and generations at a time
PROMPT_CACHE_MIB = 256  # key values of further prompts; llama.cpp's own default is 8 GB
QUIET = -1  # stdout and stderr belong to the program


class LlamaCppLLM(ServerLLM):
    """One GGUF model. The context tokens are shared by the conversations in flight.

    Args:
        name: what the user called it.
        weights: the GGUF file.
        mmproj: the vision projector, a GGUF file; without it the model cannot look at images.
        threads: CPU threads; None takes every core.

    Raises:
        ModelError: llama.cpp refuses the files.
        ConfigError: xllamacpp is not installed.
    """

    def __init__(
        self, name: str, weights: Path, *, mmproj: Path | None = None, threads: int | None = None,
        context: int = CONTEXT,
    ):  # fmt: skip
        self.weights, self.mmproj, self.context = weights, mmproj, context
        self.threads = threads or usable_cores()
        self.key = secrets.token_urlsafe(24)  # the server listens on loopback; other users stay out
        self._server: Any = self._start()
        super().__init__(self._server.listening_address, key=self.key, timeout=httpx.Timeout(None))
        self.name, self.vision, self.slots = name, mmproj is not None, SLOTS

    def _start(self) -> Any:
        """llama.cpp's server, the weights loaded. Loading keeps Python's lock: no other thread runs meanwhile."""
        try:
            import xllamacpp
        except ImportError as error:
            raise ConfigError("xllamacpp is not installed.", hint="Run: pip install xllamacpp") from error
        params = xllamacpp.CommonParams()
        params.model.path = str(self.weights)
        params.n_ctx, params.n_parallel, params.kv_unified = self.context, SLOTS, True
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [self.key]
        params.endpoint_slots = params.endpoint_props = params.ui = False
        params.warmup = params.fit_params = False
        params.verbosity = QUIET
        if self.mmproj:
            params.mmproj.path = str(self.mmproj)
        try:
            return xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelError(
                f"llama.cpp cannot load {self.weights} ({error}).", hint="Check the file, and its mmproj."
            ) from error

    @cached_property
    def _no_thinking(self) -> list[list[Any]]:
        """A bias that forbids the mark that opens a thinking span, where the model has it as one token."""
        return [[one, False] for one in tokens] if len(tokens := self.tokenize(OPEN_THINKING)) == 1 else []

    def tokenize(self, text: str) -> list[int]:
        """The model's tokens of a text, control tokens read as such."""
        url, body = f"{self._server.listening_address}/tokenize", {"content": text, "parse_special": True}
        with closing(self._open("POST", url, body)) as answer:
            return list(json.loads(answer.read())["tokens"])

    def _answer(self, prompt: Prompt, config: GenConfig, schema: type[BaseModel] | None) -> Chunks:
        if self._server is None:
            raise ModelError(f"The model {self.name} is closed.", hint="Load it again.")
        return self._events(self._body(prompt, config, schema))

    def _body(self, prompt: Prompt, config: GenConfig, schema: type[BaseModel] | None) -> dict[str, Any]:
        """A grammar instead of a JSON schema: that goes together with an answer that is begun already."""
        body = super()._body(prompt, config, None)
        body["chat_template_kwargs"] = {"enable_thinking": False}  # a begun answer and thinking exclude each other
        if schema is None:
            return body | {"logit_bias": self._no_thinking}
        return body | {"grammar": "%llguidance {}\n" + grammar(schema)}

    def _refusal(self, status: int, text: str) -> ModelError:
        if "exceed_context_size_error" not in text:
            return super()._refusal(status, text)
        error = json.loads(text)["error"]
        return ModelError(
            f"The text is too long for the model {self.name}: {error.get('n_prompt_tokens')} tokens, "
            f"it can read {error.get('n_ctx')}.",
            hint="Ask about less at a time.",
        )

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "runtime": "llama.cpp",
            "weights": str(self.weights),
            "compute": f"CPU, {self.threads} threads; llama.cpp chooses the type for each kernel",
            "context_tokens": self.context,
            "vision": self.vision,
        }

    def close(self) -> None:
        self._server = None
        super().close()
