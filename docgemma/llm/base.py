"""The model protocol: a prompt and a schema in, a validated object or streamed text out, every call recorded.

A back end implements `complete`: one physical generation. Everything that must be the same on all of them
(parsing, thinking spans, the retries, the records) is here.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from docgemma.errors import MalformedOutputError, NoVisionError, OutOfTokensError
from docgemma.llm.grammar import only_answer

if TYPE_CHECKING:  # a question without an image has no use for it
    from PIL.Image import Image

T = TypeVar("T")
OnToken = Callable[[str], object]

CONTEXT = 8192  # tokens; more fits MedGemma's weights but not a T4 beside them
OPEN_THINKING, CLOSE_THINKING = "<unused94>", "<unused95>"  # MedGemma 1.5's marks around what it thinks
NO_THOUGHT = f"{OPEN_THINKING}thought\n{CLOSE_THINKING}"
SPAN = re.compile(rf"{OPEN_THINKING}.*?(?:{CLOSE_THINKING}|\Z)|{CLOSE_THINKING}", re.DOTALL)
TAIL = re.compile(r"<\w{0,9}\Z")  # of a mark that is not complete yet


@dataclass(frozen=True)
class GenConfig:
    """How a node samples. `temperature` 0 is greedy; `max_tokens` counts new tokens."""

    temperature: float = 0.0
    max_tokens: int = 256
    seed: int | None = None


@dataclass(frozen=True)
class Prompt:
    """What the model is told. `prefix` opens the assistant's turn; `images` need a model with vision."""

    user: str
    system: str = ""
    prefix: str = ""
    images: "tuple[Image, ...]" = ()


@dataclass(frozen=True)
class Completion:
    """One physical generation. `truncated`: the budget ended before the answer did."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    truncated: bool = False
    cached_tokens: int = 0  # prompt tokens whose key values were reused
    forced_tokens: int = 0  # completion tokens that the grammar left no choice about


@dataclass(frozen=True)
class Call:
    """The record of one physical generation: what a `Completion` says but its text, where and how long."""

    node: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    truncated: bool = False
    cached_tokens: int = 0
    forced_tokens: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Generation(Generic[T]):
    """What a node gets back: the value, and the calls that it cost (two where the budget had to grow)."""

    value: T
    calls: list[Call] = field(default_factory=list)


class LLM(ABC):
    """One loaded model.

    Attributes:
        name: what the user called it, "edge".
        profile: which prompt profile it was measured with, "full" or "edge".
        vision: whether it can look at images.
    """

    name: str
    profile: Literal["full", "edge"] = "full"
    vision: bool = False
    slots: int = 1  # generations at a time; more wait
    on_call: "Callable[[Call], object] | None" = None  # gets the record of each generation as it ends

    @abstractmethod
    def complete(
        self,
        prompt: Prompt,
        config: GenConfig,
        *,
        node: str,
        schema: type[BaseModel] | None = None,
        on_token: OnToken | None = None,
    ) -> Completion:
        """Generate once. With a schema the text is constrained to its JSON; free text should not open a thinking span.

        `on_token` gets each piece of text as it is made; what it raises (a stop button, Ctrl-C) ends the
        generation and propagates.
        """

    def describe(self) -> dict[str, Any]:
        """What was loaded: weights, compute type and why, memory in bytes where known."""
        return {"name": self.name, "vision": self.vision}

    def close(self) -> None:  # noqa: B027  (nothing to release is a fine default)
        """Release the model. Safe to call twice."""

    def structured(
        self, prompt: Prompt, schema: type[BaseModel], config: GenConfig, *, node: str
    ) -> Generation[BaseModel]:
        """Constrained generation into `schema`. Where it leaves no choice nothing is generated, and no call recorded.

        Raises:
            OutOfTokensError: the answer did not end within its budget, nor within four times as much.
            MalformedOutputError: the answer ended and still does not parse.
        """
        if (settled := only_answer(schema)) is not None:
            return Generation(settled)
        calls: list[Call] = []
        for budget in (config.max_tokens, config.max_tokens * 4):
            done = self._record(calls, prompt, replace(config, max_tokens=budget), node, schema)
            try:
                return Generation(schema.model_validate_json(strip_thinking(done.text).strip()), calls)
            except ValidationError as error:
                if not done.truncated:
                    raise MalformedOutputError(
                        f"The model's answer at {node} does not fit {schema.__name__}.",
                        hint="Try the question in other words.",
                    ) from error
        raise OutOfTokensError(
            f"The model ran out of its token budget at {node}.", hint="Try a shorter question.", retryable=True
        )

    def text(self, prompt: Prompt, config: GenConfig, *, node: str, on_token: OnToken | None = None) -> Generation[str]:
        """Free text, thinking spans removed; may be empty. `on_token` never sees a thinking span.

        A span that is never closed would cost the answer: the model goes on once from where the span began, told that
        its thinking is over.
        """
        calls: list[Call] = []
        value = ""
        for _ in range(2):
            visible = ThinkingFilter(on_token) if on_token else None
            done = self._record(calls, prompt, config, node, on_token=visible)
            if visible:
                visible.flush()
            written = strip_thinking(done.text)
            value += written
            if done.text.rfind(OPEN_THINKING) <= done.text.rfind(CLOSE_THINKING):
                break
            prompt = replace(prompt, prefix=prompt.prefix + written + NO_THOUGHT)
        return Generation(value.strip(), calls)

    def _record(
        self, calls: list[Call], prompt: Prompt, config: GenConfig, node: str, schema: type[BaseModel] | None = None,
        on_token: OnToken | None = None,
    ) -> Completion:  # fmt: skip
        if prompt.images and not self.vision:
            raise NoVisionError(
                f"The model {self.name} cannot look at images.", hint="Load one that can: --model medgemma."
            )
        start = time.perf_counter()
        done = self.complete(prompt, config, node=node, schema=schema, on_token=on_token)
        calls.append(
            Call(node, done.prompt_tokens, done.completion_tokens, round(time.perf_counter() - start, 4),
                 done.truncated, done.cached_tokens, done.forced_tokens)
        )  # fmt: skip
        if self.on_call:
            self.on_call(calls[-1])
        return done


def strip_thinking(text: str) -> str:
    """Remove MedGemma's thinking spans, closed or not, wherever they stand."""
    return SPAN.sub("", text)


class ThinkingFilter:
    """Passes streamed text on, holding back thinking spans and a tail that might begin a mark."""

    def __init__(self, sink: OnToken):
        self.sink, self.text, self.shown = sink, "", 0

    def __call__(self, piece: str) -> None:
        self.text += piece
        self._pass(TAIL.sub("", self.text))

    def flush(self) -> None:
        self._pass(self.text)

    def _pass(self, text: str) -> None:
        if new := strip_thinking(text)[self.shown :]:
            self.shown += len(new)
            self.sink(new)
