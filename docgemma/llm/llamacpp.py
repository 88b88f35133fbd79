"""Any GGUF model on llama.cpp, in process: for example a quantized MedGemma on a laptop.

No torch. llama.cpp keeps the key values of earlier prompts, so a call computes only what its prompt does not share
with one of the last ones. Several threads may call one model; their generations are batched.
"""

import secrets
import threading
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pydantic import BaseModel

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.base import CONTEXT, LLM, OPEN_THINKING, Completion, GenConfig, OnToken, Prompt
from docgemma.llm.chat import Chunks, collect, openai_messages
from docgemma.llm.cpu_threads import threads_to_use
from docgemma.llm.grammar import grammar

SLOTS = 4  # prompts whose key values are kept ready, and generations at a time
PROMPT_CACHE_MIB = 256  # key values of further prompts; llama.cpp's own default is 8 GB
QUIET = -1  # stdout and stderr belong to the program


class LlamaCppLLM(LLM):
    """One GGUF model. The context tokens are shared by the conversations in flight.

    Args:
        name: what the user called it.
        weights: the GGUF file.
        mmproj: the vision projector, a GGUF file; without it the model cannot look at images.
        threads: CPU threads; None takes the cores that are free.
        wait: False leaves loading the weights to the first generation, which then raises what loading raises.

    Raises:
        ModelError: llama.cpp refuses the files.
        ConfigError: xllamacpp is not installed.
    """

    def __init__(
        self,
        name: str,
        weights: Path,
        *,
        mmproj: Path | None = None,
        threads: int | None = None,
        context: int = CONTEXT,
        wait: bool = True,
    ):
        self.name, self.vision = name, mmproj is not None
        self.weights, self.mmproj, self.context = weights, mmproj, context
        self._threads = threads
        self.key = secrets.token_urlsafe(24)  # the server also listens on loopback; other users stay out
        self._server: Any = None
        self._guard, self._closed = threading.Lock(), False
        if wait:
            self._running()

    @cached_property
    def threads(self) -> int:
        """CPU threads; where none were given, the machine is measured when this is first asked."""
        return self._threads or threads_to_use()

    def _running(self) -> Any:
        """llama.cpp's server, the weights loaded. Loading keeps Python's lock: no other thread runs meanwhile."""
        with self._guard:
            if self._closed:
                raise ModelError(f"The model {self.name} is closed.", hint="Load it again.")
            if self._server is None:
                self._server = self._start()
            return self._server

    def _start(self) -> Any:
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
        tokens = self.tokenize(OPEN_THINKING)
        return [[tokens[0], False]] if len(tokens) == 1 else []

    def tokenize(self, text: str) -> list[int]:
        """The model's tokens of a text, control tokens read as such; asked of the loopback listener."""
        import httpx

        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self._running().listening_address}/tokenize"
        with httpx.Client(trust_env=False, headers=headers) as client:  # a proxy must not see a loopback call
            answer = client.post(url, json={"content": text, "parse_special": True})
        tokens: list[int] = answer.raise_for_status().json()["tokens"]
        return tokens

    def complete(
        self,
        prompt: Prompt,
        config: GenConfig,
        *,
        node: str,
        schema: type[BaseModel] | None = None,
        on_token: OnToken | None = None,
    ) -> Completion:
        self._running()
        body: dict[str, Any] = {
            "messages": openai_messages(prompt),
            "max_tokens": config.max_tokens,
            "temperature": config.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "chat_template_kwargs": {"enable_thinking": False},  # a begun answer and thinking exclude each other
        }
        if config.seed is not None:
            body["seed"] = config.seed
        if schema is None:
            body["logit_bias"] = self._no_thinking
        else:
            body["grammar"] = "%llguidance {}\n" + grammar(schema)
        done = collect(self._stream(body), on_token)
        if done is None:
            raise ModelError("The language model stopped in the middle of its answer.", retryable=True)
        return done

    def _stream(self, body: dict[str, Any]) -> Chunks:
        """Chunks as they are made. The generation runs in its own thread: llama.cpp swallows what a callback raises,
        Ctrl-C too, so the caller's thread only waits, and leaving the loop for any reason stops the generation."""
        chunks: SimpleQueue[Any] = SimpleQueue()
        stop = threading.Event()

        def on_chunk(chunk: Any) -> bool:
            chunks.put(chunk)
            return stop.is_set()

        def generate(server: Any) -> None:
            try:
                server.handle_chat_completions(body, on_chunk)
            except Exception as error:
                chunks.put(error)
            finally:
                chunks.put(None)

        threading.Thread(target=generate, args=(self._running(),), daemon=True, name="llama.cpp").start()
        try:
            while (item := chunks.get()) is not None:
                if isinstance(item, Exception):
                    raise ModelError(f"llama.cpp failed ({item}).", hint="Try again.", retryable=True) from item
                for chunk in item if isinstance(item, list) else [item]:
                    if "error" in chunk:
                        raise self._refusal(chunk["error"])
                    yield chunk
        finally:
            stop.set()

    def _refusal(self, error: dict[str, Any]) -> ModelError:
        if error.get("type") == "exceed_context_size_error":
            return ModelError(
                f"The text is too long for the model {self.name}: {error.get('n_prompt_tokens')} tokens, "
                f"it can read {error.get('n_ctx')}.",
                hint="Ask about less at a time.",
            )
        return ModelError(f"llama.cpp refused the request ({error.get('message')}).", hint="Try other words.")

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
        with self._guard:
            self._server, self._closed = None, True
