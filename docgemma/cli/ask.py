"""`docgemma ask` and `docgemma chat`: one question, or turn after turn."""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, Model, parse_changes, print_json, progress, quick_start, stoppable
from docgemma.errors import UsageError

if TYPE_CHECKING:
    from docgemma.agent import Agent, Decision

Graph = Annotated[
    Optional[str], typer.Option(help="The graph to run: v3 (of a new conversation, if not given), v2 or v1.")
]
Image = Annotated[Optional[Path], typer.Option(help="A PNG, JPEG or DICOM file, or a ZIP of a DICOM series.")]
Patient = Annotated[Optional[str], typer.Option(help="Id of the patient the question is about.")]
Thread = Annotated[Optional[str], typer.Option(help="Continue this stored conversation.")]


def ask(
    question: Annotated[
        Optional[str], typer.Argument(help="What to ask; leave out to decide or take up a thread.")
    ] = None,
    graph: Graph = None,
    model: Model = None,
    image: Image = None,
    patient: Patient = None,
    thread: Thread = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the record entry that waits.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the record entry that waits.")] = False,
    edit: Annotated[Optional[str], typer.Option(help='Change it first: \'{"dosage": "250 mg"}\'.')] = None,
    reason: Annotated[str, typer.Option(help="Why it is approved against a grave finding; the record keeps it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Ask one question, or decide what a conversation is waiting for."""
    decision = _decision(approve, reject, edit)
    if question is None and not thread:
        hint = 'Try: docgemma ask "What is hypertension?"'
        raise UsageError("Nothing to do: no question and no --thread.", hint=hint)
    with _agent(graph, model) as agent:
        from docgemma.cli.screen import Screen, settle

        with closing(Screen()) as screen, stoppable() as stop:
            tell = None if as_json else screen.event
            if question is not None:
                result = agent.ask(question, thread=thread, image=image, patient=patient, on_event=tell, stop=stop)
                if decision and result["pending_write"]:
                    result = agent.decide(result["thread"], *decision, reason, on_event=tell, stop=stop)
            elif decision:
                result = agent.decide(thread or "", *decision, reason, on_event=tell, stop=stop)
            else:
                result = agent.proceed(thread or "", on_event=tell, stop=stop)
            if result["pending_write"] and not as_json and sys.stdin.isatty():
                result = settle(agent, result, screen)
    if as_json:
        print_json(result)
    else:
        screen.result(result)


def chat(
    graph: Graph = None, model: Model = None, image: Image = None, patient: Patient = None, thread: Thread = None
) -> None:
    """Talk turn after turn in the terminal. An empty line or Ctrl-D ends it; Ctrl-C stops a turn."""
    with _agent(graph, model) as agent:
        from docgemma.cli.screen import talk

        talk(agent, thread=thread, image=image, patient=patient)


def _decision(approve: bool, reject: bool, edit: str | None) -> "tuple[Decision, dict[str, Any]] | None":
    if sum((approve, reject, edit is not None)) > 1:
        raise UsageError("Choose one of --approve, --reject and --edit.")
    if approve or reject:
        return ("approve" if approve else "reject"), {}
    return None if edit is None else ("edit", parse_changes(edit))


def _agent(graph: str | None, model: str | None) -> "Agent":
    with quick_start():
        from docgemma.agent import Agent

        return Agent(model=model, graph=graph, on_progress=progress)
