"""A build that is killed with -9 anywhere goes on where it stopped, and ends as if it had not been killed."""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from docgemma.errors import StoppedError
from docgemma.knowledge import bulk, bulk_drugs, bulk_openfda, bulk_read
from docgemma.knowledge.bulk import build_from_files
from docgemma.knowledge.bulk_files import documents
from docgemma.knowledge.snapshot import Snapshot
from tests.bulk_samples import label, label_zip, pubmed, pubmed_file, small_data, study, zipped

TABLES = ("drug", "drug_name", "label_text", "interaction", "article", "article_text", "trial", "trial_text")


@pytest.fixture(autouse=True)
def setting(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))
    monkeypatch.setattr(bulk_read, "BATCH", 4)


@pytest.fixture
def files(tmp_path) -> dict[str, list[Path]]:
    """Three label files with 30 labels, 30 studies in one zip, 30 articles."""
    drugs = [f"zor{number % 7}mab" for number in range(30)]
    labels = [
        label(drug, date=f"202501{number + 1:02}", warnings=f"Number {number}.") for number, drug in enumerate(drugs)
    ]
    studies = {f"{number}.json": json.dumps(study(number)).encode() for number in range(30)}
    return {
        "openfda": [label_zip(tmp_path, labels[part * 10 : part * 10 + 10], part=part) for part in range(3)],
        "ctgov": [zipped(tmp_path / "ctg.zip", studies)],
        "literature": [pubmed_file(tmp_path / "pubmed.xml.gz", [pubmed(number) for number in range(30)])],
    }


def content(home: Path) -> dict[str, list]:
    """Every row, but for the time of the build and the numbers of rows."""
    with closing(sqlite3.connect(home / "snapshot.sqlite")) as connection:
        rows = {table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}"))) for table in TABLES}
        rows["meta"] = sorted(connection.execute("SELECT * FROM meta WHERE key <> 'built'"))
    return rows


def killed(work: Callable[[], object]) -> bool:
    """Whether the work ended by SIGKILL, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def die(*_args, **_kwargs) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DiesAt:
    """A function that kills its process at its nth call, before or after it has done its work."""

    def __init__(self, work: Callable, nth: int, after: bool = False):
        self.work, self.left, self.after = work, nth, after

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == 0 and not self.after:
            die()
        result = self.work(*args, **kwargs)
        if self.left == 0:
            die()
        return result


@pytest.fixture
def whole(tmp_path, files) -> dict[str, list]:
    build_from_files(tmp_path / "whole", **files)
    return content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("owner", "name", "nth", "after"),
    [
        *((bulk_read.Reading, "_store", nth, False) for nth in (1, 4, 5, 13, 29, 31, 45, 60, 61, 77, 90)),
        (bulk_read.Reading, "_store", 90, True),
        (bulk_read.Reading, "_commit", 1, True),
        (bulk_read.Reading, "_commit", 9, True),
        (bulk_drugs, "finish", 1, True),
        (bulk._Build, "_fill", 1, True),
        (bulk.os, "replace", 1, False),
        (bulk.os, "replace", 1, True),
    ],
)
def test_a_build_killed_anywhere_ends_as_if_it_had_not_been(
    tmp_path, files, whole, monkeypatch, owner, name, nth, after
):
    home, step = tmp_path / "home", DiesAt(getattr(owner, name), nth, after)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *args, **kwargs: step(*args, **kwargs))
        assert killed(lambda: build_from_files(home, **files))
    build_from_files(home, **files)
    assert content(home) == whole
    assert [path.name for path in home.glob("snapshot*")] == ["snapshot.sqlite"]


def test_a_build_killed_again_and_again_still_ends(tmp_path, files, whole, monkeypatch):
    home, times = tmp_path / "home", 0
    real = bulk_read.Reading._commit
    with monkeypatch.context() as patch:
        while True:
            step = DiesAt(real, 3, after=True)
            patch.setattr(bulk_read.Reading, "_commit", lambda *args, step=step, **kwargs: step(*args, **kwargs))
            if not killed(lambda: build_from_files(home, **files)):
                break
            times += 1
    assert times >= 5
    assert content(home) == whole


def test_what_was_stored_is_not_stored_again(tmp_path, files, monkeypatch):
    home, step = tmp_path / "home", DiesAt(bulk_openfda.Reader.add, 18)
    with monkeypatch.context() as patch:
        patch.setattr(bulk_openfda.Reader, "add", lambda *args: step(*args))
        assert killed(lambda: build_from_files(home, **files))
    seen, real = [], bulk_openfda.Reader.add
    monkeypatch.setattr(bulk_openfda.Reader, "add", lambda *args: seen.append(1) or real(*args))
    report = build_from_files(home, **files)
    assert report["resumed"]
    assert len(seen) == 30 - 14  # one file of ten and one batch of four are in; labels 15 to 17 are lost with theirs


def test_members_of_an_archive_that_are_done_are_not_opened_again(files):
    with files["ctgov"][0].open("rb") as raw:
        assert [document.name for document in documents(raw, "ctg.zip", first=28)] == ["28.json", "29.json"]


def test_the_old_snapshot_answers_until_the_new_one_is_whole(tmp_path, files, monkeypatch):
    home = tmp_path / "home"
    build_from_files(home, openfda=[label_zip(tmp_path, [label("quellamab")], part=9)])
    with monkeypatch.context() as patch:
        patch.setattr(bulk.os, "replace", die)
        assert killed(lambda: build_from_files(home, **files))
    assert Snapshot(home / "snapshot.sqlite").label("quellamab").records
    assert Snapshot(home / "snapshot.sqlite").trials("gout").records == []
    build_from_files(home, **files)
    assert len(Snapshot(home / "snapshot.sqlite").trials("gout", limit=99).records) == 30


def test_other_files_begin_another_build(tmp_path, files, monkeypatch):
    home = tmp_path / "home"
    with monkeypatch.context() as patch:
        patch.setattr(bulk._Build, "_fill", die)
        assert killed(lambda: build_from_files(home, **files))
    report = build_from_files(home, openfda=files["openfda"][:1])
    assert not report["resumed"]
    assert Snapshot(home / "snapshot.sqlite").literature("podagra").records == []


def test_a_file_that_changed_is_read_anew(tmp_path, files, monkeypatch):
    home = tmp_path / "home"
    with monkeypatch.context() as patch:
        patch.setattr(bulk._Build, "_fill", die)
        assert killed(lambda: build_from_files(home, **files))
    label_zip(tmp_path, [label("quellamab")], part=1)
    assert not build_from_files(home, **files)["resumed"]
    assert Snapshot(home / "snapshot.sqlite").label("quellamab").records


def test_a_stop_by_hand_says_how_to_go_on(tmp_path, files):
    home, seen = tmp_path / "home", []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(StoppedError, match="Stopped") as caught:
        build_from_files(home, **files, on_progress=stop)
    assert "goes on" in caught.value.line()
    assert build_from_files(home, **files)["resumed"]
