"""From a `Prompt` to the one string that a model was trained on: turns, roles, the opened assistant's turn.

Text inside a turn is data: a model's control tokens written into it ("<|im_end|>") are broken up, so that a question
or a tool's result cannot close its turn and open another.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from docgemma.errors import ModelError
from docgemma.llm.base import Prompt

Messages = list[dict[str, str]]


def chatml(messages: Messages) -> str:
    """SmolLM2, Qwen and others. Without the default system text that SmolLM2's own template would add."""
    turns = "".join(f"<|im_start|>{item['role']}\n{item['content']}<|im_end|>\n" for item in messages)
    return f"{turns}<|im_start|>assistant\n"


def gemma(messages: Messages) -> str:
    """Gemma 2 and 3. The first BOS is the tokenizer's to add."""
    turns = "".join(f"<start_of_turn>{item['role']}\n{item['content']}<end_of_turn>\n" for item in messages)
    return f"{turns}<start_of_turn>model\n"


def from_template(source: str, *, bos: str, eos: str = "") -> Callable[[Messages], str]:
    """A Jinja chat template, as Hugging Face and GGUF files carry it, run in a sandbox.

    Raises:
        ModelError: the template does not compile, or refuses the messages.
    """
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    try:
        template = environment.from_string(source)
    except TemplateError as error:
        raise ModelError(f"The model's chat template does not compile ({error}).", hint="Use another model.") from error

    def render(messages: Messages) -> str:
        names: dict[str, Any] = {"bos_token": bos, "eos_token": eos, "tools": None}
        try:
            return template.render(messages=messages, add_generation_prompt=True, **names)
        except TemplateError as error:
            raise ModelError(f"The model's chat template failed ({error}).", hint="Use another model.") from error

    return render


@dataclass(frozen=True)
class ChatFormat:
    """How one model is talked to.

    Attributes:
        render: messages to text, the assistant's turn opened.
        bos: removed from the front of what `render` returns, where the tokenizer adds it too; "" leaves it.
        folds_system: there is no system role (Gemma): the system text goes before the user's.
        control_tokens: what must not be read out of a turn's text.
    """

    render: Callable[[Messages], str]
    bos: str = ""
    folds_system: bool = False
    control_tokens: tuple[str, ...] = ()

    def __call__(self, prompt: Prompt, *, media_mark: str = "") -> str:
        """The whole prompt, up to and with `prompt.prefix`. `media_mark` stands for each image, before the text."""
        text = self.render(self.messages(prompt, media_mark=media_mark))
        if self.bos:
            text = text.removeprefix(self.bos)
        return text + prompt.prefix

    def messages(self, prompt: Prompt, *, media_mark: str = "") -> Messages:
        system, user = self.as_data(prompt.system), self.as_data(prompt.user)
        user = media_mark * len(prompt.images) + user
        if system and self.folds_system:
            return [{"role": "user", "content": f"{system}\n\n{user}"}]
        return [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": user}]

    def as_data(self, text: str) -> str:
        """Text in which no control token stands any more: a space after its first character."""
        return self._control.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self.control_tokens else text

    @cached_property
    def _control(self) -> re.Pattern:
        return control_pattern(self.control_tokens)


def control_pattern(tokens: Iterable[str]) -> re.Pattern:
    """One expression for all control tokens; Gemma's 6,242 `<unusedN>` are one alternative of it."""
    numbered = {re.sub(r"\d+", "0", token) for token in tokens if token}
    longest_first = sorted(numbered, key=len, reverse=True)
    return re.compile("|".join(re.escape(token).replace("0", r"\d+") for token in longest_first) or r"(?!)")
