"""A turn as server-sent events: the conversation, nodes as they start and finish, words, and the report at the end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request

from docgemma.api.problems import CLIENT_LEFT, problem_of
from docgemma.api.turns import Turn, Turns

MEDIA_TYPE = "text/event-stream"
HEADERS = {"X-Accel-Buffering": "no"}  # a proxy passes each event on at once
NAMES = {"start": "node_started", "step": "node_finished", "token": "token", "answer": "answer"}
EXAMPLE = """event: thread
data: {"thread": "api.ward.Q2rO1zv0cQ0uYt7b3n5mXw8k"}

event: node_started
data: {"node": "input_assembly", "label": "Reading the request"}

event: node_finished
data: {"node": "input_assembly", "label": "Reading the request", "detail": "Found: dofetilide", "seconds": 0.001}

event: token
data: {"text": "Dofetilide has an FDA boxed warning: "}

event: answer
data: {"text": "Dofetilide has an FDA boxed warning: ..."}

event: report
data: {"thread": "api.ward.Q2rO1zv0cQ0uYt7b3n5mXw8k", "status": "answered", "answer": "..."}
"""


def wanted(request: Request) -> bool:
    return MEDIA_TYPE in request.headers.get("accept", "")


async def events(turns: Turns, turn: Turn, request: Request, request_id: str) -> AsyncIterator[bytes]:
    """The stream's pieces. It ends with `report`, or with `problem`, a problem document."""
    try:
        yield encode("thread", {"thread": turn.thread})
        async with aclosing(turns.follow(turn, left(request))) as made:
            async for event in made:
                if name := NAMES.get(event["type"]):
                    yield encode(name, {key: value for key, value in event.items() if key != "type"})
                else:
                    yield b": working\n\n"
        yield encode("report", turn.outcome())
    except asyncio.CancelledError:  # the server does this when the caller's connection has ended
        note(request, CLIENT_LEFT)
        raise
    except Exception as error:
        problem = problem_of(error)
        note(request, problem.status, error)
        if problem.status != CLIENT_LEFT:
            yield encode("problem", problem.body(request_id))
    finally:
        turn.stop()  # also for who left before the first event was followed


def encode(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, default=str)}\n\n".encode()


async def left(request: Request) -> None:
    """Ends when the caller's connection does. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def note(request: Request, status: int, error: BaseException | None = None) -> None:
    """For the log: how a request ended whose status line was sent long before."""
    request.scope["docgemma"].update(status=status, error=error)
