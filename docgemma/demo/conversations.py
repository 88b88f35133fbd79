"""Which conversations a page may show again, and what is noted about them: their names, who keeps them, thumbs.

Who signs in comes back to their own. Without a login a conversation is forgotten when its page is left, unless it was
kept on purpose; a turn that runs and an entry that waits are shown again to a tab that was reloaded in time.
"""

import hashlib
import json
import shutil
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from docgemma.agent import Agent
from docgemma.api.access import owns, prefix
from docgemma.demo.screen import Screen, Session, forget
from docgemma.forget import FEEDBACK, image_folder, written_at
from docgemma.memory import last_checkpoints
from docgemma.paths import private_file, private_folder
from docgemma.turns import Turns

RETURN_S = 15 * 60  # a page that was left may come back so long
SHOWN = 100  # conversations in a list
NAME = 80  # characters


class Conversations:
    """For all pages of one demo. After a restart every page counts as left."""

    def __init__(self, agent: Agent, turns: Turns, screen: Screen):
        self.agent, self.turns, self.screen = agent, turns, screen
        self._open: dict[str, Session] = {}  # the pages, by Gradio's name of each
        self._left: dict[str, float] = {}
        self._guard = threading.Lock()
        self._leave(last_checkpoints(agent.memory, prefix("", "web")))

    def seen(self, page: str | None, session: Session) -> None:
        self._open[page or ""] = session
        self._left.pop(session.thread, None)

    def gone(self, page: str | None) -> None:
        """A page was closed, reloaded, or lost."""
        session = self._open.pop(page or "", None)
        if session and session.thread and all(other.thread != session.thread for other in self._open.values()):
            shutil.rmtree(self.screen.export_folder(session.thread), ignore_errors=True)  # a page makes it again
            self._leave([session.thread])

    def returns(self, user: str, thread: Any) -> bool:
        """Whether a page that was loaded shows this conversation of its tab again."""
        self.sweep()
        if not owns(user, thread, "web"):
            return False
        if user or self.turns.running(thread) or self.screen.about(thread).get("kept"):
            return True
        stored = self.agent.conversation(thread) or {"unfinished": False}
        return bool(stored["unfinished"] or self.agent.pending(thread))

    def sweep(self) -> None:
        """Forget what was left too long ago."""
        with self._guard:
            for thread, at in list(self._left.items()):
                if time.monotonic() - at > RETURN_S and not self.turns.running(thread):
                    self._left.pop(thread, None)
                    self.drop(thread)

    def leave(self, user: str | None, thread: str) -> str:
        """Forget a conversation that somebody ends, unless they come back to it; the error in one line, if any."""
        return "" if user or self.screen.about(thread).get("kept") else self.drop(thread)

    def drop(self, thread: str) -> str:
        """Forget a conversation with its name, thumbs and export; the error in one line, if any."""
        self.screen.waiting.pop(thread, None)
        shutil.rmtree(self.screen.export_folder(thread), ignore_errors=True)
        return forget(self.agent, thread)

    def note(self, thread: str, **changes: Any) -> None:
        """Note something about a conversation; it is forgotten with it."""
        file = private_folder(image_folder(self.agent.settings, thread)) / "about.json"
        new = private_file(file.with_suffix(".new"))
        new.write_text(json.dumps(self.screen.about(thread) | changes), encoding="utf-8")
        new.replace(file)

    def listed(self, user: str | None, kept: Any) -> list[dict[str, str]]:
        """Somebody's own conversations, the last one first: `thread`, `name`, `patient`, `at`."""
        if user:
            found = last_checkpoints(self.agent.memory, prefix(user, "web"), SHOWN)
        else:
            mine = [item for item in (kept or [])[-SHOWN:] if owns("", item, "web")]
            mine = [item for item in mine if self.screen.about(item).get("kept")]
            found = {key: value for item in mine for key, value in last_checkpoints(self.agent.memory, item).items()}
        rows = []
        for thread, checkpoint in sorted(found.items(), key=lambda pair: pair[1], reverse=True):
            if stored := self.agent.conversation(thread):
                first = stored["turns"][0]["user"] if stored["turns"] else stored["message"]
                rows.append({
                    "thread": thread, "name": self.screen.about(thread).get("name") or first[:NAME],
                    "patient": (stored["patient"] or {}).get("name", ""),
                    "at": f"{written_at(checkpoint).astimezone():%Y-%m-%d %H:%M}",
                })  # fmt: skip
        return rows

    def thumb(self, session: Session, index: int, liked: Any, agreed: bool) -> None:
        """Keep what somebody thinks of an answer; question and answer only where they agreed."""
        asked = [item for item in session.messages[:index] if item["role"] == "user"]
        line: dict[str, Any] = {
            "turn": _turn(session.thread, index), "by": session.user or "", "model": self.agent.llm.name,
            "at": datetime.now(UTC).isoformat(timespec="seconds"), "liked": liked if isinstance(liked, bool) else None,
        }  # fmt: skip
        if session.result and index == len(session.messages) - 1:
            line |= {key: session.result[key] for key in ("status", "intent", "path", "seconds")}
            line["tools"] = [tool["name"] for tool in session.result["tools"]]
        if agreed:
            texts = [Markup(item["content"]).striptags() for item in (asked[-1], session.messages[index])]
            line |= dict(zip(("question", "answer"), texts, strict=True))
        with private_file(self.agent.settings.home / FEEDBACK).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def thumbs(self, session: Session) -> list[dict[str, Any]]:
        """What was kept of somebody's thumbs; of each answer the last. Without a login, those of this conversation."""
        file = self.agent.settings.home / FEEDBACK
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        here = {_turn(session.thread, index) for index in range(len(session.messages))}
        last = {item["turn"]: item for item in map(json.loads, lines)}
        mine = [item for item in last.values() if item["turn"] in here or item["by"] == (session.user or None)]
        return [item for item in mine if item["liked"] is not None]

    def _leave(self, threads: Iterable[str]) -> None:
        may_go = [item for item in threads if owns("", item, "web") and not self.screen.about(item).get("kept")]
        self._left |= dict.fromkeys(may_go, time.monotonic())
        timer = threading.Timer(RETURN_S + 1, self.sweep)
        timer.daemon = True
        timer.start()


def _turn(thread: str, index: int) -> str:
    return hashlib.sha256(f"{thread} {index}".encode()).hexdigest()[:16]
