"""Wiring only: which node follows which."""

from importlib import import_module

from langgraph.graph import StateGraph

from docgemma.errors import UsageError
from docgemma.nodes.context import Context
from docgemma.state import AgentState

Graph = StateGraph[AgentState, Context, AgentState, AgentState]

GRAPHS = {"v3": "docgemma.graphs.v3"}


def load_graph(name: str) -> Graph:
    """The graph of that name, not yet compiled.

    Raises:
        UsageError: there is no such graph.
    """
    if name not in GRAPHS:
        raise UsageError(f"There is no graph {name!r}.", hint=f"Choose one of: {', '.join(GRAPHS)}.")
    graph: Graph = import_module(GRAPHS[name]).build()
    return graph
