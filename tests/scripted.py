"""A model that says what a test tells it to, node by node, through the same code path as a real one.

Not a stand-in for a language model: it exists so that a test can fix the graph's path exactly. Broken JSON, truncated
JSON, an unclosed thinking span and an empty string are enqueued as the raw text that a real model would have made.
"""

from collections import defaultdict, deque
from typing import Any

from pydantic import BaseModel

from docgemma.llm.base import LLM, Completion, GenConfig, OnToken, Prompt


class ScriptedLLM(LLM):
    """Answers each node's calls in the order in which they were enqueued.

    Args:
        profile: the prompt profile that the graph takes, "full" or "edge".
        vision: whether images are accepted.

    Attributes:
        history: (node, prompt, schema) of every physical generation, in order; schema is None for free text.
        configs: the GenConfig of each, in the same order.
    """

    name = "scripted"

    def __init__(self, *, profile: str = "full", vision: bool = False):
        self.profile, self.vision = profile, vision
        self.history: list[tuple[str, Prompt, type[BaseModel] | None]] = []
        self.configs: list[GenConfig] = []
        self._queues: dict[str, deque[tuple[Any, bool]]] = defaultdict(deque)

    def enqueue(self, node: str, answer: BaseModel | dict | str | BaseException, *, truncated: bool = False):
        """Queue one answer for a node; returns self, so that calls chain.

        Args:
            answer: a schema value or dict, raw text, or what to raise.
            truncated: the budget ended before the answer did (so `structured` tries once more).
        """
        self._queues[node].append((answer, truncated))
        return self

    def pending(self) -> dict[str, int]:
        """Answers nobody has asked for, by node; empty when the script was played to its end."""
        return {node: len(queue) for node, queue in self._queues.items() if queue}

    def nodes(self) -> list[str]:
        return [node for node, _, _ in self.history]

    def complete(
        self,
        prompt: Prompt,
        config: GenConfig,
        *,
        node: str,
        schema: type[BaseModel] | None = None,
        on_token: OnToken | None = None,
    ) -> Completion:
        self.history.append((node, prompt, schema))
        self.configs.append(config)
        if not self._queues[node]:
            raise AssertionError(f"nothing enqueued for {node}; asked so far: {self.nodes()}")
        answer, truncated = self._queues[node].popleft()
        if isinstance(answer, BaseException):
            raise answer
        text = self._text(answer, schema)
        if on_token:
            for start in range(0, len(text), 5):  # pieces that cut words and thinking marks in two
                on_token(text[start : start + 5])
        words = len(f"{prompt.system} {prompt.user}".split())
        return Completion(text, prompt_tokens=words, completion_tokens=len(text.split()), truncated=truncated)

    @staticmethod
    def _text(answer: BaseModel | dict | str, schema: type[BaseModel] | None) -> str:
        if isinstance(answer, dict):
            if schema is None:
                raise AssertionError("a dict was enqueued where free text is asked for")
            answer = schema.model_validate(answer)
        return answer.model_dump_json() if isinstance(answer, BaseModel) else answer
