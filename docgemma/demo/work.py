"""What a person asks for as work for a turn, and what went wrong with it in one line."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docgemma.agent import Agent, Decision, OnEvent
from docgemma.demo.view import field_label
from docgemma.errors import DocGemmaError, StoppedError, ThreadStateError, kind_and_place
from docgemma.nodes.context import Actor
from docgemma.turns import Stop, Work

log = logging.getLogger(__name__)
MOVED = "This conversation changed since it was shown here. Nothing was done; this is how it stands now."
CUT_SHORT = "Stopped after your approval: the entry may be in the record already."


def asking(agent: Agent, thread: str, actor: Actor, text: str, image: Path | None, patient: str | None) -> Work:
    """A question as work. The uploaded file is gone afterwards: the agent keeps its own copy."""

    def work(on_event: OnEvent, stop: Stop) -> dict[str, Any]:
        try:
            return agent.ask(
                text, thread=thread, create=True, image=image, patient=patient or None, actor=actor,
                on_event=on_event, stop=stop,
            )  # fmt: skip
        finally:
            if image:
                image.unlink(missing_ok=True)

    return work


def deciding(
    agent: Agent, thread: str, actor: Actor, decision: Decision, changes: dict[str, str], seen: dict[str, Any]
) -> Work:
    """A decision as work: on the entry that was `seen`, and on no other that waits by now."""

    def work(on_event: OnEvent, stop: Stop) -> dict[str, Any]:
        if agent.pending(thread) != seen:
            raise ThreadStateError(MOVED)
        try:
            return agent.decide(thread, decision, changes, actor=actor, on_event=on_event, stop=stop)
        except StoppedError as error:
            if decision == "reject" or agent.pending(thread):
                raise
            raise StoppedError(CUT_SHORT, hint="Take the turn up, or look at the chart, to see.") from error

    return work


def going_on(agent: Agent, thread: str, actor: Actor) -> Work:
    """A turn that was stopped or cut off, taken up."""
    return lambda on_event, stop: agent.proceed(thread, actor=actor, on_event=on_event, stop=stop)


def problem(error: BaseException | None) -> str:
    """The error in one line, without advice for a command line; of an unexpected one, whose text may hold patient
    data, only its kind and place."""
    if isinstance(error, DocGemmaError):
        typed = "--" in error.hint or "docgemma " in error.hint
        return str(error) if typed else error.line()
    where = kind_and_place(error or RuntimeError())
    log.error("a turn failed: %s", where)
    return f"Something went wrong that should not ({where}). Ask again, or report it."


def entry_fields(agent: Agent | None, pending: dict[str, Any]) -> dict[str, str | None]:
    """The fields of an entry that can be changed, empty ones too. The patient cannot: reject, and ask for the right
    one."""
    known = pending["args"]
    if agent and pending.get("name"):
        known = {name: known.get(name) for name in agent.toolbox[pending["name"]].args.model_fields}
    return {name: value for name, value in known.items() if name != "patient_id"}


def changed_fields(before: dict[str, str | None], values: Sequence[str | None]) -> dict[str, str]:
    given = zip(before.items(), values, strict=False)
    return {name: (new or "").strip() for (name, old), new in given if (new or "").strip() != (old or "")}


def said(changes: dict[str, str]) -> str:
    """What a person says who approves with these changes."""
    if not changes:
        return "Approved."
    return "Changed: " + "; ".join(f"{field_label(name)} {value}" for name, value in changes.items())
