"""What happens when somebody sends, chooses, decides, stops. Every handler yields only what changed on the screen."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from docgemma.agent import Agent
from docgemma.demo import chart, view
from docgemma.demo.ids import Ids, short
from docgemma.demo.scenarios import Scenario, Step, player
from docgemma.demo.session import Session, reopen
from docgemma.demo.turns import Turn, Turns, Work, kind, log, plain
from docgemma.errors import DocGemmaError, UsageError

Updates = dict[Any, Any]
FIELDS = 4  # of an entry that can be changed; the patient cannot: reject, and ask for the right one


class Desk:
    """The handlers of one demo, for all its users. `ui` is the screen's components by name (see app.py).

    Args:
        agent: None replays stored traces and answers nothing else.
    """

    def __init__(self, agent: Agent | None, ids: Ids, scenarios: list[Scenario], replayed: str = ""):
        self.agent, self.ids, self.replayed = agent, ids, replayed
        self.scenarios = {item.id: item for item in scenarios}
        self.turns = Turns()
        self.files = tempfile.TemporaryDirectory(prefix="docgemma-demo-")
        self.ui: Any = None

    # -- what people do ------------------------------------------------------------------------------------------------

    def open(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """A page was loaded: its conversation is shown again, also one that is being worked on."""
        self._enter(session, browser, request)
        if turn := self.turns.running(session.thread):
            session.messages = session.messages[: -2 if session.unfinished else None]
            session.unfinished = False
            yield from self._follow(session, session.messages + turn.opening, turn)
        else:
            yield self._rest(session)

    def send(
        self, value: dict[str, Any], session: Session, browser: Any, patient: str | None, request: gr.Request
    ) -> Iterator[Updates]:
        """A question, perhaps with an image."""
        self._enter(session, browser, request)
        files = [Path(item) for item in value.get("files") or []]
        text = (value.get("text") or "").strip() or ("What does this image show?" if files else "")
        if not text:
            yield {self.ui.composer: gr.update()}
            return
        try:
            if len(files) > 1:
                raise UsageError("Only one image can be looked at in a turn.", hint="Attach one.")
            image = files[0] if files else None
            opening = [view.said(text, image)]
        except DocGemmaError as error:
            session.messages = [*session.settle(), view.said(text), view.notice(plain(error))]
            yield self._rest(session) | {self.ui.composer: {"text": text, "files": []}}
            return
        session.thread = session.thread or self.ids.new(session.user)
        yield from self._run(session, opening, asking(self.agent, session.thread, text, image, patient))

    def choose(self, session: Session, browser: Any, request: gr.Request, event: gr.SelectData) -> Iterator[Updates]:
        """A choice of a clarification. Only what was offered can be chosen."""
        self._enter(session, browser, request)
        chosen = event.value.get("value") if isinstance(event.value, dict) else event.value
        if chosen not in session.options:
            yield self._rest(session)
            return
        work = asking(self.agent, session.thread, chosen)
        yield from self._run(session, [view.said(session.options[chosen])], work)

    def approve(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        yield from self._decide(session, browser, request, "approve", {}, "Approved.")

    def reject(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        yield from self._decide(session, browser, request, "reject", {}, "Rejected.")

    def change(
        self, session: Session, browser: Any, first: str, second: str, third: str, fourth: str, request: gr.Request
    ) -> Iterator[Updates]:
        """The entry as it was changed on the card; new findings come back before anything is written."""
        values = (first, second, third, fourth)
        self._enter(session, browser, request)
        before = self._fields(self._pending(session) or {"args": {}})
        given = zip(before.items(), values, strict=False)
        changes = {name: new.strip() for (name, old), new in given if (new or "").strip() != (old or "")}
        words = "Changed: " + "; ".join(f"{view.field_label(name)} {value}" for name, value in changes.items())
        decision = "edit" if changes else "approve"
        yield from self._decide(session, browser, request, decision, changes, words if changes else "Approved.")

    def take_up(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """Go on with a turn that was stopped or cut off."""
        self._enter(session, browser, request)
        agent, thread = self.agent, session.thread
        yield from self._run(
            session, [view.said("Go on.")], lambda on_event, stop: agent.proceed(thread, on_event=on_event)
        )

    def stop(self, session: Session, browser: Any, request: gr.Request) -> None:
        thread = session.thread or (browser if self.ids.owns(browser, request.username) else None)
        self.turns.stop(thread)

    def begin_anew(self, session: Session, request: gr.Request) -> Updates:
        """A new conversation; the old one stays stored, and this browser forgets it."""
        session.__dict__.update(Session(user=request.username, patient=session.patient).__dict__)
        return self._rest(session) | {self.ui.browser: None}

    def pick(self, session: Session, patient: str | None) -> Updates:
        session.patient = patient
        return {self.ui.chart: self._chart(patient), self.ui.session: session}

    def find(self, event: gr.KeyUpData) -> Any:
        """Names as they are typed, where the record store cannot list everybody."""
        try:
            return gr.update(choices=chart.search(self.agent, event.input_value or ""))
        except DocGemmaError as error:
            gr.Warning(plain(error))
            return gr.update()

    def play(self, chosen: str, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """The next step of a guided scenario; the first one begins a new conversation."""
        if chosen != session.scenario:
            session.__dict__.update(Session(user=request.username, scenario=chosen).__dict__)
            session.thread = self.ids.new(session.user)
        scenario = self.scenarios[chosen]
        step = scenario.steps[session.step]
        session.step += 1
        number = f"{scenario.title}, step {session.step} of {len(scenario.steps)}"
        opening = [view.caption(number, step.caption), self._opening(step, session)]
        work = player(self.agent, scenario, session.step - 1, session.thread, session.result)
        for updates in self._run(session, opening, work):
            if session.step >= len(scenario.steps) and self.ui.trace in updates:  # the last picture of the last step
                session.messages = [*session.messages, view.caption("What to notice", scenario.notice)]
                session.scenario, session.step = None, 0
                updates = self._rest(session)
            yield updates

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _decide(
        self, session: Session, browser: Any, request: gr.Request, decision: Any, changes: dict[str, Any], words: str
    ) -> Iterator[Updates]:
        self._enter(session, browser, request)
        agent, thread = self.agent, session.thread
        if not (thread and self._pending(session)):
            yield self._rest(session)
            return
        yield from self._run(
            session,
            [view.said(words)],
            lambda on_event, stop: agent.decide(thread, decision, changes, on_event=on_event, stop=stop),
        )

    def _run(self, session: Session, opening: list[dict[str, Any]], work: Work) -> Iterator[Updates]:
        base = session.settle()
        try:
            turn = self.turns.begin(session.thread, work, opening)
        except UsageError as error:
            session.messages = [*base, view.notice(error.line())]
            yield self._rest(session)
            return
        yield from self._follow(session, base + opening, turn)

    def _follow(self, session: Session, base: list[dict[str, Any]], turn: Turn) -> Iterator[Updates]:
        session.messages = base
        yield self._busy(session) | {self.ui.chat: [*base, *view.working(turn.timeline, turn.now, turn.words)]}
        for _ in turn.follow():
            yield {self.ui.chat: [*base, *view.working(turn.timeline, turn.now, turn.words)]}
        session.unfinished = turn.result is None and not self._pending(session)
        if turn.result:
            session.result = turn.result
            session.messages = [*base, *view.answer(turn.result)]
        else:
            shown = [view.thought(turn.timeline, 0.0)] if turn.timeline else []
            session.messages = [*base, *shown, view.notice(turn.problem)]
        yield self._rest(session)

    def _enter(self, session: Session, browser: Any, request: gr.Request) -> None:
        """Take up the conversation that this browser holds, if it was given to this person."""
        session.user = request.username
        if session.thread or not self.agent or not self.ids.owns(browser, session.user):
            return
        try:
            reopen(self.agent, session, browser)
        except DocGemmaError as error:
            session.messages = [view.notice(plain(error))]
        except Exception as error:
            log.error("a conversation could not be opened: %s", kind(error))
            session.messages = [view.notice(f"The conversation cannot be opened ({kind(error)}).")]

    # -- what is shown -------------------------------------------------------------------------------------------------

    def _busy(self, session: Session) -> Updates:
        ui = self.ui
        return {
            ui.session: session, ui.browser: session.thread, ui.stop: gr.update(visible=True),
            ui.card: gr.update(visible=False), ui.edit: gr.update(visible=False), ui.take_up: gr.update(visible=False),
            ui.composer: {"text": "", "files": []}, ui.play: gr.update(interactive=False),
            ui.anew: gr.update(interactive=False),
        }  # fmt: skip

    def _rest(self, session: Session) -> Updates:
        """Everything as it stands while nothing is being worked on."""
        ui, pending = self.ui, self._pending(session)
        if pending:
            session.patient = str(pending["args"].get("patient_id") or "") or session.patient
        elif self.agent and session.thread and session.result:
            session.patient = self._active(session) or session.patient
        offered = session.scenario and session.step < len(self.scenarios[session.scenario].steps)
        return {
            ui.session: session, ui.browser: session.thread, ui.chat: session.messages,
            ui.stop: gr.update(visible=False), ui.take_up: gr.update(visible=session.unfinished),
            **self._card(pending), ui.edit: gr.update(visible=False),
            ui.patient: gr.update(value=session.patient), ui.chart: self._chart(session.patient),
            ui.trace: view.trace(session.result), ui.export: self._export(session),
            ui.badges: self.badges(session.result),
            ui.play: gr.update(value="Next step" if offered else "Play", interactive=True),
            ui.anew: gr.update(interactive=True),
        }  # fmt: skip

    def _card(self, pending: dict[str, Any] | None) -> Updates:
        ui = self.ui
        if not pending:
            return {ui.card: gr.update(visible=False), ui.what: ""}
        fields = list(self._fields(pending).items()) + [("", "")] * FIELDS
        boxes = {
            box: gr.update(label=view.field_label(name), value=value or "", visible=bool(name))
            for box, (name, value) in zip(ui.fields, fields, strict=False)
        }
        return {ui.card: gr.update(visible=True), ui.what: view.card(pending, self._who(pending)), **boxes}

    def badges(self, result: dict[str, Any] | None = None) -> str:
        if not self.agent:
            return view.badges("", "", "", replay=self.replayed)
        mode = self.agent.settings.sources
        snapshot = any("snapshot" in (tool["source"] or "") for tool in (result or {}).get("tools", []))
        return view.badges(self.agent.llm.name, mode, self.agent.store.name, mode == "auto" and snapshot)

    def _chart(self, patient: str | None) -> str:
        return chart.chart_html(self.agent, patient) if self.agent else chart.EMPTY

    def _pending(self, session: Session) -> dict[str, Any] | None:
        if self.agent:
            return self.agent.pending(session.thread) if session.thread else None
        return (session.result or {}).get("pending_write")

    def _active(self, session: Session) -> str | None:
        values = self.agent.app.get_state({"configurable": {"thread_id": session.thread}}).values
        return (values.get("active_patient") or {}).get("id")

    def _fields(self, pending: dict[str, Any]) -> dict[str, str | None]:
        known = pending["args"]
        if self.agent and pending.get("name"):
            known = {name: pending["args"].get(name) for name in self.agent.toolbox[pending["name"]].args.model_fields}
        return {name: value for name, value in known.items() if name != "patient_id"}

    def _who(self, pending: dict[str, Any]) -> str:
        given = str(pending["args"].get("patient_id", ""))
        try:
            match = self.agent.store.patient(given) if self.agent else None
        except DocGemmaError:
            match = None  # the card's findings say that the chart could not be read
        return f"{match.label} (ID {match.id})" if match else f"patient ID {given}"

    def _opening(self, step: Step, session: Session) -> dict[str, Any]:
        if step.choose:
            return view.said(list(session.options.values())[step.choose - 1] if session.options else str(step.choose))
        if step.decide:
            return view.said(
                {"approve": "Approved.", "reject": "Rejected."}.get(step.decide) or f"Changed: {step.said}"
            )
        return view.said(step.ask, step.image_path if self.agent else None)

    def _export(self, session: Session) -> Any:
        """The last turn as a JSON file. The conversation's id would open the conversation, so it is replaced."""
        if not session.result:
            return gr.update(visible=False)
        kept = {**session.result, "thread": short(session.result["thread"])}
        folder = Path(tempfile.mkdtemp(dir=self.files.name))
        path = folder / "docgemma-trace.json"
        path.write_text(json.dumps(kept, ensure_ascii=False, indent=2, default=str), encoding="utf-8")
        return gr.update(visible=True, value=str(path))


def asking(agent: Agent, thread: str, text: str, image: Path | None = None, patient: str | None = None) -> Work:
    """A question as work. The uploaded file is gone afterwards: the agent keeps its own copy."""

    def work(on_event: Any, stop: Any) -> dict[str, Any]:
        try:
            return agent.ask(
                text, thread=thread, create=True, image=image, patient=patient or None, on_event=on_event, stop=stop
            )
        finally:
            if image:
                image.unlink(missing_ok=True)

    return work
