"""Any GGUF model on llama.cpp, in process: for example a quantized MedGemma on a laptop.

No torch. llama.cpp keeps the key values of earlier prompts, so a call computes only what its prompt does not share
with one of the last ones. Several threads may call one model; their generations are batched.
"""

import secrets
import threading
from collections.abc import Generator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pydantic import BaseModel

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.base import LLM, Completion, GenConfig, OnToken, Prompt
from docgemma.llm.chat import ChatFormat, chatml, from_template, gemma
from docgemma.llm.gguf_header import GGUFHeader, read_header
from docgemma.llm.grammar import grammar
from docgemma.llm.layout import Layout
from docgemma.llm.machine import resident_bytes, threads_to_use

CONTEXT = 8192  # tokens, shared by the conversations in flight
SLOTS = 4  # prompts whose key values are kept ready, and generations at a time
PROMPT_CACHE_MIB = 256  # key values of further prompts; llama.cpp's own default is 8 GB
THINKING_MARKS = ["<unused94>", "<unused95>"]  # written out, so that the span between them can be removed
QUIET = -1  # stdout and stderr belong to the program


class LlamaCppLLM(LLM):
    """One GGUF model.

    Args:
        name: what the user called it.
        weights: the GGUF file.
        mmproj: the vision projector, a GGUF file; without it the model cannot look at images.
        threads: CPU threads; None takes the cores that are free.
        wait: False leaves loading the weights to the first generation, which then raises what loading raises.

    Raises:
        ModelError: the files are unreadable or llama.cpp refuses them.
        ConfigError: xllamacpp is not installed.
    """

    def __init__(
        self,
        name: str,
        weights: Path,
        *,
        mmproj: Path | None = None,
        threads: int | None = None,
        context: int | None = None,
        wait: bool = True,
    ):
        self.name, self.vision = name, mmproj is not None
        self.weights, self.mmproj = weights, mmproj
        header = read_header(weights)
        self.context = min(context or CONTEXT, header.context_length)
        self._threads = threads
        self.key = secrets.token_urlsafe(24)  # the server also listens on loopback; other users stay out
        self.chat = chat_format(header)
        self._server: Any = None
        self._media: Any = None
        self._guard, self._closed = threading.Lock(), False
        if wait:
            self._running()

    @cached_property
    def threads(self) -> int:
        """CPU threads; where none were given, the machine is measured when this is first asked."""
        return self._threads or threads_to_use()

    def _parameters(self, mmproj: Path | None) -> Any:
        params = _xllamacpp().CommonParams()
        params.model.path = str(self.weights)
        params.n_ctx, params.n_parallel, params.kv_unified = self.context, SLOTS, True
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [self.key]
        params.endpoint_slots = params.endpoint_props = params.ui = False
        params.warmup = params.fit_params = False
        params.verbosity = QUIET
        if mmproj:
            params.mmproj.path = str(mmproj)
        return params

    def _running(self) -> Any:
        """llama.cpp's server, the weights loaded. Loading keeps Python's lock: no other thread runs meanwhile."""
        with self._guard:
            if self._closed:
                raise ModelError(f"The model {self.name} is closed.", hint="Load it again.")
            if self._server is None:
                self._server = _start(self._parameters(self.mmproj))
                self._media = self._media_client() if self.vision else None
            return self._server

    def _media_client(self) -> Any:
        from docgemma.llm.llamacpp_media import MediaClient

        return MediaClient(self._server.listening_address, self.key)

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
        body = {
            "n_predict": config.max_tokens,
            "temperature": config.temperature,
            "stream": True,
            "preserved_tokens": THINKING_MARKS,
        }
        if config.seed is not None:
            body["seed"] = config.seed
        if schema is not None:
            body["grammar"] = "%llguidance {}\n" + grammar(schema, layout)
        if prompt.images:
            self._running()
            text = self.chat(prompt, media_mark=self._media.mark)
            return self._collect(self._media.stream(body, text, prompt.images), on_token)
        return self._collect(self._stream({**body, "prompt": self.chat(prompt)}), on_token)

    def _collect(self, chunks: Generator[dict[str, Any], None, None], on_token: OnToken | None) -> Completion:
        pieces, last = [], {}
        with closing(chunks):  # at once, also where a traceback would keep the stream alive
            for chunk in chunks:
                if "error" in chunk:
                    raise self._refusal(chunk["error"])
                choice = chunk["choices"][0]
                if piece := choice["text"]:
                    pieces.append(piece)
                    if on_token:
                        on_token(piece)
                if choice["finish_reason"]:
                    last = chunk
        if not last:
            raise ModelError("The language model stopped in the middle of its answer.", retryable=True)
        usage = last["usage"]
        return Completion(
            "".join(pieces),
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["completion_tokens"],
            truncated=last["choices"][0]["finish_reason"] == "length",
            cached_tokens=last.get("timings", {}).get("cache_n", 0),
        )

    def _stream(self, body: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """Chunks as they are made. The generation runs in its own thread: llama.cpp swallows what a callback raises,
        Ctrl-C too, so the caller's thread only waits, and leaving the loop for any reason stops the generation."""
        chunks: SimpleQueue = SimpleQueue()
        stop = threading.Event()

        def on_chunk(chunk: dict[str, Any]) -> bool:
            chunks.put(chunk)
            return stop.is_set()

        def generate(server: Any) -> None:
            try:
                server.handle_completions(body, on_chunk)
            except Exception as error:
                chunks.put(error)
            finally:
                chunks.put(None)

        threading.Thread(target=generate, args=(self._running(),), daemon=True, name="llama.cpp").start()
        try:
            while (chunk := chunks.get()) is not None:
                if isinstance(chunk, Exception):
                    raise ModelError(f"llama.cpp failed ({chunk}).", hint="Try again.", retryable=True) from chunk
                yield from chunk if isinstance(chunk, list) else [chunk]
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
            "quantization": quantization(self.weights),
            "compute": f"CPU, {self.threads} threads; llama.cpp chooses the type for each kernel",
            "context_tokens": self.context,
            "memory_bytes": resident_bytes(),
            "vision": self.vision,
        }

    def close(self) -> None:
        with self._guard:
            if self._media:
                self._media.close()
            self._server, self._media, self._closed = None, None, True


def _xllamacpp() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ConfigError("xllamacpp is not installed.", hint="Run: pip install xllamacpp") from error
    return xllamacpp


def _start(params: Any) -> Any:
    try:
        return _xllamacpp().Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(
            f"llama.cpp cannot load {params.model.path} ({error}).", hint="Check the file, and its mmproj."
        ) from error


def chat_format(header: GGUFHeader) -> ChatFormat:
    """The file's own chat template, else Gemma's or ChatML."""
    is_gemma = header.architecture.startswith("gemma")
    if header.chat_template:
        render = from_template(header.chat_template, bos=header.bos)
    else:
        render = gemma if is_gemma else chatml
    adds_bos = header.values.get("tokenizer.ggml.add_bos_token", header.values.get("tokenizer.ggml.model") == "llama")
    return ChatFormat(render, header.bos if adds_bos else "", is_gemma, header.control_tokens)


def quantization(weights: Path) -> str:
    """As the file says it: `general.file_type` of the GGUF specification."""
    types = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 14: "Q4_K_S", 15: "Q4_K_M", 17: "Q5_K_M", 18: "Q6_K"}
    kind = read_header(weights).values.get("general.file_type")
    return types.get(kind, f"GGUF file type {kind}")
