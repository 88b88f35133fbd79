"""The cache of API answers: expiry, size, other processes, damage."""

import multiprocessing
import os
import stat
import time
from datetime import UTC, datetime

import pytest

from docgemma.knowledge.http import ResponseCache


@pytest.fixture
def cache(tmp_path):
    return ResponseCache(tmp_path / "deep" / "cache", max_bytes=50_000)


def aged(cache, key, seconds):
    os.utime(cache.folder / key, times=(time.time() - seconds,) * 2)


def test_an_answer_comes_back_with_its_own_date(cache):
    cache.put("key", {"drug": "warfarin"})
    aged(cache, "key", 3 * 86400)
    found = cache.get("key", 4 * 86400)
    assert found.data == {"drug": "warfarin"}
    assert found.as_of == datetime.fromtimestamp(time.time() - 3 * 86400, UTC).date().isoformat()


def test_what_is_unknown_or_expired_is_a_miss(cache):
    cache.put("old", 1)
    aged(cache, "old", 61)
    assert cache.get("old", 60) is None
    assert cache.get("never", 60) is None


def test_the_folder_stays_bounded_and_the_oldest_go_first(cache):
    for number in range(40):
        cache.put(f"key{number}", os.urandom(4000).hex())
        aged(cache, f"key{number}", 40 - number)
    kept = [number for number in range(40) if cache.get(f"key{number}", 60)]
    assert kept == list(range(40 - len(kept), 40))
    assert 0 < len(kept) <= 12
    assert sum(file.stat().st_size for file in cache.folder.iterdir()) <= 50_000


def test_an_answer_larger_than_the_cache_is_not_kept(cache):
    cache.put("huge", os.urandom(60_000).hex())
    assert cache.get("huge", 60) is None


def test_only_the_owner_can_read_it(cache):
    cache.put("key", 1)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache.folder / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x1f\x8b\x08 cut"])
def test_a_damaged_answer_is_a_miss_and_is_written_again(cache, damage):
    cache.put("key", 1)
    (cache.folder / "key").write_bytes(damage)
    assert cache.get("key", 60) is None
    cache.put("key", 2)
    assert cache.get("key", 60).data == 2


def test_a_home_that_cannot_be_written_is_a_miss(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = ResponseCache(tmp_path / "file" / "cache")
    cache.put("key", 1)
    assert cache.get("key", 60) is None


def _write(folder, start):
    cache = ResponseCache(folder)
    for number in range(start, start + 25):
        cache.put(f"key{number}", {"number": number})


def test_several_processes_may_write_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(tmp_path, start)) for start in (0, 20, 40)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    cache = ResponseCache(tmp_path)
    assert [cache.get(f"key{number}", 60).data["number"] for number in range(65)] == list(range(65))
