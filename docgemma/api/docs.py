"""What OpenAPI says of each route: bodies, answers with captured examples, and every problem that can come back."""

import json
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from docgemma.api import problems, stream
from docgemma.api.models import Health, Model, ProblemBody, Query, Report, Resume, Threads

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
ASKING = (403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504)
REF = "#/components/schemas/{model}"  # models that answers use stand there already


def health() -> dict[str, Any]:
    answers = {200: _answer(Health, "What runs here.", "health"), 503: _answer(Health, "Down.", "health")}
    return {"responses": {**answers, **_problems(403, 500)}, "tags": ["server"]}


def threads(secured: bool) -> dict[str, Any]:
    answer = _answer(Threads, "The newest 20.", "threads")
    return {"responses": {200: answer, **_problems(*_auth(secured), 403, 429, 500, 503)}, "tags": ["agent"]}


def query(max_question: int, secured: bool) -> dict[str, Any]:
    schema = Query.model_json_schema()
    schema["properties"]["question"]["maxLength"] = max_question
    plain = {key: value.get("anyOf", [value])[0] for key, value in schema["properties"].items()}  # a form has no null
    plain["image"] = {"type": "string", "format": "binary", "description": "A PNG, JPEG or DICOM file."}
    form = {"multipart/form-data": {"schema": {**schema, "properties": plain}}}
    return _turn({"application/json": {"schema": schema, "examples": _examples("query")}, **form}, "report", secured)


def resume(secured: bool) -> dict[str, Any]:
    schema = Resume.model_json_schema(ref_template=REF)
    del schema["$defs"]
    return _turn({"application/json": {"schema": schema, "examples": _examples("resume")}}, "decided", secured)


def _turn(body: dict[str, Any], example: str, secured: bool) -> dict[str, Any]:
    answer = _answer(Report, "The turn, finished or stopped for a person.", example)
    answer["content"][stream.MEDIA_TYPE] = {"schema": {"type": "string"}, "example": captured()["events"]}
    return {
        "responses": {200: answer, **_problems(*_auth(secured), *ASKING)},
        "openapi_extra": {"requestBody": {"required": True, "content": body}},
        "tags": ["agent"],
    }


def _auth(secured: bool) -> tuple[int, ...]:
    return (401,) if secured else ()


def _answer(model: type[Model], description: str, example: str) -> dict[str, Any]:
    content = {"application/json": {"example": captured()[example]}}
    return {"model": model, "description": description, "content": content}


def _problems(*codes: int) -> dict[int | str, Any]:
    return {code: _problem(code) for code in codes}


def _problem(code: int) -> dict[str, Any]:
    example = {
        "type": "about:blank", "title": HTTPStatus(code).phrase, "status": code, "detail": PROBLEMS[code],
        "next": "What to do, in one sentence.", "request_id": "3f9a1c0b77de",
    }  # fmt: skip
    content = {"schema": ProblemBody.model_json_schema(), "example": example}
    answer = {"description": PROBLEMS[code], "content": {problems.MEDIA_TYPE: content}}
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
