"""What one browser has open: its conversation, what is shown of it, and where a guided scenario stands."""

from dataclasses import dataclass, field
from typing import Any

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.nodes.context import CLINICIAN, Actor

NOWHERE: dict[str, Any] = {"turns": [], "message": "", "patient": None, "unfinished": False, "pending": None}


@dataclass
class Session:
    """One browser window. It lives on the server; a browser names only its conversation, by an id it was given."""

    thread: str = ""
    user: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    stands: dict[str, Any] = field(default_factory=lambda: NOWHERE)  # the conversation as it was last shown here
    patient: str | None = None
    scenario: str | None = None
    step: int = 0

    @property
    def actor(self) -> Actor:
        """Who signs what is written here: the login's name, where there is a login."""
        return Actor(self.user) if self.user else CLINICIAN

    @property
    def options(self) -> dict[str, str]:
        """The choices that are open, id to label."""
        return {item["id"]: item["label"] for item in (self.result or {}).get("options", [])}

    def settle(self) -> list[dict[str, Any]]:
        """The messages so far, without choices that no longer stand."""
        self.messages = [{key: value for key, value in item.items() if key != "options"} for item in self.messages]
        return self.messages


def standing(agent: Agent | None, session: Session) -> dict[str, Any]:
    """Where its conversation stands now, as `Agent.conversation` says it, with the entry that is `pending`. Another
    window may have changed it since it was shown here."""
    if agent is None:
        return NOWHERE | {"pending": (session.result or {}).get("pending_write")}
    if not session.thread:
        return NOWHERE
    return NOWHERE | (agent.conversation(session.thread) or {}) | {"pending": agent.pending(session.thread)}


def reopen(agent: Agent, session: Session, thread: str) -> None:
    """Show a stored conversation: its last turns, what waits for a decision, what was never finished.

    Raises:
        StoreError: the memory cannot be read.
    """
    session.thread, session.messages, session.result = thread, [], None
    stored = session.stands = standing(agent, session)
    if not stored["message"]:
        return  # the id was given, and nothing was asked yet
    turns = stored["turns"]
    session.patient = (stored["patient"] or {}).get("id")
    if stored["unfinished"]:
        session.messages = [
            *view.history(turns),
            view.said(stored["message"]),
            view.note("notice", "This turn was not finished."),
        ]
        return
    session.result = agent.proceed(thread)  # nothing is left to run: this is the report of the turn as it stands
    waiting = session.result["pending_write"]
    earlier = turns if waiting else turns[:-1]
    last = stored["message"] if waiting else turns[-1]["user"]
    session.messages = [*view.history(earlier), view.said(last), *view.answer(session.result)]
