"""What happens when somebody sends, chooses, decides, stops. Every handler yields only what changed on the screen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from docgemma.agent import Agent
from docgemma.demo import chart, view, work
from docgemma.demo.ids import Ids
from docgemma.demo.scenarios import load_scenarios, player
from docgemma.demo.screen import Screen, Updates
from docgemma.demo.session import Session, reopen, standing
from docgemma.errors import DocGemmaError, UsageError
from docgemma.turns import BusyError, Turn, Turns, Work


class Handlers:
    """The handlers of one demo, for all its users. What the screen then shows is `screen`'s.

    Args:
        agent: None replays stored traces and answers nothing else.
    """

    def __init__(self, agent: Agent | None, ids: Ids, turns: Turns):
        self.agent, self.ids, self.turns = agent, ids, turns
        self.scenarios = {item.id: item for item in load_scenarios()}
        self.screen = Screen(agent, self.scenarios)

    @property
    def live(self) -> Agent:
        """The agent; where traces are replayed, nothing that needs one is wired."""
        assert self.agent
        return self.agent

    # -- what people do ------------------------------------------------------------------------------------------------

    def open(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """A page was loaded: its conversation is shown again, also one that is being worked on."""
        self._enter(session, browser, request)
        if turn := self.turns.running(session.thread):
            session.messages = session.messages[: -2 if session.stands["unfinished"] else None]
            yield from self._follow(session, session.messages + turn.opening, turn)
        else:
            yield self.screen.rest(session)

    def send(
        self, value: dict[str, Any], session: Session, browser: Any, patient: str | None, request: gr.Request
    ) -> Iterator[Updates]:
        """A question, perhaps with an image."""
        self._enter(session, browser, request)
        files = [Path(item) for item in value.get("files") or []]
        text = (value.get("text") or "").strip() or ("What does this image show?" if files else "")
        if not text:
            yield {self.screen.ui.composer: gr.update()}
            return
        try:
            if session.stands["pending"]:
                raise UsageError("An entry waits for your decision.", hint="Approve, edit or reject it first.")
            if len(files) > 1:
                raise UsageError("Only one image can be looked at in a turn.", hint="Attach one.")
            image = files[0] if files else None
            opening = [view.said(text, image)]
        except DocGemmaError as error:
            session.messages = [*session.settle(), view.said(text), view.note("notice", work.problem(error))]
            yield self.screen.rest(session) | {self.screen.ui.composer: {"text": text, "files": []}}
            return
        session.thread = session.thread or self.ids.new(session.user)
        asked = work.asking(self.live, session.thread, session.actor, text, image, patient)
        yield from self._run(session, opening, asked)

    def choose(self, session: Session, browser: Any, request: gr.Request, event: gr.SelectData) -> Iterator[Updates]:
        """A choice of a clarification. Only what was offered can be chosen."""
        as_shown = self._enter(session, browser, request)
        chosen = event.value.get("value") if isinstance(event.value, dict) else event.value
        if not as_shown or chosen not in session.options:
            yield self._moved(session)
            return
        asked = work.asking(self.live, session.thread, session.actor, chosen, None, None)
        yield from self._run(session, [view.said(session.options[chosen])], asked)

    def approve(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        yield from self._decide(session, browser, request, "approve", {}, "Approved.")

    def reject(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        yield from self._decide(session, browser, request, "reject", {}, "Rejected.")

    def change(
        self, session: Session, browser: Any, first: str, second: str, third: str, fourth: str, request: gr.Request
    ) -> Iterator[Updates]:
        """The entry as it was changed on the card; new findings come back before anything is written."""
        before = work.entry_fields(self.agent, session.stands["pending"] or {"args": {}})
        changes = work.changed_fields(before, (first, second, third, fourth))
        decision = "edit" if changes else "approve"
        yield from self._decide(session, browser, request, decision, changes, work.said(changes))

    def take_up(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """Go on with a turn that was stopped or cut off."""
        if not self._enter(session, browser, request):
            yield self._moved(session)
            return
        asked = work.going_on(self.live, session.thread, session.actor)
        yield from self._run(session, [view.said("Go on.")], asked)

    def stop(self, session: Session, browser: Any, request: gr.Request) -> None:
        thread = session.thread or (browser if self.ids.owns(browser, request.username) else None)
        self.turns.stop(thread)

    def begin_anew(self, session: Session, request: gr.Request) -> Updates:
        """A new conversation; the old one stays stored, and this browser forgets it."""
        session.__dict__.update(Session(user=request.username, patient=session.patient).__dict__)
        return self.screen.rest(session) | {self.screen.ui.browser: None}

    def pick(self, session: Session, patient: str | None) -> Updates:
        session.patient = patient
        return {self.screen.ui.chart: self.screen.chart(patient), self.screen.ui.session: session}

    def find(self, event: gr.KeyUpData) -> Any:
        """Names as they are typed, where the record store cannot list everybody."""
        try:
            return gr.update(choices=chart.search(self.live, event.input_value or ""))
        except DocGemmaError as error:
            gr.Warning(work.problem(error))
            return gr.update()

    def play(self, chosen: str, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """The next step of a guided scenario; the first one begins a new conversation."""
        if chosen != session.scenario or not self.ids.owns(session.thread, request.username):
            session.__dict__.update(Session(user=request.username, scenario=chosen).__dict__)
            session.thread = self.ids.new(session.user)
        scenario = self.scenarios[chosen]
        step = scenario.steps[session.step]
        session.step += 1
        number = f"{scenario.title}, step {session.step} of {len(scenario.steps)}"
        opening = [view.note("caption", step.caption, number), self.screen.opening(step, session)]
        playing = player(self.agent, scenario, session.step - 1, session.thread, session.result, actor=session.actor)
        for updates in self._run(session, opening, playing):
            ended = self.screen.ui.trace in updates  # the last picture of a step
            if ended and session.step >= len(scenario.steps):
                session.messages = [*session.messages, view.note("caption", scenario.notice, "What to notice")]
                session.scenario, session.step = None, 0
                updates = self.screen.rest(session)
            yield updates

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _decide(
        self, session: Session, browser: Any, request: gr.Request, decision: Any, changes: dict[str, Any], words: str
    ) -> Iterator[Updates]:
        """Only on the entry that this window shows: another one may wait by now."""
        if not self._enter(session, browser, request) or not session.stands["pending"]:
            yield self._moved(session)
            return
        seen = session.stands["pending"]
        decided = work.deciding(self.live, session.thread, session.actor, decision, changes, seen)
        yield from self._run(session, [view.said(words)], decided)

    def _moved(self, session: Session) -> Updates:
        session.messages = [*session.messages, view.note("notice", work.MOVED)]
        return self.screen.rest(session)

    def _run(self, session: Session, opening: list[view.Message], asked: Work) -> Iterator[Updates]:
        try:
            turn = self.turns.begin(session.thread, asked, opening=opening)
        except BusyError as error:  # the page stays as it is: a turn runs, what was typed may be sent later
            gr.Warning(error.line())
            yield {self.screen.ui.composer: gr.update()}
            return
        yield from self._follow(session, session.settle() + opening, turn)

    def _follow(self, session: Session, base: list[view.Message], turn: Turn) -> Iterator[Updates]:
        session.messages = base
        chat = self.screen.ui.chat
        yield self.screen.busy(session) | {chat: [*base, *view.working(turn.events)]}
        for _ in turn.follow():
            yield {chat: [*base, *view.working(turn.events)]}
        if turn.result:
            session.result = turn.result
            session.messages = [*base, *view.answer(turn.result)]
        else:
            session.messages = [*base, *view.cut_off(turn.events), view.note("notice", work.problem(turn.error))]
        yield self.screen.rest(session)

    def _enter(self, session: Session, browser: Any, request: gr.Request) -> bool:
        """Take up the conversation that this browser holds, if it was given to this person, as it stands now.

        Returns:
            Whether this window had shown it so; otherwise what was clicked may mean something else by now.
        """
        if session.thread and not self.ids.owns(session.thread, request.username):  # somebody else has signed in here
            session.__dict__.update(Session().__dict__)
        session.user, session.scenario, session.step = request.username, None, 0
        thread = session.thread or browser
        if not self.agent or not self.ids.owns(thread, session.user):
            return True
        try:
            if session.thread and (self.turns.running(thread) or standing(self.agent, session) == session.stands):
                return True
            reopen(self.agent, session, thread)
        except Exception as error:
            session.messages = [view.note("notice", work.problem(error))]
        return False
