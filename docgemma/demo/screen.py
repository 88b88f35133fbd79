"""What one browser window has open, and what stands on it while a turn runs and while it rests."""

import hashlib
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.scenarios import Scenario, Step, load_trace
from docgemma.errors import DocGemmaError, kind_and_place
from docgemma.forget import image_folder
from docgemma.nodes.context import CLINICIAN, Actor
from docgemma.turns import Work

Updates = dict[Any, Any]
FIELDS = 4  # of an entry that can be changed
UNREADABLE = "Conversations cannot be read or kept at the moment. Try again; `docgemma doctor` says what is wrong."
NOWHERE: dict[str, Any] = {"turns": [], "message": "", "patient": None, "unfinished": False, "pending": None}
log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """What was sent while a turn ran."""

    text: str
    image: Path | None
    opening: list[view.Message]
    work: Work


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
    listed: list[str] = field(default_factory=list)  # the conversations of the list, as it was last shown here

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


def entry_fields(agent: Agent | None, pending: dict[str, Any]) -> dict[str, str | None]:
    """The fields of an entry that can be changed, empty ones too. The patient cannot: reject, and ask for the right
    one."""
    names = agent.toolbox[pending["name"]].args.model_fields if agent else {}
    return {name: pending["args"].get(name) for name in names if name != "patient_id"}


def problem(error: BaseException | None) -> str:
    """The error in one line, without advice for a command line; of an unexpected one, whose text may hold patient
    data, only its kind and place."""
    if isinstance(error, DocGemmaError):
        typed = "--" in error.hint or "docgemma " in error.hint
        return str(error) if typed else error.line()
    where = kind_and_place(error or RuntimeError())
    log.error("a turn failed: %s", where)
    return f"Something went wrong that should not ({where}). Ask again, or report it."


class Screen:
    """The components by name (`ui`, made in app.py) and what belongs on them."""

    def __init__(self, agent: Agent | None, scenarios: Mapping[str, Scenario]):
        self.agent, self.scenarios = agent, scenarios
        self.recorded = "" if agent else load_trace(next(iter(scenarios)))["recorded"]
        self.files = tempfile.TemporaryDirectory(prefix="docgemma-demo-")
        gr.set_static_paths([self.files.name])  # served from here, so that what is forgotten leaves no copy
        self.waiting: dict[str, list[Waiting]] = {}  # by conversation
        self.ui: Any = None

    def busy(self, session: Session) -> Updates:
        ui = self.ui
        return {
            ui.session: session, ui.browser: session.thread, ui.stop: gr.update(visible=True),
            ui.card: gr.update(visible=False), ui.edit: gr.update(visible=False), ui.take_up: gr.update(visible=False),
            ui.play: gr.update(interactive=False), ui.anew: gr.update(interactive=False), **self.line(session),
        }  # fmt: skip

    def rest(self, session: Session) -> Updates:
        """Everything as it stands while nothing is being worked on. Where the memory cannot be read, nothing can be
        decided, and the page says so and stays usable."""
        ui = self.ui
        try:
            stands = standing(self.agent, session)
        except Exception as error:  # sqlite3's, psycopg's or our own: the texts may name an address
            log.error("a conversation cannot be read: %s", kind_and_place(error))
            session.messages = [*session.messages, view.note("notice", UNREADABLE)]
            stands = NOWHERE
        session.stands, pending, patient = stands, stands["pending"], stands["patient"]
        if pending:
            session.patient = str(pending["args"].get("patient_id") or "") or session.patient
        elif patient and session.result:
            session.patient = patient["id"]
        offered = session.scenario and session.step < len(self.scenarios[session.scenario].steps)
        return {
            ui.session: session, ui.browser: session.thread, ui.chat: session.messages,
            ui.stop: gr.update(visible=False), ui.take_up: gr.update(visible=stands["unfinished"]),
            **self._card(pending), ui.edit: gr.update(visible=False),
            ui.patient: gr.update(value=session.patient), ui.chart: view.chart(self.agent, session.patient),
            ui.trace: view.html("trace", session.result), ui.export: self._export(session),
            ui.badges: view.badges(self.agent, session.result, session.user, self.recorded),
            ui.play: gr.update(value="Next step" if offered else "Play", interactive=True),
            ui.anew: gr.update(interactive=True), **self.line(session),
            ui.remember: gr.update(value=bool(self.about(session.thread).get("kept")), visible=not session.user),
        }  # fmt: skip

    def line(self, session: Session) -> Updates:
        """What was sent and waits for its turn."""
        texts = [item.text for item in self.waiting.get(session.thread, ())]
        return {self.ui.line: gr.update(visible=bool(texts)), self.ui.waits: view.html("waiting", texts)}

    def about(self, thread: str) -> dict[str, Any]:
        """What is noted about a conversation: `name`, `kept`."""
        file = image_folder(self.agent.settings, thread) / "about.json" if self.agent and thread else None
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file and file.exists() else {}

    def _card(self, pending: dict[str, Any] | None) -> Updates:
        ui = self.ui
        if not pending:
            return {ui.card: gr.update(visible=False), ui.what: ""}
        fields = [*entry_fields(self.agent, pending).items(), *[("", "")] * FIELDS]
        boxes = {
            box: gr.update(label=view.field_label(name), value=value or "", visible=bool(name))
            for box, (name, value) in zip(ui.fields, fields, strict=False)
        }
        visible = gr.update(visible=True)
        return {ui.card: visible, ui.approve: visible, ui.what: view.card(pending), **boxes}

    def opening(self, step: Step, session: Session) -> view.Message:
        """What the person of a guided scenario does, as their message."""
        if step.choose:
            return view.said(list(session.options.values())[step.choose - 1] if session.options else str(step.choose))
        if step.decide:
            return view.decided(step.decide, step.change)
        return view.said(step.ask, step.image_path if self.agent else None)

    def _export(self, session: Session) -> Any:
        """The last turn as a JSON file. The conversation's id would open the conversation, so it is replaced."""
        if not session.result:
            return gr.update(visible=False)
        path = self.export_folder(session.result["thread"]) / "docgemma-trace.json"
        path.parent.mkdir(exist_ok=True)
        kept = {**session.result, "thread": path.parent.name}
        path.write_text(json.dumps(kept, ensure_ascii=False, indent=2, default=str), encoding="utf-8")
        return gr.update(visible=True, value=str(path))

    def export_folder(self, thread: str) -> Path:
        return Path(self.files.name, hashlib.sha256(thread.encode()).hexdigest()[:12])
