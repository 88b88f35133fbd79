"""`docgemma rcm batch`: the same question of every PDF in a folder, on this machine's processes or on Ray."""

from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, Model, print_json, progress, say

if TYPE_CHECKING:
    from docgemma.rcm.batch import Summary

QUESTION = "Is this request supported by the payer's policy?"
OUT = "docgemma-rcm.jsonl"  # in the folder


def batch_command(
    folder: Annotated[Path, typer.Argument(help="A folder of PDF files.")],
    question: Annotated[str, typer.Option(help="What is asked of each.")] = QUESTION,
    out: Annotated[Optional[Path], typer.Option(help=f"JSON lines; {OUT} in the folder without it.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own copy of the model.")] = 1,
    ray: Annotated[Optional[str], typer.Option(help="Address of a Ray cluster; local for this machine.")] = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Ask the same of every PDF in a folder; a stopped batch goes on. Exit status 1 where a document failed."""
    from docgemma.rcm.batch import batch
    from docgemma.settings import read_settings

    ask = partial(ask_document, question=question, model=model, settings_json=read_settings().model_dump_json())
    told = batch(
        folder, ask, out or folder / OUT, workers, ray=ray, question=question,
        progress=lambda done, total: progress(f"{done} of {total}"),
    )  # fmt: skip
    print_json(told) if as_json else _show(told)
    if told["failed"]:
        raise typer.Exit(1)


def _show(told: "Summary") -> None:
    pace = f", {told['charts_per_hour']} charts an hour" if told["charts_per_hour"] else ""
    say(f"{told['asked']} asked in {told['seconds']} s{pace}; {told['before']} were finished before.")
    say("; ".join(f"{count} {status.replace('_', ' ')}" for status, count in told["statuses"].items()) or "No answer.")
    if told["failed"]:
        say(f"{told['failed']} failed: their lines say why, and the same command asks them again.")
    say(f"Answers: {told['out']}")


def ask_document(path: Path, *, question: str, model: str | None, settings_json: str) -> dict[str, Any]:
    """The report of one PDF, in whatever process, with the model that was loaded there once.

    Its conversation is named by file and question, so that a document in whose midst a batch died goes on at its page.
    """
    from docgemma.graphs.rcm import run

    thread = f"rcm-batch-{sha256(path.read_bytes() + question.encode()).hexdigest()[:16]}"
    report: dict[str, Any] = run(question, pdf=[path], thread=thread, **_parts(model, settings_json))
    return report


@lru_cache(maxsize=1)
def _parts(model: str | None, settings_json: str) -> dict[str, Any]:
    from docgemma.agent import Agent
    from docgemma.graphs.rcm import parts_of
    from docgemma.settings import Settings

    return parts_of(Agent(Settings.model_validate_json(settings_json), model=model))
