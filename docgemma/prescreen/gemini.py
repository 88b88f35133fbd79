"""Gemini as the prescreen's orchestrator: it decides what is searched next, the executor keeps the budget.

Needs `docgemma[prescreen]`. The conversation is kept as JSON in the evidence, so that a run resumes from its
checkpoint: a turn of the model goes back as it came, thought signatures included.
Source: ai.google.dev/gemini-api/docs/function-calling.
"""

import json
import weakref
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError, ModelError
from docgemma.prescreen.concepts import prompts
from docgemma.prescreen.records import Evidence, Facts, ToolCall
from docgemma.prescreen.toolset import MAX_TOOL_CALLS
from docgemma.settings import Settings

if TYPE_CHECKING:
    from google.genai.types import Content, GenerateContentResponse

MODEL = "gemini-3-pro-preview"
PRICES = {
    MODEL: (2.0, 12.0)
}  # US dollars a million tokens in and out, prompts to 200k: ai.google.dev/gemini-api/docs/pricing
TIMEOUT_S = 120.0
ATTEMPTS = 3
TRANSIENT = [408, 429, 500, 502, 503, 504]
MALFORMED_TRIES = 3
MEMO = "gemini"
CONTEXT = 150_000  # characters of a conversation, below 50,000 tokens
KEPT = 3  # trials of an old page that stay in a conversation that grows too long
MALFORMED = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS"}
AGAIN = "Your last tool call could not be read. Call the tools again, with arguments as declared."


class Gemini:
    """One client; the state of a run is in its evidence.

    Raises:
        ConfigError: google-genai is not installed, or there is no key.
    """

    def __init__(
        self, settings: Settings, model: str = MODEL, budget: int = MAX_TOOL_CALLS, timeout_s: float = TIMEOUT_S
    ):
        try:
            from google import genai
            from google.genai import types
        except ImportError as error:
            raise ConfigError("Gemini needs google-genai.", hint="pip install 'docgemma[prescreen]'") from error
        if not settings.google_api_key:
            raise ConfigError("Gemini needs a key.", hint="Set GOOGLE_API_KEY, or use the local orchestrator.")
        self.model, self._types = model, types
        retry = types.HttpRetryOptions(
            attempts=ATTEMPTS, initial_delay=0.5, max_delay=8, jitter=0.25, http_status_codes=TRANSIENT
        )
        http = types.HttpOptions(
            base_url=settings.gemini_url, api_version="v1beta", timeout=int(timeout_s * 1000), retry_options=retry
        )  # function calling of preview models is in v1beta
        self._client = genai.Client(api_key=settings.google_api_key, vertexai=False, http_options=http)
        weakref.finalize(self, self._client.close)
        declared: list[Any] = [types.FunctionDeclaration(**tool) for tool in prompts()["tools"]]
        self._config = types.GenerateContentConfig(
            system_instruction=prompts()["orchestrator"].format(budget=budget),
            tools=[types.Tool(function_declarations=declared)],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    def next_calls(self, facts: Facts, evidence: Evidence, left: int) -> list[ToolCall]:
        """The calls of Gemini's next turn; [] where it is done, or where it fails half-way (`evidence.partial`).

        Raises:
            ModelError: it fails before the first search: there is nothing to go on with.
        """
        said: list[dict[str, Any]] = evidence.memo.setdefault(MEMO, [])
        if not said:
            said.append({"role": "user", "parts": [{"text": _patient(facts)}]})
        elif asked := [part["function_call"] for part in said[-1]["parts"] if "function_call" in part]:
            said.append({"role": "user", "parts": list(map(_answered, asked, evidence.answers))})
        try:
            return self._turn(said, evidence)
        except ModelError as error:
            if not evidence.searches:
                raise
            evidence.partial = evidence.partial or error.line()
            return []

    def _turn(self, said: list[dict[str, Any]], evidence: Evidence) -> list[ToolCall]:
        for _ in range(MALFORMED_TRIES):
            answer = self._generate(said, evidence)
            content = None if answer is None else _content(answer)
            if content is None:
                said.append({"role": "user", "parts": [{"text": AGAIN}]})
                continue
            said.append(json.loads(content.model_dump_json(exclude_none=True)))
            parts = content.parts or []
            why = " ".join(part.text for part in parts if part.text and not part.thought).strip()
            return [
                ToolCall(tool=call.name or "", args=call.args or {}, why=why[:300])
                for part in parts
                if (call := part.function_call)
            ]
        raise ModelError("Gemini's tool calls could not be read.", hint="Try again, or use the local orchestrator.")

    def _generate(self, said: list[dict[str, Any]], evidence: Evidence) -> "GenerateContentResponse | None":
        """One generation, its tokens counted; None where the SDK cannot read a call in it."""
        import httpx2  # the SDK's own; its transport errors come through as they are
        from google.genai.errors import APIError

        _shorten(said)
        contents: Any = [self._types.Content.model_validate_json(json.dumps(turn)) for turn in said]
        try:
            answer = self._client.models.generate_content(model=self.model, contents=contents, config=self._config)
        except APIError as error:
            raise _failed(error.code) from error
        except httpx2.TimeoutException as error:
            raise ModelError("Gemini did not answer in time.", hint="Try again.", retryable=True) from error
        except httpx2.HTTPError as error:
            hint = "Check DOCGEMMA_GEMINI_URL and the network."
            raise ModelError("Gemini could not be reached.", hint=hint, retryable=True) from error
        except ValueError:  # pydantic's too: arguments that are no object
            return None
        if used := answer.usage_metadata:
            prompt = used.prompt_token_count or 0
            written = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
            evidence.tokens["prompt"] += prompt
            evidence.tokens["completion"] += written
            into, out = PRICES.get(self.model, (0.0, 0.0))
            evidence.cost += (prompt * into + written * out) / 1e6
        return answer


def _content(answer: "GenerateContentResponse") -> "Content | None":
    """What Gemini said; None for a call that it could not write.

    Raises:
        ModelError: a refusal, or an answer that was cut off.
    """
    candidate = next(iter(answer.candidates or []), None)
    blocked = answer.prompt_feedback.block_reason if answer.prompt_feedback else None
    reason = candidate.finish_reason.value if candidate and candidate.finish_reason else "no answer"
    if blocked or candidate is None:
        raise ModelError(f"Gemini refused the request ({blocked.value if blocked else reason}).")
    if reason in MALFORMED:
        return None
    if reason != "STOP" or not candidate.content:
        raise ModelError(f"Gemini ended its answer early ({reason}).")
    return candidate.content


def _failed(status: int) -> ModelError:
    """The server's words are not repeated: they may quote the request."""
    if status in (401, 403):
        return ModelError("Gemini refused the key.", hint="Set GOOGLE_API_KEY.")
    if status in (400, 404):
        return ModelError(f"Gemini refused the request (HTTP {status}).", hint="Check the model's name and the key.")
    if status == 429:
        return ModelError("Gemini's quota is used up.", hint="Try again in a minute.", retryable=True)
    return ModelError(f"Gemini failed (HTTP {status}).", hint="Try again in a minute.", retryable=True)


def _patient(facts: Facts) -> str:
    known = {name: value for name, value in facts.items() if value and name not in ("age", "sex", "note")}
    lines = [f"- {name}: {', '.join(value) if isinstance(value, list) else value}" for name, value in known.items()]
    age = "unknown" if facts["age"] is None else facts["age"]
    return str(
        prompts()["patient"].format(
            age=age, sex=facts["sex"] or "unknown", note=facts["note"], facts="\n".join(lines) or "- none"
        )
    )


def _answered(call: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """A call's answer as Gemini wants it, with the call's id where it gave one."""
    told = {"name": call.get("name", ""), "response": answer}
    return {"function_response": told | ({"id": call["id"]} if call.get("id") else {})}


def _shorten(said: list[dict[str, Any]]) -> None:
    """Drop trials from the oldest answers until the conversation is short enough for its context."""
    size = len(json.dumps(said))
    for part in [part["function_response"]["response"] for turn in said for part in turn["parts"]
                 if "function_response" in part]:  # fmt: skip
        if size <= CONTEXT:
            return
        size += len(json.dumps(part.get("new_trials", [])[:KEPT])) - len(json.dumps(part.get("new_trials", [])))
        part["new_trials"] = part.get("new_trials", [])[:KEPT]
