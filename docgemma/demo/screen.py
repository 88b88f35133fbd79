"""What one browser window has open, and what stands on it while a turn runs and while it rests."""

import hashlib
import json
import logging
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.patient_search import FOUND
from docgemma.demo.scenarios import PLAYED, Scenario, Step
from docgemma.ehr.base import PatientMatch
from docgemma.errors import DocGemmaError, UnknownThreadError, kind_and_place
from docgemma.forget import image_folder
from docgemma.nodes.context import CLINICIAN, Actor
from docgemma.rules.override import red
from docgemma.rules.plan import NOT_SPECIFIED
from docgemma.turns import Work

Updates = dict[Any, Any]
FILLED = {True: "primary", False: "secondary"}  # which button stands out
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
    patient: str | None = None  # whose banner and chart stand on the page
    about: dict[str, str] | None = None  # {"id", "name"}: whom the card that waits, or else the last answer, is about
    decided: bool = False  # the last turn decided a card: nothing was asked about anybody
    confirmed: str = ""  # id of a patient whose card or answer was meant, beside another's chart
    found: list[str] = field(default_factory=list)  # ids that a search offers
    instead: list[str] = field(default_factory=list)  # drugs that the card offers in place of the ordered one
    scenario: str | None = None
    step: int = 0
    listed: list[str] = field(default_factory=list)  # the conversations of the list, as it was last shown here
    kept: list[str] | None = None  # the conversations kept here, once one was: the browser learns of it later

    @property
    def actor(self) -> Actor:
        """Who signs what is written here: the login's name, where there is a login."""
        return Actor(self.user) if self.user else CLINICIAN

    @property
    def apart(self) -> bool:
        """Whether card or answer are about another patient than the chart beside."""
        return bool(self.about and self.patient not in (None, self.about["id"]))

    @property
    def differs(self) -> bool:
        """Whether they are, and nobody said that it is meant."""
        return bool(self.apart and self.about and self.confirmed != self.about["id"])

    @property
    def options(self) -> dict[str, str]:
        """The choices that are open, id to label."""
        return {item["id"]: item["label"] for item in (self.result or {}).get("options", [])}

    def settle(self) -> list[dict[str, Any]]:
        """The messages so far, without choices that no longer stand."""
        self.messages = [{key: value for key, value in item.items() if key != "options"} for item in self.messages]
        return self.messages


def standing(agent: Agent, session: Session) -> dict[str, Any]:
    """Where its conversation stands now, as `Agent.conversation` says it, with the entry that is `pending`. Another
    window may have changed it since it was shown here."""
    if not session.thread:
        return NOWHERE
    return NOWHERE | (agent.conversation(session.thread) or {}) | {"pending": agent.pending(session.thread)}


def entry_fields(agent: Agent, pending: dict[str, Any]) -> dict[str, str | None]:
    """The fields of an entry that can be changed, empty ones too. The patient cannot: reject, and ask for the right
    one."""
    names = agent.toolbox[pending["name"]].args.model_fields
    return {name: pending["args"].get(name) for name in names if name != "patient_id"}


def lacks_dose(pending: dict[str, Any]) -> bool:
    """Whether an order took another drug's place and waits for its dose."""
    return bool(pending["args"].get("dosage") == NOT_SPECIFIED)


def problem(error: BaseException | None) -> str:
    """The error in one line, without advice for a command line; of an unexpected one, whose text may hold patient
    data, only its kind and place."""
    if isinstance(error, DocGemmaError):
        typed = "--" in error.hint or "docgemma " in error.hint
        return str(error) if typed else error.line()
    where = kind_and_place(error or RuntimeError())
    log.error("a turn failed: %s", where)
    return f"Something went wrong that should not ({where}). Ask again, or report it."


def forget(agent: Agent, thread: str) -> str:
    """Forget a conversation; the error in one line, if any."""
    try:
        agent.forget(thread)
    except UnknownThreadError:  # nothing was asked yet
        shutil.rmtree(image_folder(agent.settings, thread), ignore_errors=True)
    except Exception as error:
        log.error("a conversation could not be forgotten: %s", kind_and_place(error))
        return problem(error)
    return ""


class Screen:
    """The components by name (`ui`, made in app.py) and what belongs on them."""

    def __init__(self, agent: Agent, scenarios: Mapping[str, Scenario]):
        self.agent, self.scenarios = agent, scenarios
        self.files = tempfile.TemporaryDirectory(prefix="docgemma-demo-")
        gr.set_static_paths([self.files.name])  # served from here, so that what is forgotten leaves no copy
        self.secret = secrets.token_bytes(16)  # nobody who signs in can work out where somebody else's export lies
        self.waiting: dict[str, list[Waiting]] = {}  # by conversation
        self.ui: Any = None

    def busy(self, session: Session) -> Updates:
        ui = self.ui
        return {
            ui.session: session, ui.browser: session.thread, ui.stop: gr.update(visible=True),
            **dict.fromkeys((ui.card, ui.differs, ui.edit, ui.take_up), gr.update(visible=False)),
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
        session.stands, pending = stands, stands["pending"]
        last = stands["patient"] if session.result and not session.decided else None
        session.about = (pending or {}).get("patient") or last
        session.patient = session.patient or (session.about or {}).get("id")
        offered = session.scenario and session.step < len(self.scenarios[session.scenario].steps)
        return {
            ui.session: session, ui.browser: session.thread, ui.chat: session.messages,
            ui.stop: gr.update(visible=False), ui.take_up: gr.update(visible=stands["unfinished"]),
            ui.edit: gr.update(visible=False), **self.opened(session), **self._card(session),
            ui.trace: view.html("trace", session.result), ui.export: self._export(session),
            ui.badges: view.badges(self.agent, session.result, session.user),
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
        file = image_folder(self.agent.settings, thread) / "about.json" if thread else None
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file and file.exists() else {}

    def opened(self, session: Session) -> Updates:
        """Banner and chart of who is open, and the stop where the card or the answer is about somebody else."""
        ui, who, about = self.ui, view.opened(self.agent, session.patient), session.about or {}
        pending, differs = session.stands["pending"], session.differs
        other = bool(pending and session.patient != about.get("id"))  # a confirmed card still says so
        line = view.html("differs", "card" if pending else "answer", about.get("name"), who.name)
        meant = f"Yes, the card is for {about.get('name')}" if pending else f"Keep {who.name}’s chart"
        return {
            ui.session: session, ui.patient: session.patient, ui.banner: who.banner, ui.chart: who.chart,
            ui.differs: gr.update(visible=differs or other), ui.whom: line if differs or other else "",
            ui.switch: gr.update(value=f"Open {about.get('name')}’s chart", visible=differs or other),
            ui.keep: gr.update(value=meant, visible=differs),
            ui.approve: gr.update(interactive=not differs),
            ui.save: gr.update(interactive=not differs),
        }  # fmt: skip

    def found(self, session: Session, matches: list[PatientMatch], problem: str, asked: bool) -> Updates:
        """What a search found, each patient as a button."""
        ui = self.ui
        session.found = [match.id for match in matches[:FOUND]]
        labels = [f"{match.label} · ID {match.id}" for match in matches[:FOUND]] + [""] * FOUND
        buttons = {
            button: gr.update(value=label, visible=bool(label)) for button, label in zip(ui.found, labels, strict=False)
        }
        said = view.html("found", len(matches), problem, FOUND) if asked else ""
        return {ui.session: session, ui.matches: gr.update(visible=asked), ui.count: said, **buttons}

    def _card(self, session: Session) -> Updates:
        """The entry that waits. Where something grave stands against it, approving is not the filled button."""
        ui, pending = self.ui, session.stands["pending"]
        if not pending:
            return {ui.card: gr.update(visible=False), ui.what: ""}
        fields = [*entry_fields(self.agent, pending).items(), *[("", "")] * FIELDS]
        boxes = {
            box: gr.update(label=view.field_label(name), value="" if value in (None, NOT_SPECIFIED) else value,
                           visible=bool(name))
            for box, (name, value) in zip(ui.fields, fields, strict=False)
        }  # fmt: skip
        grave, lacks = bool(red(pending.get("ranked") or [])), lacks_dose(pending)
        try:
            session.instead = self.agent.alternatives(pending) if grave else []
        except DocGemmaError:  # an offer, no check: what the check could not look up stands on the card
            session.instead = []
        names = [*session.instead, *[""] * len(ui.alternatives)]
        offers = {
            button: gr.update(value=f"{name[:1].upper()}{name[1:]} instead", visible=bool(name))
            for button, name in zip(ui.alternatives, names, strict=False)
        }
        return {
            ui.card: gr.update(visible=True), ui.what: view.card(pending), **boxes, **offers,
            ui.instead: gr.update(visible=bool(session.instead)),
            ui.reason: gr.update(value="", visible=grave), ui.change: gr.update(variant=FILLED[grave]),
            ui.approve: gr.update(variant=FILLED[not grave], visible=not lacks, interactive=not session.differs),
            ui.edit: gr.update(visible=lacks),
        }  # fmt: skip

    def opening(self, step: Step, session: Session) -> view.Message:
        """What the person of a guided scenario does, as their message."""
        if step.choose:
            return view.said(list(session.options.values())[step.choose - 1] if session.options else str(step.choose))
        if step.decide:
            grave = step.decide == "approve" and red((session.stands["pending"] or {}).get("ranked") or [])
            return view.decided(step.decide, step.change, PLAYED if grave else "")
        return view.said(step.ask, step.image_path)

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
        return Path(self.files.name, hashlib.sha256(self.secret + thread.encode()).hexdigest()[:24])
