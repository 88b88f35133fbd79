"""What a tool is: a typed function with its argument schema, label, description and example. No graph in sight."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import BaseModel, ValidationError

from docgemma.ehr.base import RecordStore
from docgemma.errors import ConfigError, DocGemmaError, ErrorType, ToolError, kind_and_place
from docgemma.knowledge.base import Knowledge
from docgemma.llm.base import LLM
from docgemma.rules.errors import error_message
from docgemma.settings import Settings
from docgemma.state import ImageRef, ToolResult
from docgemma.tools.untrusted import clean, protect

log = logging.getLogger(__name__)

# What must be known before a model may choose the tool: a patient, a drug, two drugs, or that no patient is named (the
# text goes to an outside service). "image" and "plan": a model may not, only the plan of what was plainly asked for.
Needs = Literal["nothing", "patient", "drug", "drugs", "no patient", "image", "plan"]
FORMATTED = 1500  # characters of a result as text


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
    when approving the write; None means that nobody approved it, and then it is refused.
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
    override: str = ""  # "Approved despite: …; reason: …", which the written resource keeps


@dataclass(frozen=True)
class Tool:
    """One tool. Everything that other parts have to know of it stands here.

    Attributes:
        name: internal; never shown to a clinician.
        label: what a clinician reads, "Drug Safety Report".
        signature, description: v3 spec section 16, the measured wording.
        args: the argument schema, required and decision-critical fields first; the first says what is looked for.
        example: a question this tool answers, the one-shot of stage 1.
        run: does the work; raises ToolError in the known ways and nothing else on purpose.
        data: the shape of what `run` returns: names to types, `[item]` a list of them; clients of MCP read it.
        format: payload to text for models and clinicians: one finding a line, the most critical first, bounded.
        no_answer: what a clinician reads once every retry has failed; "" says it with the label.
        needs: what must be known before a model may choose it.
        writes: changes the record, so a person decides first.
        outside: may ask a live service outside.
    """

    name: str
    label: str
    signature: str
    description: str
    args: type[BaseModel]
    example: str
    run: Callable[[Any, ToolContext], ToolOutput]
    format: Callable[[dict[str, Any]], str]
    no_answer: str = ""
    needs: Needs = "nothing"
    writes: bool = False
    outside: bool = False
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        protect(self.name, self.label)

    @property
    def full_description(self) -> str:
        return f"{self.name}{self.signature} — {self.description}"

    @property
    def entity(self) -> str:
        """The argument that says what is looked for, named in error messages."""
        return next(iter(self.args.model_fields))


class Toolbox:
    """The tools by name, and the one way to call them. Every outcome is a ToolResult; nothing is raised.

    Raises:
        ConfigError: a tool is declared wrongly, at start-up.
    """

    def __init__(self, tools: Iterable[Tool]):
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if problem := _problem(tool, self.tools.values()):
                raise ConfigError(f"The tool {tool.name} cannot be registered: {problem}.")
            self.tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        return self.tools[name]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def call(self, name: str, args: dict[str, Any], context: ToolContext) -> ToolResult:
        """Call one tool. A write is carried out only with a person's approval (`ToolContext.approved`)."""
        tool, start = self.tools[name], time.perf_counter()
        try:
            given = validate(tool, args)
            if tool.writes and context.approved is None:
                raise ToolError(ErrorType.NOT_PERMITTED, reason="nobody approved this entry, so nothing was recorded.")
            output = self.run(tool, given, context)
            data = clean(output.data)  # before anything reads it: what a tool returns was written by others
            text = tool.format(data)
        except Exception as error:
            return self.failed(name, args, error, start)
        if output.calls:
            data["calls"] = output.calls
        return ToolResult(
            tool_name=name, tool_label=tool.label, args=args, result=data, formatted_result=text, error=None,
            error_type=None, details={}, empty=output.empty, source=output.source, as_of=output.as_of,
            links=clean(output.links), seconds=_since(start), retries=0, writes=tool.writes,
        )  # fmt: skip

    def run(self, tool: Tool, args: BaseModel, context: ToolContext) -> ToolOutput:
        """Do the work of one call; raises ToolError in the known ways."""
        return tool.run(args, context)

    def failed(self, name: str, args: dict[str, Any], error: Exception, start: float | None = None) -> ToolResult:
        """A call that failed, as a result: what the rules and the clinician get instead of an exception."""
        tool = self.tools[name]
        if not isinstance(error, DocGemmaError):
            # the kind and the place; the text of an unknown error may hold patient data
            log.error("%s failed: %s", tool.name, kind_and_place(error))
        if not isinstance(error, ToolError):  # of other stages: an unreachable record store is an outage, not empty
            known = isinstance(error, DocGemmaError)
            error = ToolError(ErrorType.SERVICE_UNAVAILABLE if known else ErrorType.SERVER_ERROR)
        details = clean(error.details)
        message = error_message(error.error_type, tool.label, args, tool.entity, details)
        return ToolResult(
            tool_name=name, tool_label=tool.label, args=args, result={}, formatted_result=message, error=message,
            error_type=error.error_type.value, details=details, empty=False, source=None, as_of=None, links=[],
            seconds=_since(start) if start else 0.0, retries=0, writes=tool.writes, no_answer=tool.no_answer,
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


def _problem(tool: Tool, others: Iterable[Tool]) -> str:
    """What is wrong with a declaration, "" if nothing is."""
    if any(tool.name == other.name or tool.label == other.label for other in others):
        return "its name or label is taken"
    if not (tool.label and tool.description and tool.example):
        return "it has no label, description or example"
    if tool.needs not in get_args(Needs):
        return f"it cannot need {tool.needs!r}"
    if tool.writes and "patient_id" not in tool.args.model_fields:
        return "a write needs the argument patient_id"
    return ""


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 4)


def bound(lines: Iterable[str], closing: Iterable[str] = (), line_limit: int = 600) -> str:
    """Whole lines while they fit, then how many are missing, so that nothing is dropped in silence; then `closing`,
    which is never dropped."""
    lines = [clip(line, line_limit) for line in lines if line]
    last = [line for line in closing if line]
    left = FORMATTED - sum(len(line) + 1 for line in last)
    kept: list[str] = []
    for index, line in enumerate(lines):
        rest = len(lines) - index
        reserve = 0 if rest == 1 else 32  # room for saying how many are missing
        if len(line) + 1 + reserve > left:
            kept.append(f"{rest} further findings not shown.")
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join([*kept, *last])


def clip(text: str, limit: int) -> str:
    """The head of a text, cut at the end of a sentence where one is near, else at a word."""
    if len(text) <= limit:
        return text
    head = text[: limit - 2]
    stop = max(head.rfind(". "), head.rfind("; "))
    if stop > limit // 2:
        return head[: stop + 1] + " …"
    return head.rsplit(" ", 1)[0].rstrip(" ,;") + " …"


def sentence(text: str) -> str:
    """With a full stop at its end."""
    text = text.strip()
    return text if not text or text.endswith((".", "…", "!", "?")) else text + "."


def joined(items: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def fallback_line(data: dict[str, Any]) -> str:
    """Says that the live service was not used, where it was tried."""
    return "The live service could not be reached; this is from the offline snapshot." if data.get("fell_back") else ""
