"""The architecture drawing is the compiled graph, not somebody's memory of it."""

import xml.etree.ElementTree as ET

import pytest

from docgemma.draw import COLOURS, FIGURES, LABELS, SAYS, WHEN, compiled, decided_by, mermaid, picture_id


@pytest.fixture(scope="module")
def graph():
    return compiled()


def test_the_stored_text_is_what_the_graph_gives(graph) -> None:
    """If this fails: python -m docgemma.draw"""
    assert (FIGURES / "architecture.mmd").read_text("utf-8") == mermaid(graph)


def test_the_stored_picture_was_made_from_the_stored_text() -> None:
    """If this fails: the command in docgemma/draw.py"""
    page = ET.parse(FIGURES / "architecture.svg").getroot()
    assert page.get("id") == picture_id((FIGURES / "architecture.mmd").read_text("utf-8"))
    shown = " ".join("".join(page.itertext()).split())
    assert all(words in shown for words in [*SAYS.values(), *WHEN.values()])


def test_every_edge_of_the_graph_is_drawn_once_and_no_other(graph) -> None:
    assert mermaid(graph).count("-->") == len({(edge.source, edge.target) for edge in graph.edges})


def test_every_step_and_every_condition_has_words_and_no_words_are_left_over(graph) -> None:
    assert {(edge.source, edge.target) for edge in graph.edges if edge.conditional} == set(WHEN)
    assert set(graph.nodes) == set(SAYS) == {*LABELS, "__start__", "__end__"}


def test_who_decides_is_read_from_the_nodes(graph) -> None:
    kinds = {name: decided_by(node.data) for name, node in graph.nodes.items() if name in LABELS}
    assert {name for name in kinds if kinds[name] == "prose"} == {"synthesize"}
    assert {"router", "tool_execute", "input_assembly"} <= {name for name in kinds if kinds[name] == "code"}
    assert {"intent_classify", "tool_select", "result_classify"} <= {n for n in kinds if kinds[n] == "choice"}


@pytest.mark.parametrize("colour", COLOURS.values())
def test_white_words_can_be_read_on_every_colour(colour: str) -> None:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5
