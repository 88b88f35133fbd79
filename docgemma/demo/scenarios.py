"""The guided scenarios: what is asked, what should happen, what to notice. Played live, or from a stored trace."""

import copy
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, TypeAdapter

from docgemma.agent import Agent, OnEvent
from docgemma.errors import UsageError
from docgemma.nodes.context import CLINICIAN, Actor, never_stop
from docgemma.notebook import failing
from docgemma.paths import data_file
from docgemma.tools.base import Toolbox
from docgemma.turns import Stop

FOLDER = Path(__file__).parent
TRACES = FOLDER / "traces"
PAUSE_S = 0.25  # between the steps of a replay, so that an eye can follow
PLAYED = "Played as a guided scenario."  # the reason where something red stands: an earlier play wrote the same
Result = dict[str, Any]


class Step(BaseModel):
    """One thing that a person does: ask, choose (1 is the first option), or decide."""

    caption: str
    ask: str = ""
    image: str = ""  # a file of data/images
    choose: int = 0
    decide: Any = ""
    change: dict[str, Any] = {}
    fails: dict[str, Any] = {}  # {"error": a known error type, "times": how often}
    expect: dict[str, Any] = {}  # {"status", "path", "tools", "says"}

    @property
    def image_path(self) -> Path | None:
        return data_file("images", self.image) if self.image else None

    def unmet(self, result: Result) -> list[str]:
        """What `expect` promises and a result does not show, one line each."""
        seen = result | {"tools": [tool["name"] for tool in result["tools"]]}
        promised = {key: value for key, value in self.expect.items() if key != "says"}
        lines = [f"{key} is {seen[key]}, not {value}" for key, value in promised.items() if seen[key] != value]
        return lines + [f"{words!r} is not in the answer" for words in self.expect.get("says", [])
                        if words not in result["answer"]]  # fmt: skip


class Scenario(BaseModel):
    id: str
    title: str
    notice: str
    steps: list[Step]


def load_scenarios() -> list[Scenario]:
    """All scenarios, in the order in which they are shown."""
    items = yaml.safe_load((FOLDER / "scenarios.yaml").read_text(encoding="utf-8"))
    return TypeAdapter(list[Scenario]).validate_python(items)


def take(
    agent: Agent | None, scenario: Scenario, number: int, thread: str, last: Result | None,
    on_event: OnEvent | None = None, stop: Stop = never_stop, actor: Actor = CLINICIAN,
) -> Result:  # fmt: skip
    """Play step `number` (from 0), after the result of the `last`: with an agent live, without from the trace."""
    if agent is None:
        return _replay(replay(scenario)[number], on_event or (lambda event: None), stop)
    step = scenario.steps[number]
    if step.decide:
        return agent.decide(thread, step.decide, dict(step.change), PLAYED, actor=actor, on_event=on_event, stop=stop)
    text = step.ask
    if step.choose:
        options = (last or {}).get("options", [])
        if len(options) < step.choose:
            raise UsageError("There is nothing to choose from here.", hint="Begin the scenario again.")
        text = options[step.choose - 1]["id"]
    with troubled(agent, step.fails) if step.fails else nullcontext(agent) as agent:
        return agent.ask(
            text, thread=thread, create=True, image=step.image_path, actor=actor, on_event=on_event, stop=stop
        )


@contextmanager
def troubled(agent: Agent, fails: dict[str, Any]) -> Iterator[Agent]:
    """The same agent with tools of its own that fail, so that nobody else's turn is touched."""
    own = copy.copy(agent)
    own.toolbox = Toolbox(agent.toolbox.tools.values())
    with failing(own, fails["error"], fails["times"]):
        yield own


def replay(scenario: Scenario) -> list[Result]:
    """The result of each step, from the stored trace. Raises UsageError where there is none."""
    steps: list[Result] = load_trace(scenario.id)["steps"]
    return steps


def load_trace(scenario: str) -> dict[str, Any]:
    """A stored play: `scenario`, `model`, `recorded` (ISO date), `steps` (the result of each). Raises UsageError."""
    path = TRACES / f"{scenario}.json"
    if not path.is_file():
        raise UsageError("There is no recording of this scenario.", hint="Load a model to play it live.")
    trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return trace


def store_trace(folder: Path, scenario: str, results: list[Result]) -> Path:
    """What `load_trace` reads."""
    stored = {"scenario": scenario, "model": results[0]["model"], "recorded": date.today().isoformat()}
    path = folder / f"{scenario}.json"
    text = json.dumps(stored | {"steps": results}, ensure_ascii=False, indent=1, default=str)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _replay(result: Result, on_event: OnEvent, stop: Stop) -> Result:
    """The steps of a stored turn, one after the other."""
    for node, step in zip(result["path"], result["timeline"], strict=False):
        if stop():
            raise UsageError("Stopped.", hint="Play the scenario again.")
        on_event({"type": "start", "node": node, "label": step["label"]})
        time.sleep(PAUSE_S)
        on_event({"type": "step", "node": node, **step})
    return result
