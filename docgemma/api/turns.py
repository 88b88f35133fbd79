"""Turns at work for callers over HTTP: a few at a time, first come first served, at most one a conversation.

A turn runs in a worker thread, because the agent is synchronous; everything else here is on the event loop.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

from docgemma.agent import OnEvent
from docgemma.api.problems import CLIENT_LEFT, Problem
from docgemma.errors import StoppedError

Work = Callable[[OnEvent, Callable[[], bool]], dict[str, Any]]
Event = dict[str, Any]
PING_S = 10.0  # something is sent as often, so that no proxy takes the silence for an end
WIND_DOWN_S = 20.0  # a stopped turn ends with the model call that it is in


class Turn:
    """One turn. `events` ends with None; then `result` or `error` is set."""

    def __init__(self, caller: str, thread: str):
        self.caller, self.thread = caller, thread
        self.events: asyncio.Queue[Event | None] = asyncio.Queue()
        self.result: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.over = asyncio.Event()
        self.stopping = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._future: Any = None

    def start(self, pool: ThreadPoolExecutor, work: Work, ended: Callable[["Turn"], None]) -> None:
        self._future = pool.submit(work, self._event, self.stopping.is_set)
        self._future.add_done_callback(lambda future: self._loop.call_soon_threadsafe(self._end, future, ended))

    def stop(self) -> None:
        """It ends soon; one that has not begun ends now."""
        self.stopping.set()
        if self._future:
            self._future.cancel()

    def outcome(self) -> dict[str, Any]:
        """The contract's JSON, or the error raised."""
        if self.error:
            raise self.error
        assert self.result is not None
        return self.result

    def _event(self, event: Event) -> None:
        self._loop.call_soon_threadsafe(self.events.put_nowait, event)

    def _end(self, future: Any, ended: Callable[["Turn"], None]) -> None:
        try:
            self.result = future.result()
        except CancelledError:
            self.error = StoppedError("Stopped.")
        except Exception as error:
            self.error = error
        ended(self)
        self.over.set()
        self.events.put_nowait(None)


class Turns:
    """Args: at_once: turns that run at the same time; others wait. each: turns a caller may have running or waiting."""

    def __init__(self, at_once: int, each: int, limit_s: float):
        self.each, self.limit_s = each, limit_s
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="docgemma-turn")
        self._running: dict[str, Turn] = {}

    async def begin(self, caller: str, thread: str, work: Work) -> Turn:
        """Raises Problem: 409 where the conversation is being worked on, 429 where the caller has enough running."""
        while earlier := self._running.get(thread):
            if not earlier.stopping.is_set() or not await _within(WIND_DOWN_S, earlier.over.wait()):
                detail = "The last question of this conversation is still being answered."
                raise Problem(409, detail, "Wait for its answer.", retry_after=5)
        if sum(turn.caller == caller for turn in self._running.values()) >= self.each:
            detail = f"At most {self.each} questions can be answered for you at the same time."
            raise Problem(429, detail, "Wait for an answer, then ask.", retry_after=5)
        turn = self._running[thread] = Turn(caller, thread)
        turn.start(self._pool, work, lambda turn: self._running.pop(turn.thread, None))
        return turn

    async def follow(self, turn: Turn, gone: Awaitable[None]) -> AsyncGenerator[Event, None]:
        """Its events as they come, and {"type": "ping"} in between. Whoever stops following stops the turn.

        Args:
            gone: ends when the caller leaves.

        Raises:
            Problem: the caller left, or the time was up.
        """
        leaving = asyncio.ensure_future(gone)
        deadline = asyncio.get_running_loop().time() + self.limit_s
        try:
            while (event := await self._next(turn, leaving, deadline)) is not None:
                yield event
        finally:
            leaving.cancel()
            turn.stop()

    async def _next(self, turn: Turn, leaving: asyncio.Future, deadline: float) -> Event | None:
        getting = asyncio.ensure_future(turn.events.get())
        wait = min(PING_S, deadline - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait({getting, leaving}, timeout=max(wait, 0), return_when=asyncio.FIRST_COMPLETED)
        if getting in done:
            return getting.result()
        getting.cancel()
        if leaving in done:
            raise Problem(CLIENT_LEFT, "The caller left; the turn was stopped.", "Ask again.")
        if wait < PING_S:
            raise Problem(
                504, f"The turn took longer than {self.limit_s:g} s and was stopped.",
                "Take it up with /agent/resume, or ask a shorter question.",
            )  # fmt: skip
        return {"type": "ping"}

    async def close(self) -> None:
        """Stop what runs, and wait for it. What was kept can be taken up after a restart."""
        for turn in list(self._running.values()):
            turn.stop()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)


async def _within(seconds: float, done: Awaitable[Any]) -> bool:
    try:
        await asyncio.wait_for(done, seconds)
    except TimeoutError:
        return False
    return True
