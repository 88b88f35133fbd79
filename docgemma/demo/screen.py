"""What stands on the screen while a turn runs and while it rests. Every method gives the updates of the components."""

import json
import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from docgemma.agent import Agent
from docgemma.demo import chart, view, work
from docgemma.demo.ids import short
from docgemma.demo.scenarios import Scenario, Step, load_trace
from docgemma.demo.session import NOWHERE, Session, standing
from docgemma.errors import kind_and_place

Updates = dict[Any, Any]
FIELDS = 4  # of an entry that can be changed
UNREADABLE = "Conversations cannot be read or kept at the moment. Try again; `docgemma doctor` says what is wrong."
log = logging.getLogger(__name__)


class Screen:
    """The components by name (`ui`, made in app.py) and what belongs on them.

    Args:
        agent: None where stored traces are replayed.
    """

    def __init__(self, agent: Agent | None, scenarios: Mapping[str, Scenario]):
        self.agent, self.scenarios = agent, scenarios
        self.replayed = "" if agent else load_trace(next(iter(scenarios)))["recorded"]
        self.files = tempfile.TemporaryDirectory(prefix="docgemma-demo-")
        self.ui: Any = None

    def busy(self, session: Session) -> Updates:
        ui = self.ui
        return {
            ui.session: session, ui.browser: session.thread, ui.stop: gr.update(visible=True),
            ui.card: gr.update(visible=False), ui.edit: gr.update(visible=False), ui.take_up: gr.update(visible=False),
            ui.composer: {"text": "", "files": []}, ui.play: gr.update(interactive=False),
            ui.anew: gr.update(interactive=False),
        }  # fmt: skip

    def rest(self, session: Session) -> Updates:
        """Everything as it stands while nothing is being worked on."""
        ui = self.ui
        stands = session.stands = self._standing(session)
        pending, patient = stands["pending"], stands["patient"]
        if pending:
            session.patient = str(pending["args"].get("patient_id") or "") or session.patient
        elif patient and session.result:
            session.patient = patient["id"]
        offered = session.scenario and session.step < len(self.scenarios[session.scenario].steps)
        return {
            ui.session: session, ui.browser: session.thread, ui.chat: session.messages,
            ui.stop: gr.update(visible=False), ui.take_up: gr.update(visible=stands["unfinished"]),
            **self._card(pending), ui.edit: gr.update(visible=False),
            ui.patient: gr.update(value=session.patient), ui.chart: self.chart(session.patient),
            ui.trace: view.trace(session.result), ui.export: self._export(session),
            ui.badges: self.badges(session.result, session.user),
            ui.play: gr.update(value="Next step" if offered else "Play", interactive=True),
            ui.anew: gr.update(interactive=True),
        }  # fmt: skip

    def _standing(self, session: Session) -> dict[str, Any]:
        """Where the memory cannot be read, nothing can be decided, and the page says so and stays usable."""
        try:
            return standing(self.agent, session)
        except Exception as error:  # sqlite3's, psycopg's or our own: the texts may name an address
            log.error("a conversation cannot be read: %s", kind_and_place(error))
            session.messages = [*session.messages, view.note("notice", UNREADABLE)]
            return NOWHERE

    def _card(self, pending: dict[str, Any] | None) -> Updates:
        ui = self.ui
        if not pending:
            return {ui.card: gr.update(visible=False), ui.what: ""}
        fields = list(work.entry_fields(self.agent, pending).items()) + [("", "")] * FIELDS
        boxes = {
            box: gr.update(label=view.field_label(name), value=value or "", visible=bool(name))
            for box, (name, value) in zip(ui.fields, fields, strict=False)
        }
        return {
            ui.card: gr.update(visible=True),
            ui.approve: gr.update(visible=True),
            ui.what: view.card(pending),
            **boxes,
        }

    def badges(self, result: dict[str, Any] | None = None, user: str | None = None) -> str:
        if not self.agent:
            return view.badges("", "", "", replay=self.replayed)
        mode = self.agent.settings.sources
        snapshot = any("snapshot" in (tool["source"] or "") for tool in (result or {}).get("tools", []))
        return view.badges(self.agent.llm.name, mode, self.agent.store.name, mode == "auto" and snapshot, user=user)

    def chart(self, patient: str | None) -> str:
        return chart.chart_html(self.agent, patient) if self.agent else chart.EMPTY

    def opening(self, step: Step, session: Session) -> view.Message:
        """What the person of a guided scenario does, as their message."""
        if step.choose:
            return view.said(list(session.options.values())[step.choose - 1] if session.options else str(step.choose))
        if step.decide:
            return view.said("Rejected." if step.decide == "reject" else work.said(step.change))
        return view.said(step.ask, step.image_path if self.agent else None)

    def _export(self, session: Session) -> Any:
        """The last turn as a JSON file. The conversation's id would open the conversation, so it is replaced."""
        if not session.result:
            return gr.update(visible=False)
        name = short(session.result["thread"])
        path = Path(self.files.name, name, "docgemma-trace.json")
        path.parent.mkdir(exist_ok=True)
        kept = {**session.result, "thread": name}
        path.write_text(json.dumps(kept, ensure_ascii=False, indent=2, default=str), encoding="utf-8")
        return gr.update(visible=True, value=str(path))
