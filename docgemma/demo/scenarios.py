"""The guided scenarios: what is asked, what should happen, what to notice. Played live, or from a stored trace."""

import contextlib
import copy
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from docgemma.agent import Agent
from docgemma.errors import UsageError
from docgemma.nodes.context import CLINICIAN, Actor
from docgemma.notebook import failing
from docgemma.tools.base import Toolbox

FOLDER = Path(__file__).parent
TRACES = FOLDER / "traces"
PAUSE_S = 0.25  # between the steps of a replay, so that an eye can follow


@dataclass(frozen=True)
class Step:
    """One thing that a person does: ask, choose (1 is the first option), or decide."""

    caption: str
    ask: str = ""
    image: str = ""  # a file that pydicom ships
    choose: int = 0
    decide: str = ""
    change: dict[str, Any] = field(default_factory=dict)
    fails: dict[str, Any] = field(default_factory=dict)  # {"error": a known error type, "times": how often}
    expect: dict[str, Any] = field(default_factory=dict)  # {"status", "path", "tools", "says"}

    @property
    def image_path(self) -> Path | None:
        from pydicom.data import get_testdata_file

        return Path(get_testdata_file(self.image, download=False)) if self.image else None

    @property
    def said(self) -> str:
        return "; ".join(f"{key.replace('_', ' ')} {value}" for key, value in self.change.items())

    def unmet(self, result: dict[str, Any]) -> list[str]:
        """What `expect` promises and a result does not show, one line each."""
        seen = result | {"tools": [tool["name"] for tool in result["tools"]]}
        promised = {key: value for key, value in self.expect.items() if key != "says"}
        lines = [f"{key} is {seen[key]}, not {value}" for key, value in promised.items() if seen[key] != value]
        return lines + [f"{words!r} is not in the answer" for words in self.expect.get("says", [])
                        if words not in result["answer"]]  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    id: str
    title: str
    notice: str
    steps: tuple[Step, ...]


def load_scenarios(path: Path = FOLDER / "scenarios.yaml") -> list[Scenario]:
    """All scenarios, in the order in which they are shown."""
    items = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Scenario(item["id"], item["title"], item["notice"], tuple(Step(**step) for step in item["steps"]))
        for item in items
    ]


def player(
    agent: Agent | None, scenario: Scenario, number: int, thread: str, last: dict[str, Any] | None,
    traces: Path = TRACES, actor: Actor = CLINICIAN,
) -> Any:  # fmt: skip
    """Step `number` (from 0) as work for a turn: live with an agent, from the stored trace without."""
    if agent is None:
        return _replay(load_trace(scenario.id, traces)["steps"][number])
    return lambda on_event, stop: take(agent, scenario.steps[number], thread, last, on_event, stop, actor)


def take(
    agent: Agent, step: Step, thread: str, last: dict[str, Any] | None, on_event: Any, stop: Any,
    actor: Actor = CLINICIAN,
) -> dict[str, Any]:  # fmt: skip
    """One step through the agent; `last` is the result of the step before."""
    with troubled(agent, step.fails) as agent:
        if step.decide:
            return agent.decide(thread, step.decide, dict(step.change), actor=actor, on_event=on_event, stop=stop)
        text = step.ask
        if step.choose:
            options = (last or {}).get("options", [])
            if len(options) < step.choose:
                raise UsageError("There is nothing to choose from here.", hint="Begin the scenario again.")
            text = options[step.choose - 1]["id"]
        return agent.ask(
            text, thread=thread, create=True, image=step.image_path, actor=actor, on_event=on_event, stop=stop
        )


@contextlib.contextmanager
def troubled(agent: Agent, fails: dict[str, Any]) -> Iterator[Agent]:
    """The same agent with tools of its own that fail, so that nobody else's turn is touched."""
    if not fails:
        yield agent
        return
    own = copy.copy(agent)
    own.toolbox = Toolbox(agent.toolbox.tools.values())
    with failing(own, fails["error"], fails["times"]):
        yield own


def play(agent: Agent, scenario: Scenario, thread: str) -> list[dict[str, Any]]:
    """Every step in turn: `[{"events", "result"}]`."""
    played: list[dict[str, Any]] = []
    for step in scenario.steps:
        events: list[dict[str, Any]] = []
        last = played[-1]["result"] if played else None
        result = take(agent, step, thread, last, events.append, lambda: False)
        played.append({"events": events, "result": result})
    return played


def replay(scenario: Scenario, traces: Path = TRACES) -> list[dict[str, Any]]:
    """The result of each step, from the stored trace. Raises UsageError where there is none."""
    return [step["result"] for step in load_trace(scenario.id, traces)["steps"]]


def record(agent: Agent, folder: Path = TRACES) -> list[str]:
    """Play everything, each in a conversation of its own, and store it for replay; the ids of what was stored."""
    folder.mkdir(parents=True, exist_ok=True)
    for scenario in load_scenarios():
        steps = play(agent, scenario, f"scenario-{scenario.id}")
        stored = {"scenario": scenario.id, "model": agent.llm.name, "recorded": date.today().isoformat()}
        kept = [{**step, "events": [item for item in step["events"] if item["type"] != "token"]} for step in steps]
        text = json.dumps(stored | {"steps": kept}, ensure_ascii=False, indent=1, default=str)
        (folder / f"{scenario.id}.json").write_text(text + "\n", encoding="utf-8")
    return [scenario.id for scenario in load_scenarios()]


def load_trace(scenario: str, folder: Path = TRACES) -> dict[str, Any]:
    """A stored play: `scenario`, `model`, `recorded` (ISO date), `steps`.

    Raises:
        UsageError: this scenario was never recorded.
    """
    path = folder / f"{scenario}.json"
    if not path.is_file():
        raise UsageError("There is no recording of this scenario.", hint="Load a model to play it live.")
    return json.loads(path.read_text(encoding="utf-8"))


def _replay(step: dict[str, Any]) -> Any:
    def work(on_event: Any, stop: Any) -> dict[str, Any]:
        for event in step["events"]:
            if stop():
                raise UsageError("Stopped.", hint="Play the scenario again.")
            on_event(event)
            time.sleep(PAUSE_S)
        return step["result"]

    return work


def main() -> None:
    """`python -m docgemma.demo.scenarios`: record with the edge model, on a fresh record store, offline."""
    import tempfile

    from docgemma.settings import read_settings

    with (
        tempfile.TemporaryDirectory() as home,
        Agent(read_settings(home=home, sources="offline"), model="edge") as agent,
    ):
        print("Recorded:", ", ".join(record(agent)))


if __name__ == "__main__":
    main()
