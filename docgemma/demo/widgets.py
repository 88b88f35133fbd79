"""The demo without a server: the same turns in ipywidgets, where Gradio cannot serve. Needs the notebooks extra."""

import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

from docgemma.agent import Agent
from docgemma.demo import entry, view
from docgemma.demo.session import Session
from docgemma.demo.turns import Turn, Turns, Work, asking, plain
from docgemma.errors import ConfigError, DocGemmaError, UsageError

STYLE = """<style>
.dg-said{background:#ccfbf1;color:#0f172a;border-radius:8px;padding:6px 10px;margin:8px 0}
.dg-answer,.dg-caption{padding:6px 10px;line-height:1.4} .dg-notice,.dg-removed{color:#92400e;padding:6px 10px}
.dg-steps{list-style:none;margin:0;padding-left:10px;line-height:1.4} .dg-seconds,.dg-detail{opacity:.8}
.dg-detail{display:block} .dg-sources{border-top:1px solid #cbd5e1;margin-top:8px}
.dg-card{border:2px solid #d97706;border-radius:8px;padding:6px 12px} .dg-card h2{font-size:1.05em}
.dg-card dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px} .dg-card dd{margin:0}
.dg-findings{background:#fef3c7;color:#92400e;padding:6px 6px 6px 1.6em;line-height:1.4}
</style>"""


class WidgetDemo:
    """Chat, timeline, choices, approvals and an image. `box` is what a cell displays.

    A turn runs beside the kernel, so that Stop can be pressed; `wait()` returns when it is over.

    Raises:
        ConfigError: ipywidgets is not installed.
    """

    def __init__(self, agent: Agent):
        try:
            import ipywidgets
        except ImportError as error:
            raise ConfigError("ipywidgets is not installed.", hint="Run: pip install 'docgemma[notebooks]'") from error
        self.agent, self.session, self.turns = agent, Session(thread=uuid.uuid4().hex), Turns()
        self._make, self._follower = ipywidgets, threading.Thread()
        self._build()
        self._rest()

    def ask(self, text: str, image: str | Path | None = None) -> None:
        """Send a question, perhaps with an image (PNG, JPEG, DICOM)."""
        text = text.strip() or ("What does this image show?" if image else "")
        if text:
            agent, thread = self.agent, self.session.thread
            self._begin(text, image, lambda on_event, stop: agent.ask(
                text, thread=thread, create=True, image=image, on_event=on_event, stop=stop))  # fmt: skip

    def choose(self, option: str) -> None:
        """Answer a clarification with the id of a choice that was offered."""
        if option in self.session.options:
            self._run(view.said(self.session.options[option]), asking(self.agent, self.session.thread, option))

    def decide(self, decision: Any, changes: dict[str, str] | None = None) -> None:
        """Approve, reject or edit the entry that waits."""
        agent, thread = self.agent, self.session.thread
        words = entry.said(changes or {}) if decision != "reject" else "Rejected."
        self._run(view.said(words), lambda on_event, stop: agent.decide(
            thread, decision, changes, on_event=on_event, stop=stop))  # fmt: skip

    def stop(self) -> None:
        self.turns.stop(self.session.thread)

    def close(self) -> None:
        """Take the widgets away; a turn that runs is stopped."""
        self.stop()
        self.wait()
        self.box.close()

    def wait(self, timeout_s: float | None = None) -> None:
        """Until the turn is over. Raises TimeoutError."""
        if self._follower.ident:
            self._follower.join(timeout_s)
        if self._follower.is_alive():
            raise TimeoutError(f"The turn is not over after {timeout_s} s.")

    def _begin(self, text: str, image: str | Path | None, work: Work) -> bool:
        """Whether the image, if there is one, can be looked at; else a line says why not."""
        try:
            said = view.said(text, image)
        except DocGemmaError as error:
            self.session.messages = [*self.session.settle(), view.said(text), view.notice(plain(error))]
            self._rest()
            return False
        self._run(said, work)
        return True

    def _run(self, said: view.Message, work: Work) -> None:
        base = [*self.session.settle(), said]
        try:
            turn = self.turns.begin(self.session.thread, work, [said])
        except UsageError as error:
            self._show([*self.session.messages, view.notice(error.line())])
            return
        self._busy()
        self._follower = threading.Thread(target=self._follow, args=(base, turn), daemon=True)
        self._follower.start()

    def _follow(self, base: list[view.Message], turn: Turn) -> None:
        self._show([*base, *view.working(turn.timeline, turn.now, turn.words)])
        for _ in turn.follow():
            self._show([*base, *view.working(turn.timeline, turn.now, turn.words)])
        if turn.result:
            self.session.result = turn.result
            self.session.messages = [*base, *view.answer(turn.result)]
        else:
            self.session.messages = [*base, view.notice(turn.problem)]
        self._rest()

    def _build(self) -> None:
        make = self._make
        self.head = make.HTML(
            STYLE + view.badges(self.agent.llm.name, self.agent.settings.sources, self.agent.store.name)
        )
        self.talk = make.HTML()
        self.choices = make.VBox([])
        self.card, self.fields = make.HTML(), make.VBox([])
        self.approve, self.reject = make.Button(description="Approve"), make.Button(description="Reject")
        self.save = make.Button(description="Approve with changes")
        self.decision = make.VBox([self.card, make.HBox([self.approve, self.reject]), self.fields, self.save])
        self.text = make.Text(placeholder="Ask a clinical question", layout=make.Layout(width="60%"))
        self.upload = make.FileUpload(accept=".png,.jpg,.jpeg,.dcm", description="Image")
        self.send, self.halt = make.Button(description="Ask"), make.Button(description="Stop")
        self.approve.on_click(lambda _: self.decide("approve"))
        self.reject.on_click(lambda _: self.decide("reject"))
        self.save.on_click(lambda _: self._save())
        self.send.on_click(lambda _: self._send())
        self.halt.on_click(lambda _: self.stop())
        line = make.HBox([self.text, self.upload, self.send, self.halt])
        self.box = make.VBox([self.head, self.talk, self.choices, self.decision, line])

    def _send(self) -> None:
        text, files = self.text.value, self.upload.value
        self.text.value, self.upload.value = "", ()
        if not files:
            self.ask(text)
            return
        with tempfile.NamedTemporaryFile(suffix=Path(files[0]["name"]).suffix, delete=False) as file:
            file.write(bytes(files[0]["content"]))
        image, text = Path(file.name), text.strip() or "What does this image show?"
        if not self._begin(text, image, asking(self.agent, self.session.thread, text, image)):
            image.unlink()

    def _save(self) -> None:
        pending = self.agent.pending(self.session.thread)
        if pending:
            values = [box.value for box in self.fields.children]
            changes = entry.changed(entry.fields(self.agent, pending), values)
            self.decide("edit" if changes else "approve", changes)

    def _busy(self) -> None:
        self.choices.children, self.decision.layout.display = (), "none"
        self.send.disabled, self.halt.disabled = True, False

    def _rest(self) -> None:
        self._show(self.session.messages)
        self.choices.children = [self._choice(*item) for item in self.session.options.items()]
        pending = self.agent.pending(self.session.thread)
        self.decision.layout.display = "" if pending else "none"
        if pending:
            self.card.value = view.card(pending, entry.patient_of(self.agent, pending))
            known = entry.fields(self.agent, pending)
            self.fields.children = [self._field(name, value or "") for name, value in known.items()]
        self.send.disabled, self.halt.disabled = False, True

    def _choice(self, option: str, label: str) -> Any:
        button = self._make.Button(description=label, layout=self._make.Layout(width="auto"))
        button.on_click(lambda _: self.choose(option))
        return button

    def _field(self, name: str, value: str) -> Any:
        return self._make.Text(value=value, description=view.field_label(name), style={"description_width": "initial"})

    def _show(self, messages: list[view.Message]) -> None:
        self.talk.value = "".join(map(_drawn, messages))


def _drawn(message: view.Message) -> str:
    """A message of the chat as HTML: the timeline is folded until somebody opens it, or while it runs."""
    folded = message.get("metadata")
    if not folded:
        return message["content"]
    running = " open" if folded["status"] == "pending" else ""
    return f"<details{running}><summary>{view.lines(folded['title'])}</summary>{message['content']}</details>"
