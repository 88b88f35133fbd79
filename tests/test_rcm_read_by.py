"""Criteria told in words that no list holds: the trained evidence reader, and what code reads around it."""

from datetime import date

import pytest
import yaml

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.rcm.criteria import judge
from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.read_by import passages
from docgemma.rcm.records import Criterion, Policy
from docgemma.rcm.sentences import sentences_of
from docgemma.reading.encoder import Encoder
from docgemma.reading.reader import load_reader
from tests.rcm_documents import document

TODAY = date(2026, 11, 23)
HERE = data_file("rcm", "evidence")
ITEMS = yaml.safe_load((HERE / "items.yaml").read_text(encoding="utf-8"))
NEVER = {"any": [["a term that stands nowhere"]]}
THERAPY = {"item": "therapy_failed", "measure": {"name": ["therapy"], "unit": "week", "at_least": 12}}


def verdict(read_by: dict, note: str, side: str = "") -> str:
    criterion = Criterion(id="T-1", text="A criterion.", shown_by=NEVER, read_by=read_by)
    policy = Policy(id="T", payer="", title="", effective="", procedures=[], criteria=[criterion], request_needs=[])
    return judge(policy, [document(note)], None, side=side, today=TODAY)[0][0]["verdict"]


@pytest.mark.parametrize(
    ("item", "note", "wanted"),
    [
        ("limits_life", "Walks one block at most and climbs the stairs one at a time, holding on.", "MET"),
        ("no_tobacco", "Has not touched a cigarette in his life.", "MET"),
        ("no_tobacco", "Continues to smoke half a pack a day.", "NOT MET"),
        ("insulin", "Takes 22 units of glargine at bedtime.", "MET"),
        ("insulin", "Insulin will be discussed at the next visit.", "NOT DOCUMENTED"),
        ("nerve_sign", "Power, sensation and reflexes of both legs are entirely normal.", "NOT MET"),
        ("cpap_taught", "The therapist went over the mask and the ramp button with him and his wife.", "MET"),
        ("insulin", "The weather was fine and the drive took an hour.", "NOT DOCUMENTED"),
    ],
)  # fmt: skip
def test_other_words_are_read(item, note, wanted):
    assert verdict({"item": item}, note) == wanted


@pytest.mark.parametrize(
    ("note", "wanted"),
    [
        ("She did 14 weeks of supervised physical therapy and the knee is no better.", "MET"),
        ("She did 4 weeks of supervised physical therapy and the knee is no better.", "NOT MET"),
        ("She did supervised physical therapy and the knee is no better.", "NOT DOCUMENTED"),
        ("Supervised therapy ran for 14 weeks, 22 visits.\nThe knee is no better for it.", "MET"),
    ],
)
def test_code_reads_the_number(note, wanted):
    assert verdict(THERAPY, note) == wanted


def test_a_number_that_may_be_missing_decides_where_it_stands():
    pattern = {
        "item": "no_tobacco",
        "measure": {"name": ["quit"], "unit": "week", "at_least": 6, "ago": True, "optional": True},
    }
    assert verdict(pattern, "He has never smoked.") == "MET"
    assert verdict(pattern, "Former smoker, quit 2 weeks ago.") != "MET"


def test_a_relative_shows_nothing_and_the_other_side_neither():
    assert verdict({"item": "insulin"}, "Her mother injects insulin four times a day.") != "MET"
    note = "Left knee: large effusion, McMurray positive."
    assert verdict({"item": "knee_exam", "side": True}, note, side="left") == "MET"
    assert verdict({"item": "knee_exam", "side": True}, note, side="right") == "NOT DOCUMENTED"


def test_shown_here_and_the_opposite_there_is_left_to_a_person():
    note = "She injects insulin glargine 20 units every night.\n\nSocial: lives alone.\n\nShe has never used insulin."
    assert verdict({"item": "insulin"}, note) == "NOT DOCUMENTED"


def test_neighbours_of_a_section_are_read_together_and_nothing_is_read_twice():
    said = tuple(sentences_of([document("Supervised therapy ran for 14 weeks.\nThe knee is no better for it.")], TODAY))
    read = passages(said)
    assert [len(one.sentences) for one in read] == [1, 1, 2]
    assert passages(said) is read
    assert passages(()) == ()


def test_texts_read_together_are_read_as_each_alone():
    encoder = load_reader(data_file("edge", "reader.npz")).encoder
    texts = ["Right knee pain.", "x", "She takes metformin 500 mg twice daily and has done so since spring."]
    for alone, together in zip((encoder.states(text) for text in texts), encoder.states_of(texts), strict=True):
        assert abs(alone - together).max() < 1e-4


def test_every_item_is_defined_read_and_used():
    def used(pattern: dict) -> set[str]:
        parts = [*pattern.get("either", ()), *pattern.get("both", ())]
        return {pattern["item"]} if "item" in pattern else {name for part in parts for name in used(part)}

    named = {name for policy in load_policies().values() for one in policy["criteria"] for name in used(one["read_by"])}
    reader = Encoder(HERE / "reader.npz", load_reader(data_file("edge", "reader.npz")).encoder)
    assert named == set(ITEMS) == set(reader.labels[0])


def test_the_lines_that_it_was_trained_on_are_labelled_with_known_items():
    for path in sorted((HERE / "lines").glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            item, label, text = line.split("\t")
            assert item in ITEMS and label in ("m", "n", "u", "n#", "u#") and text, (path.name, line)
    for path in sorted((HERE / "notes").glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith("### ") or line.count("\t") == 1, (path.name, line)


def test_damaged_weights_are_one_clear_line(tmp_path):
    (tmp_path / "reader.npz").write_bytes((HERE / "reader.npz").read_bytes()[:1_000_000])
    with pytest.raises(ConfigError, match="cannot be read"):
        Encoder(tmp_path / "reader.npz", load_reader(data_file("edge", "reader.npz")).encoder)
