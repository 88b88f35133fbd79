"""What nodes may use at run time: the model, the tools, the stores. It arrives through LangGraph's runtime context."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from docgemma.ehr.base import RecordStore
from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.drug_names import DrugNames
from docgemma.llm.base import LLM
from docgemma.prompts import Ask, S, generation
from docgemma.reading.reader import Reader
from docgemma.settings import Settings
from docgemma.state import AgentState, ToolResult
from docgemma.tools.base import Tool, Toolbox, ToolContext


def never_stop() -> bool:
    return False


def decided(
    tool: Tool, args: dict[str, Any], result: dict[str, Any], text: str, source: str | None = None
) -> ToolResult:
    """The result of a call that a person decided: whom a name means, an entry that was rejected."""
    return ToolResult(
        tool_name=tool.name, tool_label=tool.label, args=args, result=result, formatted_result=text, error=None,
        error_type=None, details={}, empty=False, source=source, as_of=None, links=[], seconds=0.0, retries=0,
        writes=tool.writes,
    )  # fmt: skip


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
    toolbox: Toolbox
    store: RecordStore
    knowledge: Knowledge
    drugs: DrugNames
    reader: Reader
    settings: Settings
    thread: str
    actor: Actor = CLINICIAN
    stop: Callable[[], bool] = field(default=never_stop)

    @property
    def reads(self) -> bool:
        """Whether the edge model is loaded: code follows the reader's plan, and no language model is asked."""
        return self.llm.profile == "edge"

    def ask(self, ask: Ask[S]) -> tuple[S, list[dict[str, Any]]]:
        """Put one constrained question to the model: its answer, and the calls it cost."""
        done = self.llm.structured(ask.prompt, ask.schema, generation(ask.node), node=ask.node)
        assert isinstance(done.value, ask.schema)
        return done.value, [call.as_dict() for call in done.calls]

    def tool_context(
        self, state: AgentState, write_key: str = "", approved: tuple[str, ...] | None = None, override: str = ""
    ) -> ToolContext:
        """What a call may use; `approved` are the findings that a person saw when approving a write. Without them a
        write is refused, and so it is for an actor who may not write. `override`:
        what they approved it despite, and why."""
        return ToolContext(
            settings=self.settings, store=self.store, knowledge=self.knowledge, llm=self.llm,
            image=state.get("image"), thread=self.thread, actor=self.actor.name, write_key=write_key,
            approved=approved if self.actor.may_write else None, override=override,
        )  # fmt: skip
