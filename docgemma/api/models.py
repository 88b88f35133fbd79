"""What bodies of requests may hold, and what answers hold. routing.py reads a body, guard.py bounds its size."""

import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from docgemma.api.problems import Problem
from docgemma.errors import UsageError
from docgemma.images import load_image
from docgemma.rules.override import REASON_CHARS
from docgemma.text.characters import MAX_CHARS


def _decoded(text: Any) -> bytes:
    with suppress(TypeError, ValueError):
        return b64decode(text, validate=True)
    raise PydanticCustomError("base64", "it is not base64")


def _day(text: Any) -> date:
    with suppress(TypeError, ValueError):
        return date.fromisoformat(text)
    raise PydanticCustomError("day", "it is not a day, YYYY-MM-DD")


ThreadId = Annotated[str, Field(max_length=120, description="A conversation to continue.")]
Base64 = Annotated[bytes, BeforeValidator(_decoded), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Day = Annotated[date, BeforeValidator(_day)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Document(Body):
    """A PDF, under the name by which it is cited."""

    name: str = Field(pattern=r"^[^\x00-\x1f\x7f/\\.][^\x00-\x1f\x7f/\\]{0,99}$")
    data: Base64

    @field_validator("data")
    @classmethod
    def _is_pdf(cls, data: bytes) -> bytes:
        if b"%PDF-" not in data[:1024]:
            raise PydanticCustomError("pdf", "it is not a PDF")
        return data


class Query(Body):
    """A question, also the answer to a clarification ("the second one") in its conversation."""

    question: str = Field(min_length=1, max_length=MAX_CHARS, description="What to ask.")
    thread: Optional[ThreadId] = None
    patient: Optional[str] = Field(default=None, max_length=64, description="Id of the patient that it is about.")
    image: Optional[Base64] = Field(
        default=None, description="A PNG, JPEG or DICOM file, or a zipped series, in base64, at most 50 MB."
    )
    agent: Optional[Literal["rcm"]] = Field(
        default=None, description="The revenue-cycle agent, in a new conversation; the clinical agent without."
    )
    documents: Optional[list[Document]] = Field(default=None, max_length=8, description='PDFs for the agent "rcm".')


class Resume(Body):
    """A decision on the record entry that waits; without one, a turn that was cut off is taken up."""

    thread: ThreadId
    decision: Optional[Literal["approve", "reject", "edit"]] = Field(
        default=None, description="None takes up a turn that was cut off, or reports the conversation as it stands."
    )
    changes: Optional[dict[str, Annotated[str, Field(max_length=300)]]] = Field(
        default=None,
        description='Only with "edit": the fields that change. New findings are shown before it is written.',
    )
    reason: Optional[Annotated[str, Field(max_length=REASON_CHARS)]] = Field(
        default=None,
        description="Why it is approved against a contraindicated or major finding: record and report keep it, or "
        '"no reason given".',
    )
    answer: Optional[Annotated[str, Field(max_length=MAX_CHARS)]] = Field(
        default=None, description='To what the agent "rcm" asked back; its conversations have no decisions.'
    )
    seen: Optional[dict[str, Any]] = Field(
        default=None, description="The `pending_write` that was shown. Where another one waits by now, nothing is done."
    )


class Forget(Body):
    """Which conversations of the caller's to delete: one, or those not continued since a day."""

    thread: Optional[ThreadId] = None
    before: Optional[Day] = Field(default=None, description="The day, in UTC; `thread` is not read then.")


class Verify(Body):
    """A quote for the evidence ledger."""

    patient_id: str = Field(min_length=1, max_length=64)
    verbatim_quote: str = Field(min_length=1, max_length=16_000)
    source_document: str = Field(min_length=1, max_length=255)
    page_number: Optional[int] = Field(default=None, ge=1, lt=2**31, strict=True)
    policy_id: Optional[str] = Field(default=None, max_length=128)
    confidence_score: float = Field(ge=0, le=100, strict=True, description="0 to 100.")
    auditor_result: Literal["PASS", "FAIL", "ESCALATED"]
    session_id: Optional[str] = Field(default=None, min_length=1, max_length=128)


class Health(BaseModel):
    """`degraded`: it answers, but not from patient records."""

    status: Literal["ok", "degraded", "down"]
    version: str
    model: str
    vision: bool
    graph: str
    sources: Literal["offline", "live", "auto"]
    record_store: Literal["reachable", "unreachable"]
    memory: Literal["reachable", "unreachable"]


class Services(BaseModel):
    services: list[dict[str, Any]] = Field(description="As CDS Hooks 2.0 describes a CDS service.")


class Cards(BaseModel):
    cards: list[dict[str, Any]] = Field(
        description="As CDS Hooks 2.0 describes a card; [] where there is nothing to say."
    )


class Received(BaseModel):
    received: int


class Written(BaseModel):
    """`verified`: the document is known here, and the quote stands in it."""

    ledger_id: int
    status: Literal["WRITTEN"]
    audit_trail: str
    verified: bool


class Running(BaseModel):
    status: Literal["running"]
    cases: int


class Results(BaseModel):
    running: bool
    results: Optional[dict[str, Any]] = Field(description="Of the last run; null before the first.")


class Threads(BaseModel):
    threads: list[dict[str, str]] = Field(
        description="The caller's own conversations, at most 20, the newest first, and what was last asked there."
    )


class Forgotten(BaseModel):
    forgotten: int = Field(description="How many conversations.")
    note: str


@contextmanager
def image_file(data: bytes | None) -> Iterator[str | None]:
    """The image in a file of its own while it is used. Raises Problem: 422, it cannot be read."""
    if data is None:
        yield None
        return
    with tempfile.NamedTemporaryFile(prefix="docgemma-api-") as file:
        file.write(data)
        file.flush()
        try:
            load_image(file.name)
        except UsageError as error:  # of an image; these lines name nobody
            raise Problem(422, str(error), error.hint) from error
        yield file.name
