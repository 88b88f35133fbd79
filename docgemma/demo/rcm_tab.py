"""The RCM tab: add PDFs, ask, read the checklist beside the page on which each quote stands. Clear forgets."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.rcm_case import Case, first_shown, said
from docgemma.demo.screen import problem
from docgemma.errors import DocGemmaError
from docgemma.paths import data_file
from docgemma.turns import Turns

QUESTION = "Is this request supported by the payer's policy?"
KEPT = "Clear, a reload or closing the page forgets documents and answers. Verified quotes stay in the evidence ledger."
SCRIPT = Path(__file__).with_name("rcm.js").read_text(encoding="utf-8")
HIDDEN = gr.update(visible=False)


class RcmTab:
    """What is on the tab, and what its buttons do. Every window has a case of its own."""

    def __init__(self, agent: Agent, turns: Turns):
        self.agent, self.turns, self.cases = agent, turns, dict[str | None, Case]()

    def draw(self) -> None:
        samples = sorted(path.name for path in data_file("rcm", "notes").glob("*.pdf"))
        with gr.Row(elem_id="dg-rcm-add"):
            self.upload = gr.UploadButton("Add PDFs", file_count="multiple", file_types=[".pdf"])
            self.sample = gr.Dropdown(samples, value=None, label="Or a sample note", elem_id="dg-rcm-sample")
        self.papers = gr.HTML(view.html("rcm_papers", {}), elem_id="dg-rcm-papers")
        with gr.Row(elem_id="dg-rcm-do"):
            self.question = gr.Textbox(QUESTION, label="Question", info=KEPT, max_lines=4, elem_id="dg-rcm-question")
            self.go = gr.Button("Run", variant="primary", elem_id="dg-rcm-go")
            self.stop = gr.Button("Stop", variant="stop", visible=False, elem_id="dg-rcm-stop")
            self.clear = gr.Button("Clear", elem_id="dg-rcm-clear")
        with gr.Row(elem_id="dg-rcm-beside"):
            self.answer = gr.HTML("", elem_id="dg-rcm", js_on_load=SCRIPT)
            self.page = gr.HTML("", elem_id="dg-rcm-page", js_on_load=SCRIPT)
        self.shown = [self.answer, self.page, self.stop]
        self.all = [self.sample, self.question, self.papers, *self.shown]

    def wire(self, turn: dict[str, Any], quick: dict[str, Any], anew: gr.Button) -> None:
        """`turn`, `quick`: how a turn and a short action are called; `anew` clears this tab too."""
        self.upload.upload(self.add, self.upload, self.papers, **quick)
        self.sample.select(self.take_sample, self.sample, [self.papers, *self.shown], **quick)
        gr.on([self.go.click, self.question.submit], self.ask, self.question, self.shown, **turn)
        self.answer.submit(self.reply, None, self.shown, **turn)
        self.answer.select(self.choose, None, self.page, **quick)
        self.stop.click(self.halt, None, None, **quick)
        gr.on([self.clear.click, anew.click], self.forget, None, self.all, **quick)

    def add(self, files: list[str], request: gr.Request) -> str:
        """Take uploads over; what cannot be read is said."""
        return _taken(case := self._case(request), case.take_over, files)

    def take_sample(self, name: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Begin anew with a sample note."""
        told, case = self._forget(request), self._case(request)
        samples = [str(data_file("rcm", "notes", name))] if name else []
        return _taken(case, case.take, samples), told, "", HIDDEN

    def ask(self, question: str, request: gr.Request) -> Iterator[tuple[Any, ...]]:
        """One turn; the answer is drawn anew after each step. Words may answer what was asked back, too."""
        case = self._case(request)
        try:
            turn = self.turns.begin(case.thread, partial(case.work, question, request.username or "clinician"))
        except DocGemmaError as error:
            yield view.html("rcm", [], {}, problem(error)), "", gr.skip()
            return
        yield view.html("rcm", [], {}), "", gr.update(visible=True)
        for _ in turn.follow():
            if self._case(request) is case:
                yield view.html("rcm", turn.events, {}), "", gr.skip()
        if self._case(request) is not case:  # cleared meanwhile
            return
        failed, told = problem(turn.error) if turn.error else "", turn.result or {}
        at = first_shown(told, case.papers)
        yield view.html("rcm", turn.events, told, failed, said(told), at, list(case.papers)), case.page(at), HIDDEN

    def reply(self, request: gr.Request, event: gr.EventData) -> Iterator[tuple[Any, ...]]:
        """Answer what was asked back with one of its options."""
        number = event._data.get("number")
        if isinstance(number, int) and 0 <= number < len(self._case(request).told.get("options", [])):
            yield from self.ask(str(number + 1), request)
        else:
            yield view.html("rcm", [], {}, "The documents have changed: press Run again."), "", gr.skip()

    def choose(self, request: gr.Request, event: gr.EventData) -> str:
        """Show the page of a quote."""
        return self._case(request).page(event._data.get("number"))

    def halt(self, request: gr.Request) -> None:
        """Stop after the step that runs."""
        self.turns.stop(self._case(request).thread)

    def forget(self, request: gr.Request) -> tuple[Any, ...]:
        """Stop, empty the tab, and remove what the conversation kept."""
        return None, QUESTION, view.html("rcm_papers", {}), self._forget(request), "", HIDDEN

    def left(self, request: gr.Request) -> None:
        self._forget(request)

    def _case(self, request: gr.Request) -> Case:
        return self.cases.setdefault(request.session_hash, Case(self.agent))

    def _forget(self, request: gr.Request) -> str:
        """What was done, in words; a turn that runs is stopped, and what it kept goes with its end."""
        case = self.cases.pop(request.session_hash, None)
        if case is None:
            return ""
        if turn := self.turns.running(case.thread):
            turn.stop()
            turn.listen(lambda event: None if event else case.remove())
            return view.html("rcm_forgotten", case.asked, case.ledger)
        return view.html("rcm_forgotten", case.asked, case.ledger, case.remove())


def _taken(case: Case, take: Callable[[Path], None], files: list[str]) -> str:
    wrong = list[str]()
    for given in files:
        try:
            take(Path(given))
        except DocGemmaError as error:
            wrong.append(problem(error))
    return view.html("rcm_papers", case.pages, wrong)
