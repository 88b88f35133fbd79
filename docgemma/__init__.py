"""DocGemma: an open, offline-capable clinical agent for small medical language models."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docgemma.agent import Agent
    from docgemma.llm import load_llm
    from docgemma.settings import Settings

# before numpy is imported: with more threads the reader's small products only wait for one another (ten times slower)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
__all__ = ["Agent", "Settings", "load_llm"]

_HOMES = {"Agent": "docgemma.agent", "Settings": "docgemma.settings", "load_llm": "docgemma.llm"}


def __getattr__(name: str) -> Any:
    """Load on first use: `import docgemma` and `docgemma --help` stay fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'docgemma' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
