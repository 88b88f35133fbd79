"""One copy of a model on each of several GPUs. A turn is not faster for it; two turns at once do not wait for another.

Not a model split over GPUs: MedGemma in 4 bits fits on one T4, and a split would only add waiting between them.
"""

from collections.abc import Callable, Sequence
from queue import PriorityQueue
from typing import Any

from docgemma.errors import ModelError
from docgemma.llm.base import LLM, Completion
from docgemma.settings import Settings


class PoolLLM(LLM):
    """Copies of one model. A generation takes the first idle copy, so that one person alone stays on the first one,
    whose kept prompt beginnings serve the next call.

    Args:
        copies: of one model, each with its own device; at least one.
    """

    def __init__(self, copies: Sequence[LLM]):
        self.copies = list(copies)
        first = self.copies[0]
        self.name, self.profile, self.vision, self.slots = first.name, first.profile, first.vision, len(self.copies)
        self.generations = [0] * len(self.copies)
        self._idle: PriorityQueue[int] = PriorityQueue()
        for number in range(len(self.copies)):
            self._idle.put(number)

    def complete(self, *args: Any, **kwargs: Any) -> Completion:
        number = self._idle.get()
        self.generations[number] += 1
        try:
            return self.copies[number].complete(*args, **kwargs)
        finally:
            self._idle.put(number)

    def describe(self) -> dict[str, Any]:
        devices = [copy.describe().get("device", "") for copy in self.copies]
        return {**self.copies[0].describe(), "devices": devices, "generations": list(self.generations)}

    def close(self) -> None:
        for copy in self.copies:
            copy.close()


def load_copies(name: str, settings: Settings, on_progress: Callable[[str], object]) -> LLM:
    """A copy on each GPU, as many as `settings.gpus` allows. One that cannot be loaded is said, and done without.

    Raises:
        ConfigError, ModelError: not even the first copy can be loaded.
    """
    from docgemma.llm.hf_load import load_transformers

    copies: list[LLM] = [load_transformers(name, settings, on_progress)]
    for gpu in range(1, min(settings.gpus, gpu_count())):
        try:
            copies.append(load_transformers(name, settings, on_progress, gpu=gpu))
        except ModelError as error:
            on_progress(f"GPU {gpu} is left out. {error.line()}")
    return PoolLLM(copies) if len(copies) > 1 else copies[0]


def gpu_count() -> int:
    """GPUs that torch can use."""
    import torch

    return torch.cuda.device_count()
