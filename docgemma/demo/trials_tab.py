"""The Trials tab: paste a note, watch the searches, read the shortlist. Nothing of it is kept."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
from langgraph.checkpoint.memory import InMemorySaver

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.screen import problem
from docgemma.errors import DocGemmaError, ModelError, UsageError
from docgemma.graphs.prescreen import Tools, run
from docgemma.listening import is_loopback
from docgemma.prescreen.intake import MOST_CHARS, read_note
from docgemma.prescreen.next_search import Local
from docgemma.prescreen.records import Facts
from docgemma.prescreen.registry import Registry
from docgemma.prescreen.toolset import MAX_TOOL_CALLS, Toolset
from docgemma.turns import Stop, Turns, between_steps

OFFLINE = "This demo runs offline, so ClinicalTrials.gov is not asked."
LOCAL = "Set DOCGEMMA_SOURCES=live, or DOCGEMMA_CTGOV_URL to a server on this machine."
SENT = (
    "Diagnoses, findings and treatments of the note go to ClinicalTrials.gov as search terms; the note does not. "
    "Nothing is kept: Clear, a reload or closing the page forgets it."
)


class TrialsTab:
    """What is on the tab, and what its buttons do. Every window sees its own search alone."""

    def __init__(self, agent: Agent, turns: Turns):
        self.agent, self.turns = agent, turns

    def draw(self) -> None:
        self.note = gr.Textbox(
            label="What is known of the patient", lines=5, max_lines=10, max_length=MOST_CHARS,
            placeholder="Paste a note", elem_id="dg-trials-note", info=SENT,
        )  # fmt: skip
        with gr.Row():
            self.go = gr.Button("Find trials", variant="primary", elem_id="dg-trials-go")
            self.clear = gr.Button("Clear", elem_id="dg-trials-clear")
        self.shown = gr.HTML("", elem_id="dg-trials")

    def search(self, note: str, request: gr.Request) -> Iterator[str]:
        """Search for trials; the page is drawn anew after each call."""
        try:
            facts = self._facts(note)
            turn = self.turns.begin(_window(request), partial(self._work, facts))
        except DocGemmaError as error:
            yield view.html("trials", {}, [], None, MAX_TOOL_CALLS, problem(error))
            return
        yield view.html("trials", facts, [], None, MAX_TOOL_CALLS)
        for _ in turn.follow():
            yield view.html("trials", facts, turn.events, None, MAX_TOOL_CALLS)
        failed = problem(turn.error) if turn.error else ""
        done = view.html("trials", facts, turn.events, turn.result, MAX_TOOL_CALLS, failed)
        yield "" if turn.stopping.is_set() else done

    def forget(self, request: gr.Request) -> tuple[str, str]:
        """Stop, and empty the tab."""
        self.turns.stop(_window(request))
        return "", ""

    def left(self, request: gr.Request) -> None:
        """The page was closed or loaded anew."""
        self.turns.stop(_window(request))

    def _facts(self, note: str) -> Facts:
        settings = self.agent.settings
        if settings.sources == "offline" and not is_loopback(urlsplit(settings.ctgov_url).hostname or ""):
            raise UsageError(OFFLINE, hint=LOCAL)
        return read_note(note)

    def _work(self, facts: Facts, on_event: Any, stop: Stop) -> dict[str, Any]:
        """One run on a data home of its own, which ends with it: no cache and no checkpoint outlives the search."""
        told = between_steps(on_event, stop)
        with tempfile.TemporaryDirectory(prefix="docgemma-trials-") as home:
            settings = self.agent.settings.model_copy(update={"home": Path(home)})
            with closing(Registry(settings)) as registry:
                toolset, memory = Toolset(registry, self.agent.llm), InMemorySaver()
                tools = Tools(toolset, Local(expert=toolset.expert is not None), settings, toolset.expert)
                try:
                    return run(facts, tools, memory, on_search=told)
                except ModelError as error:  # of the judge: what was found stays
                    tools.judge = None
                    return run(facts, tools, memory) | {"not_screened": f"The criteria are not judged: {error}"}


def _window(request: gr.Request) -> str:
    return f"trials-{request.session_hash}"
