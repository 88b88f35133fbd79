"""What one browser has open: its conversation, what is shown of it, and where a guided scenario stands."""

from dataclasses import dataclass, field
from typing import Any

from docgemma.agent import Agent
from docgemma.demo import view


@dataclass
class Session:
    """One browser window. It lives on the server; a browser names only its conversation, by an id it was given."""

    thread: str | None = None
    user: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    unfinished: bool = False  # the last turn was stopped or cut off, and can be taken up
    patient: str | None = None
    scenario: str | None = None
    step: int = 0

    @property
    def options(self) -> dict[str, str]:
        """The choices that are open, id to label."""
        return {item["id"]: item["label"] for item in (self.result or {}).get("options", [])}

    def settle(self) -> list[dict[str, Any]]:
        """The messages so far, without choices that no longer stand."""
        self.messages = [{key: value for key, value in item.items() if key != "options"} for item in self.messages]
        return self.messages


def reopen(agent: Agent, session: Session, thread: str) -> None:
    """Show a stored conversation: its last turns, what waits for a decision, what was never finished.

    Raises:
        StoreError: the memory cannot be read.
    """
    session.thread, session.messages, session.result = thread, [], None
    stored = agent.conversation(thread)
    if stored is None:
        return  # the id was given, and nothing was asked yet
    turns = stored["turns"]
    session.unfinished = stored["unfinished"]
    session.patient = (stored["patient"] or {}).get("id")
    if session.unfinished:
        session.messages = [
            *view.history(turns),
            view.said(stored["message"]),
            view.notice("This turn was not finished."),
        ]
        return
    session.result = agent.proceed(thread)  # nothing is left to run: this is the report of the turn as it stands
    waiting = session.result["pending_write"]
    earlier = turns if waiting else turns[:-1]
    last = stored["message"] if waiting else turns[-1]["user"]
    session.messages = [*view.history(earlier), view.said(last), *view.answer(session.result)]
