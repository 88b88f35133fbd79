"""One trial: a case put to a model under one condition, what came back, whether it is right and what it cost."""

from dataclasses import dataclass, field, replace
from typing import Any

from docgemma.llm.base import LLM, Call, Completion, GenConfig, Prompt
from docgemma.prompts import Ask, S, generation
from docgemma.tools import toolbox

Options = dict[str, Any]
BY_CODE = ("reader", "words")  # values of the option `way` that ask no language model
TOOLS = toolbox()


@dataclass
class Outcome:
    """`checks`: what is measured of it, by name; the suite says which of them must hold."""

    got: Any
    checks: dict[str, bool]
    detail: dict[str, Any] = field(default_factory=dict)


class Metered(LLM):
    """A loaded model that counts every physical generation of one trial, also of an answer that was lost."""

    def __init__(self, llm: LLM, seed: int):
        self.llm, self.seed, self.calls = llm, seed, list[Call]()
        self.on_call = self.calls.append
        self.name, self.profile, self.vision = llm.name, llm.profile, llm.vision

    def complete(self, prompt: Prompt, config: GenConfig, *, node: str, **options: Any) -> Completion:
        return self.llm.complete(prompt, replace(config, seed=self.seed), node=node, **options)

    def ask(self, ask: Ask[S], options: Options) -> S:
        """One constrained call, sampled as its node is, except for what the condition says."""
        value = self.structured(ask.prompt, ask.schema, sampling(ask.node, options), node=ask.node).value
        assert isinstance(value, ask.schema)
        return value


def sampling(node: str, options: Options) -> GenConfig:
    return replace(generation(node), **{key: options[key] for key in ("temperature", "max_tokens") if key in options})
