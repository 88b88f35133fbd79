"""Draw the v3 graph as Mermaid text: nodes and edges from the compiled graph, who decides from the nodes' own code.

`python -m docgemma.draw` writes writeup/figures/architecture.mmd and prints an ID. The SVG is made from it by Mermaid's
own command, which needs Node.js and a browser:
`npx @mermaid-js/mermaid-cli -i architecture.mmd -o architecture.svg -b white -I ID`
"""

import hashlib
import inspect
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
    "reopen_card": "An entry that was put aside waits again",
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
COLOURS = {"code": "#2e7d32", "choice": "#1565c0", "prose": "#b45309", "ends": "#455a64"}  # white on each: 4.5 to 1
HEAD = """\
---
title: "Green: code decides. Blue: the model chooses from a closed set. Orange: the model writes, code checks."
config:
  theme: base
  htmlLabels: false
  themeCSS: ".edgeLabel rect {opacity: 1}"
  themeVariables: {fontFamily: "system-ui, Helvetica, Arial, sans-serif", edgeLabelBackground: "#ffffff"}
  flowchart: {wrappingWidth: 420, useMaxWidth: false}
---
flowchart TD"""


def mermaid(graph: Any) -> str:
    """A compiled graph's `get_graph()` as Mermaid text."""
    ids = {START: "question", END: "answer"}  # "end" is a word of Mermaid's own
    order = list(graph.nodes)
    lines = [HEAD]
    for name, node in graph.nodes.items():
        if name in ids:
            lines.append(f"  {ids[name]}([{SAYS[name]}]):::ends")
        else:
            lines.append(f'  {name}["`**{LABELS[name]}**\n{SAYS[name]}`"]:::{decided_by(node.data)}')
    pairs = [(edge.source, edge.target) for edge in graph.edges]
    for source, target in sorted(pairs, key=lambda pair: (order.index(pair[0]), order.index(pair[1]))):
        words = f"|{WHEN[source, target]}|" if (source, target) in WHEN else ""
        lines.append(f"  {ids.get(source, source)} -->{words} {ids.get(target, target)}")
    lines += [f"  classDef {kind} fill:{colour},color:#fff,stroke:none" for kind, colour in COLOURS.items()]
    return "\n".join(lines) + "\n"


def decided_by(runnable: Any) -> str:
    """Who decides in a node, read from its module: a key of `COLOURS`."""
    source = Path(inspect.getfile(inspect.unwrap(runnable.func))).read_text(encoding="utf-8")
    return "prose" if "llm.text(" in source else "choice" if "context.ask(" in source else "code"


def compiled() -> Any:
    """The v3 graph, as the agent runs it."""
    from docgemma.graphs.v3 import build

    return build().compile().get_graph()


def picture_id(text: str) -> str:
    """The id of the SVG made from this text, so that a test can tell an older picture."""
    return f"graph-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def main() -> None:
    text = mermaid(compiled())
    (FIGURES / "architecture.mmd").write_text(text, encoding="utf-8")
    print(picture_id(text))


if __name__ == "__main__":
    main()
