"""Wiring only: which node follows which."""

from importlib import import_module

from langgraph.graph import StateGraph

from docgemma.errors import UsageError

GRAPHS = {"v3": "docgemma.graphs.v3"}


def load_graph(name: str) -> StateGraph:
    """The graph of that name, not yet compiled.

    Raises:
        UsageError: there is no such graph.
    """
    if name not in GRAPHS:
        raise UsageError(f"There is no graph {name!r}.", hint=f"Choose one of: {', '.join(GRAPHS)}.")
    return import_module(GRAPHS[name]).build()
