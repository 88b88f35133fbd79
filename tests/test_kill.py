"""kill -9 at every boundary of a turn that writes: nothing is lost, nothing is written twice.

Each round forks a process that runs the real agent (its model scripted, everything else real) and kills itself at a
chosen boundary: before or after a checkpoint, a tool call, a write to the record. Other processes then take the
conversation up, some of them killed in turn, until it is answered. Then the orders in the record are counted.
"""

import os
import random
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from docgemma.agent import Agent
from docgemma.errors import UsageError
from docgemma.settings import Settings
from tests.databases import postgres_server
from tests.scripted import ScriptedLLM
from tests.test_graph_v3 import intent

QUESTION = "Prescribe lisinopril 10 mg once daily for def-456"
DONE = 0


@pytest.fixture(autouse=True, scope="module")
def loaded(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a turn loads (modules, reader, drug names) is loaded once: every process that is forked here has it."""
    folder = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("loaded") / "home"))
    llm = intent(ScriptedLLM(), "prescribe_medication")
    with Agent(Settings(home=folder, sources="offline"), llm=llm) as agent:
        assert agent.ask(QUESTION)["pending_write"]


def test_kill_at_every_boundary_writes_exactly_once_on_sqlite(home: Path, tmp_path: Path) -> None:
    rounds = play(home, tmp_path, lambda folder: str(folder / "memory.sqlite"), rounds=170)
    assert rounds == 170


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as address:
        yield address


def test_kill_at_every_boundary_writes_exactly_once_on_postgres(home: Path, tmp_path: Path, postgres: str) -> None:
    assert play(home, tmp_path, lambda folder: postgres, rounds=40) == 40


def play(home: Path, tmp_path: Path, db: Callable[[Path], str], rounds: int) -> int:
    boundaries = count_boundaries(home, tmp_path / "count", db)
    assert boundaries > 20
    rng = random.Random(20261121)
    for number in range(rounds):
        folder = Path(shutil.copytree(home, tmp_path / f"round{number}", symlinks=True))
        thread = f"kill-{number}-{rng.random()}"
        deaths = [number % boundaries + 1, *(rng.randrange(1, boundaries) for _ in range(rng.randrange(3)))]
        for death in [*deaths, None]:
            status = in_child(partial(turn, folder, db(folder), thread, death))
            assert status in (DONE, -signal.SIGKILL), f"round {number}: status {status}"
        assert status == DONE, f"round {number}: the conversation could not be finished"
        assert orders(folder) == 1, f"round {number}, killed at {deaths}: {orders(folder)} orders"
        shutil.rmtree(folder)
    return rounds


def count_boundaries(home: Path, folder: Path, db: Callable[[Path], str]) -> int:
    """How many boundaries one undisturbed conversation passes."""
    shutil.copytree(home, folder, symlinks=True)
    reached = folder / "reached"
    assert in_child(lambda: turn(folder, db(folder), f"count-{folder}", None, reached)) == DONE
    return int(reached.read_text())


def turn(folder: Path, db: str, thread: str, death: int | None, reached: Path | None = None) -> None:
    """Ask, or take up what is there, and approve; die at the given boundary."""
    boundary = Boundary(death)
    llm = ScriptedLLM()
    for _ in range(3):
        intent(llm, "prescribe_medication")
        llm.enqueue("result_classify", {"quality": "success_rich", "brief_summary": "Written."})
        llm.enqueue("synthesize", "The order was placed.")
    agent = Agent(Settings(home=folder, sources="offline", db=db), llm=llm)
    boundary.around(type(agent.memory), "put", "put_writes")
    boundary.around(type(agent.toolbox), "call")
    boundary.around(type(agent.store), "create")
    try:
        result = agent.proceed(thread)
    except UsageError:  # killed before anything of the turn was kept: the clinician asks again
        result = agent.ask(QUESTION, thread=thread, create=True)
    if result["pending_write"]:
        result = agent.decide(thread, "approve")
    assert result["status"] == "answered", result
    if reached:
        reached.write_text(str(boundary.passed))


class Boundary:
    """Counts the places where a process can die, and dies at one of them."""

    def __init__(self, death: int | None):
        self.death, self.passed = death, 0

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.death:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type, *names: str) -> None:
        for name in names:
            setattr(owner, name, self._wrapped(getattr(owner, name)))

    def _wrapped(self, method):
        def run(*args, **kwargs):
            self()
            value = method(*args, **kwargs)
            self()
            return value

        return run


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process; its exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = DONE
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def orders(folder: Path) -> int:
    """Lisinopril orders that the patient did not have before."""
    from docgemma.ehr.open import open_store

    store = open_store(Settings(home=folder, sources="offline"))
    try:
        medications = store.chart("def-456").medications
    finally:
        store.close()
    return sum("10 mg once daily" in str(item) and "lisinopril" in str(item).lower() for item in medications)


def test_approving_again_after_a_crash_past_the_write_says_that_it_is_recorded(home: Path, tmp_path: Path) -> None:
    def approve(folder: Path, death: int | None) -> None:
        llm = ScriptedLLM()
        intent(llm, "prescribe_medication")
        for _ in range(3):
            llm.enqueue("result_classify", {"quality": "success_rich", "brief_summary": "Written."})
            llm.enqueue("synthesize", "The order was placed.")
        agent, boundary = Agent(Settings(home=folder, sources="offline"), llm=llm), Boundary(death)
        if not agent.threads("t"):
            assert agent.ask(QUESTION, thread="t", create=True)["pending_write"]
        boundary.around(type(agent.memory), "put", "put_writes")
        boundary.around(type(agent.store), "create")
        try:
            (folder / "said").write_text(agent.decide("t", "approve")["answer"])
        except UsageError as error:
            (folder / "said").write_text(error.line())
        (folder / "passed").write_text(str(boundary.passed))

    folder = Path(shutil.copytree(home, tmp_path / "count", symlinks=True))
    assert in_child(lambda: approve(folder, None)) == DONE
    for death in range(1, int((folder / "passed").read_text()) + 1):
        folder = Path(shutil.copytree(home, tmp_path / f"death{death}", symlinks=True))
        assert in_child(partial(approve, folder, death)) == -signal.SIGKILL
        assert in_child(partial(approve, folder, None)) == DONE
        said = (folder / "said").read_text()
        assert "entry is recorded" in said or "Prescribed lisinopril" in said, f"killed at {death}: {said}"
        assert orders(folder) == 1
