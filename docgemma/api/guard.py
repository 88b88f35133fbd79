"""Around everything: a number for each request, one line in the log, and no exception beyond this point.

The log says method, route, status, seconds and the token's name. Never a path as it was sent, a query string, a
conversation, a question or an error's text: each may name a patient.
"""

import logging
import secrets
import time
from http import HTTPMethod
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docgemma.api.problems import CLIENT_LEFT, Problem, problem_of
from docgemma.errors import kind_and_place
from docgemma.listening import from_this_machine

log = logging.getLogger("docgemma.api")
METHODS = frozenset(HTTPMethod)
PRIVATE = [(b"cache-control", b"no-store")]


class Guard:
    """ASGI middleware.

    Args:
        local_only: no token protects this server, so a page of another site, opened in a browser here, reaches nothing.
        max_bytes: of a body; Gradio bounds the uploads of the demo itself.
    """

    def __init__(self, app: ASGIApp, local_only: bool, max_bytes: int):
        self.app, self.local_only, self.max_bytes = app, local_only, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        seen = scope["docgemma"] = {"request_id": secrets.token_hex(6), "status": 0, "error": None, "caller": "-"}
        start = time.perf_counter()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                extra = [(b"x-request-id", seen["request_id"].encode()), *([] if _is_demo(scope) else PRIVATE)]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        try:
            if self.local_only and not from_this_machine(scope["headers"]):
                detail = "Without tokens this server answers only pages and programs of this machine."
                raise Problem(403, detail, "Call it as 127.0.0.1, or set DOCGEMMA_API_TOKENS.")
            await self.app(scope, receive if _is_demo(scope) else _bounded(receive, self.max_bytes), answer)
        except ClientDisconnect:
            seen["status"] = CLIENT_LEFT
        except Exception as error:
            seen["error"] = error
            if not seen["status"]:
                await problem_of(error).response(seen["request_id"])(scope, receive, answer)
            else:
                seen["status"] = 500  # for the log; what was sent so far ends where it is
        finally:
            _write(scope, seen, time.perf_counter() - start)


def _bounded(receive: Receive, max_bytes: int) -> Receive:
    """`receive` for a body that ends with a Problem where it grows too large."""
    received = 0

    async def receive_some() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > max_bytes:
            detail = f"The body is larger than {max_bytes / 1e6:g} MB."
            raise Problem(413, detail, "Send a smaller image, or ask about one part.")
        return message

    return receive_some


def _is_demo(scope: Scope) -> bool:
    path: str = scope["path"]
    return path == "/demo" or path.startswith("/demo/")


def _write(scope: Scope, seen: dict[str, Any], seconds: float) -> None:
    if _is_demo(scope) and seen["status"] < 500:
        return  # a page of the demo is dozens of requests
    method = scope["method"] if scope["method"] in METHODS else "?"  # anything may be sent as one
    route = "/demo" if _is_demo(scope) else getattr(scope.get("route"), "path", "(no such path)")
    failed = f" {kind_and_place(seen['error'])}" if seen["error"] is not None and seen["status"] >= 500 else ""
    log.log(
        logging.ERROR if seen["status"] >= 500 else logging.INFO,
        "%s %s %s %.2f s %s %s%s",
        method, route, seen["status"], seconds, seen["caller"], seen["request_id"], failed,
    )  # fmt: skip
