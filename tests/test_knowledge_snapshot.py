"""The shipped snapshot as it is built and read."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from docgemma.errors import ConfigError, ErrorType, StoreError, ToolError
from docgemma.knowledge.build import TYPES, content_hash, shipped_snapshot
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.snapshot import Snapshot
from docgemma.paths import data_file


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory) -> Snapshot:
    home = tmp_path_factory.mktemp("snapshot")
    return Snapshot(shipped_snapshot(home), load_drug_names())


@pytest.fixture
def sources(tmp_path, monkeypatch) -> Path:
    """A copy of the shipped records that a test may break."""
    folder = tmp_path / "data" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "search.yaml").symlink_to(data_file("knowledge", "search.yaml").absolute())
    for kind in TYPES:
        lines = Path(data_file("knowledge", f"{kind}.jsonl")).read_text(encoding="utf-8").splitlines()
        (folder / f"{kind}.jsonl").write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")
    monkeypatch.setenv("DOCGEMMA_DATA", str(folder.parent))
    return folder


@pytest.mark.parametrize(
    ("asked", "name"),
    [("dofetilide", "dofetilide"), ("Tikosyn", "dofetilide"), (" COUMADIN ", "warfarin"),
     ("metformin 500 mg", "metformin"), ("Metformin Hydrochloride", "metformin"), ("paracetamol", "acetaminophen"),
     ("Bactrim", "sulfamethoxazole and trimethoprim"),
     ("trimethoprim-sulfamethoxazole", "sulfamethoxazole and trimethoprim"), ("valproic acid", "valproate"),
     ("Keytruda", "pembrolizumab"), ("eliquis 5mg twice daily", "apixaban")],
)  # fmt: skip
def test_a_drug_is_found_by_generic_brand_and_other_names(snapshot, asked, name):
    answer = snapshot.label(asked)
    assert [label.name for label in answer.records] == [name]
    assert answer.source and answer.as_of
    assert snapshot.generic_name(asked) == name


@pytest.mark.parametrize("asked", ["metformn", "warfrin", "lisinoprl"])
def test_a_near_name_is_asked_about_and_never_taken(snapshot, asked):
    with pytest.raises(ToolError) as caught:
        snapshot.label(asked)
    assert caught.value.error_type is ErrorType.AMBIGUOUS_DRUG_NAME
    assert caught.value.details["suggestions"]
    assert snapshot.generic_name(asked) is None


@pytest.mark.parametrize("asked", ["zzzzzz", "x", "'; DROP TABLE drug; --", "cisapride", ""])
def test_a_name_that_is_not_listed_is_said_to_be_so(snapshot, asked):
    with pytest.raises(ToolError) as caught:
        snapshot.label(asked)
    assert caught.value.error_type is ErrorType.DRUG_NOT_IN_DATABASE
    assert caught.value.details["entity"] == asked


def test_a_real_drug_that_is_not_listed_is_not_taken_for_a_misspelt_other(snapshot):
    """Look-alike names are a known cause of harm: pericyazine is not a way to write another drug."""
    with pytest.raises(ToolError) as caught:
        snapshot.label("pericyazine")
    assert caught.value.error_type is ErrorType.DRUG_NOT_IN_DATABASE
    assert snapshot.generic_name("pericyazine") == "periciazine"


def test_a_drug_listed_for_its_interactions_alone_has_no_label_but_has_these(snapshot):
    assert snapshot.label("St. John's wort").records == []
    assert snapshot.interactions(["St. John's wort", "warfarin"]).records


def test_interactions_are_of_every_pair_in_any_order_and_by_any_name(snapshot):
    found = snapshot.interactions(["ibuprofen", "Coumadin", "aspirin"]).records
    assert {frozenset(item.drugs) for item in found} == {
        frozenset(pair) for pair in (("warfarin", "aspirin"), ("warfarin", "ibuprofen"), ("aspirin", "ibuprofen"))
    }
    assert all(isinstance(item.drugs, tuple) for item in found)


def test_a_pair_without_entry_is_an_empty_answer(snapshot):
    assert snapshot.interactions(["metformin", "amoxicillin"]).records == []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("evidence on SGLT2 inhibitors in heart failure", "34449189"),
        ("apixaban vs warfarin for AF", "21870978"),
        ("What does research say about metformin in CKD?", "29868840"),
        ("TNBC immunotherapy", "32101663"),
        ("penicillin allergy", "37459086"),
    ],
)
def test_literature_is_found_by_natural_phrases(snapshot, query, first):
    assert first in [item.id for item in snapshot.literature(query).records[:3]]


@pytest.mark.parametrize("query", ["unicorn horns in zebrafish", "", "the and of", "🙂", "*", '"'])
def test_a_search_that_fits_nothing_is_empty(snapshot, query):
    assert snapshot.literature(query).records == []
    assert snapshot.trials(query).records == []


@pytest.mark.parametrize(
    ("condition", "status", "expected"),
    [("breast carcinoma", "recruiting", {"DEMO-TRIAL-001", "DEMO-TRIAL-002"}),
     ("breast cancer", "completed", {"DEMO-TRIAL-004"}),
     ("lung cancer", None, {"DEMO-TRIAL-006", "DEMO-TRIAL-007", "DEMO-TRIAL-008"}),
     ("COVID-19", "recruiting", set()), ("COVID-19", "terminated", {"DEMO-TRIAL-038"})],
)  # fmt: skip
def test_trials_are_found_by_condition_and_status(snapshot, condition, status, expected):
    assert {trial.id for trial in snapshot.trials(condition, status).records} == expected


def test_the_limit_holds(snapshot):
    assert len(snapshot.trials("cancer", limit=3).records) == 3


def test_info_counts_what_is_inside(snapshot):
    info = snapshot.info()
    assert set(info["kinds"]) == set(TYPES)
    assert info["kinds"]["drugs"]["count"] >= 120
    assert info["kinds"]["drugs"]["as_of"] == snapshot.label("metformin").as_of


def test_it_is_read_from_many_threads(snapshot):
    found, threads = [], []
    for _ in range(8):
        threads.append(threading.Thread(target=lambda: found.append(snapshot.label("warfarin").records[0].name)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert found == ["warfarin"] * 8


def test_it_is_built_once_and_again_when_a_record_changes(tmp_path, sources):
    first = shipped_snapshot(tmp_path)
    made = first.stat().st_mtime_ns
    assert shipped_snapshot(tmp_path) == first and first.stat().st_mtime_ns == made
    text = (sources / "drugs.jsonl").read_text(encoding="utf-8").replace("hypersensitivity", "allergy", 1)
    (sources / "drugs.jsonl").write_text(text, encoding="utf-8")
    assert shipped_snapshot(tmp_path) != first


def test_nothing_is_left_behind_by_a_build(tmp_path, sources):
    shipped_snapshot(tmp_path / "home")
    assert [path.name for path in (tmp_path / "home").iterdir()] == [f"knowledge-{content_hash()}.sqlite"]


@pytest.mark.parametrize(
    "line", ["{", '{"name": "x"}', "[]", '"text"', '{"name": "x", "boxed_warning": "none", "colour": 1}']
)
def test_a_broken_record_is_named_by_file_and_line(tmp_path, sources, line):
    with (sources / "drugs.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(StoreError, match=r"drugs\.jsonl, line 5"):
        shipped_snapshot(tmp_path / "home")
    assert not list((tmp_path / "home").glob("knowledge-*"))


@pytest.mark.parametrize("text", ["", "{", '{"source": "x"}\n', "[]\n"])
def test_a_broken_head_is_named(tmp_path, sources, text):
    (sources / "drugs.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"drugs\.jsonl, line 1"):
        shipped_snapshot(tmp_path / "home")


def test_a_doubled_record_is_refused(tmp_path, sources):
    lines = (sources / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    (sources / "trials.jsonl").write_text("\n".join([*lines, lines[-1]]), encoding="utf-8")
    with pytest.raises(StoreError):
        shipped_snapshot(tmp_path / "home")


def test_missing_records_say_what_to_do(tmp_path, sources):
    (sources / "trials.jsonl").unlink()
    with pytest.raises(ConfigError) as caught:
        shipped_snapshot(tmp_path / "home")
    assert "trials.jsonl" in str(caught.value) and caught.value.hint


def test_a_home_that_cannot_be_written_says_so(tmp_path, sources):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreError, match="cannot be written"):
        shipped_snapshot(tmp_path / "home")


@pytest.mark.parametrize("damage", ["garbage", "empty", "half", "missing"])
def test_a_corrupt_snapshot_says_how_to_rebuild_it(tmp_path, sources, damage):
    path = shipped_snapshot(tmp_path)
    if damage == "missing":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes({"garbage": b"not a database" * 99, "empty": b"", "half": whole[: len(whole) // 3]}[damage])
    with pytest.raises(StoreError) as caught:
        broken = Snapshot(path)
        broken.literature("heart failure")
        broken.info()
    assert "docgemma snapshot build" in caught.value.line()


def test_a_snapshot_of_another_version_is_refused(tmp_path, sources):
    path = shipped_snapshot(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '0' WHERE key = 'version'")
    with pytest.raises(StoreError, match="another version"):
        Snapshot(path)


def test_reading_cannot_change_it(snapshot):
    with pytest.raises(StoreError):
        snapshot._rows("DELETE FROM drug")
    assert snapshot.label("warfarin").records


def test_a_path_with_odd_characters_is_read(tmp_path, sources):
    home = tmp_path / "a home? with #odd% names"
    assert Snapshot(shipped_snapshot(home)).info()["kinds"]["drugs"]["count"] == 3
