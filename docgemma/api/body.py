"""Reading a request's body: bounded in size and time, JSON or a form, an image kept in a file of its own."""

import asyncio
import base64
import binascii
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from docgemma.api.models import Model, Query
from docgemma.api.problems import Problem
from docgemma.errors import UsageError
from docgemma.images import load_image

M = TypeVar("M", bound=Model)
T = TypeVar("T")
READ_S = 60.0  # a body arrives within this, or somebody is holding the connection
FIELD_BYTES = 100_000  # of a form field that is no file
FIELDS = frozenset(Query.model_fields) - {"image"}


async def read_json(request: Request, model: type[M], max_bytes: int) -> M:
    """The body as `model`.

    Raises:
        Problem: 415 not JSON by its type, 413 too large, 408 too slow, 422 not what the model says.
    """
    if _media_type(request) != "application/json":
        raise Problem(415, "The body is not JSON.", "Send it with Content-Type: application/json.")
    body = await _in_time(_bounded(request, max_bytes).body())
    return await asyncio.to_thread(_valid, model, body)  # with an image in it, that is work for others to wait for


async def read_query(request: Request, max_bytes: int, folder: Path) -> tuple[Query, Path | None]:
    """The question and its image, which the caller deletes.

    Raises:
        Problem: as `read_json`, and 422 for an image that cannot be read.
    """
    if _media_type(request) == "multipart/form-data":
        return await _form(request, max_bytes, folder)
    query = await read_json(request, Query, max_bytes)
    if query.image is None:
        return query, None
    return query.model_copy(update={"image": None}), await asyncio.to_thread(_decoded_image, query.image, folder)


async def _form(request: Request, max_bytes: int, folder: Path) -> tuple[Query, Path | None]:
    bounded = _bounded(request, max_bytes)
    try:
        form = await _in_time(bounded.form(max_files=1, max_fields=len(FIELDS), max_part_size=FIELD_BYTES))
    except (MultiPartException, HTTPException) as error:
        raise Problem(422, "The form cannot be read.", "Send multipart/form-data with one image at most.") from error
    try:
        texts = {key: value for key, value in form.multi_items() if isinstance(value, str)}
        files = {key: value for key, value in form.multi_items() if not isinstance(value, str)}
        if set(files) - {"image"} or "image" in texts:
            raise Problem(422, "The form has a file in the wrong place.", "Attach it as `image`, the rest as text.")
        query = _valid(Query, texts)
        if not files:
            return query, None
        return query, await asyncio.to_thread(_checked_image, await files["image"].read(), folder)
    finally:
        await form.close()


def _decoded_image(text: str, folder: Path) -> Path:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Problem(422, "The image is not base64.", "Encode the file, without a data: prefix.") from error
    return _checked_image(data, folder)


def _checked_image(data: bytes, folder: Path) -> Path:
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(data)
    path = Path(file.name)
    try:
        load_image(path)
    except UsageError as error:  # of an image; these lines name nobody
        path.unlink()
        raise Problem(422, str(error), error.hint) from error
    except BaseException:
        path.unlink()
        raise
    return path


def _bounded(request: Request, max_bytes: int) -> Request:
    """The same request, whose body ends with a Problem where it grows too large."""
    too_large = Problem(
        413, f"The body is larger than {max_bytes / 1e6:g} MB.", "Send a smaller image, or ask about one part."
    )
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > max_bytes:
        raise too_large
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise too_large
        return message

    return Request(request.scope, receive)


async def _in_time(reading: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(reading, READ_S)
    except TimeoutError as error:
        raise Problem(408, f"The body did not arrive within {READ_S:g} s.", "Try again.") from error


def _valid(model: type[M], given: bytes | dict[str, str]) -> M:
    try:
        return model.model_validate_json(given) if isinstance(given, bytes) else model.model_validate(given)
    except ValidationError as error:
        raise invalid(error, model) from None  # the error holds what was sent


def invalid(error: ValidationError, model: type[Model]) -> Problem:
    """The first thing that is wrong, in one line that does not repeat what was sent."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    known = ", ".join(model.model_fields)
    if first["type"] == "json_invalid":
        return Problem(
            422, f"The body is not valid JSON: {first['msg'].removeprefix('Invalid JSON: ')}.", "Correct it."
        )
    if first["type"] == "extra_forbidden" or not first["loc"]:
        return Problem(422, "The body is not an object of the known fields.", f"Known fields: {known}.")
    field = str(first["loc"][0])
    return Problem(422, f"The field `{field}` cannot be used: {first['msg']}.", "Compare it with /openapi.json.")


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()
