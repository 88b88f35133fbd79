"""What a tool is: a typed function with its argument schema, label, description and example. No graph in sight."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from docgemma.ehr.base import RecordStore
from docgemma.errors import ErrorType, NoVisionError, StoreError, ToolError
from docgemma.knowledge.base import Knowledge
from docgemma.llm.base import LLM
from docgemma.rules.errors import error_message
from docgemma.settings import Settings
from docgemma.state import ImageRef, ToolResult
from docgemma.tools.untrusted import clean


@dataclass(frozen=True)
class ToolOutput:
    """What a tool found. `data` is JSON; `empty` means the search worked and there is nothing.

    `calls` are the model's physical generations that it cost; they come back as `data["calls"]`.
    """

    data: dict[str, Any]
    source: str
    as_of: str | None = None  # ISO date of the facts
    empty: bool = False
    links: list[dict[str, str]] = field(default_factory=list)  # {"title", "url", "id"}
    calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class ToolContext:
    """What a call may use.

    `write_key` makes a write happen once: same key, same resource. `approved` holds the findings that a person saw
    when approving the write; None where nobody was asked.
    """

    settings: Settings
    store: RecordStore
    knowledge: Knowledge
    llm: LLM | None = None
    image: ImageRef | None = None
    thread: str = ""
    actor: str = "clinician"
    write_key: str = ""
    approved: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Tool:
    """One of the ten.

    Attributes:
        name: internal; never shown to a clinician.
        label: what a clinician reads, "Drug Safety Report".
        signature, description: v3 spec section 16, the measured wording.
        args: the argument schema, required and decision-critical fields first.
        example: a question this tool answers, the one-shot of stage 1.
        run: does the work; raises ToolError in the known ways and nothing else on purpose.
        format: payload to text for models and clinicians: one finding a line, the most critical first, bounded.
        entity: the argument that says what was looked for, used in error messages.
        writes: changes the record, so a person decides first.
    """

    name: str
    label: str
    signature: str
    description: str
    args: type[BaseModel]
    example: str
    run: Callable[[Any, ToolContext], ToolOutput]
    format: Callable[[dict[str, Any]], str]
    entity: str
    writes: bool = False

    @property
    def full_description(self) -> str:
        return f"{self.name}{self.signature} — {self.description}"


class Toolbox:
    """The tools by name, and the one way to call them. Every outcome is a ToolResult; nothing is raised."""

    def __init__(self, tools: Iterable[Tool]):
        self.tools = {tool.name: tool for tool in tools}

    def __getitem__(self, name: str) -> Tool:
        return self.tools[name]

    def __iter__(self):
        return iter(self.tools.values())

    def call(self, name: str, args: dict[str, Any], context: ToolContext) -> ToolResult:
        tool, start = self.tools[name], time.perf_counter()
        try:
            output = tool.run(validate(tool, args), context)
        except ToolError as error:
            return self._failed(tool, args, error, start)
        except NoVisionError as error:
            return self._failed(tool, args, ToolError(ErrorType.NO_VISION, str(error)), start)
        except StoreError as error:
            # an unreachable record store is not an empty chart
            return self._failed(tool, args, ToolError(ErrorType.SERVICE_UNAVAILABLE, str(error)), start)
        data = clean(output.data)  # before anything reads it: what a tool returns was written by others
        if output.calls:
            data["calls"] = output.calls
        return ToolResult(
            tool_name=name, tool_label=tool.label, args=args, result=data,
            formatted_result=tool.format(data), error=None, error_type=None, details={},
            empty=output.empty, source=output.source, as_of=output.as_of, links=clean(output.links),
            seconds=round(time.perf_counter() - start, 4), retries=0,
        )  # fmt: skip

    def failed(self, name: str, args: dict[str, Any], error: ToolError) -> ToolResult:
        """A call that failed, as a result: what the rules and the clinician get instead of an exception."""
        return self._failed(self.tools[name], args, error, time.perf_counter())

    def _failed(self, tool: Tool, args: dict[str, Any], error: ToolError, start: float) -> ToolResult:
        details = clean(error.details)
        message = error_message(error.error_type, tool.label, args, tool.entity, details)
        return ToolResult(
            tool_name=tool.name, tool_label=tool.label, args=args, result={},
            formatted_result=message, error=message, error_type=error.error_type.value, details=details,
            empty=False, source=None, as_of=None, links=[],
            seconds=round(time.perf_counter() - start, 4), retries=0,
        )  # fmt: skip


def validate(tool: Tool, args: dict[str, Any]) -> BaseModel:
    """Arguments as the tool's schema.

    Raises:
        ToolError: `missing_required_args` (with `missing_fields`) or `invalid_args`.
    """
    given = {key: value for key, value in args.items() if value not in (None, "", [])}
    missing = [name for name, item in tool.args.model_fields.items() if item.is_required() and name not in given]
    if missing:
        raise ToolError(ErrorType.MISSING_REQUIRED_ARGS, f"{tool.name} lacks {missing}", missing_fields=missing)
    try:
        return tool.args.model_validate(given)
    except ValidationError as error:
        fields = sorted({str(item["loc"][0]) for item in error.errors() if item["loc"]})
        raise ToolError(ErrorType.INVALID_ARGS, f"{tool.name}: bad {fields}", missing_fields=fields) from error
