"""Copies of a model on several GPUs: who gets which, and what happens where one cannot be loaded."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from docgemma.errors import ModelError
from docgemma.llm import pool
from docgemma.llm.base import LLM, Completion, GenConfig, Prompt
from docgemma.llm.pool import PoolLLM, load_copies
from docgemma.settings import Settings


class Copy(LLM):
    """Answers with its own number, once everybody who is expected has come."""

    vision = True

    def __init__(self, number: int, together: threading.Barrier | None = None):
        self.name, self.number, self.together = "medgemma", number, together

    def complete(self, prompt: Prompt, config: GenConfig, **options) -> Completion:
        if self.together:
            self.together.wait(timeout=20)  # a generation that waited for the other's end would never come
        if prompt.user == "fail":
            raise ModelError("broken")
        return Completion(str(self.number), 1, 1)

    def describe(self) -> dict:
        return {"name": self.name, "device": f"cuda:{self.number}"}


def ask(llm: LLM, text: str = "?") -> str:
    return llm.text(Prompt(user=text), GenConfig(), node="test").value


def test_one_person_alone_stays_on_the_first_copy() -> None:
    llm = PoolLLM([Copy(0), Copy(1)])
    assert [ask(llm) for _ in range(3)] == ["0", "0", "0"]


def test_two_generations_at_once_run_on_both_copies() -> None:
    together = threading.Barrier(2)
    llm = PoolLLM([Copy(0, together), Copy(1, together)])
    with ThreadPoolExecutor(2) as people:
        assert sorted(people.map(lambda _: ask(llm), range(2))) == ["0", "1"]
    assert llm.describe()["generations"] == [1, 1] and llm.describe()["devices"] == ["cuda:0", "cuda:1"]


def test_more_people_than_copies_wait_their_turn() -> None:
    llm = PoolLLM([Copy(0), Copy(1)])
    with ThreadPoolExecutor(8) as people:
        assert set(people.map(lambda _: ask(llm), range(40))) <= {"0", "1"}
    assert sum(llm.generations) == 40


def test_a_copy_that_fails_is_idle_again() -> None:
    llm = PoolLLM([Copy(0)])
    with pytest.raises(ModelError):
        ask(llm, "fail")
    assert ask(llm) == "0" and llm.vision and llm.name == "medgemma"


@pytest.mark.parametrize(("gpus", "found", "loaded"), [(1, 2, [0]), (2, 2, [0, 1]), (2, 1, [0]), (4, 0, [0])])
def test_as_many_copies_are_loaded_as_there_are_gpus(
    monkeypatch: pytest.MonkeyPatch, gpus: int, found: int, loaded: list[int]
) -> None:
    pytest.importorskip("torch")
    made: list[int] = []

    def load(name, settings, on_progress, gpu=0) -> Copy:
        made.append(gpu)
        return Copy(gpu)

    monkeypatch.setattr("docgemma.llm.hf_load.load_transformers", load)
    monkeypatch.setattr(pool, "gpu_count", lambda: found)
    llm = load_copies("medgemma", Settings(gpus=gpus), print)
    assert made == loaded and isinstance(llm, PoolLLM) == (len(loaded) > 1)


def test_a_gpu_that_cannot_take_a_copy_is_said_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def load(name, settings, on_progress, gpu=0) -> Copy:
        if gpu:
            raise ModelError("It does not fit.")
        return Copy(gpu)

    monkeypatch.setattr("docgemma.llm.hf_load.load_transformers", load)
    monkeypatch.setattr(pool, "gpu_count", lambda: 2)
    said: list[str] = []
    assert isinstance(load_copies("medgemma", Settings(gpus=2), said.append), Copy)
    assert said == ["GPU 1 is left out. It does not fit."]
