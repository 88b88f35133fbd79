"""The model protocol: a prompt and a schema in, a validated object or streamed text out, every call recorded.

A back end implements `complete`: one physical generation. Everything that must be the same on all of them
(parsing, thinking spans, the one retry with a larger budget, the records) is here.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from docgemma.errors import MalformedOutputError, NoVisionError, OutOfTokensError
from docgemma.llm.layout import Layout, only_answer, parse

if TYPE_CHECKING:  # a question without an image has no use for it
    from PIL.Image import Image

T = TypeVar("T")
OnToken = Callable[[str], Any]

MARKS = re.compile("(<unused94>|<unused95>)")


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
    """The record of one physical generation."""

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
    truncated: bool = False


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

    @abstractmethod
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
        """Generate once. With a schema the text is constrained to it, in the given layout.

        `on_token` gets each piece of text as it is made; what it raises (a stop button, Ctrl-C) ends the
        generation and propagates.
        """

    def describe(self) -> dict[str, Any]:
        """What was loaded: weights, compute type and why, memory in bytes where known."""
        return {"name": self.name, "vision": self.vision}

    def close(self) -> None:  # noqa: B027  (nothing to release is a fine default)
        """Release the model. Safe to call twice."""

    def structured(
        self, prompt: Prompt, schema: type[BaseModel], config: GenConfig, *, node: str, layout: Layout = "json"
    ) -> Generation[BaseModel]:
        """Constrained generation into `schema`. Where it leaves no choice nothing is generated, and no call recorded.

        Raises:
            OutOfTokensError: the answer did not end within its budget, nor within four times as much.
            MalformedOutputError: the answer ended and still does not parse.
        """
        if (settled := only_answer(schema, layout)) is not None:
            return Generation(parse(settled, schema, layout))
        calls: list[Call] = []
        for budget in (config.max_tokens, config.max_tokens * 4):
            done = self._record(calls, prompt, replace(config, max_tokens=budget), node, schema, layout, None)
            try:
                return Generation(parse(strip_thinking(done.text), schema, layout), calls)
            except (ValidationError, ValueError) as error:
                if not done.truncated:
                    raise MalformedOutputError(
                        f"The model's answer at {node} does not fit {schema.__name__}.",
                        hint="Try the question in other words.",
                    ) from error
        raise OutOfTokensError(
            f"The model ran out of its token budget at {node}.", hint="Try a shorter question.", retryable=True
        )

    def text(self, prompt: Prompt, config: GenConfig, *, node: str, on_token: OnToken | None = None) -> Generation[str]:
        """Free text, thinking spans removed; may be empty. `on_token` never sees a thinking span."""
        calls: list[Call] = []
        visible = ThinkingFilter(on_token) if on_token else None
        done = self._record(calls, prompt, config, node, None, "json", visible)
        if visible:
            visible.flush()
        return Generation(strip_thinking(done.text).strip(), calls, done.truncated)

    def _record(self, calls, prompt, config, node, schema, layout, on_token) -> Completion:
        if prompt.images and not self.vision:
            raise NoVisionError(
                f"The model {self.name} cannot look at images.", hint="Load one that can: --model medgemma."
            )
        start = time.perf_counter()
        done = self.complete(prompt, config, node=node, schema=schema, layout=layout, on_token=on_token)
        calls.append(
            Call(node, done.prompt_tokens, done.completion_tokens, round(time.perf_counter() - start, 4),
                 done.truncated, done.cached_tokens, done.forced_tokens)
        )  # fmt: skip
        return done


def strip_thinking(text: str) -> str:
    """Remove MedGemma's thinking spans, closed or not, wherever they stand."""
    pieces: list[str] = []
    visible = ThinkingFilter(pieces.append)
    visible(text)
    visible.flush()
    return "".join(pieces)


class ThinkingFilter:
    """Passes streamed text on, holding back thinking spans and a tail that might begin or end one."""

    OPEN, CLOSE = "<unused94>", "<unused95>"  # MedGemma 1.5; a span that is not closed runs to the end

    def __init__(self, sink: OnToken):
        self.sink, self.held, self.inside = sink, "", False

    def __call__(self, piece: str) -> None:
        *parts, self.held = MARKS.split(self.held + piece)
        for part in parts:
            if part == self.OPEN:
                self.inside = True
            elif part == self.CLOSE:
                self.inside = False
            else:
                self._pass(part)
        lengths = range(1, min(len(self.OPEN), len(self.held) + 1))
        keep = max((n for n in lengths if self._may_begin_a_mark(self.held[-n:])), default=0)
        ready, self.held = self.held[: len(self.held) - keep], self.held[len(self.held) - keep :]
        self._pass(ready)

    def _may_begin_a_mark(self, tail: str) -> bool:
        return self.OPEN.startswith(tail) or self.CLOSE.startswith(tail)

    def _pass(self, text: str) -> None:
        if text and not self.inside:
            self.sink(text)

    def flush(self) -> None:
        self._pass(self.held)
        self.held = ""
