"""What happens beside the questions: stop and begin anew, the list of conversations, keeping one, thumbs."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import gradio as gr

from docgemma.api.access import new_thread, owns
from docgemma.demo import view
from docgemma.demo.conversations import NAME
from docgemma.demo.handlers import Handlers
from docgemma.demo.screen import UNREADABLE, Session, Updates
from docgemma.errors import kind_and_place
from docgemma.paths import private_file

BUSY = "A question is being answered. Stop it or wait, then choose again."
log = logging.getLogger(__name__)


class Everyday(Handlers):
    """All handlers of the demo. See `Handlers`."""

    def closed(self, request: gr.Request) -> None:
        """A page was left."""
        self.conversations.gone(request.session_hash)

    def withdraw(self, draft: dict[str, Any], session: Session) -> Updates:
        """What waits goes back to where it was typed."""
        back = self.screen.waiting.pop(session.thread, [])
        files = [str(item.image) for item in back if item.image] + (draft.get("files") or [])
        text = "\n".join(filter(None, [*(item.text for item in back), draft.get("text")]))
        return {self.screen.ui.composer: {"text": text, "files": files}, **self.screen.line(session)}

    def stop(self, draft: dict[str, Any], session: Session, browser: Any, request: gr.Request) -> Updates:
        back = self.withdraw(draft, session)
        self.turns.stop(session.thread or (browser if owns(request.username or "", browser, "web") else None))
        return back

    def begin_anew(self, session: Session, request: gr.Request) -> Iterator[Updates]:
        """A new conversation. The old one is forgotten, unless somebody comes back to it."""
        old, waited = session.thread, session.stands["pending"]
        session.__dict__.update(Session(user=request.username).__dict__)
        emptied = {self.screen.ui.composer: {"text": "", "files": []}, self.screen.ui.search: ""}
        yield self.screen.rest(session) | self.screen.found(session, [], "", False) | emptied
        self._end(old, session.user, waited)

    def remember(self, keep: bool, session: Session, kept: Any) -> Updates:
        """Keep this conversation for this browser, or no longer."""
        session.thread = session.thread or new_thread("", "web")
        self.conversations.note(session.thread, kept=keep)
        session.kept = [item for item in session.kept or kept or [] if item != session.thread] + [session.thread] * keep
        ui = self.screen.ui
        return {ui.session: session, ui.browser: session.thread, ui.kept: session.kept, **self.list(session, kept)}

    def list(self, session: Session, kept: Any) -> Updates:
        """The conversations that somebody may come back to. Their ids stay on the server."""
        ui = self.screen.ui
        try:
            rows = self.conversations.listed(session.user, kept if session.kept is None else session.kept)
        except Exception as error:
            log.error("conversations cannot be listed: %s", kind_and_place(error))
            return {ui.list: view.html("conversations", [], "", session.user, UNREADABLE)}
        session.listed = [row["thread"] for row in rows]
        return {ui.list: view.html("conversations", rows, session.thread, session.user), **self._thumbs(session)}

    def choose_listed(self, session: Session, kept: Any, request: gr.Request, event: gr.EventData) -> Iterator[Updates]:
        """Open, rename or delete a conversation of the list."""
        do, number, name = (event._data.get(key) for key in ("do", "number", "name"))
        known = isinstance(number, int) and 0 <= number < len(session.listed)
        thread, old = session.listed[number] if known else "", session.thread
        if not owns(request.username or "", thread, "web"):
            gr.Warning("This list has changed. Open it again.")
        elif do == "rename":
            self.conversations.note(thread, name=str(name).strip()[:NAME])
        elif self.turns.running(old) or self.turns.running(thread):
            gr.Warning(BUSY)
        elif do == "open" and thread != old:
            waited = session.stands["pending"]
            session.__dict__.update(Session(user=request.username).__dict__)
            self._enter(session, thread, request)
            yield self.screen.rest(session)
            self._end(old, session.user, waited)
        elif do == "delete":
            if thread == old:
                session.__dict__.update(Session(user=request.username).__dict__)
                yield self.screen.rest(session)
            if line := self.conversations.drop(thread):
                gr.Warning(line)
        yield self.list(session, kept)

    def thumb(self, session: Session, agreed: bool, event: gr.LikeData) -> Updates:
        """A thumb on an answer."""
        index = event.index if isinstance(event.index, int) else event.index[0]
        self.conversations.thumb(session, index, event.liked, agreed)
        return self._thumbs(session)

    def _end(self, thread: str, user: str | None, waited: Any) -> None:
        """Leave a conversation: what was not kept is forgotten."""
        if waited and not user and not self.screen.about(thread).get("kept"):
            gr.Info("The entry that waited was not recorded.")
        if thread and (line := self.conversations.leave(user, thread)):
            gr.Warning(line)

    def _thumbs(self, session: Session) -> Updates:
        """What was kept of somebody's thumbs, ready to be exported."""
        found = self.conversations.thumbs(session)
        file = private_file(self.screen.export_folder(session.thread or session.user or "") / "docgemma-feedback.json")
        file.write_text(json.dumps(found, ensure_ascii=False, indent=2), encoding="utf-8")
        return {self.screen.ui.feedback: gr.update(visible=bool(found), value=str(file))}
