"""How a command that runs the agent begins: garbage collection waits until all is loaded, plugins stay out."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_start() -> Iterator[None]:
    """No garbage collection inside; after it, what was loaded is left out of later ones.

    Modules stay for as long as the process runs, and looking through them again and again as they load was a sixth of
    the start.
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
