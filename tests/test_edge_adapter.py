"""The stored adapter is the one that was measured, and it still decides as the stored results say."""

import json

import pytest

from docgemma.edge import items
from docgemma.edge.command import sha256
from docgemma.edge.evaluate import Evaluation
from docgemma.edge.score import table
from docgemma.llm.load import edge_adapter
from docgemma.paths import data_file, data_root

pytest.importorskip("xllamacpp")
SAMPLE = 9  # every so many-th item of those that need no long answer


def card() -> dict:
    return json.loads(data_file("edge", "card.json").read_text(encoding="utf-8"))


def stored() -> list[dict]:
    lines = data_file("edge", "results", "heldout-edge.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if "capability" in entry]


def test_the_adapter_is_the_one_that_the_card_describes():
    assert sha256(edge_adapter()) == card()["adapter_sha256"]


def test_everything_for_the_edge_model_stays_below_25_mb():
    files = [path for path in (data_root() / "edge").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 25e6


def test_there_are_more_than_400_held_out_items_and_each_has_its_own_question_id():
    found = items.load("heldout")
    assert len(found) > 400
    assert len({item["id"] for item in found}) == len(found)
    assert {item["difficulty"] for item in found} == {"easy", "medium", "hard"}


def test_the_card_shows_the_stored_figures_and_each_stored_decision_belongs_to_an_item():
    ids = {item["id"] for item in items.load("heldout")}
    entries = stored()
    assert {entry["item"] for entry in entries} <= ids
    for row in card()["heldout"]["rows"]:
        if row["difficulty"] == "all" and not row["capability"].startswith("arguments "):
            marks = [entry["right"] for entry in entries if entry["capability"] == row["capability"]]
            assert (len(marks), sum(marks)) == (row["n"], row["right"]), row["capability"]


def test_the_adapter_beats_the_rules_alone_at_what_the_model_decides():
    rules = {row["capability"]: row["share"] for row in card()["heldout_rules"]["rows"] if row["difficulty"] == "all"}
    edge = {row["capability"]: row["share"] for row in card()["heldout"]["rows"] if row["difficulty"] == "all"}
    for capability in ("intent", "first tool", "arguments"):
        assert edge[capability] > rules[capability], capability


def test_a_sample_of_the_held_out_set_is_decided_as_stored(edge_llm):
    """Held against decisions, not only totals: another adapter or prompt with a like figure would be seen."""
    chosen = [item for item in items.load("heldout") if item["kind"] in ("direct", "tool")][::SAMPLE]
    marks = Evaluation(edge_llm).run(chosen)
    before = {(entry["item"], entry["capability"]): entry["got"] for entry in stored()}
    compared = [mark for mark in marks if (mark.item, mark.capability) in before]
    differing = [mark for mark in compared if before[mark.item, mark.capability] != mark.got]
    assert len(compared) > 60
    assert len(differing) <= 0.05 * len(compared), differing
    assert table(marks)
