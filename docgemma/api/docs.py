"""What OpenAPI says of each route: bodies, answers with captured examples, and every problem that can come back."""

import json
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from docgemma.api import problems, stream
from docgemma.api.models import Health, ProblemBody, Query, Report, Resume, Threads

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


def health() -> dict[str, Any]:
    answers = {200: _answer(Health, "What runs here.", "health"), 503: _answer(Health, "Down.", "health")}
    return {"responses": {**answers, **_problems(403, 500)}, "tags": ["server"]}


def threads(secured: bool) -> dict[str, Any]:
    answer = _answer(Threads, "The newest 20.", "threads")
    return {"responses": {200: answer, **_problems(*_auth(secured), 403, 429, 500, 503)}, "tags": ["agent"]}


def query(max_question: int, secured: bool) -> dict[str, Any]:
    schema = Query.model_json_schema()
    schema["properties"]["question"]["maxLength"] = max_question
    form = json.loads(json.dumps(schema))
    form["properties"] = {key: _plain(value) for key, value in form["properties"].items()}
    form["properties"]["image"] = {"type": "string", "format": "binary", "description": "A PNG, JPEG or DICOM file."}
    body = {
        "application/json": {"schema": schema, "examples": _examples("query")},
        "multipart/form-data": {"schema": form},
    }
    return _turn(body, "report", secured)


def resume(secured: bool) -> dict[str, Any]:
    schema = Resume.model_json_schema()
    write = schema.pop("$defs")["PendingWrite"]
    schema["properties"]["seen"]["anyOf"] = [write, {"type": "null"}]
    shapes = {"oneOf": [_edit(schema), _decide(schema)], "title": "Resume"}
    body = {"application/json": {"schema": shapes, "examples": _examples("resume")}}
    return _turn(body, "decided", secured)


def _edit(schema: dict[str, Any]) -> dict[str, Any]:
    """What a class cannot say: changes go with this decision, and only with it."""
    given = schema["properties"]
    fields = {**given["changes"]["anyOf"][0], "minProperties": 1, "description": given["changes"]["description"]}
    return {
        **schema, "title": "Change the entry", "required": ["thread", "decision", "changes"],
        "properties": {**given, "decision": {"const": "edit"}, "changes": fields},
    }  # fmt: skip


def _decide(schema: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in schema["properties"].items() if key != "changes"}
    given["decision"] = {"enum": ["approve", "reject", None], "description": given["decision"]["description"]}
    return {**schema, "title": "Decide, or take up", "properties": {**given, "changes": {"type": "null"}}}


def _turn(body: dict[str, Any], example: str, secured: bool) -> dict[str, Any]:
    answer = _answer(Report, "The turn, finished or stopped for a person.", example)
    events = {"schema": {"type": "string"}, "example": stream.EXAMPLE}
    answer["content"] = {**answer["content"], stream.MEDIA_TYPE: events}
    return {
        "responses": {200: answer, **_problems(*_auth(secured), *ASKING)},
        "openapi_extra": {"requestBody": {"required": True, "content": body}},
        "tags": ["agent"],
    }


def _auth(secured: bool) -> tuple[int, ...]:
    return (401,) if secured else ()


def _answer(model: type, description: str, example: str) -> dict[str, Any]:
    return {
        "model": model, "description": description, "content": {"application/json": {"example": captured()[example]}},
    }  # fmt: skip


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


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """A form has no null: a field is there or not."""
    if "anyOf" not in field:
        return field
    kept = next(item for item in field["anyOf"] if item["type"] != "null")
    return {**{key: value for key, value in field.items() if key not in ("anyOf", "default")}, **kept}


def _examples(name: str) -> dict[str, Any]:
    return {key: {"value": value} for key, value in captured()[name].items()}


@cache
def captured() -> dict[str, Any]:
    """Requests, and what the edge model's server answered to them."""
    return json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
