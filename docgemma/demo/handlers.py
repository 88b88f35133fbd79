"""What happens when somebody sends, chooses, decides, stops. Every handler yields only what changed on the screen."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from docgemma.agent import Agent, Decision
from docgemma.api.access import new_thread, owns
from docgemma.demo import view
from docgemma.demo.conversations import Conversations
from docgemma.demo.patient_search import LEAST, find_patients, means_somebody
from docgemma.demo.scenarios import load_scenarios, take
from docgemma.demo.screen import Screen, Session, Updates, Waiting, entry_fields, lacks_dose, problem, standing
from docgemma.errors import DocGemmaError, StoppedError, ThreadStateError, UsageError
from docgemma.reading.patients import find_people
from docgemma.rules.override import red
from docgemma.rules.plan import NOT_SPECIFIED
from docgemma.turns import BusyError, Turn, Turns, Work

MOVED = "This conversation changed since it was shown here. Nothing was done; this is how it stands now."
CUT_SHORT = "Stopped after your approval: the entry may be in the record already."
FORGOTTEN = "What was said here has been forgotten: its page was away too long, or it was deleted in another window."
WHOM = (
    "Whom do you mean? The open chart is one patient's, the card or the last answer another's. "
    "Open one above or name the patient, then send it again."
)
OTHER = "Nothing was done: the card and the open chart are of two patients. Open the card's patient, or confirm them."
REQUIRED = ("medication_name", "dosage", "frequency", "substance", "reaction", "note_type", "note_text")


class Handlers:
    """The handlers of one demo, for all its users."""

    def __init__(self, agent: Agent, turns: Turns):
        self.agent, self.turns = agent, turns
        self.scenarios = {item.id: item for item in load_scenarios()}
        self.screen = Screen(agent, self.scenarios)
        self.conversations = Conversations(self.agent, turns, self.screen)

    # -- what people do ------------------------------------------------------------------------------------------------

    def open(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """A page was loaded: its tab's conversation is shown again where it may be, also one that is worked on."""
        browser = browser if self.conversations.returns(request.username or "", browser) else None
        self._enter(session, browser, request)
        if turn := self.turns.running(session.thread):
            session.messages = session.messages[: -2 if session.stands["unfinished"] else None]
            yield from self._follow(session, session.messages + turn.opening, turn)
        else:
            yield self.screen.rest(session)
            if session.result and not (session.options or session.stands["pending"]):
                yield from self._next(session)

    def send(
        self, value: dict[str, Any], session: Session, browser: Any, patient: str | None, request: gr.Request
    ) -> Iterator[Updates]:
        """A question, or words about the entry that waits, perhaps with an image. While a turn runs it waits, and is
        asked next."""
        as_shown = self._enter(session, browser, request)
        files = [Path(item) for item in value.get("files") or []]
        text = (value.get("text") or "").strip() or ("What does this image show?" if files else "")
        if not text:
            yield {self.screen.ui.composer: gr.update()}
            return
        image = files[0] if files else None
        try:
            if session.stands["pending"] and not as_shown:  # "make it 250 mg" was said of another card
                raise UsageError(MOVED)
            if self._two_patients(text, session):
                raise UsageError(WHOM)
            if len(files) > 1:
                raise UsageError("Only one image can be looked at in a turn.", hint="Attach one.")
            opening = [view.said(text, image)]
        except DocGemmaError as error:
            session.messages = [*session.settle(), view.said(text), view.note("notice", problem(error))]
            yield self.screen.rest(session) | {self.screen.ui.composer: {"text": text, "files": []}}
            return
        session.thread, session.confirmed = session.thread or new_thread(session.user or "", "web"), ""
        work = self._asking(session, text, image, patient)
        line = self.screen.waiting.setdefault(session.thread, [])
        at = len(line) if self.turns.running(session.thread) else 0  # an answer to what was asked goes first
        line.insert(at, Waiting(text, image, opening, work))
        yield {self.screen.ui.composer: {"text": "", "files": []}}
        yield from self._next(session)

    def choose(self, session: Session, browser: Any, request: gr.Request, event: gr.SelectData) -> Iterator[Updates]:
        """A choice of a clarification. Only what was offered can be chosen."""
        as_shown = self._enter(session, browser, request)
        chosen = event.value.get("value") if isinstance(event.value, dict) else event.value
        if not as_shown or chosen not in session.options:
            yield self._moved(session)
            return
        yield from self._run(session, [view.said(session.options[chosen])], self._asking(session, chosen))

    def approve(self, session: Session, browser: Any, reason: str, request: gr.Request) -> Iterator[Updates]:
        yield from self._decide(session, browser, request, "approve", {}, reason)

    def instead(self, session: Session, browser: Any, request: gr.Request, event: gr.EventData) -> Iterator[Updates]:
        """Another drug of the same class: the gate runs again, and its own dose is asked for."""
        drug = session.instead[int(str(getattr(event.target, "elem_id", "")).rpartition("-")[2])]
        changes = {"medication_name": drug, "dosage": NOT_SPECIFIED, "frequency": NOT_SPECIFIED}
        yield from self._decide(session, browser, request, "amend", changes)

    def reject(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        yield from self._decide(session, browser, request, "reject", {})

    def change(
        self, session: Session, browser: Any, reason: str, first: str, second: str, third: str, fourth: str,
        request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """The entry as it was changed on the card; new findings come back before anything is written."""
        pending = session.stands["pending"]
        before = entry_fields(self.agent, pending) if pending else {}
        typed = [(value or "").strip() for value in (first, second, third, fourth)]
        both = zip(before.items(), typed, strict=False)
        changes = {name: new for (name, old), new in both if new != (old or "")}
        if empty := [name for name in changes if not changes[name] and name in REQUIRED]:
            gr.Warning(f"Fill in: {', '.join(map(view.field_label, empty)).lower()}.")
            yield {self.screen.ui.composer: gr.update()}
            return
        grave = pending and red(pending.get("ranked") or [])
        decision: Decision = "approve" if not changes else "amend" if grave and not reason.strip() else "edit"
        yield from self._decide(session, browser, request, decision, changes, reason)

    def take_up(self, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """Go on with a turn that was stopped or cut off."""
        if not self._enter(session, browser, request):
            yield self._moved(session)
            return
        work = partial(self.agent.proceed, session.thread, actor=session.actor)
        yield from self._run(session, [view.said("Go on.")], work)

    def search(self, text: str, session: Session) -> Updates:
        """Patients of the whole store, as they are typed. An outage is not "nobody"."""
        asked = len(text.strip()) >= LEAST
        try:
            return self.screen.found(session, find_patients(text, self.agent.store) if asked else [], "", asked)
        except DocGemmaError as error:
            return self.screen.found(session, [], problem(error), asked)

    def pick(self, number: int, session: Session) -> Updates:
        """Open a patient that was found. What was said about another one stays above a line that says so."""
        if number < len(session.found):
            before, session.patient, session.confirmed = session.patient, session.found[number], ""
            if session.messages and before != session.patient:
                name = view.opened(self.agent, session.patient).name
                session.messages = [*session.messages, view.note("caption", f"The chart of {name} is open now.")]
        if not session.stands["pending"]:
            session.about = None  # what was asked before stays theirs; what is asked now is about this one
        shown = self.screen.opened(session) | self.screen.found(session, [], "", False)
        return shown | {self.screen.ui.search: "", self.screen.ui.chat: session.messages}

    def pick_only(self, text: str, session: Session) -> Updates:
        """Enter in the search opens the one patient that was found; of several one is chosen."""
        found = self.search(text, session)
        return self.pick(0, session) if len(session.found) == 1 else found

    def switch(self, session: Session) -> Updates:
        """Open the patient whom the card or the answer is about."""
        session.patient = (session.about or {}).get("id") or session.patient
        return self.screen.opened(session)

    def keep(self, session: Session) -> Updates:
        """The card, or the answer, is meant so beside another patient's chart."""
        session.confirmed = (session.about or {}).get("id", "")
        return self.screen.opened(session)

    def play(self, chosen: str, session: Session, browser: Any, request: gr.Request) -> Iterator[Updates]:
        """The next step of a guided scenario; the first one begins a new conversation."""
        user = request.username or ""
        if chosen != session.scenario or not owns(user, session.thread, "web"):
            session.__dict__.update(Session(user=request.username, scenario=chosen).__dict__)
            session.thread = new_thread(user, "web")
        scenario, number = self.scenarios[chosen], session.step
        session.step += 1
        title = f"{scenario.title}, step {session.step} of {len(scenario.steps)}"
        step = scenario.steps[number]
        opening = [view.note("caption", step.caption, title), self.screen.opening(step, session)]
        work = partial(take, self.agent, scenario, number, session.thread, session.result, actor=session.actor)
        for updates in self._run(session, opening, work):
            ended = self.screen.ui.trace in updates  # the last picture of a step
            if ended and session.step >= len(scenario.steps):
                session.messages = [*session.messages, view.note("caption", scenario.notice, "What to notice")]
                session.scenario, session.step = None, 0
                updates = self.screen.rest(session)
            yield updates

    def _two_patients(self, text: str, session: Session) -> bool:
        """Whether this may be meant of the open chart as well as of another patient's card or answer: "also
        amoxicillin" beside a card, "her potassium" in any case."""
        if session.stands["pending"]:
            return session.apart and not find_people(text, self.agent.store)
        return session.differs and means_somebody(text, self.agent.store)

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _asking(self, session: Session, text: str, image: Path | None = None, patient: str | None = None) -> Work:
        """A question as work. The uploaded file is gone afterwards: the agent keeps its own copy."""
        session.decided = False
        ask = partial(
            self.agent.ask, text, thread=session.thread, create=True, image=image, patient=patient or None,
            actor=session.actor,
        )  # fmt: skip

        def work(**follow: Any) -> dict[str, Any]:
            try:
                return ask(**follow)
            finally:
                if image:
                    image.unlink(missing_ok=True)

        return work

    def _decide(
        self, session: Session, browser: Any, request: gr.Request, decision: Decision, changes: dict[str, str],
        reason: str = "",
    ) -> Iterator[Updates]:  # fmt: skip
        """Only on the entry that this window shows: another one may wait by now."""
        shown = self._enter(session, browser, request)
        seen, thread, actor = session.stands["pending"], session.thread, session.actor
        if not shown or not seen:
            yield self._moved(session)
            return
        if decision != "reject" and session.differs:
            session.messages = [*session.messages, view.note("notice", OTHER)]
            yield self.screen.rest(session)
            return
        if decision == "approve" and red(seen.get("ranked") or []) and not reason.strip():
            yield {self.screen.ui.what: view.card(seen, needed=True)}
            return
        if decision == "approve" and lacks_dose(seen):
            yield self._moved(session)
            return
        session.decided = True

        def work(**follow: Any) -> dict[str, Any]:
            if self.agent.pending(thread) != seen:
                raise ThreadStateError(MOVED)
            try:
                return self.agent.decide(thread, decision, changes, reason, actor=actor, **follow)
            except StoppedError as error:
                if decision == "reject" or self.agent.pending(thread):
                    raise
                raise StoppedError(CUT_SHORT, hint="Take the turn up, or look at the chart, to see.") from error

        yield from self._run(session, [view.decided(decision, changes, reason)], work)

    def _moved(self, session: Session) -> Updates:
        session.messages = [*session.messages, view.note("notice", MOVED)]
        return self.screen.rest(session)

    def _run(self, session: Session, opening: list[view.Message], work: Work) -> Iterator[Updates]:
        try:
            turn = self.turns.begin(session.thread, work, opening=opening)
        except BusyError as error:  # the page stays as it is: a turn runs, what was typed may be sent later
            gr.Warning(error.line())
            yield {self.screen.ui.composer: gr.update()}
            return
        yield from self._follow(session, session.settle() + opening, turn)

    def _next(self, session: Session) -> Iterator[Updates]:
        """Ask what was sent first, unless a turn runs."""
        line = self.screen.waiting.get(session.thread)
        if line and not self.turns.running(session.thread):
            item = line.pop(0)
            yield from self._run(session, item.opening, item.work)
        elif line:
            yield self.screen.line(session)

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
            session.messages = [*base, *view.cut_off(turn.events), view.note("notice", problem(turn.error))]
        yield self.screen.rest(session)
        if turn.result and not (session.options or session.stands["pending"]):
            yield from self._next(session)

    def _enter(self, session: Session, browser: Any, request: gr.Request) -> bool:
        """Take up the conversation that this browser holds, if it was given to this person, as it stands now. Was it
        shown so? If not, what was clicked may mean something else by now."""
        user = request.username or ""
        self.conversations.seen(request.session_hash, session)
        if session.thread and not owns(user, session.thread, "web"):  # somebody else has signed in here
            session.__dict__.update(Session().__dict__)
        session.user, session.scenario, session.step = request.username, None, 0
        thread = session.thread or browser
        if not owns(user, thread, "web"):
            return True
        try:
            if session.thread and (self.turns.running(thread) or standing(self.agent, session) == session.stands):
                return True
            said = session.messages
            reopen(self.agent, session, thread)
            if said and not session.messages:
                session.messages = [view.note("notice", FORGOTTEN)]
        except Exception as error:
            session.messages = [view.note("notice", problem(error))]
        return False


def reopen(agent: Agent, session: Session, thread: str) -> None:
    """Show a stored conversation: its last turns, what waits for a decision, what was never finished."""
    session.thread, session.messages, session.result = thread, [], None
    stored = session.stands = standing(agent, session)
    if not stored["message"]:
        return  # the id was given, and nothing was asked yet
    turns, last = stored["turns"], [view.said(stored["message"])]
    waits = (stored["pending"] or {}).get("patient")
    session.patient, session.confirmed = (waits or stored["patient"] or {}).get("id"), ""
    if stored["unfinished"]:
        last.append(view.note("notice", "This turn was not finished."))
    else:
        session.result = agent.proceed(thread)  # nothing is left to run: this is the report of the turn as it stands
        if not session.result["pending_write"]:
            turns, last = turns[:-1], [view.said(turns[-1]["user"])]
        last += view.answer(session.result)
    session.messages = [*view.history(turns), *last]
