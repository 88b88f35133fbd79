"""Turns at work: the demo and the API start, follow and stop them here. At most one a conversation.

A turn runs in a worker thread, because the agent is synchronous; turns beyond the slots wait in the order they came.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from docgemma.errors import StoppedError, UsageError

Event = dict[str, Any]
Stop = Callable[[], bool]
Work = Callable[..., dict[str, Any]]  # of `on_event` and `stop`, by name, as the agent's methods take them
Listener = Callable[[Event | None], Any]
GATHER_S = 0.05  # a screen is drawn at most twenty times a second


class BusyError(UsageError):
    """The conversation is still being worked on, in another window for instance."""


def between_steps(on_event: Callable[[Event], Any], stop: Stop, why: str = "Stopped.") -> Callable[[Any], None]:
    """What tells each step of work that knows nothing of turns, and raises StoppedError where one was stopped."""

    def told(step: Any) -> None:
        on_event(dict(step))
        if stop():
            raise StoppedError(why)

    return told


class Turn:
    """One turn. When `over` is set, either `result` (the contract's JSON) or `error` is.

    Attributes:
        owner: whose turn it is, where that is counted.
        opening: what a screen showed when the turn began, for one that joins later.
        events: what the agent told so far.
    """

    def __init__(self, thread: str, owner: str, opening: list[dict[str, Any]]):
        self.thread, self.owner, self.opening = thread, owner, opening
        self.events: list[Event] = []
        self.result: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.stopping, self.over = threading.Event(), threading.Event()
        self.future: Future[dict[str, Any]] | None = None
        self._listeners: list[Listener] = []
        self._guard = threading.Lock()

    def stop(self) -> None:
        """It ends with the word that the model writes; one that has not begun ends now."""
        self.stopping.set()
        if self.future:
            self.future.cancel()

    def listen(self, listener: Listener) -> None:
        """Call `listener` from the worker thread with every event, earlier ones first, and with None at the end."""
        with self._guard:
            for event in [*self.events, *([None] if self.over.is_set() else [])]:
                listener(event)
            self._listeners.append(listener)

    def tell(self, event: Event | None) -> None:
        """None: the turn is over."""
        with self._guard:
            if event is None:
                self.over.set()
            else:
                self.events.append(event)
            for listener in self._listeners:
                listener(event)

    def follow(self) -> Iterator[None]:
        """Yields when something was added to `events`, until the turn is over."""
        seen = 0
        while not self.over.wait(GATHER_S):
            if len(self.events) > seen:
                seen = len(self.events)
                yield


class Turns:
    def __init__(self, slots: int):
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="docgemma-turn")
        self._running: dict[str, Turn] = {}
        self._guard = threading.Lock()

    def begin(self, thread: str, work: Work, owner: str = "", opening: list[dict[str, Any]] | None = None) -> Turn:
        """Raises BusyError where this conversation has a turn already."""
        turn = Turn(thread, owner, opening or [])
        with self._guard:
            if thread in self._running:
                raise BusyError("The last question is still being answered.", hint="Wait for it, or stop it.")
            self._running[thread] = turn
        turn.future = self._pool.submit(work, on_event=turn.tell, stop=turn.stopping.is_set)
        turn.future.add_done_callback(partial(self._end, turn))
        return turn

    def running(self, thread: str | None) -> Turn | None:
        return self._running.get(thread or "")

    def count(self, owner: str) -> int:
        """How many turns of this owner run or wait."""
        return sum(turn.owner == owner for turn in list(self._running.values()))

    def stop(self, thread: str | None) -> None:
        if turn := self.running(thread):
            turn.stop()

    def close(self) -> None:
        """Stop what runs, and wait for it. What was kept can be taken up after a restart."""
        for turn in list(self._running.values()):
            turn.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _end(self, turn: Turn, future: Future[dict[str, Any]]) -> None:
        try:
            turn.result = future.result()
        except CancelledError:
            turn.error = StoppedError("Stopped.")
        except BaseException as error:
            turn.error = error
        with self._guard:
            del self._running[turn.thread]
        turn.tell(None)
