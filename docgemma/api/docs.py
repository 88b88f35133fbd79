"""What OpenAPI says of each route: bodies, answers with captured examples, and every problem that can come back."""

import json
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Optional

from pydantic import BaseModel, Field

from docgemma.api import stream
from docgemma.api.body import Forget, Query, Resume, Verify
from docgemma.api.cds_data import Feedback, HookRequest
from docgemma.api.problems import MEDIA_TYPE, Problem

STATUSES = (401, 403, 404, 408, 409, 412, 413, 415, 422, 429, 500, 502, 503, 504)


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
    threads: list[dict[Literal["thread", "question"], str]] = Field(
        description="The caller's own conversations, at most 20, the newest first, and what was last asked there."
    )


class Forgotten(BaseModel):
    forgotten: int = Field(description="How many conversations.")
    note: str


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


def health() -> dict[str, Any]:
    answer = {"model": Health, **_answer("health")}
    return {"responses": {200: answer, 503: answer, 403: PROBLEMS[403]}, "tags": ["server"]}


def answers(model: type[BaseModel], example: str, code: int = 200, **extra: Any) -> dict[str, Any]:
    """Of a route that answers with a model; `extra`: of its body."""
    told = {"responses": {code: {"model": model, **_answer(example)}}, "status_code": code}
    return told | ({"openapi_extra": extra} if extra else {})


def forget() -> dict[str, Any]:
    return answers(Forgotten, "forgotten", requestBody=_body(Forget.model_json_schema(), "forget"))


def query(max_question: int) -> dict[str, Any]:
    schema = _whole(Query)
    schema["properties"]["question"]["maxLength"] = max_question
    plain = {key: value.get("anyOf", [value])[0] for key, value in schema["properties"].items()}  # a form has no null
    plain["image"] = {
        "type": "string",
        "format": "binary",
        "description": "A PNG, JPEG or DICOM file, or a ZIP of a series.",
    }
    plain["pdf"] = {"type": "array", "maxItems": 8, "items": {"type": "string", "format": "binary"}}
    del plain["documents"]
    form = {"multipart/form-data": {"schema": {**schema, "properties": plain}}}
    return _turn({"application/json": {"schema": schema, "examples": _examples("query")}, **form}, "report")


def resume() -> dict[str, Any]:
    body = {"schema": Resume.model_json_schema(), "examples": _examples("resume")}
    return _turn({"application/json": body}, "decided")


SERVICE = {
    "name": "service",
    "in": "path",
    "required": True,
    "schema": {"enum": ["order-sign", "order-select", "patient-view"]},
}


def hook() -> dict[str, Any]:
    return _service(HookRequest, "hook", Cards, "cards")


def feedback() -> dict[str, Any]:
    return _service(Feedback, "feedback", Received, "received")


def verify() -> dict[str, Any]:
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
           "description": "The same key writes the same quote once."}  # fmt: skip
    return answers(Written, "written", requestBody=_body(Verify.model_json_schema(), "verify"), parameters=[key])


def _service(body: type[BaseModel], asked: str, answer: type[BaseModel], told: str) -> dict[str, Any]:
    return answers(answer, told, requestBody=_body(_whole(body), asked), parameters=[SERVICE])


def _body(schema: Any, examples: str) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema, "examples": _examples(examples)}}}


def _whole(model: type[BaseModel]) -> Any:
    """The JSON schema of a body with its parts in place: references would lead out of it."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return (
                filled(parts[value["$ref"].rpartition("/")[2]])
                if "$ref" in value
                else {k: filled(v) for k, v in value.items()}
            )
        return [filled(item) for item in value] if isinstance(value, list) else value

    return filled(schema)


RCM = {  # of the agent "rcm": the contract of `docgemma rcm ask`
    "type": "object", "title": "RCM",
    "properties": {"status": {"enum": ["answered", "needs_clarification", "refused"]}},
    "required": [
        "thread", "model", "status", "answer", "intent", "path", "tools", "claims", "criteria", "policy",
        "contradictions", "risk", "missing", "ledger_ids", "escalate", "why_escalate", "confidence", "is_partial",
        "failed_pages", "live", "disclaimer", "options", "llm_calls", "tokens", "seconds",
    ],
}  # fmt: skip


def _turn(body: dict[str, Any], example: str) -> dict[str, Any]:
    answer = _answer(example, schema={"anyOf": [_stored("report.schema.json"), RCM]})
    answer["content"][stream.MEDIA_TYPE] = {"schema": {"type": "string"}, "example": captured()["events"]}
    return {"responses": {200: answer}, "openapi_extra": {"requestBody": {"required": True, "content": body}}}


def _answer(example: str, **schema: Any) -> dict[str, Any]:
    return {"description": "OK", "content": {"application/json": {"example": captured()[example], **schema}}}


def _examples(name: str) -> dict[str, Any]:
    return {key: {"value": value} for key, value in captured()[name].items()}


def captured() -> dict[str, Any]:
    """Requests, and what the edge model's server answered to them."""
    return _stored("examples.json")


@cache
def _stored(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return content
