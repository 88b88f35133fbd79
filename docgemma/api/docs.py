"""What OpenAPI says of each route: bodies, answers with captured examples, and every problem that can come back."""

import json
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from docgemma.api import stream
from docgemma.api.models import Health, Model, ProblemBody, Query, Report, Resume, Threads
from docgemma.api.problems import MEDIA_TYPE

PROBLEMS = {
    401: "No token, or one that is not known.",
    403: "The token may read only; or, without tokens, the request came from another site.",
    404: "No such conversation of the caller, or no such patient.",
    408: "The body did not arrive in time.",
    409: "The conversation is being worked on, waits for a decision, or has nothing to decide.",
    413: "The body is too large.",
    415: "The body is neither JSON nor, for a question, a form.",
    422: "The body cannot be used; `detail` says which field, and never repeats what was sent.",
    429: "Too many requests, or too many questions at once; `Retry-After` says how long to wait.",
    500: "The server failed.",
    502: "A source that the answer needs failed.",
    503: "The model or a database cannot be used, or the server is ending.",
    504: "The turn took too long and was stopped.",
}
REF = "#/components/schemas/{model}"  # models that answers use stand there already


def problems(secured: bool) -> dict[int | str, Any]:
    """What can come back from every route of the agent."""
    return {code: _problem(code) for code in PROBLEMS if code != 401 or secured}


def health() -> dict[str, Any]:
    down = _answer(Health, "Down.", "health")
    return {
        "responses": {200: _answer(Health, "What runs here.", "health"), 503: down, 403: _problem(403)},
        "tags": ["server"],
    }


def threads() -> dict[str, Any]:
    return {"responses": {200: _answer(Threads, "The newest 20.", "threads")}}


def query(max_question: int) -> dict[str, Any]:
    schema = Query.model_json_schema()
    schema["properties"]["question"]["maxLength"] = max_question
    plain = {key: value.get("anyOf", [value])[0] for key, value in schema["properties"].items()}  # a form has no null
    plain["image"] = {"type": "string", "format": "binary", "description": "A PNG, JPEG or DICOM file."}
    form = {"multipart/form-data": {"schema": {**schema, "properties": plain}}}
    return _turn({"application/json": {"schema": schema, "examples": _examples("query")}, **form}, "report")


def resume() -> dict[str, Any]:
    schema = Resume.model_json_schema(ref_template=REF)
    del schema["$defs"]
    return _turn({"application/json": {"schema": schema, "examples": _examples("resume")}}, "decided")


def _turn(body: dict[str, Any], example: str) -> dict[str, Any]:
    answer = _answer(Report, "The turn, finished or stopped for a person.", example)
    answer["content"][stream.MEDIA_TYPE] = {"schema": {"type": "string"}, "example": captured()["events"]}
    return {"responses": {200: answer}, "openapi_extra": {"requestBody": {"required": True, "content": body}}}


def _answer(model: type[Model], description: str, example: str) -> dict[str, Any]:
    content = {"application/json": {"example": captured()[example]}}
    return {"model": model, "description": description, "content": content}


def _problem(code: int) -> dict[str, Any]:
    example = {
        "type": "about:blank", "title": HTTPStatus(code).phrase, "status": code, "detail": PROBLEMS[code],
        "next": "What to do, in one sentence.", "request_id": "3f9a1c0b77de",
    }  # fmt: skip
    content = {"schema": ProblemBody.model_json_schema(), "example": example}
    answer = {"description": PROBLEMS[code], "content": {MEDIA_TYPE: content}}
    if code in (429, 503):
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    return answer


def _examples(name: str) -> dict[str, Any]:
    return {key: {"value": value} for key, value in captured()[name].items()}


@cache
def captured() -> dict[str, Any]:
    """Requests, and what the edge model's server answered to them."""
    examples: dict[str, Any] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    return examples
