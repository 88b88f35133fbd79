"""Turns at work, one thread of execution each. A browser follows one, may go and come back, and may stop it."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docgemma.agent import Agent, OnEvent
from docgemma.errors import DocGemmaError, StoppedError, ThreadStateError, UsageError, kind_and_place
from docgemma.nodes.context import CLINICIAN, Actor

Work = Callable[[OnEvent, Callable[[], bool]], dict[str, Any]]
log = logging.getLogger(__name__)
QUIET_S = 0.05  # at most twenty pictures a second
MOVED = "This conversation changed since it was shown here. Nothing was done; this is how it stands now."
CUT_SHORT = "Stopped after your approval: the entry may be in the record already."


class Turn:
    """One turn at work.

    Attributes:
        opening: the messages that began it, for a browser that joins later.
        timeline, now, words: the steps that are done, the label of the one that runs, the words so far.
        result: the contract's JSON once it is done; None where `problem` says in one line why there is none.
    """

    def __init__(self, work: Work, opening: list[dict[str, Any]]):
        self.opening = opening
        self.timeline: list[dict[str, Any]] = []
        self.now, self.words, self.problem = "", "", ""
        self.result: dict[str, Any] | None = None
        self._stop, self._done, self._changed = threading.Event(), threading.Event(), threading.Event()
        self._work = work

    def run(self) -> None:
        try:
            self.result = self._work(self._event, self._stop.is_set)
        except DocGemmaError as error:
            self.problem = plain(error)
        except Exception as error:  # the line names the kind and the place; the text may hold patient data
            self.problem = f"Something went wrong that should not ({kind_and_place(error)}). Ask again, or report it."
            log.error("a turn failed: %s", kind_and_place(error))
        finally:
            self._done.set()
            self._changed.set()

    def stop(self) -> None:
        self._stop.set()

    def follow(self) -> Iterator[None]:
        """Yields whenever there is something new to show, until the turn is done."""
        while not self._done.is_set():
            self._changed.wait()
            self._changed.clear()
            if not self._done.is_set():
                yield
                self._done.wait(QUIET_S)

    def _event(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "start":
                self.now = event["label"]
            case "step":
                self.timeline = [*self.timeline, event]
                self.now = ""
            case "token":
                self.words += event["text"]
            case "answer":
                self.words = event["text"]
        self._changed.set()


class Turns:
    """The turns at work, at most one a conversation."""

    def __init__(self) -> None:
        self._running: dict[str, Turn] = {}
        self._guard = threading.Lock()

    def begin(self, thread: str, work: Work, opening: list[dict[str, Any]]) -> Turn:
        """Raises UsageError where this conversation is still being worked on, in another window for instance."""
        turn = Turn(work, opening)
        with self._guard:
            if thread in self._running:
                raise UsageError("The last question is still being answered.", hint="Wait for it, or stop it.")
            self._running[thread] = turn
        threading.Thread(target=self._run, args=(thread, turn), daemon=True).start()
        return turn

    def running(self, thread: str | None) -> Turn | None:
        with self._guard:
            return self._running.get(thread or "")

    def stop(self, thread: str | None) -> None:
        if turn := self.running(thread):
            turn.stop()

    def _run(self, thread: str, turn: Turn) -> None:
        try:
            turn.run()
        finally:
            with self._guard:
                self._running.pop(thread, None)


def asking(
    agent: Agent, thread: str, text: str, image: Path | None = None, patient: str | None = None,
    actor: Actor = CLINICIAN,
) -> Work:  # fmt: skip
    """A question as work. The uploaded file is gone afterwards: the agent keeps its own copy."""

    def work(on_event: Any, stop: Any) -> dict[str, Any]:
        try:
            return agent.ask(
                text, thread=thread, create=True, image=image, patient=patient or None, actor=actor,
                on_event=on_event, stop=stop,
            )  # fmt: skip
        finally:
            if image:
                image.unlink(missing_ok=True)

    return work


def deciding(
    agent: Agent, thread: str, decision: Any, changes: dict[str, Any], seen: dict[str, Any], actor: Actor
) -> Work:
    """A decision as work: on the entry that was `seen`, and on no other that waits by now."""

    def work(on_event: Any, stop: Any) -> dict[str, Any]:
        if agent.pending(thread) != seen:
            raise ThreadStateError(MOVED)
        try:
            return agent.decide(thread, decision, changes, actor=actor, on_event=on_event, stop=stop)
        except StoppedError as error:
            if decision == "reject" or agent.pending(thread):
                raise
            raise StoppedError(CUT_SHORT, hint="Take the turn up, or look at the chart, to see.") from error

    return work


def plain(error: DocGemmaError) -> str:
    """The error's line without advice that only helps at a command line."""
    typed = "--" in error.hint or "docgemma " in error.hint
    return str(error) if typed else error.line()
