"""What a person sees in the terminal: progress, streamed words, the answer, its timeline, and questions back."""

import sys
from pathlib import Path
from typing import Any

from rich.control import Control
from rich.live import Live
from rich.markup import escape
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from docgemma.agent import Agent, Decision
from docgemma.cli.shared import parse_changes, stoppable
from docgemma.cli.terminal import Terminal
from docgemma.errors import DocGemmaError, UsageError
from docgemma.report import approval_text, model_calls, source_line
from docgemma.rules.override import red

DECISIONS: dict[str, Decision] = {"a": "approve", "r": "reject", "e": "edit"}


class Screen:
    """Shows a turn as it happens: steps on stderr, so that stdout carries the answer alone."""

    def __init__(self) -> None:
        self.out, self.err = Terminal(), Terminal(stderr=True)
        # what is written so far: the answer takes its place, so it stands there once, as it passed every check
        self.draft = Live(
            console=self.out, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self.streamed = ""

    def event(self, event: dict[str, Any]) -> None:
        if event["type"] in ("start", "step"):
            self.close()
        if event["type"] == "start" and self.err.is_terminal:
            self.err.print(f"[dim]· {event['label']} …[/dim]", end="\r")
        elif event["type"] == "step" and event["detail"]:
            self.err.print(f"[dim]· {event['label']}: {escape(event['detail'])} ({event['seconds']:.1f} s)[/dim]")
        elif event["type"] == "token" and self.out.is_terminal:
            if not self.draft.is_started:
                self.out.control(Control((ControlType.ERASE_IN_LINE, 2)))  # the label of the step that writes
                self.draft.start()
            self.streamed += event["text"]
            self.draft.update(Text(self.streamed), refresh=True)

    def close(self) -> None:
        """Take the draft off the terminal."""
        self.draft.stop()
        self.streamed = ""

    def result(self, result: dict[str, Any], timeline: bool = True) -> None:
        """The answer as it stands after every check, then the timeline."""
        self.close()
        for line in result["answer"].splitlines():  # the conclusion and the headings are bold
            heads = line.startswith(result["lead"] or "\n") or (line.endswith(":") and line[:2] != "- ")
            self.out.print(Text(line, style="bold" if heads else ""))
        for number, source in enumerate(result["sources"], 1):
            self.out.print(f"[dim]{escape(f'[{number}] {source_line(source)}')}[/dim]")
        if timeline:
            table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
            for step in result["timeline"]:
                table.add_row(f"{step['seconds']:.2f} s", step["label"], escape(step["detail"]))
            self.out.print(table)
            sure = f"{result['confidence']} confidence · " if result["confidence"] else ""
            self.out.print(
                f"[dim]{result['model']} · {sure}{model_calls(result)} · {result['seconds']:.1f} s · "
                f"thread {result['thread']} · decision support, not a medical device[/dim]"
            )
        if result["status"] == "needs_approval":
            why = ' --reason "…"' if red(result["pending_write"].get("ranked") or []) else ""
            choices = f"--approve{why} (or --reject, or --edit '{{…}}')"
            self.err.print(f"Decide with: docgemma ask --thread {result['thread']} {choices}")
        elif result["status"] == "needs_clarification":
            self.err.print(f'Answer with: docgemma ask "…" --thread {result["thread"]}')


def settle(agent: Agent, result: dict[str, Any], screen: Screen) -> dict[str, Any]:
    """Put a waiting write to the person at the keyboard until it is decided or left for later."""
    while pending := result["pending_write"]:
        screen.close()
        screen.out.print(escape(approval_text(pending)))
        decision = DECISIONS.get(_read("approve, edit, reject, or later? ").strip().lower()[:1])
        if decision is None:
            break
        try:
            edits = decision == "edit"
            changes = parse_changes(_read(f"changes as JSON, fields {', '.join(pending['args'])}: ")) if edits else {}
            grave = decision == "approve" and red(pending.get("ranked") or [])
            reason = _read("reason, which the record keeps: ") if grave else ""
            result = agent.decide(result["thread"], decision, changes, reason, on_event=screen.event)
        except UsageError as error:
            screen.err.print(escape(error.line()))
    return result


def talk(agent: Agent, thread: str | None, image: Path | None, patient: str | None) -> None:
    """Turn after turn. A failed turn says why and the talk goes on."""
    screen = Screen()
    screen.out.print(f"DocGemma ({agent.llm.name}). Ask a clinical question; an empty line ends the talk.")
    while question := _read("\n> ").strip():
        try:
            with stoppable() as stop:
                result = agent.ask(
                    question, thread=thread, image=image, patient=patient, on_event=screen.event, stop=stop
                )
            result = settle(agent, result, screen)
        except KeyboardInterrupt:
            screen.close()
            screen.err.print("\nStopped. Ask again, or ask something else.")
            continue
        except DocGemmaError as error:
            screen.close()
            screen.err.print(escape(error.line()))
            continue
        thread, image, patient = result["thread"], None, None
        screen.result(result, timeline=False)
    if thread:
        screen.err.print(f"Continue with: docgemma chat --thread {thread}")


def _read(prompt: str) -> str:
    try:
        return input(prompt)
    except EOFError:
        print(file=sys.stderr)
        return ""
