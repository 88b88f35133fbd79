"""How a route is reached: the token first, then the body, then FastAPI's own checks; refusals as problem documents."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from docgemma.api.problems import Problem

READ_S = 60.0  # a body arrives within this, or somebody is holding the connection
COMPARE = "Compare it with /openapi.json."


class StrictRequest(Request):
    """A request whose JSON is valid to the letter: no half characters, no NaN, not nested beyond reason."""

    async def json(self) -> Any:
        return from_json(await self.body(), allow_inf_nan=False)


class Route(APIRoute):
    """FastAPI reads a body before it asks who sent it; here nobody without a token makes the server read one."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            request.app.state.admit(request)
            kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
            if self.body_field and kind != "application/json":
                raise Problem(415, "The body is not JSON.", "Send it with Content-Type: application/json.")
            request = StrictRequest(request.scope, request.receive)
            try:
                async with asyncio.timeout(READ_S):
                    await request.body()
            except TimeoutError as error:
                raise Problem(408, f"The body did not arrive within {READ_S:g} s.", "Try again.") from error
            return await handle(request)

        return checked


async def refused(request: Request, error: Exception) -> Response:
    """What the router or FastAPI itself refuses. What was sent is not repeated."""
    if isinstance(error, RequestValidationError):
        raise _invalid(request, error) from error
    assert isinstance(error, HTTPException)
    what = {
        400: "The body is not JSON that can be read.",
        405: "This path does not answer that method.",
    }.get(error.status_code, "There is nothing at this path.")
    problem = Problem(422 if error.status_code == 400 else error.status_code, what, COMPARE)
    problem.headers |= error.headers or {}
    raise problem from error


def _invalid(request: Request, error: RequestValidationError) -> Problem:
    """What is wrong first, in one line."""
    first = error.errors()[0]
    where, field = first["loc"][0], first["loc"][-1 if len(first["loc"]) == 1 else 1]
    if where == "path":
        return Problem(404, "There is nothing at this path.", COMPARE)
    body = request.scope["route"].body_field
    fields = body.field_info.annotation.model_fields if body else {}
    known = where == "header" or field in fields
    what = f"The field `{field}`" if known else f"The body (fields: {', '.join(fields)})"
    return Problem(422, f"{what} cannot be used: {first['msg'].rstrip('.')}.", COMPARE)
