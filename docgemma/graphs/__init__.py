"""Wiring only: which node follows which."""

from collections.abc import Hashable
from importlib import import_module
from typing import Any

from langgraph.graph import StateGraph

from docgemma.errors import UsageError
from docgemma.nodes.context import Context
from docgemma.report import traced
from docgemma.state import AgentState

Graph = StateGraph[AgentState, Context, AgentState, AgentState]
Paths = dict[Hashable, str]  # what a routing function says -> the node that follows

DEFAULT = "v3"
GRAPHS = {"v3": "docgemma.graphs.v3", "v2": "docgemma.graphs.v2", "v1": "docgemma.graphs.v1"}


def load_graph(name: str) -> Graph:
    """The graph of that name, not yet compiled.

    Raises:
        UsageError: there is no such graph.
    """
    if name not in GRAPHS:
        raise UsageError(f"There is no graph {name!r}.", hint=f"Choose one of: {', '.join(GRAPHS)}.")
    graph: Graph = import_module(GRAPHS[name]).build()
    return graph


def graph_of(nodes: dict[str, Any]) -> Graph:
    """A graph of these nodes, each traced, without edges."""
    graph: Graph = StateGraph(AgentState, context_schema=Context)
    for name, node in nodes.items():
        graph.add_node(name, traced(name, node))
    return graph
