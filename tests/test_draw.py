"""The architecture drawing (writeup/figures/architecture.mmd) is the compiled graph, not somebody's memory of it.

The picture is made from the text by Mermaid's own command, which needs Node.js and a browser; a failing test names ID:
`npx @mermaid-js/mermaid-cli -i architecture.mmd -o architecture.svg -b white -I ID`
"""

import hashlib
import inspect
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docgemma.graphs import v3
from docgemma.paths import PACKAGE
from docgemma.report import words

FIGURES = PACKAGE.parent / "writeup" / "figures"
TEXT = (FIGURES / "architecture.mmd").read_text("utf-8")
NODES = re.findall(r'^  (\w+)\["`\*\*(.+)\*\*\n(.+)`"\]:::(\w+)$', TEXT, re.MULTILINE)
EDGES = re.findall(r"^  (\w+) -->(?:\|(.+)\|)? (\w+)$", TEXT, re.MULTILINE)
ENDS = {"__start__": "question", "__end__": "answer"}  # "end" is a word of Mermaid's own


@pytest.fixture(scope="module")
def graph():
    return v3.build().compile().get_graph()


def test_every_edge_of_the_graph_is_drawn_once_and_no_other(graph) -> None:
    edges = {(ENDS.get(edge.source, edge.source), ENDS.get(edge.target, edge.target)) for edge in graph.edges}
    assert sorted((source, target) for source, _, target in EDGES) == sorted(edges)


def test_a_condition_has_words_and_a_plain_edge_has_none(graph) -> None:
    conditions = {(edge.source, ENDS.get(edge.target, edge.target)) for edge in graph.edges if edge.conditional}
    assert {(source, target) for source, words, target in EDGES if words} == conditions


def test_every_step_is_drawn_with_its_label_of_the_timeline(graph) -> None:
    assert {name: label for name, label, _, _ in NODES} == {name: words()["labels"][name] for name in v3.NODES}
    assert set(graph.nodes) == {*v3.NODES, *ENDS}


def test_a_colour_says_who_decides_in_a_node(graph) -> None:
    """Read from the node's own module: it writes prose, asks for a choice, or neither."""
    for name, _, _, kind in NODES:
        source = Path(inspect.getfile(inspect.unwrap(graph.nodes[name].data.func))).read_text("utf-8")
        assert kind == ("prose" if "llm.text(" in source else "choice" if "context.ask(" in source else "code"), name


def test_the_stored_picture_was_made_from_the_stored_text() -> None:
    page = ET.parse(FIGURES / "architecture.svg").getroot()
    assert page.get("id") == f"graph-{hashlib.sha256(TEXT.encode()).hexdigest()[:12]}"
    shown = " ".join("".join(page.itertext()).split())
    assert all(words in shown for words in [*(says for _, _, says, _ in NODES), *(words for _, words, _ in EDGES)])


@pytest.mark.parametrize("colour", re.findall(r"fill:(#\w{6})", TEXT))
def test_white_words_can_be_read_on_every_colour(colour: str) -> None:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5
