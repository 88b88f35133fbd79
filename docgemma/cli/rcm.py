"""`docgemma rcm`: ask the revenue-cycle agent, run it over a folder of PDFs, look at its ledger."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from docgemma.cli import rcm_batch, rcm_ledger
from docgemma.cli.shared import AsJson, Model, print_json, progress, quick_start, say
from docgemma.errors import UsageError

app = typer.Typer(help="Cited evidence from charts and PDFs, checked against payer policy.", no_args_is_help=True)
app.add_typer(rcm_ledger.app, name="ledger")
app.command("batch")(rcm_batch.batch_command)
Pdf = Annotated[
    Optional[list[Path]], typer.Option("--pdf", help="A note or request as PDF; may be given more than once.")
]


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to check, or the answer to what was asked back.")],
    pdf: Pdf = None,
    patient: Annotated[Optional[str], typer.Option(help="Id of the patient the question is about.")] = None,
    thread: Annotated[
        Optional[str], typer.Option(help="Continue this conversation, also one that was cut off.")
    ] = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Ask about a patient, a document or a payer's policy. Every statement is quoted; what is unsure is asked."""
    import uuid

    thread = thread or f"rcm-{uuid.uuid4().hex[:12]}"
    progress(f"Conversation {thread}; if it is cut off, ask the same again with --thread {thread}")
    with _opened(model) as parts:
        from docgemma.graphs.rcm import run

        told = run(question, pdf=pdf or [], patient=patient, thread=thread, on_step=_told, **parts)
    print_json(told) if as_json else _show(told)


@app.command("prescan")
def scan(
    message: Annotated[Path, typer.Argument(help="A message as a FHIR Communication (JSON).")],
    model: Model = None,
) -> None:
    """Draft a verification summary for a message that names a drug or a procedure. It is sent to nobody."""
    import json

    from docgemma.graphs.rcm import run
    from docgemma.knowledge.drug_names import load_drug_names
    from docgemma.rcm.policy_files import load_policies
    from docgemma.rcm.prescan import prescan

    try:
        read = json.loads(message.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{message} is no JSON file that can be read.", hint="Give a FHIR Communication.") from error
    if not isinstance(read, dict):
        raise UsageError(f"{message} holds no FHIR resource.", hint="Give a FHIR Communication.")
    with _opened(model) as parts:
        ask = lambda question, patient: run(question, patient=patient, **parts)  # noqa: E731
        drafted = prescan(read, ask, load_drug_names(), load_policies().values())
    progress(drafted.told)
    if drafted.communication:
        print_json(drafted.communication)


@contextmanager
def _opened(model: str | None) -> Iterator[dict[str, Any]]:
    """What a turn needs, by the settings."""
    with quick_start():
        from docgemma.agent import Agent
        from docgemma.graphs.rcm import parts_of
        from docgemma.rcm.models import load_first
        from docgemma.settings import read_settings

        settings = read_settings()
        llm = load_first(model, settings, progress)
    with closing(llm), Agent(settings, llm=llm) as agent:
        yield parts_of(agent)


def _told(step: dict[str, Any]) -> None:
    progress(f"{step['node']}: {step['detail']}" if step["detail"] else step["node"])


def _show(told: dict[str, Any]) -> None:
    for line in told["answer"].splitlines():
        say(line)
    for at, one in enumerate(told["options"], 1):
        say(f"  {at}. {one['label']}")
    if told["options"] or told["status"] == "needs_clarification":
        say(f'Answer with: docgemma rcm ask "..." --thread {told["thread"]}')
    if told["confidence"]:
        parts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told["confidence"]["parts"].items())
        say(f"Confidence {told['confidence']['score']:.2f} ({parts}). {'Escalated.' * told['escalate']}".strip())
