"""The architecture drawing is the compiled graph, not somebody's memory of it."""

import itertools
import xml.etree.ElementTree as ET
from typing import TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from docgemma import draw
from docgemma.draw import COLOURS, FIGURES, SAYS, WHEN, Picture, compiled, mermaid, svg
from docgemma.draw_svg import RIGHT_WORDS
from docgemma.graphs.v3 import NODES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def graph():
    return compiled()


def test_the_stored_pictures_are_what_the_graph_gives(tmp_path) -> None:
    """If this fails: python -m docgemma.draw"""
    draw.main([str(tmp_path)])
    for name in ("architecture.svg", "architecture.mmd"):
        assert (FIGURES / name).read_text("utf-8") == (tmp_path / name).read_text("utf-8"), name


def test_every_edge_of_the_graph_is_drawn_once_and_no_other(graph) -> None:
    pairs = sorted((edge.source, edge.target) for edge in graph.edges)
    assert sorted((edge.source, edge.target) for edge in Picture(graph).edges) == pairs
    page = ET.fromstring(svg(graph, "title"))
    assert len([path for path in page.iter(f"{SVG}path") if path.get("class") == "edge"]) == len(pairs)
    assert mermaid(graph).count("-->") == len(pairs)


def test_every_step_and_every_condition_has_words_and_no_words_are_left_over(graph) -> None:
    assert {(edge.source, edge.target) for edge in graph.edges if edge.conditional} == set(WHEN)
    assert set(graph.nodes) == set(SAYS)
    assert all(words in svg(graph, "title") for words in WHEN.values())


def test_who_decides_is_read_from_the_nodes(graph) -> None:
    kinds = Picture(graph).kinds
    assert {name for name in NODES if kinds[name] == "prose"} == {"synthesize"}
    assert {"router", "tool_execute", "input_assembly"} <= {name for name in NODES if kinds[name] == "code"}
    assert {"intent_classify", "tool_select", "result_classify"} <= {n for n in NODES if kinds[n] == "choice"}


def test_rows_follow_the_graph_and_loops_go_back_up(graph) -> None:
    rows = Picture(graph).rows
    assert (rows[0], rows[-1]) == ("__start__", "__end__")
    assert rows.index("tool_execute") < rows.index("result_classify") < rows.index("router")


def test_no_two_edges_share_a_piece_of_a_lane(graph) -> None:
    picture = Picture(graph)
    spans = {}
    for edge in picture.edges:
        ends = sorted((picture.rows.index(edge.source), picture.rows.index(edge.target)))
        down = picture.rows.index(edge.source) == ends[0]
        if edge.lane:
            spans.setdefault((down, edge.lane), []).append(ends)
    for lane in spans.values():
        lane.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(lane)), lane


def test_words_fit_beside_the_boxes_and_inside_the_page(graph) -> None:
    page = ET.fromstring(svg(graph, "title"))
    width, height = (float(part) for part in page.get("viewBox").split()[2:])
    for text in filter(lambda item: item.text, page.iter(f"{SVG}text")):  # an edge that is always taken has no words
        wide = len(text.text) * 6.6 if text.get("class") != "label" else len(text.text) * 9
        x, anchor = float(text.get("x")), text.get("text-anchor", "start")
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
        assert left >= 0 and left + wide <= width and 0 < float(text.get("y")) < height, text.text
    assert max(map(len, WHEN.values())) * 6.6 < RIGHT_WORDS


@pytest.mark.parametrize("colour", COLOURS.values())
def test_white_words_can_be_read_on_every_colour(colour: str) -> None:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5


class State(TypedDict):
    done: bool


def test_another_graph_is_drawn_without_a_word_prepared_for_it() -> None:
    graph = StateGraph(State)
    graph.add_node("plan", lambda state: state)
    graph.add_node("act", lambda state: state)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "act")
    graph.add_conditional_edges("act", lambda state: END, ["plan", END])
    page = svg(graph.compile().get_graph(), "Another & <one>")
    assert ET.fromstring(page).findtext(f"{SVG}title") == "Another & <one>"
    assert ">plan<" in page and ">act<" in page
