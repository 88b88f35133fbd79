"""What the commands share: options, output, the start of an agent."""

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Optional

import typer

from docgemma.errors import UsageError

EDIT_LIKE = 'Write it like: --edit \'{"dosage": "250 mg"}\''
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[
    Optional[str], typer.Option(help="edge, medgemma, server, a .gguf file, or a Hugging Face path or id.")
]


def progress(line: str) -> None:
    typer.echo(line, err=True)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


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
