"""How many threads a model gets, from what Linux would report."""

import pytest

from docgemma.llm import compute


@pytest.fixture(autouse=True)
def unset(monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture
def computer(monkeypatch, tmp_path):
    """A machine on paper: `cpus` logical processors, two a core where `threads_a_core` is 2."""

    def make(cpus: int, *, threads_a_core: int = 1, quota: str = "max 100000"):
        for cpu in range(cpus):
            folder = tmp_path / f"devices/system/cpu/cpu{cpu}/topology"
            folder.mkdir(parents=True)
            first = cpu - cpu % threads_a_core
            (folder / "thread_siblings_list").write_text(f"{first}-{first + threads_a_core - 1}\n")
        (tmp_path / "fs/cgroup").mkdir(parents=True)
        (tmp_path / "fs/cgroup/cpu.max").write_text(quota + "\n")
        monkeypatch.setattr(compute, "SYS", tmp_path)
        monkeypatch.setattr(compute.os, "sched_getaffinity", lambda _: set(range(cpus)), raising=False)

    return make


@pytest.mark.parametrize(
    ("cpus", "options", "threads"),
    [
        (1, {}, 1),
        (2, {}, 2),
        (8, {"threads_a_core": 2}, 4),
        (8, {"quota": "200000 100000"}, 2),
        (8, {"quota": "50000 100000"}, 1),
    ],
)
def test_threads_are_the_cores_that_this_process_may_use(computer, cpus, options, threads):
    computer(cpus, **options)
    assert compute.usable_cores() == threads


@pytest.mark.parametrize(("said", "threads"), [("1", 1), ("3,2", 3), ("64", 8), ("", 8)])
def test_the_environment_may_ask_for_fewer(computer, monkeypatch, said, threads):
    computer(8)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert compute.usable_cores() == threads


def test_a_system_that_reports_nothing_still_gets_its_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(compute, "SYS", tmp_path)
    monkeypatch.setattr(compute.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert compute.usable_cores() == 3


def test_this_machine_has_threads():
    assert compute.usable_cores() >= 1
