"""What a request's body may hold, JSON or a form, and how it is read. guard.py bounds its size."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from docgemma.api.problems import Problem
from docgemma.errors import UsageError
from docgemma.images import load_image
from docgemma.rules.override import REASON_CHARS
from docgemma.text.characters import MAX_CHARS

READ_S = 60.0  # a body arrives within this, or somebody is holding the connection
FIELD_BYTES = 100_000  # of a form field that is no file
ThreadId = Annotated[str, Field(max_length=120, description="A conversation to continue.")]
ImageBytes = Annotated[bytes, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", val_json_bytes="base64")


M = TypeVar("M", bound=Body)


class Document(Body):
    """A PDF, under the name by which it is cited."""

    name: str = Field(pattern=r"^[^\x00-\x1f\x7f/\\.][^\x00-\x1f\x7f/\\]{0,99}$")
    data: ImageBytes

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
    image: Optional[ImageBytes] = Field(
        default=None,
        description="A PNG, JPEG or DICOM file, or a zipped series, in base64, 50 MB; or a multipart form.",
    )
    agent: Optional[Literal["rcm"]] = Field(
        default=None, description="The revenue-cycle agent, in a new conversation; the clinical agent without."
    )
    documents: Optional[list[Document]] = Field(
        default=None, max_length=8, description='PDFs for the agent "rcm"; in a form, files named `pdf`.'
    )


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
    before: Optional[date] = Field(default=None, strict=True, description="The day, in UTC; `thread` is not read then.")


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


async def read(request: Request, model: type[M]) -> M:
    """The body as `model`; a `Query` may come as a form.

    Raises:
        Problem: 415 another type, 408 too slow, 422 not what the model says.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    given: bytes | dict[str, Any]
    try:
        async with asyncio.timeout(READ_S):
            if kind == "application/json":
                given = await request.body()
            elif kind == "multipart/form-data" and model is Query:
                given = await _form(request)
            else:
                raise Problem(415, "The body is not JSON.", "Send it with Content-Type: application/json.")
    except TimeoutError as error:
        raise Problem(408, f"The body did not arrive within {READ_S:g} s.", "Try again.") from error
    return await asyncio.to_thread(_valid, model, given)  # with an image in it, that is work for others to wait for


async def _form(request: Request) -> dict[str, Any]:
    try:
        async with request.form(max_files=9, max_fields=len(Query.model_fields), max_part_size=FIELD_BYTES) as form:
            pdfs = [file for file in form.getlist("pdf") if isinstance(file, UploadFile)]
            documents = [
                {"name": Path(file.filename or "document.pdf").name, "data": await file.read()} for file in pdfs
            ]
            fields = {
                key: await value.read() if isinstance(value, UploadFile) else value
                for key, value in form.items()
                if not (key == "pdf" and pdfs)
            }
            return fields | ({"documents": documents} if documents else {})
    except (MultiPartException, HTTPException) as error:
        raise Problem(422, "The form cannot be read.", "Send multipart/form-data with one image, or 8 PDFs.") from error


def _valid(model: type[M], given: bytes | dict[str, Any]) -> M:
    """Check a body. What is wrong first is named in one line that does not repeat what was sent."""
    try:
        return model.model_validate_json(given) if isinstance(given, bytes) else model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = first["loc"][0] if first["loc"] else ""
    known = field in model.model_fields
    what = f"The field `{field}`" if known else f"The body (fields: {', '.join(model.model_fields)})"
    raise Problem(422, f"{what} cannot be used: {first['msg'].rstrip('.')}.", "Compare it with /openapi.json.")


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
