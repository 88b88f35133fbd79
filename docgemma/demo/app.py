"""The screen: what is on it, and which handler each thing calls. Layout only; what happens is in handlers.py."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio.components.chatbot import ExampleMessage

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.everyday import Everyday
from docgemma.demo.patient_search import FOUND
from docgemma.demo.rcm_tab import RcmTab
from docgemma.demo.scenarios import Scenario
from docgemma.demo.screen import FIELDS, Session
from docgemma.demo.trials_tab import TrialsTab
from docgemma.nodes.write_findings import OFFERED
from docgemma.rules.override import REASON_CHARS
from docgemma.turns import Turns

EXAMPLES = (
    "Check FDA warnings for dofetilide",
    "Find patient John Smith, check his chart, and verify metformin safety",
    "Check interactions between warfarin, aspirin, and ibuprofen",
    "Prescribe amoxicillin 500 mg three times daily for ghi-789",
)
STORED = "docgemma"  # scrambles the browser's storage, the same after a restart; what opens a conversation is its id
SCRIPT = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")  # of the page, once it is loaded
LIST_SCRIPT = (Path(__file__).parent / "list.js").read_text(encoding="utf-8")
# a frame of another site, a notebook's for instance, may have no storage: its page begins empty
TAB = """(session, tab, ...more) => {
  try { tab = sessionStorage.getItem('docgemma-tab') } catch {}
  return [session, tab || '', ...more];
}"""
HELD = "tab => { try { sessionStorage.setItem('docgemma-tab', tab || '') } catch {} }"  # for this tab alone
WELCOME = (
    "**Ask a clinical question, or attach an image (PNG, JPEG, DICOM, a ZIP of a series).**\n\n"
    "Facts come from records and sources that are named with the answer. "
    "Nothing is written to a record without your approval. All patients here are synthetic."
)
RULE = (
    "Not kept: forgotten when you begin anew, reload or close. "
    "A running turn or a waiting entry comes back for 15 minutes."
)
ANSWERS = Path(__file__).with_name("answers.js").read_text(encoding="utf-8")
TURN: dict[str, Any] = {"concurrency_limit": None, "show_progress": "hidden", "api_visibility": "private"}
QUICK: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}


def build(agent: Agent, turns: Turns) -> gr.Blocks:
    """The app, not started."""
    handlers = Everyday(agent, turns)
    ui = handlers.screen.ui = SimpleNamespace()
    blocks: gr.Blocks
    with gr.Blocks(title="DocGemma", analytics_enabled=False, fill_width=True, delete_cache=(600, 3600)) as blocks:
        ui.session = gr.State(Session(), time_to_live=12 * 3600)
        ui.browser = gr.Textbox(visible="hidden", show_label=False, container=False)  # the conversation of this tab
        ui.kept = gr.BrowserState([], storage_key="docgemma-kept", secret=STORED)  # those kept on purpose
        with gr.Sidebar(open=False, width=300, elem_id="dg-list") as ui.sidebar:
            _list(ui)
        with gr.Row(elem_id="dg-head"):
            gr.HTML("<h1>DocGemma</h1>", elem_id="dg-title")
            ui.badges = gr.HTML(view.badges(agent, None, None), elem_id="dg-badges")
        _patient(ui, agent)
        with gr.Row(elem_id="dg-main"):
            with gr.Column(scale=3, min_width=320, elem_id="dg-talk"):
                _talk(ui)
            with gr.Column(scale=2, min_width=320, elem_id="dg-side"):
                _side(ui, agent, list(handlers.scenarios.values()), turns)
        _wire(blocks, ui, handlers)
    return blocks


def _patient(ui: SimpleNamespace, agent: Agent) -> None:
    """Who is open, in view while the rest scrolls, and the search for another."""
    ui.patient = gr.State(None)
    with gr.Row(elem_id="dg-open"):
        ui.banner = gr.HTML(view.opened(agent, None).banner, elem_id="dg-banner")
        with gr.Column(elem_id="dg-find", min_width=260):
            ui.search = gr.Textbox(
                label="Find a patient", show_label=False, lines=1, max_lines=1, elem_id="dg-search",
                placeholder="Find a patient: name, birth date or ID", container=False,
            )  # fmt: skip
            with gr.Column(visible=False, elem_id="dg-found") as ui.matches:
                ui.count = gr.HTML("", elem_id="dg-count")
                ui.found = [gr.Button("", visible=False, size="sm", elem_id=f"dg-found-{at}") for at in range(FOUND)]


def _talk(ui: SimpleNamespace) -> None:
    examples = [ExampleMessage(text=text) for text in EXAMPLES]
    ui.chat = gr.Chatbot(
        elem_id="dg-chat", label="Conversation", show_label=False, height="58vh", min_height=320, latex_delimiters=[],
        buttons=["copy"], feedback_options=("Like", "Dislike"),
        placeholder=WELCOME, examples=examples, group_consecutive_messages=False,
        layout="panel",
    )  # fmt: skip
    with gr.Column(visible=False, elem_id="dg-differs") as ui.differs:
        ui.whom = gr.HTML("", elem_id="dg-whom")
        with gr.Row():
            ui.switch = gr.Button("", variant="primary", elem_id="dg-switch")
            ui.keep = gr.Button("", elem_id="dg-keep")
    with gr.Column(visible=False, elem_id="dg-card") as ui.card:
        ui.what = gr.HTML("", elem_id="dg-what")
        with gr.Row(visible=False, elem_id="dg-instead") as ui.instead:
            ui.alternatives = [gr.Button("", size="sm", elem_id=f"dg-instead-{at}") for at in range(OFFERED)]
        ui.reason = gr.Textbox(
            "", label="Reason for approving despite the red findings (the record keeps it)", lines=1, max_lines=4,
            max_length=REASON_CHARS, visible=False, elem_id="dg-reason",
        )  # fmt: skip
        with gr.Row(elem_id="dg-decide"):
            ui.approve = gr.Button("Approve", variant="primary", elem_id="dg-approve")
            ui.change = gr.Button("Edit", elem_id="dg-edit")
            ui.reject = gr.Button("Reject", variant="stop", elem_id="dg-reject")
        with gr.Column(visible=False, elem_id="dg-fields") as ui.edit:
            ui.fields = [gr.Textbox("", elem_id=f"dg-field-{number}", lines=1) for number in range(FIELDS)]
            with gr.Row(elem_id="dg-changed"):
                ui.save = gr.Button("Approve with these changes", variant="primary", elem_id="dg-save")
                ui.unedit = gr.Button("Cancel", elem_id="dg-unedit")
    ui.take_up = gr.Button("Take up the unfinished turn", visible=False, elem_id="dg-take-up")
    ui.composer = gr.MultimodalTextbox(
        label="Your question", show_label=False, placeholder="Ask a clinical question", sources=["upload"], lines=1,
        max_lines=6, elem_id="dg-composer", autofocus=True,
    )  # fmt: skip
    with gr.Row(visible=False, elem_id="dg-line") as ui.line:
        ui.waits = gr.HTML("", elem_id="dg-waits")
        ui.withdraw = gr.Button("Withdraw", size="sm", elem_id="dg-withdraw")
    with gr.Row(elem_id="dg-actions"):
        ui.remember = gr.Checkbox(False, label="Keep this conversation", elem_id="dg-remember", container=False)
        ui.stop = gr.Button("Stop", variant="stop", visible=False, elem_id="dg-stop")
        gr.HTML(view.html("help"), elem_id="dg-help-button")
        ui.print = gr.Button("Print", elem_id="dg-print", size="sm")
        ui.anew = gr.Button("New conversation", elem_id="dg-new", size="sm", interactive=False)
    gr.HTML(RULE, elem_id="dg-rule")


def _list(ui: SimpleNamespace) -> None:
    ui.list = gr.HTML("", elem_id="dg-conversations", js_on_load=LIST_SCRIPT)
    with gr.Accordion("Feedback", open=False, elem_id="dg-feedback"):
        gr.Markdown("Thumbs stay on this machine. They say nothing about a patient, unless you add the words.")
        ui.agreed = gr.Checkbox(False, label="Add question and answer to my next thumbs", elem_id="dg-agreed")
        ui.feedback = gr.DownloadButton("Export feedback", visible=False, size="sm", elem_id="dg-export-feedback")


def _side(ui: SimpleNamespace, agent: Agent, scenarios: list[Scenario], turns: Turns) -> None:
    with gr.Tabs(elem_id="dg-tabs"):
        with gr.Tab("Patient", id="patient"):
            ui.chart = gr.HTML(view.chart(agent, None), elem_id="dg-chart")
        with gr.Tab("Reasoning", id="trace"):
            ui.export = gr.DownloadButton("Export this turn (JSON)", visible=False, elem_id="dg-export", size="sm")
            ui.trace = gr.HTML(view.html("trace", None), elem_id="dg-trace")
        with gr.Tab("Trials", id="trials"):
            ui.trials = TrialsTab(agent, turns)
            ui.trials.draw()
        with gr.Tab("RCM", id="rcm", elem_id="dg-rcm-tab"):
            ui.rcm = RcmTab(agent, turns)
            ui.rcm.draw()
        with gr.Tab("Scenarios", id="scenarios"):
            choices = [(item.title, item.id) for item in scenarios]
            ui.scenario = gr.Radio(choices, value=scenarios[0].id, label="Guided scenarios", elem_id="dg-scenario")
            ui.play = gr.Button("Play", variant="primary", elem_id="dg-play")


def _wire(blocks: gr.Blocks, ui: SimpleNamespace, handlers: Everyday) -> None:
    opened = [ui.session, ui.patient, ui.banner, ui.chart, ui.differs, ui.whom, ui.switch, ui.keep, ui.approve, ui.save]
    shown = [
        *opened, ui.browser, ui.chat, ui.card, ui.what, ui.instead, *ui.alternatives, ui.reason, ui.change, *ui.fields,
        ui.edit, ui.take_up, ui.composer, ui.stop, ui.trace, ui.export, ui.badges, ui.play, ui.anew, ui.line, ui.waits,
        ui.remember,
    ]  # fmt: skip
    who, mine, listed_now = [ui.session, ui.browser], [ui.session, ui.kept], [ui.list, ui.feedback]

    def turn(event: Any, handler: Any, inputs: list[Any], **how: Any) -> None:
        done = event(handler, inputs, shown, **TURN, **how).then(None, js="() => dgFocus()", **QUICK)
        done = done.then(None, js="() => dgRead()", **QUICK)
        done.then(handlers.list, mine, listed_now, **QUICK)

    blocks.load(handlers.open, who, shown, js=TAB, **TURN).then(None, js=SCRIPT, **QUICK)
    blocks.load(None, js=ANSWERS, **QUICK)
    blocks.unload(handlers.closed)
    ui.browser.change(None, ui.browser, js=HELD, **QUICK)
    ui.print.click(None, js="() => window.print()", **QUICK)
    turn(ui.play.click, handlers.play, [ui.scenario, *who])
    waiting = [ui.composer, ui.line, ui.waits]
    ui.stop.click(handlers.stop, [ui.composer, *who], waiting, **QUICK)
    sought = [ui.matches, ui.count, *ui.found, ui.search]
    ui.anew.click(handlers.begin_anew, [ui.session], [*shown, *sought], **TURN).then(None, js="() => dgBack()", **QUICK)
    trials: TrialsTab = ui.trials
    gr.on([trials.go.click, trials.note.submit], trials.search, trials.note, trials.shown, **TURN)
    gr.on([trials.clear.click, ui.anew.click], trials.forget, None, [trials.note, trials.shown], **QUICK)
    blocks.unload(trials.left)
    ui.rcm.wire(TURN, QUICK, ui.anew)
    blocks.unload(ui.rcm.left)
    ui.withdraw.click(handlers.withdraw, [ui.composer, ui.session], waiting, **QUICK).then(
        None, js="() => dgBack()", **QUICK
    )
    ui.remember.input(handlers.remember, [ui.remember, *mine], [*mine, ui.browser, *listed_now], **QUICK)
    ui.list.select(handlers.choose_listed, mine, [*shown, *listed_now], **TURN)
    ui.sidebar.expand(handlers.list, mine, listed_now, **QUICK)
    ui.chat.like(handlers.thumb, [ui.session, ui.agreed], ui.feedback, **QUICK)
    question = [ui.composer, *who, ui.patient]
    turn(ui.composer.submit, handlers.send, question, trigger_mode="multiple")  # what is sent while a turn runs waits
    turn(ui.chat.example_select(_as_typed, None, ui.composer, **QUICK).then, handlers.send, question)
    turn(ui.chat.option_select, handlers.choose, who)
    turn(ui.approve.click, handlers.approve, [*who, ui.reason])
    turn(ui.reject.click, handlers.reject, who)
    turn(ui.save.click, handlers.change, [*who, ui.reason, *ui.fields])
    for button in ui.alternatives:
        turn(button.click, handlers.instead, who)
    turn(ui.take_up.click, handlers.take_up, who)
    # the fields instead of a button that would approve the entry as it was
    editing = (gr.update(visible=True), gr.update(visible=False))
    ui.change.click(lambda: editing, None, [ui.edit, ui.approve], **QUICK).then(None, js="() => dgField()", **QUICK)
    ui.unedit.click(lambda: editing[::-1], None, [ui.edit, ui.approve], **QUICK).then(
        None, js="() => dgFocus()", **QUICK
    )
    ui.switch.click(handlers.switch, ui.session, opened, **QUICK).then(None, js="() => dgFocus()", **QUICK)
    ui.keep.click(handlers.keep, ui.session, opened, **QUICK).then(None, js="() => dgFocus()", **QUICK)
    offered = [ui.session, *sought[:-1]]
    ui.search.change(handlers.search, [ui.search, ui.session], offered, trigger_mode="always_last", **QUICK)
    picked = [*opened, *offered[1:], ui.search, ui.chat]
    ui.search.submit(handlers.pick_only, [ui.search, ui.session], picked, **QUICK)
    for number, button in enumerate(ui.found):
        button.click(partial(handlers.pick, number), ui.session, picked, **QUICK).then(
            None, js="() => dgBack()", **QUICK
        )


def _as_typed(event: gr.SelectData) -> dict[str, Any]:
    return {"text": str(event.value["text"])[:400], "files": []}
