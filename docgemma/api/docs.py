"""What OpenAPI says of routes beside their models: captured examples, events, and every problem that can come back."""

import json
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from docgemma.api import stream
from docgemma.api.models import Health
from docgemma.api.problems import MEDIA_TYPE, Problem

JSON = "application/json"
STATUSES = (401, 403, 404, 408, 409, 412, 413, 415, 422, 429, 500, 502, 503, 504)


class ProblemBody(BaseModel):
    """RFC 9457, with what to do next. It never repeats what was sent."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    next: str
    request_id: str


def _problem(code: int) -> dict[str, Any]:
    status = HTTPStatus(code)
    example = Problem(code, f"{status.phrase}.", "What to do, in one sentence.").body("3f9a1c0b77de")
    content = {"schema": ProblemBody.model_json_schema(), "example": example}
    answer = {"description": status.description or status.phrase, "content": {MEDIA_TYPE: content}}
    if code in (429, 503):
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    return answer


PROBLEMS: dict[int | str, Any] = {code: _problem(code) for code in STATUSES}  # of every route of the agent


def told(tag: str, example: str, asked: str = "", code: int = 200) -> dict[str, Any]:
    """The documentation of a route: an example of its answer, and those of its body that are stored as `asked`."""
    answer = {"description": "OK", "content": {JSON: {"example": captured()[example]}}}
    about: dict[str, Any] = {"tags": [tag], "responses": {code: answer}, "status_code": code}
    if asked:
        examples = {key: {"value": value} for key, value in captured()[asked].items()}
        about["openapi_extra"] = {"requestBody": {"content": {JSON: {"examples": examples}}}}
    return about


def turn(example: str, asked: str) -> dict[str, Any]:
    """Of a route that answers with a report, or with events."""
    about = told("agent", example, asked)
    content = about["responses"][200]["content"]
    content[JSON]["schema"] = {"anyOf": [_stored("report.schema.json"), _stored("rcm.schema.json")]}
    content[stream.MEDIA_TYPE] = {"schema": {"type": "string"}, "example": captured()["events"]}
    return about


def health() -> dict[str, Any]:
    about = told("server", "health")
    answer = {"model": Health, **about["responses"][200]}
    return about | {"responses": {200: answer, 503: answer, 403: PROBLEMS[403]}}


def captured() -> dict[str, Any]:
    """Requests, and what the edge model's server answered to them."""
    return _stored("examples.json")


@cache
def _stored(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return content
