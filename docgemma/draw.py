"""The picture of a compiled graph, as SVG and as Mermaid text. What is drawn is read from the graph and from the nodes'
own code; only the words are written here. `python -m docgemma.draw` renews the stored pictures."""

import inspect
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from docgemma.paths import PACKAGE
from docgemma.trace import LABELS

FIGURES = PACKAGE.parent / "writeup" / "figures"
START, END = "__start__", "__end__"
SAYS = {  # what a step does, one line
    START: "A clinician's question",
    END: "The answer",
    "input_assembly": "Finds patients, drugs and ids; an image is looked at",
    "intent_classify": "A general question, or is something looked up?",
    "tool_select": "One tool; what identifies is copied, not composed",
    "tool_execute": "Record, labels, literature; a write waits for a person",
    "result_classify": "Complete, partial, or nothing found?",
    "router": "What is missing? Enough? Must a person decide?",
    "error_handler": "Ask, skip or retry; the model picks the kind of retry",
    "synthesize": "Held to the evidence; a missing warning is added",
    "reopen_card": "An entry that was put aside waits for a person again",
}
WHEN = {  # what a condition means
    ("input_assembly", "intent_classify"): "a new question",
    ("input_assembly", "tool_execute"): "a person chose: go on",
    ("input_assembly", "router"): "a person answered",
    ("intent_classify", "tool_select"): "a look-up or an entry",
    ("intent_classify", "synthesize"): "a general question",
    ("tool_select", "tool_execute"): "this tool",
    ("tool_select", "router"): "nothing more to look up",
    ("tool_execute", "result_classify"): "a result or a decision",
    ("tool_execute", END): "a card is put aside",
    ("router", "tool_select"): "another step",
    ("router", "error_handler"): "a problem",
    ("router", "synthesize"): "enough, or ask a person",
    ("error_handler", "tool_select"): "try again, go on",
    ("error_handler", "synthesize"): "say what failed",
    ("synthesize", "reopen_card"): "a card waits",
    ("synthesize", END): "nothing waits",
}
KINDS = {
    "code": "code decides",
    "choice": "the model chooses from a closed set",
    "prose": "the model writes, code checks",
}
COLOURS = {"code": "#2e7d32", "choice": "#1565c0", "prose": "#b45309", "end": "#455a64"}  # white on each: 4.5 to 1


@dataclass(frozen=True)
class Edge:
    """From one row of the picture to another; `lane` counts outwards, 0 for a straight line to the next row."""

    source: str
    target: str
    words: str
    lane: int = 0


class Picture:
    """Rows from the longest way through the graph; edges that skip rows run down the right, loops up the left.

    Args:
        graph: what a compiled graph's `get_graph()` gives.
    """

    def __init__(self, graph: Any):
        self.nodes = list(graph.nodes)
        self.kinds = {
            name: decided_by(node.data) if name not in (START, END) else "end" for name, node in graph.nodes.items()
        }
        self.pairs = sorted(((edge.source, edge.target) for edge in graph.edges), key=self._place)
        self.rows = self._rows()

    def _place(self, pair: tuple[str, str]) -> tuple[int, int]:
        return self.nodes.index(pair[0]), self.nodes.index(pair[1])

    def _rows(self) -> list[str]:
        """Every node after all that lead to it, loops left out."""
        forward = [pair for pair in self.pairs if not self._loops(*pair)]
        depth = dict.fromkeys(self.nodes, 0)
        for _ in self.nodes:
            for source, target in forward:
                depth[target] = max(depth[target], depth[source] + 1)
        return sorted(self.nodes, key=lambda name: (depth[name], self.nodes.index(name)))

    def _loops(self, source: str, target: str) -> bool:
        """Whether an edge leads back: to a node that was added to the graph before its source."""
        return target != END and self.nodes.index(target) <= self.nodes.index(source)

    @cached_property
    def edges(self) -> list[Edge]:
        down, up = [], []
        for pair in self.pairs:
            first, last = (self.rows.index(name) for name in pair)
            (down if first < last else up).append((*pair, first, last))
        return [*_laned(down), *_laned(up)]


def decided_by(runnable: Any) -> str:
    """Who decides in a node, read from its module: "code", "choice" (a closed schema) or "prose"."""
    source = inspect.getsource(inspect.getmodule(inspect.unwrap(runnable.func)))
    return "prose" if "llm.text(" in source else "choice" if "context.ask(" in source else "code"


def _laned(edges: Iterable[tuple[str, str, int, int]]) -> list[Edge]:
    """Lanes such that no two edges of one lane overlap; the shorter an edge, the further inside."""
    taken: list[list[tuple[int, int]]] = []
    laned = []
    for source, target, first, last in sorted(edges, key=lambda edge: (abs(edge[3] - edge[2]), edge[2])):
        words, low, high = WHEN.get((source, target), ""), min(first, last), max(first, last)
        if last == first + 1:
            laned.append(Edge(source, target, words))
            continue
        free = (n for n, lane in enumerate(taken) if all(high < start or low > end for start, end in lane))
        number = next(free, len(taken))
        taken += [[]] if number == len(taken) else []
        taken[number].append((low, high))
        laned.append(Edge(source, target, words, number + 1))
    return laned


def mermaid(graph: Any) -> str:
    """The graph as Mermaid text, for a README."""
    picture = Picture(graph)
    lines = ["flowchart TD"]
    ids = {START: "question", END: "answer"}  # "end" is a word of Mermaid's own
    for name in picture.rows:
        kind, label = picture.kinds[name], LABELS.get(name, SAYS.get(name, name))
        lines.append(f"  {ids.get(name, name)}([{label}])" if kind == "end" else f'  {name}["{label}"]:::{kind}')
    for source, target in picture.pairs:
        words = WHEN.get((source, target))
        arrow = f"-->|{words}|" if words else "-->"
        lines.append(f"  {ids.get(source, source)} {arrow} {ids.get(target, target)}")
    lines += [f"  classDef {kind} fill:{COLOURS[kind]},color:#fff,stroke:none" for kind in KINDS]
    return "\n".join(lines) + "\n"


def svg(graph: Any, title: str) -> str:
    from docgemma.draw_svg import render

    return render(Picture(graph), title)


def compiled() -> Any:
    """The v3 graph, as the agent runs it."""
    from docgemma.graphs.v3 import build

    return build().compile().get_graph()


def main(folder: Sequence[str]) -> None:
    target = Path(folder[0]) if folder else FIGURES
    target.mkdir(parents=True, exist_ok=True)
    (target / "architecture.svg").write_text(svg(compiled(), "DocGemma, v3: how a question is answered"), "utf-8")
    (target / "architecture.mmd").write_text(mermaid(compiled()), "utf-8")
    print(f"Drawn in {target}.")


if __name__ == "__main__":
    main(sys.argv[1:])
