"""What nodes may use at run time: the model, the tools, the stores. It arrives through LangGraph's runtime context."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from docgemma.ehr.base import RecordStore
from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.drug_names import DrugNames
from docgemma.llm.base import LLM, Generation
from docgemma.prompts import Ask, PromptProfile
from docgemma.reading.reader import Reader
from docgemma.settings import Settings
from docgemma.tools.base import Toolbox, ToolContext


def never_stop() -> bool:
    return False


@dataclass(frozen=True)
class Actor:
    """On whose behalf a turn runs. The name stands in the provenance of what they write."""

    name: str = "clinician"
    may_write: bool = True


CLINICIAN = Actor()


@dataclass(frozen=True)
class Context:
    """One conversation turn's surroundings; shared things are safe to use from several threads."""

    llm: LLM
    profile: PromptProfile
    toolbox: Toolbox
    store: RecordStore
    knowledge: Knowledge
    drugs: DrugNames
    reader: Reader
    settings: Settings
    thread: str
    actor: Actor = CLINICIAN
    stop: Callable[[], bool] = field(default=never_stop)

    def ask(self, ask: Ask | BaseModel) -> tuple[BaseModel, list[dict[str, Any]]]:
        """Put one constrained question to the model: its answer as the graph wants it, and the calls it cost.

        A profile that settles the question by itself gives the answer instead, and no model is called."""
        if isinstance(ask, BaseModel):
            return ask, []
        done: Generation = self.llm.structured(ask.prompt, ask.schema, ask.config, node=ask.node)
        return ask.finish(done.value), [call.as_dict() for call in done.calls]

    def tool_context(
        self, state: dict[str, Any], write_key: str = "", approved: tuple[str, ...] | None = None
    ) -> ToolContext:
        """What a call may use; `approved` are the findings that a person saw when approving a write. Without them a
        write is refused, and so it is for an actor who may not write."""
        return ToolContext(
            settings=self.settings, store=self.store, knowledge=self.knowledge, llm=self.llm,
            image=state.get("image"), thread=self.thread, actor=self.actor.name, write_key=write_key,
            approved=approved if self.actor.may_write else None,
        )  # fmt: skip
