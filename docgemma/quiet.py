"""Keep conversations on this machine: LangGraph would send them to LangSmith once LANGSMITH_TRACING is set."""

from contextlib import AbstractContextManager
from typing import Any


def quiet() -> AbstractContextManager[Any]:
    """Keep LangGraph and LangChain from tracing what runs within, also in the threads that they start."""
    from langsmith.run_helpers import tracing_context

    return tracing_context(enabled=False)
