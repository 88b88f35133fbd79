"""A build that is killed or stopped anywhere leaves the old snapshot as it was, and the same command builds it anew."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from docgemma.errors import StoppedError
from docgemma.knowledge import trials as registry
from docgemma.knowledge.snapshot import BUILT, Snapshot
from docgemma.paths import kit
from tests.bulk_samples import label, label_zip, pubmed, pubmed_file, small_data, study, zipped

bulk, bulk_labels = kit("knowledge", "bulk"), kit("knowledge", "bulk_labels")
build_from_files = bulk.build_from_files


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))


@pytest.fixture
def files(tmp_path) -> dict[str, list[Path]]:
    """Three label files with 30 labels, 30 studies in one zip, 30 articles."""
    labels = [label(f"zor{number % 7}mab", date=f"202501{number + 1:02}") for number in range(30)]
    studies = {f"{number}.json": json.dumps(study(number)).encode() for number in range(30)}
    return {
        "openfda": [label_zip(tmp_path, labels[part * 10 : part * 10 + 10], part=part) for part in range(3)],
        "ctgov": [zipped(tmp_path / "ctg.zip", studies)],
        "literature": [pubmed_file(tmp_path / "pubmed.xml.gz", [pubmed(number) for number in range(30)])],
    }


@pytest.fixture
def home(tmp_path) -> Path:
    """A home with an old snapshot."""
    build_from_files(tmp_path / "home", openfda=[label_zip(tmp_path, [label("quellamab")], part=9)])
    return tmp_path / "home"


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


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (bulk_labels, "stage"),
        (registry, "parse"),
        (bulk_labels, "add_labels"),
        (bulk, "_add_interactions"),
        (os, "replace"),
    ],
)
def test_a_build_killed_anywhere_leaves_the_old_snapshot_and_can_be_run_again(home, files, monkeypatch, owner, name):
    before = (home / BUILT).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, die)
        assert killed(lambda: build_from_files(home, **files))
    assert (home / BUILT).read_bytes() == before
    assert Snapshot(home / BUILT).label("quellamab").records and Snapshot(home / BUILT).trials("gout").records == []
    build_from_files(home, **files)
    assert len(Snapshot(home / BUILT).trials("gout", limit=99).records) == 30
    assert sorted(path.name for path in home.iterdir() if not path.name.startswith("knowledge-")) == [
        ".snapshot.lock",
        BUILT,
    ]


def test_a_stop_by_hand_is_one_line_and_leaves_nothing_behind(home, files):
    def stop(line):
        if "ctg.zip" in line:
            raise KeyboardInterrupt

    before = (home / BUILT).read_bytes()
    with pytest.raises(StoppedError, match="Stopped") as caught:
        build_from_files(home, **files, on_progress=stop)
    assert "stays as it is" in caught.value.line()
    assert (home / BUILT).read_bytes() == before and not list(home.glob(f".{BUILT}.*"))
    build_from_files(home, **files)
