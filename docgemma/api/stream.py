"""Follow a turn for a caller over HTTP, and show it as server-sent events: nodes, words, and the report at the end."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request

from docgemma.api.problems import CLIENT_LEFT, Problem, problem_of
from docgemma.turns import Event, Turn

PING_S = 1.0  # something is sent as often, so that no proxy takes the silence for an end, and who left is noticed
MEDIA_TYPE = "text/event-stream"
HEADERS = {"X-Accel-Buffering": "no"}  # a proxy passes each event on at once
NAMES = {"start": "node_started", "step": "node_finished", "token": "token", "answer": "answer"}


async def follow(turn: Turn, request: Request, limit_s: float) -> AsyncGenerator[Event, None]:
    """Its events as they come, and {"type": "ping"} in between. Whoever stops following stops the turn.

    Raises:
        Problem: the caller left, or the time was up. Or what the turn raised.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Queue[Event | None]()
    deadline = loop.time() + limit_s
    turn.listen(lambda event: loop.call_soon_threadsafe(told.put_nowait, event))
    try:
        while True:
            try:
                event = await asyncio.wait_for(told.get(), min(PING_S, max(deadline - loop.time(), 0)))
            except TimeoutError:
                event = {"type": "ping"}
            if event is None:
                break
            if await request.is_disconnected():
                raise Problem(CLIENT_LEFT, "The caller left; the turn was stopped.", "Ask again.")
            if loop.time() >= deadline:
                detail = f"The turn took longer than {limit_s:g} s and was stopped."
                raise Problem(504, detail, "Take it up with /agent/resume, or ask a shorter question.")
            yield event
        if turn.error:
            raise turn.error
    finally:
        turn.stop()


async def events(turn: Turn, request: Request, limit_s: float) -> AsyncIterator[bytes]:
    """The stream's pieces. It ends with `report`, or with `problem`, a problem document."""
    seen = request.scope["docgemma"]
    try:
        yield _encode("thread", {"thread": turn.thread})
        async with aclosing(follow(turn, request, limit_s)) as told:
            async for event in told:
                if name := NAMES.get(event["type"]):
                    yield _encode(name, {key: value for key, value in event.items() if key != "type"})
                else:
                    yield b": working\n\n"
        yield _encode("report", turn.result or {})
    except asyncio.CancelledError:  # the server does this when the caller's connection has ended
        seen["status"] = CLIENT_LEFT  # for the log: the status line was sent long before
        raise
    except Exception as error:
        problem = problem_of(error)
        seen.update(status=problem.status, error=error)
        if problem.status != CLIENT_LEFT:
            yield _encode("problem", problem.body(seen["request_id"]))
    finally:
        turn.stop()  # also for who left before the first event was followed


def _encode(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, default=str)}\n\n".encode()
