"""`docgemma forget`: delete conversations, kept images and caches."""

from datetime import datetime
from typing import Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, say
from docgemma.errors import UsageError


def forget(
    thread: Annotated[Optional[str], typer.Argument(help="One conversation, by its id.", show_default=False)] = None,
    before: Annotated[
        Optional[datetime], typer.Option(formats=["%Y-%m-%d"], help="Every one not continued since this date.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every conversation, image and kept answer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete conversations with their images. Entries that were approved stay in the patient record."""
    from docgemma.forget import STAYS, forget_all, forget_before, forget_thread
    from docgemma.memory import open_memory
    from docgemma.settings import read_settings

    if [thread is not None, before is not None, everything].count(True) != 1:
        hint = "docgemma forget THREAD, docgemma forget --before 2026-11-01, or docgemma forget --all"
        raise UsageError("Say which conversations to forget, in one way.", hint=hint)
    settings = read_settings()
    memory = open_memory(settings.db_location)
    if thread is not None:
        forget_thread(settings, memory, thread)
    count = forget_all(settings, memory) if everything else 1
    if before is not None:
        count = forget_before(settings, memory, before.astimezone())  # midnight where the user is
    if as_json:
        print_json({"forgotten": count, "note": STAYS})
    else:
        say(f"Forgot {count} conversation{'' if count == 1 else 's'}. {STAYS}")
