"""Any OpenAI-compatible endpoint that constrains its output to a JSON schema: vLLM, llama.cpp, SGLang, TGI.

What fails says how: unreachable, not allowed, no such model, busy, broken, cut short. The key is sent and never shown.
"""

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx
import stamina
from pydantic import BaseModel

from docgemma.errors import ConfigError, ModelError, NoVisionError
from docgemma.llm.base import LLM, Completion, GenConfig, OnToken, Prompt
from docgemma.llm.chat import openai_messages
from docgemma.llm.grammar import json_schema

Chunks = Generator[dict[str, Any], None, None]  # OpenAI's chat chunks

TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # seconds; read counts between two pieces
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ATTEMPTS = 3
NEW_EACH = httpx.Limits(max_keepalive_connections=0)  # a server may close an idle connection as a turn takes it


class RefusedError(ModelError):
    """The server understood the request and will not serve it."""


class ServerLLM(LLM):
    """One model of a server.

    Args:
        url: the base URL, with or without its `/v1`.
        model: the server's name for it; None takes the first that the server lists.
        key: bearer token.

    Raises:
        ConfigError: the address is none.
        ModelError: the server cannot be reached, refuses the key, or has no such model.
    """

    name, slots = "server", 8  # it batches what comes at a time
    profile = "full"

    def __init__(self, url: str, *, model: str | None = None, key: str | None = None, timeout: httpx.Timeout = TIMEOUT):
        base = httpx.URL(url.strip())
        if base.scheme not in ("http", "https") or not base.host:
            hint = "Set DOCGEMMA_LLM_URL, e.g. http://127.0.0.1:8000/v1."
            raise ConfigError("The model server needs an http(s) address.", hint=hint)
        base = base if base.path.strip("/") else base.copy_with(path="/v1")
        self.address = str(base.copy_with(username=None, password=None, query=None))  # what may be shown
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        own = base.host in LOOPBACK  # a proxy must not see such a call
        self._http = httpx.Client(base_url=base, headers=headers, timeout=timeout, limits=NEW_EACH, trust_env=not own)
        self.prefills_schemas = True  # until the server refuses it
        try:
            self.model, self.vision = self._choose(model)
        except ModelError:
            self.close()
            raise

    def _choose(self, wanted: str | None) -> tuple[str, bool]:
        """The model's name on the server, and whether it can see; a server that does not say is asked to try."""
        with closing(self._open("GET", "models")) as response:
            listed = _json(response.read(), self.address)
        models = {item["id"]: item for item in listed.get("data", []) if isinstance(item, dict) and "id" in item}
        details = {item.get("model"): item for item in listed.get("models", []) if isinstance(item, dict)}
        name = wanted or next(iter(models), None)
        if name is None or name not in models:
            names = ", ".join(models) or "none"
            raise ModelError(
                f"The model server at {self.address} has no model {name!r}.",
                hint=f"It has: {names}. Set DOCGEMMA_LLM_NAME.",
            )
        abilities = details.get(name, {}).get("capabilities")
        return name, abilities is None or "multimodal" in abilities

    def complete(
        self,
        prompt: Prompt,
        config: GenConfig,
        *,
        node: str,
        schema: type[BaseModel] | None = None,
        on_token: OnToken | None = None,
    ) -> Completion:
        pieces: list[str] = []
        finish: str | None = None
        usage: dict[str, Any] = {}
        with closing(self._answer(prompt, config, schema)) as chunks:  # at once, whatever a listener raises
            for chunk in chunks:
                usage = chunk.get("usage") or usage
                for choice in chunk.get("choices", []):
                    finish = choice.get("finish_reason") or finish
                    if piece := (choice.get("delta") or {}).get("content"):
                        pieces.append(piece)
                        if on_token:
                            on_token(piece)
        if finish is None:
            raise self._broken_off()
        return Completion(
            "".join(pieces),
            prompt_tokens=usage.get("prompt_tokens", 0),
            completion_tokens=usage.get("completion_tokens", len(pieces)),
            truncated=finish == "length",
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
        )

    def _answer(self, prompt: Prompt, config: GenConfig, schema: type[BaseModel] | None) -> Chunks:
        """The events of one answer. llama.cpp cannot hold an answer that it did not begin itself to a schema: then the
        opening words are left out, from here on."""
        if schema and not self.prefills_schemas:
            prompt = replace(prompt, prefix="")
        try:
            yield from self._events(self._body(prompt, config, schema))
        except RefusedError:
            if not (schema and prompt.prefix):
                raise
            self.prefills_schemas = False
            yield from self._answer(prompt, config, schema)

    def _body(self, prompt: Prompt, config: GenConfig, schema: type[BaseModel] | None) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": openai_messages(prompt),
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if config.seed is not None:
            body["seed"] = config.seed
        if prompt.prefix:  # vLLM's names; a server that does not know them takes a last assistant message as begun
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if schema is not None:
            wanted = {"name": schema.__name__, "schema": json_schema(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return body

    def _events(self, body: dict[str, Any]) -> Chunks:
        """The server-sent events of one answer."""
        with closing(self._open("POST", "chat/completions", body)) as response:
            try:
                for line in response.iter_lines():
                    data = line.removeprefix("data:").strip()
                    if not line.startswith("data:") or data == "[DONE]":
                        continue
                    event = _json(data, self.address)
                    if "error" in event:
                        raise self._refusal(int(event["error"].get("code") or 500), json.dumps(event))
                    yield event
            except httpx.HTTPError as error:
                raise self._unreachable(error) from error

    @stamina.retry(
        on=lambda error: getattr(error, "retryable", False), attempts=ATTEMPTS, wait_initial=0.2, wait_jitter=0.2
    )
    def _open(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """An open response of status 200. What may pass (busy, restarting) is tried again, before the first byte."""
        try:
            response = self._http.send(self._http.build_request(method, path, json=body), stream=True)
            if response.status_code == 200:
                return response
            text = response.read().decode("utf-8", "replace")
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        raise self._refusal(response.status_code, text)

    def _broken_off(self) -> ModelError:
        return ModelError(f"The model server at {self.address} broke off its answer.", retryable=True)

    def _unreachable(self, error: httpx.HTTPError) -> ModelError:
        if isinstance(error, httpx.TimeoutException):
            return ModelError(f"The model server at {self.address} took too long.", hint="Try again.", retryable=True)
        if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
            return self._broken_off()
        return ModelError(
            f"The model server at {self.address} cannot be reached.",
            hint="Start it, or correct DOCGEMMA_LLM_URL.",
            retryable=True,
        )

    def _refusal(self, status: int, text: str) -> ModelError:
        """A server's words are read for the kind of refusal and not repeated: they may quote the prompt."""
        where, lower = f"The model server at {self.address}", text.lower()
        if status in (401, 403):
            return ModelError(f"{where} refused the key.", hint="Set DOCGEMMA_LLM_KEY.")
        if status == 404:
            return ModelError(f"{where} has no model {getattr(self, 'model', '')!r}, or not this API.",
                              hint="Set DOCGEMMA_LLM_NAME, or correct DOCGEMMA_LLM_URL.")  # fmt: skip
        if status == 429:
            return ModelError(f"{where} is busy.", hint="Try again in a minute.", retryable=True)
        if "context" in lower and ("exceed" in lower or "maximum" in lower):
            return ModelError(
                f"The text is too long for the model at {self.address}.", hint="Ask about less at a time."
            )
        if "image" in lower or "multimodal" in lower:
            return NoVisionError(f"The model at {self.address} cannot look at images.", hint="Serve one that can.")
        if status >= 500:
            return ModelError(f"{where} failed (status {status}).", hint="Look at its log.", retryable=True)
        return RefusedError(f"{where} refused the request (status {status}).", hint="Look at its log.")

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "runtime": "OpenAI-compatible server",
            "weights": self.model,
            "address": self.address,
            "compute": "the server's choice",
            "opens_constrained_answers": self.prefills_schemas,
            "vision": self.vision,
        }

    def close(self) -> None:
        self._http.close()


def _json(text: str | bytes, address: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ModelError(f"The model server at {address} sent something that is not JSON.", retryable=True) from error
    if not isinstance(value, dict):
        raise ModelError(f"The model server at {address} sent something unexpected.", retryable=True)
    return value
