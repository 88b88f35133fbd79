"""Every failure as a problem document (RFC 9457): its status, what happened and what to do next.

Texts are fixed: an error's own message may name a patient, a path or a conversation, so it is not repeated.
"""

import sqlite3
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

from docgemma import errors
from docgemma.turns import BusyError

MEDIA_TYPE = "application/problem+json"
CLIENT_LEFT = 499  # nobody reads it; it stands in the log


class Problem(Exception):
    """An answer that is not a result. `detail` holds nothing that the caller sent or a record holds; `next` says what
    to do, and `retry_after` in how many seconds."""

    def __init__(self, status: int, detail: str, next: str, *, retry_after: int | None = None, **headers: str):
        super().__init__(detail)
        self.status, self.detail, self.next = status, detail, next
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)

    def body(self, request_id: str) -> dict[str, Any]:
        title = "Client Closed Request" if self.status == CLIENT_LEFT else HTTPStatus(self.status).phrase
        return {
            "type": "about:blank", "title": title, "status": self.status, "detail": self.detail, "next": self.next,
            "request_id": request_id,
        }  # fmt: skip

    def response(self, request_id: str) -> JSONResponse:
        return JSONResponse(self.body(request_id), self.status, self.headers, MEDIA_TYPE)


AGAIN = "Try again. If it stays, tell whoever runs this server the request_id."
OPERATOR = "Tell whoever runs this server the request_id; `docgemma doctor` there says what is wrong."
# the first class that fits; subclasses stand before their bases
TABLE: tuple[tuple[type[BaseException], int, str, str], ...] = (
    (errors.UnknownThreadError, 404, "There is no such conversation.", "Leave out `thread` to start one."),
    (errors.UnknownPatientError, 404, "There is no such patient.", "Ask for the patient by name, without `patient`."),
    (errors.ThreadStateError, 409, "The conversation is not at a point where this can be done.",
     "POST it to /agent/resume without a decision to see where it stands."),
    (BusyError, 409, "The last question of this conversation is still being answered.", "Wait for its answer."),
    (errors.UsageError, 422, "The request cannot be carried out as it is.", "Compare it with /openapi.json."),
    (errors.StoppedError, 503, "The turn was stopped.", "Ask again, or take it up with /agent/resume."),
    (errors.NoVisionError, 422, "The loaded model cannot look at images.", "Ask without an image."),
    (errors.OutOfTokensError, 503, "The model did not come to an end with this question.", "Ask a shorter one."),
    (errors.ModelError, 503, "The language model did not answer.", AGAIN),
    (errors.ToolError, 502, "A source that the answer needs failed.", AGAIN),
    (errors.StoreError, 503, "A database of this server cannot be used. Nothing was looked up.", OPERATOR),
    (sqlite3.Error, 503, "A database of this server cannot be used. Nothing was looked up.", OPERATOR),
    (errors.ConfigError, 500, "This server is not set up for that.", OPERATOR),
    (errors.DocGemmaError, 500, "The request failed.", OPERATOR),
)  # fmt: skip


def problem_of(error: BaseException) -> Problem:
    """What a caller is told of an error; of an unexpected one only that it was unexpected."""
    if isinstance(error, Problem):
        return error
    for kind, status, detail, next in TABLE:
        if isinstance(error, kind):
            return Problem(status, detail, next, retry_after=5 if status == 503 or kind is BusyError else None)
    return Problem(500, "Something went wrong that should not.", OPERATOR)
