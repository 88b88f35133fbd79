"""What the commands share: options, output, the start of an agent."""

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Optional

import typer

from docgemma.errors import UsageError
from docgemma.text.characters import visible

EDIT_LIKE = 'Write it like: --edit \'{"dosage": "250 mg"}\''
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[
    Optional[str], typer.Option(help="edge, medgemma, server, a .gguf file, or a Hugging Face path or id.")
]


def progress(line: str) -> None:
    say(line, err=True)


def say(line: str, err: bool = False) -> None:
    """Print a line. Whatever it was made of, nothing in it steers the terminal."""
    typer.echo(visible(line), err=err)


def print_json(value: Any) -> None:
    """Print one object on one line; what is not plainly visible in it stands as \\u001b."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    sys.stdout.write("".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text) + "\n")


def parse_changes(text: str) -> dict[str, Any]:
    """The fields of an entry that a person changes, from JSON."""
    try:
        changes = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise UsageError(f"The changes of --edit are not JSON ({error.msg}).", hint=EDIT_LIKE) from error
    if not isinstance(changes, dict):
        raise UsageError("The changes of --edit are not a JSON object.", hint=EDIT_LIKE)
    return changes


@contextmanager
def quick_start() -> Iterator[None]:
    """Load without garbage collection; what was loaded is left out of later collections.

    Looking through the modules again and again as they load was a sixth of the start.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")  # it would search every installed package for them
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if collected:
            gc.enable()


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Stop with Ctrl-C what an agent runs within, at the next word of its model; the graph waits for its threads."""
    stopped = threading.Event()

    def interrupt(*given: Any) -> None:
        stopped.set()
        signal.default_int_handler(*given)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield stopped.is_set
    finally:
        signal.signal(signal.SIGINT, before)
