"""The guided scenarios: what is asked, what should happen, what to notice."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
    agent: Agent, scenario: Scenario, number: int, thread: str, last: Result | None,
    on_event: OnEvent | None = None, stop: Stop = never_stop, actor: Actor = CLINICIAN,
) -> Result:  # fmt: skip
    """Play step `number` (from 0), after the result of the `last`."""
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
