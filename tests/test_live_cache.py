"""The cache of API answers: expiry, size, other processes, damage."""

import multiprocessing
import os
import sqlite3
import stat
import time
from datetime import UTC, datetime

import pytest

from docgemma.knowledge.http_cache import ResponseCache


@pytest.fixture
def cache(tmp_path):
    return ResponseCache(tmp_path / "deep" / "cache.sqlite", max_bytes=50_000)


def test_an_answer_comes_back_with_its_own_date(cache):
    cache.put("key", {"drug": "warfarin"}, 60)
    three_days_ago = time.time() - 3 * 86400
    cache._run("UPDATE responses SET fetched = ?", three_days_ago)
    found = cache.get("key")
    assert found.data == {"drug": "warfarin"}
    assert found.as_of == datetime.fromtimestamp(three_days_ago, UTC).date().isoformat()


def test_what_is_unknown_or_expired_is_a_miss(cache):
    cache.put("old", 1, -1)
    assert cache.get("old") is None
    assert cache.get("never") is None


def test_the_file_stays_bounded_and_the_oldest_go_first(cache):
    for number in range(40):
        cache.put(f"key{number}", os.urandom(4000).hex(), 60)
    kept = [number for number in range(40) if cache.get(f"key{number}")]
    assert kept == list(range(40 - len(kept), 40))
    assert 0 < len(kept) <= 12
    assert cache._run("SELECT total(size) FROM responses")[0][0] <= 50_000


def test_an_answer_larger_than_the_cache_is_not_kept(cache):
    cache.put("huge", os.urandom(60_000).hex(), 60)
    assert cache.get("huge") is None


def test_only_the_owner_can_read_it(cache):
    cache.put("key", 1, 60)
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"not a database, " * 500, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_corrupt_file_is_discarded_and_the_cache_goes_on(cache, damage):
    cache.put("key", 1, 60)
    for path in cache.path.parent.iterdir():
        path.unlink()
    cache.path.write_bytes(damage)
    assert cache.get("key") is None
    cache.put("key", 2, 60)
    assert cache.get("key").data == 2


def test_a_damaged_row_is_a_miss_and_is_written_again(cache):
    cache.put("key", 1, 60)
    cache._run("UPDATE responses SET body = ?", b"garbage")
    assert cache.get("key") is None
    cache.put("key", 2, 60)
    assert cache.get("key").data == 2


def test_a_locked_file_is_a_miss_and_is_not_thrown_away(cache):
    cache.put("key", 1, 60)
    with sqlite3.connect(cache.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        cache.put("second", 2, 60)
        other.execute("ROLLBACK")
    other.close()
    assert cache.get("key").data == 1
    assert cache.get("second") is None


def test_a_home_that_cannot_be_written_is_a_miss(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = ResponseCache(tmp_path / "file" / "cache.sqlite")
    cache.put("key", 1, 60)
    assert cache.get("key") is None


def _write(path, start):
    cache = ResponseCache(path)
    for number in range(start, start + 25):
        cache.put(f"key{number}", {"number": number}, 60)


def test_several_processes_may_write_at_once(tmp_path):
    path = tmp_path / "cache.sqlite"
    ResponseCache(path).put("first", 0, 60)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(path, start)) for start in (0, 25, 50)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    cache = ResponseCache(path)
    assert [cache.get(f"key{number}").data["number"] for number in range(75)] == list(range(75))
