"""What the commands share: options, output, the start of an agent."""

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Optional

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[
    Optional[str], typer.Option(help="edge, medgemma, server, a .gguf file, or a Hugging Face path or id.")
]


def progress(line: str) -> None:
    typer.echo(line, err=True)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


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
