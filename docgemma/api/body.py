"""Read a request's body, JSON or a form, and check its image. guard.py bounds its size."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from docgemma.api.models import Model, Query
from docgemma.api.problems import Problem
from docgemma.errors import UsageError
from docgemma.images import load_image

M = TypeVar("M", bound=Model)
READ_S = 60.0  # a body arrives within this, or somebody is holding the connection
FIELD_BYTES = 100_000  # of a form field that is no file


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
        async with request.form(max_files=1, max_fields=len(Query.model_fields), max_part_size=FIELD_BYTES) as form:
            return {key: await value.read() if isinstance(value, UploadFile) else value for key, value in form.items()}
    except (MultiPartException, HTTPException) as error:
        raise Problem(422, "The form cannot be read.", "Send multipart/form-data with one image at most.") from error


def _valid(model: type[M], given: bytes | dict[str, Any]) -> M:
    try:
        return model.model_validate_json(given) if isinstance(given, bytes) else model.model_validate(given)
    except ValidationError as error:
        raise _invalid(error, model) from None  # the error holds what was sent


def _invalid(error: ValidationError, model: type[Model]) -> Problem:
    """The first thing that is wrong, in one line that does not repeat what was sent."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    said = first["msg"].removeprefix("Value error, ").removeprefix("Invalid JSON: ").rstrip(".")
    if first["type"] == "json_invalid":
        return Problem(422, f"The body is not valid JSON: {said}.", "Correct it.")
    if first["type"] == "value_error":
        return Problem(422, f"{said}.", "Compare it with /openapi.json.")
    if first["type"] == "extra_forbidden" or not first["loc"]:
        known = ", ".join(model.model_fields)
        return Problem(422, "The body is not an object of the known fields.", f"Known fields: {known}.")
    return Problem(422, f"The field `{first['loc'][0]}` cannot be used: {said}.", "Compare it with /openapi.json.")


@contextmanager
def image_file(data: bytes | None, folder: str) -> Iterator[str | None]:
    """The image in a file of its own while it is used."""
    if data is None:
        yield None
        return
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(data)
        file.flush()
        yield file.name


def check_image(data: bytes, folder: str) -> None:
    """Raises Problem: 422, the image cannot be read."""
    with image_file(data, folder) as path:
        try:
            load_image(path or "")
        except UsageError as error:  # of an image; these lines name nobody
            raise Problem(422, str(error), error.hint) from error
