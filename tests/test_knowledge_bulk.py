"""Building a snapshot from bulk files: what goes in, what stays, what is said about the rest."""

import gzip
import json
import sqlite3
from contextlib import closing

import pytest

from docgemma.errors import ErrorType, StoreError, ToolError, UsageError
from docgemma.knowledge.drug_names import DrugNames
from docgemma.knowledge.snapshot import Snapshot, age_days
from docgemma.knowledge.sources import open_snapshot
from docgemma.paths import kit
from docgemma.settings import Settings
from tests.bulk_samples import europepmc, info, label, label_zip, page, pubmed, pubmed_file, small_data, study, zipped

bulk = kit("knowledge", "bulk")
build_from_files = bulk.build_from_files


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def opened(home, names=None) -> Snapshot:
    return Snapshot(home / "snapshot.sqlite", names)


def test_all_three_kinds_are_built_and_found(tmp_path, home):
    report = build_from_files(
        home,
        openfda=[label_zip(tmp_path, [label(boxed_warning="WARNING: LIVER FAILURE")])],
        ctgov=[zipped(tmp_path / "ctg.zip", {"a.json": json.dumps(study()).encode()})],
        literature=[pubmed_file(tmp_path / "pubmed.xml.gz", [pubmed()])],
    )
    snapshot = opened(home)
    assert report["problems"] == [] and report["left_out"] == []
    found = snapshot.label("Zorvatine Brand")
    assert "LIVER FAILURE" in found.records[0].boxed_warning
    assert (found.source, found.as_of) == ("openFDA bulk labels", "2026-02-03")
    assert [trial.id for trial in snapshot.trials("gout", "recruiting").records] == ["NCT-INVENTED-1"]
    assert snapshot.trials("tophus").as_of == "2026-01-05"
    assert [article.id for article in snapshot.literature("podagra").records] == ["INVENTED1"]
    assert snapshot.literature("gout").as_of == "2025-07-09"
    assert sorted(path.name for path in home.glob("snapshot*")) == ["snapshot.sqlite"]


def test_the_snapshot_that_was_built_is_the_one_that_is_used(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label()])])
    assert open_snapshot(Settings(home=home)).label("zorvatine").records


def test_labels_of_one_drug_are_merged_newest_first(tmp_path, home):
    labels = [
        label(date="20190101", boxed_warning="WARNING: OLD WORDS", contraindications="Old ones."),
        label(date="20240101", boxed_warning="WARNING: NEW WORDS"),
        label(date="20250101", warnings="Newest without a box.", brand="Zorva"),
    ]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    (found,) = opened(home).label("zorvatine").records
    assert "NEW WORDS" in found.boxed_warning and found.effective == "2024-01-01"
    assert found.contraindications == ["Old ones."]
    assert found.warnings == ["Newest without a box."]
    assert "Zorva" in found.brand_names


def test_a_boxed_warning_is_not_lost_among_many_newer_labels(tmp_path, home):
    many = [label(date=f"2025{n // 28 + 1:02}{n % 28 + 1:02}", warnings=f"Plain {n}.") for n in range(100)]
    old = label(date="20100101", boxed_warning="WARNING: STILL TRUE", brand="Oldest")
    build_from_files(home, openfda=[label_zip(tmp_path, [old, *many])])
    assert "STILL TRUE" in opened(home).label("zorvatine").records[0].boxed_warning
    assert opened(home).generic_name("oldest") == "zorvatine"


def test_the_newer_version_of_a_label_stays_whatever_the_order(tmp_path, home):
    new, old = (label(key="same", date=date, warnings=f"Of {date}.") for date in ("20250101", "20200101"))
    build_from_files(home, openfda=[label_zip(tmp_path, [new]), label_zip(tmp_path, [old], part=2)])
    assert opened(home).label("zorvatine").records[0].warnings == ["Of 20250101."]


def test_a_combination_is_a_drug_of_its_own(tmp_path, home):
    labels = [label("zorvatine"), label("quellamab, zorvatine", brand="Duozor", boxed_warning="WARNING: BOTH")]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    assert opened(home).label("Duozor").records[0].name == "quellamab / zorvatine"
    assert opened(home).label("zorvatine").records[0].boxed_warning == ""


def test_a_shipped_combination_keeps_its_name(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("trimethoprim, sulfamethoxazole", warnings="Rash.")])])
    found = opened(home).label("Bactrim").records[0]
    assert (found.name, found.warnings) == ("sulfamethoxazole and trimethoprim", ["Rash."])


def test_a_salt_and_a_synonym_are_the_drug(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("metformin hydrochloride"), label("paracetamol")])])
    snapshot = opened(home)
    assert snapshot.generic_name("Metformin Hydrochloride") == "metformin"
    assert snapshot.label("paracetamol").records[0].name == "acetaminophen"


def test_a_brand_of_several_drugs_is_listed_for_none(tmp_path, home):
    labels = [label("zorvatine", brand="Pain Relief"), label("quellamab", brand="Pain Relief")]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    with pytest.raises(ToolError) as caught:
        opened(home).label("Pain Relief")
    assert caught.value.error_type is ErrorType.DRUG_NOT_IN_DATABASE


def test_a_partial_download_does_not_lose_a_shipped_boxed_warning(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("ibuprofen", warnings="Stomach bleeding.")])])
    found = opened(home).label("ibuprofen")
    assert found.records[0].boxed_warning and found.records[0].warnings == ["Stomach bleeding."]
    assert found.source == "openFDA bulk labels, label snapshot written from knowledge, not verified"
    assert found.as_of == "2025-06-30"


def test_shipped_drugs_without_a_bulk_label_keep_their_own_source(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label()])])
    found = opened(home).label("Tikosyn")
    assert (found.records[0].name, found.source, found.as_of) == (
        "dofetilide",
        "label snapshot written from knowledge, not verified",
        "2025-06-30",
    )
    assert info(home)["kinds"]["drugs"]["bulk_labels"] == 1


def test_curated_pairs_are_kept_and_others_are_read_from_the_labels(tmp_path, home):
    said = "7 DRUG INTERACTIONS Avoid concomitant use with zorvatine. Monitor patients taking ibuprofen."
    labels = [label("quellamab", drug_interactions=said), label("zorvatine"), label("warfarin", drug_interactions="-")]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    answer = opened(home).interactions(["zorvatine", "quellamab", "ibuprofen", "warfarin"])
    found = {frozenset(item.drugs): item for item in answer.records}
    assert found[frozenset({"ibuprofen", "warfarin"})].severity == "major"
    pair = found[frozenset({"zorvatine", "quellamab"})]
    assert pair.severity == "avoid concomitant use" and "The quellamab label says: “Avoid" in pair.mechanism
    assert pair.reference.endswith("set-quellamab-20250301")
    assert frozenset({"ibuprofen", "quellamab"}) in found and len(found) == 3
    assert answer.source == "label snapshot written from knowledge, not verified, openFDA bulk labels"


def test_a_class_named_in_a_label_is_found(tmp_path, home):
    labels = [
        label("quellamab", drug_interactions="Do not use with monoamine oxidase inhibitors."),
        label("zorvatine", classes=["Monoamine Oxidase Inhibitor [EPC]"]),
    ]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    (found,) = opened(home).interactions(["zorvatine", "quellamab"]).records
    assert found.severity == "do not use" and "of the class of zorvatine" in found.mechanism


def test_a_name_from_the_labels_is_suggested_for_a_typo(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label()])])
    with pytest.raises(ToolError) as caught:
        opened(home, DrugNames({"metformin": "metformin"})).label("zorvatime")
    assert caught.value.error_type is ErrorType.AMBIGUOUS_DRUG_NAME
    assert caught.value.details["suggestions"] == ["zorvatine"]


def test_kinds_without_files_are_kept_from_the_snapshot_that_was_there(tmp_path, home):
    build_from_files(home, ctgov=[zipped(tmp_path / "ctg.zip", {"a.json": json.dumps(study()).encode()})])
    assert opened(home).literature("heart failure").source == "offline collection of published articles"
    assert opened(home).label("warfarin").source == "label snapshot written from knowledge, not verified"
    build_from_files(home, openfda=[label_zip(tmp_path, [label()])])
    assert opened(home).trials("gout").records and opened(home).label("zorvatine").records


def test_articles_of_the_files_take_the_place_of_the_shipped_ones(tmp_path, home):
    build_from_files(home, literature=[pubmed_file(tmp_path / "a.xml", [pubmed()])])
    assert info(home)["kinds"]["literature"]["count"] == 1
    assert info(home)["kinds"]["literature"]["demonstration"] == 0


def test_a_bad_record_does_not_lose_the_others_and_is_reported(tmp_path, home):
    broken = ["text", None, {"colour": 1}, {"openfda": [1], "id": "x"}, {**label("badname"), "warnings": 7}]
    path = label_zip(tmp_path, [label("zorvatine"), *broken, label("quellamab")])
    report = build_from_files(home, openfda=[path])
    assert opened(home).label("quellamab").records and opened(home).label("zorvatine").records
    assert report["problems"] == [
        {
            "file": path.name,
            "reason": "not a record of drugs",
            "count": 5,
            "first": "drug-label-0001-of-0013.json, record 2",
        }
    ]


def test_a_label_that_is_not_harmonised_is_counted_and_belongs_to_no_drug(tmp_path, home):
    report = build_from_files(home, openfda=[label_zip(tmp_path, [label(), {**label("x"), "openfda": {}}])])
    assert [(note["count"], "not harmonised" in note["reason"]) for note in report["left_out"]] == [(1, True)]
    assert report["problems"] == []


def cut(path, share=0.6):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    return path


@pytest.mark.parametrize("shape", ["zip", "json", "gz", "garbage", "empty", "member"])
def test_a_truncated_file_does_not_lose_the_others(tmp_path, home, shape, monkeypatch):
    monkeypatch.setattr(kit("knowledge", "bulk_files"), "SMALL", 1000)
    labels = [label(f"zorvatine{n}", warnings="word " * 400) for n in range(40)]
    path = tmp_path / "broken.json"
    if shape in ("zip", "member"):
        path = zipped(tmp_path / "broken.zip", {"a.json": page(labels)[:50_000], "b.json": page([label("insidemab")])})
    else:
        content = {"gz": gzip.compress(page(labels)), "garbage": b"\x00\x01{]" * 99, "empty": b""}
        path.write_bytes(content.get(shape, page(labels)))
    if shape in ("zip", "json", "gz"):
        cut(path)
    report = build_from_files(home, openfda=[path, label_zip(tmp_path, [label("quellamab")])])
    assert opened(home).label("quellamab").records
    assert {note["file"] for note in report["problems"]} == {path.name}
    known = opened(home).generic_name("zorvatine0")
    assert known == ("zorvatine0" if shape in ("json", "member") else None)
    if shape == "member":
        assert opened(home).label("insidemab").records


def test_nothing_usable_leaves_the_old_snapshot_as_it_was(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label()])])
    before = (home / "snapshot.sqlite").read_bytes()
    bad = tmp_path / "bad.json"
    bad.write_text("[1, 2]")
    with pytest.raises(UsageError, match=r"Nothing usable was found\. bad\.json"):
        build_from_files(home, openfda=[bad])
    assert (home / "snapshot.sqlite").read_bytes() == before
    assert [path.name for path in home.glob("snapshot*")] == ["snapshot.sqlite"]


def test_files_of_another_kind_are_not_taken_for_labels(tmp_path, home):
    path = zipped(tmp_path / "ctg.zip", {"a.json": json.dumps(study()).encode()})
    with pytest.raises(UsageError):
        build_from_files(home, openfda=[path])


@pytest.mark.parametrize("given", [[], ["missing.zip"], ["folder"]])
def test_bad_input_is_one_line(tmp_path, home, given):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError) as caught:
        build_from_files(home, openfda=[tmp_path / name for name in given])
    assert caught.value.hint and "\n" not in caught.value.line()


def test_a_folder_is_read_and_a_file_given_twice_is_read_once(tmp_path, home):
    folder = tmp_path / "downloads"
    folder.mkdir()
    one = label_zip(folder, [label("zorvatine")])
    label_zip(folder, [label("quellamab")], part=2)
    seen: list[str] = []
    report = build_from_files(home, openfda=[folder, one], on_progress=seen.append)
    assert report["kinds"]["drugs"]["bulk_labels"] == 2 and len(seen) == 3


def test_the_oldest_date_that_the_files_state_is_the_date_of_the_kind(tmp_path, home):
    files = [label_zip(tmp_path, [label()], "2026-02-03"), label_zip(tmp_path, [label("quellamab")], "2025-11-30", 2)]
    build_from_files(home, openfda=files)
    assert opened(home).label("zorvatine").as_of == "2025-11-30"


@pytest.mark.parametrize(("date", "as_of"), [("20250301", "2025-03-01"), ("20991231", None), ("soon", None)])
def test_without_a_stated_date_the_newest_record_tells_and_the_future_does_not(tmp_path, home, date, as_of):
    build_from_files(home, openfda=[label_zip(tmp_path, [label(date=date)], None)])
    assert opened(home).label("zorvatine").as_of == as_of
    assert (info(home)["kinds"]["drugs"]["age_days"] is None) is (as_of is None)


def test_progress_names_every_file_and_counts_in_a_long_one(tmp_path, home, monkeypatch):
    monkeypatch.setattr(bulk, "STEP", 4)
    seen = []
    files = [label_zip(tmp_path, [label(f"zor{n}") for n in range(10)], part=part) for part in (1, 2)]
    build_from_files(home, openfda=files, on_progress=seen.append)
    first = "drug-label-0001-of-0013.json.zip"
    assert seen[:3] == [f"reading {first}, file 1 of 2", f"{first}: 4 records read", f"{first}: 8 records read"]
    assert seen[-1] == "merging what was read"


def test_two_builds_at_once_are_refused(tmp_path, home):
    path = label_zip(tmp_path, [label()])
    with bulk.only_build(home), pytest.raises(StoreError, match="Another build is running"):
        build_from_files(home, openfda=[path])
    build_from_files(home, openfda=[path])
    assert opened(home).label("zorvatine").records


def test_a_home_that_cannot_be_written_says_so(tmp_path, home):
    home.write_text("a file")
    with pytest.raises(StoreError, match="cannot be written"):
        build_from_files(home, openfda=[label_zip(tmp_path, [label()])])


def test_info_of_a_home_without_a_build_is_of_the_shipped_records(home):
    found = info(home)
    assert found["shipped"] and found["kinds"]["trials"]["demonstration"] == 6
    assert found["kinds"]["drugs"]["bulk_labels"] == 0 and found["kinds"]["drugs"]["age_days"] >= 0


def test_an_age_that_is_not_known_is_none():
    assert age_days(None) is age_days("") is age_days("soon") is None


def test_the_snapshot_holds_nothing_of_the_building(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label()])], literature=[
        pubmed_file(tmp_path / "a.xml", [pubmed()])])  # fmt: skip
    with closing(sqlite3.connect(home / "snapshot.sqlite")) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert not tables & {"staged", "staged_name", "old"}
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_later_article_with_the_same_id_takes_its_place(tmp_path, home):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps({"hitCount": 1, "resultList": {"result": [europepmc()]}}))
    second.write_text(json.dumps([europepmc(title="Asthma at sea")]))
    build_from_files(home, literature=[first, second])
    assert [article.title for article in opened(home).literature("asthma").records] == ["Asthma at sea"]
    assert opened(home).literature("altitude").records == []
