"""What goes in and what comes out, as OpenAPI shows it. The report is the object that `docgemma ask --json` prints."""

from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from docgemma.agent import MAX_CHARS

ThreadId = Annotated[str, Field(max_length=120, description="A conversation to continue.")]
ImageBytes = Annotated[bytes, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
DECISIONS: list[JsonValue] = [  # changes go with one decision, and only with it
    {
        "title": "Change the entry", "required": ["decision", "changes"],
        "properties": {"decision": {"const": "edit"}, "changes": {"type": "object", "minProperties": 1}},
    },
    {
        "title": "Decide, or take up",
        "properties": {"decision": {"enum": ["approve", "reject", None]}, "changes": {"type": "null"}},
    },
]  # fmt: skip


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", val_json_bytes="base64")


class Query(Model):
    """A question, also the answer to a clarification ("the second one") in its conversation."""

    question: str = Field(min_length=1, max_length=MAX_CHARS, description="What to ask.")
    thread: Optional[ThreadId] = None
    patient: Optional[str] = Field(default=None, max_length=64, description="Id of the patient that it is about.")
    image: Optional[ImageBytes] = Field(
        default=None, description="A PNG, JPEG or DICOM file in base64, at most 50 MB; or send multipart/form-data."
    )


class PatientShown(Model):
    id: str
    name: str
    birth_date: str


class PendingWrite(Model):
    """A record entry that waits for a person, with what the safety check found."""

    name: str
    label: str
    patient: PatientShown
    args: dict[str, Any]
    original: dict[str, str] = Field(description="Arguments that were written otherwise, as they were written.")
    findings: list[str]


class Resume(Model):
    """A decision on the record entry that waits; without one, a turn that was cut off is taken up."""

    model_config = ConfigDict(json_schema_extra={"oneOf": DECISIONS})

    thread: ThreadId
    decision: Optional[Literal["approve", "reject", "edit"]] = Field(
        default=None, description="None takes up a turn that was cut off, or reports the conversation as it stands."
    )
    changes: Optional[dict[str, Annotated[str, Field(max_length=300)]]] = Field(
        default=None,
        description='Only with "edit": the fields that change. New findings are shown before it is written.',
    )
    seen: Optional[PendingWrite] = Field(
        default=None, description="The `pending_write` that was shown. Where another one waits by now, nothing is done."
    )

    @model_validator(mode="after")
    def _changes_go_with_edit(self) -> "Resume":
        if (self.decision == "edit") != bool(self.changes):
            raise ValueError('Changes go with the decision "edit", and only with it')
        return self


class Option(Model):
    id: str
    label: str


class ToolCall(Model):
    name: str
    label: str
    args: dict[str, Any]
    ok: bool
    error_type: Optional[str]
    retries: int
    source: Optional[str]
    as_of: Optional[str]
    seconds: float


class Grounding(Model):
    """Sentences that the evidence did not support, and that nobody was shown."""

    supported: bool
    removed: list[str]


class Unanswered(Model):
    """A part of the question that the answer does not serve, and why."""

    ask: str
    reason: str


class Step(Model):
    label: str
    detail: str
    seconds: float


class Tokens(Model):
    prompt: int
    completion: int


class Report(Model):
    """A finished or stopped turn."""

    thread: str
    graph: str
    model: str
    status: Literal["answered", "needs_clarification", "needs_approval", "refused"]
    answer: str
    path: list[str]
    intent: Optional[Literal["DIRECT", "TOOL_NEEDED"]]
    tools: list[ToolCall]
    quality: list[str]
    options: list[Option]
    pending_write: Optional[PendingWrite]
    unanswered: list[Unanswered]
    grounding: Grounding
    sources: list[dict[str, Any]]
    confidence: Optional[float]
    timeline: list[Step]
    llm_calls: int
    tokens: Tokens
    seconds: float


class Thread(Model):
    thread: str
    question: str = Field(description="What was last asked there.")


class Threads(Model):
    threads: list[Thread] = Field(description="The caller's own conversations, at most 20, the newest first.")


class Health(Model):
    """`degraded`: it answers, but not from patient records."""

    status: Literal["ok", "degraded", "down"]
    version: str
    model: str
    vision: bool
    graph: str
    sources: Literal["offline", "live", "auto"]
    record_store: Literal["reachable", "unreachable"]
    memory: Literal["reachable", "unreachable"]


class ProblemBody(Model):
    """RFC 9457, with what to do next. It never repeats what was sent."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    next: str
    request_id: str
