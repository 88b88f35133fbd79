"""The evidence ledger on real databases: what an attacker with the file does is found, and a crash harms nothing."""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from docgemma.cli.rcm_ledger import app
from docgemma.errors import StoreError, UsageError
from docgemma.paths import data_file
from docgemma.rcm.ledger import COLUMNS, START, Ledger, digest, open_ledger
from docgemma.rcm.ledger_stores import MysqlStore, PostgresStore, SqliteStore, fetch
from tests import ledger_writer
from tests.databases import postgres_server
from tests.fresh import ROOT
from tests.ledger_writer import row
from tests.mariadb import mariadb_server

TABLES = ("rcm_evidence_ledger_seal", "rcm_evidence_ledger")
OTHER = {  # a value that no row of `filled` has
    "id": 99, "patient_id": "p-2", "session_id": "other", "verbatim_quote": "Six weeks of physical therapy",
    "source_document": "other.pdf", "page_number": 9, "policy_id": "CMU-IMG-002", "confidence_score": 12.5,
    "auditor_result": "FAIL", "created_at": "2020-02-03 04:05:06.000007", "write_key": "other",
    "previous_hash": "f" * 64, "row_hash": "e" * 64,
}  # fmt: skip
NULLABLE = ("page_number", "policy_id", "confidence_score", "auditor_result", "write_key")


def filled(ledger: Ledger, rows: int = 5) -> Ledger:
    assert [ledger.write(row(number), f"k{number}") for number in range(rows)] == list(range(1, rows + 1))
    assert ledger.verify() == []
    return ledger


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mariadb_server(tmp_path_factory.mktemp("mariadb")) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database without rows; OpenEMR's tables are made by the migration, as its administrator does."""
    if request.param == "sqlite":
        return str(tmp_path / "memory.sqlite")
    address = request.getfixturevalue(request.param)
    store = MysqlStore(address) if request.param == "mariadb" else PostgresStore(address)
    migration = data_file("openemr", "rcm_evidence_ledger.sql").read_text("utf-8").split(";\n")
    with store.session([]) as connection:
        for table in TABLES:
            fetch(connection, f"DROP TABLE IF EXISTS {table}")
        for statement in filter(str.strip, migration if request.param == "mariadb" else []):
            fetch(connection, statement)
    return address


@pytest.fixture
def ledger(location: str) -> Ledger:
    return open_ledger(location)


@pytest.fixture
def sqlite_ledger(tmp_path: Path) -> Ledger:
    return open_ledger(str(tmp_path / "memory.sqlite"))


def attack(ledger: Ledger, *statements: str) -> None:
    """Change what is stored as one does who owns the database: without triggers, checks and foreign keys."""
    with ledger.store.session([]) as connection:
        for statement in (*disarmed(ledger, connection), *statements):
            fetch(connection, statement)


def disarmed(ledger: Ledger, connection: Any) -> list[str]:
    if isinstance(ledger.store, PostgresStore):
        return [f"DROP TRIGGER IF EXISTS append_only ON {table}" for table in TABLES]
    mysql = isinstance(ledger.store, MysqlStore)
    source = "information_schema.triggers" if mysql else "sqlite_master WHERE type = 'trigger'"
    names = fetch(connection, f"SELECT {'trigger_name' if mysql else 'name'} FROM {source}")
    drops = [f"DROP TRIGGER {name}" for (name,) in names if "evidence_ledger" in name]
    return ["SET foreign_key_checks = 0", *drops] if mysql else drops


def told(ledger: Ledger, number: Any) -> str:
    return "; ".join(what for row, what in ledger.verify() if row == number)


def everything(ledger: Ledger) -> list[dict[str, Any]]:
    with ledger.store.session(ledger.store.snapshot) as connection:
        found = fetch(connection, f"SELECT {', '.join(COLUMNS)} FROM rcm_evidence_ledger ORDER BY id")
    return [dict(zip(COLUMNS, values, strict=True)) for values in found]


def test_what_is_written_is_read_back_the_same(ledger: Ledger) -> None:
    filled(ledger)
    found = ledger.rows("s")
    assert [entry["id"] for entry in found] == [1, 2, 3, 4, 5] and ledger.rows("t") == []
    wanted = {**row(3), "confidence_score": 90.43, "write_key": "k3", "previous_hash": found[2]["row_hash"], "id": 4}
    entry = found[3]
    assert entry == {**wanted, "created_at": entry["created_at"], "row_hash": entry["row_hash"]}
    assert entry["created_at"][10] == "T" and entry["created_at"].endswith("Z")
    assert (
        abs(time.time() - time.mktime(time.strptime(entry["created_at"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone)
        < 99
    )


def test_the_hash_can_be_recomputed_by_hand(ledger: Ledger) -> None:
    """With the lines that data/rcm/ledger/README.md gives, without this package; the same on each database."""
    readme = data_file("rcm", "ledger", "README.md").read_text("utf-8").split("## What is found")[0]
    *lines, compared = [line.strip() for line in readme.splitlines() if line.startswith("    ")]
    filled(ledger)
    ledger.write({**row(1), "page_number": None, "confidence_score": 100})
    for entry in ledger.rows("s")[1::4]:
        names = {"row": entry, "json": json, "hashlib": hashlib, "Decimal": Decimal}
        exec("\n".join(lines), names)
        assert eval(compared, names), entry


def test_each_changed_column_is_found(ledger: Ledger) -> None:
    """One column at a time, put back each time, so that no fault stems from the change before."""
    before = {entry["id"]: entry for entry in everything(filled(ledger))}[3]
    for column in COLUMNS:
        for value in [OTHER[column], *([None] if column in NULLABLE else [])]:
            change(ledger, column, value, "id = 3")
            assert told(ledger, value if column == "id" else 3), f"{column} = {value} was not found"
            change(ledger, column, before[column], f"id = {value if column == 'id' else 3}")
            assert ledger.verify() == [], column


def test_the_smallest_changes_are_found(ledger: Ledger) -> None:
    before = everything(filled(ledger))[1]
    quote, score = before["verbatim_quote"], before["confidence_score"]
    for column, value in [
        ("verbatim_quote", quote.upper()), ("verbatim_quote", quote.rstrip()), ("verbatim_quote", quote + " "),
        ("verbatim_quote", quote.replace("ó", "o\u0301")), ("confidence_score", float(score) + 0.01),
        ("patient_id", "P-1"), ("policy_id", ""),
    ]:  # fmt: skip
        change(ledger, column, value, "id = 2")
        assert "changed after it was written" in told(ledger, 2), (column, value)
        change(ledger, column, before[column], "id = 2")
        assert ledger.verify() == []


def change(ledger: Ledger, column: str, value: Any, where: str) -> None:
    with ledger.store.session([]) as connection:
        for statement in disarmed(ledger, connection):
            fetch(connection, statement)
        statement = f"UPDATE rcm_evidence_ledger SET {column} = {ledger.store.mark} WHERE {where}"
        fetch(connection, statement, [value])


@pytest.mark.parametrize("gone", [1, 3, 5])
def test_a_removed_row_is_found(ledger: Ledger, gone: int) -> None:
    attack(filled(ledger), f"DELETE FROM rcm_evidence_ledger WHERE id = {gone}")
    assert "was written and is gone" in told(ledger, gone)
    if gone < 5:
        assert f"stands where row {gone} should" in told(ledger, gone + 1)


def test_a_tail_cut_off_with_its_seals_is_found(sqlite_ledger: Ledger) -> None:
    """By the heads beside the file; and without them by a head noted elsewhere."""
    filled(sqlite_ledger)
    noted = sqlite_ledger.check().head
    attack(sqlite_ledger, *(f"DELETE FROM {table} WHERE id > 3" for table in TABLES))
    assert [fault.row for fault in sqlite_ledger.verify()] == [4, 5]
    sqlite_ledger.store.heads.unlink()
    assert sqlite_ledger.verify() == []  # which is why a head is noted elsewhere
    assert [fault.row for fault in sqlite_ledger.verify(noted)] == [None]


def test_a_head_noted_elsewhere_finds_a_cut_tail_on_every_database(ledger: Ledger) -> None:
    noted = filled(ledger).check().head
    assert ledger.write(row(6)) == 6 and ledger.verify(noted) == []
    attack(ledger, *(f"DELETE FROM {table} WHERE id > 4" for table in TABLES))
    assert ledger.verify(noted)[-1] == (None, "the expected hash is of none of the rows")


def test_an_emptied_ledger_is_found(ledger: Ledger) -> None:
    filled(ledger)
    attack(ledger, "DELETE FROM rcm_evidence_ledger")
    assert [fault.row for fault in ledger.verify()] == [1, 2, 3, 4, 5]


def test_an_inserted_row_is_found(ledger: Ledger) -> None:
    """At the end with a right hash, and before the first: neither was sealed."""
    last = everything(filled(ledger))[-1]
    forged = {**last, "id": 6, "previous_hash": last["row_hash"], "write_key": None, "patient_id": "p-2"}
    forged["row_hash"] = digest(forged)
    insert(ledger, forged)
    assert told(ledger, 6) == "is not the row that was sealed"
    insert(ledger, {**forged, "id": 0, "previous_hash": START[:-1] + "1", "row_hash": "a" * 64})
    assert "stands where row 1 should" in told(ledger, 0)


def insert(ledger: Ledger, entry: dict[str, Any]) -> None:
    with ledger.store.session([]) as connection:
        marks = ", ".join([ledger.store.mark] * len(COLUMNS))
        fetch(connection, f"INSERT INTO rcm_evidence_ledger VALUES ({marks})", list(entry.values()))


def test_swapped_rows_are_found(ledger: Ledger) -> None:
    filled(ledger)
    attack(
        ledger,
        *(f"UPDATE rcm_evidence_ledger SET id = {new} WHERE id = {old}" for old, new in [(2, 77), (4, 2), (77, 4)]),
    )
    assert {fault.row for fault in ledger.verify()} >= {2, 4}


def test_swapped_quotes_are_found(ledger: Ledger) -> None:
    one, _, other, *_ = everything(filled(ledger))
    change(ledger, "verbatim_quote", other["verbatim_quote"], "id = 1")
    change(ledger, "verbatim_quote", one["verbatim_quote"], "id = 3")
    assert {fault.row for fault in ledger.verify()} == {1, 3}


def test_a_chain_that_was_made_anew_is_found(ledger: Ledger) -> None:
    """Every hash after the changed row is right again; the seals are not."""
    rechain(filled(ledger), seals=False)
    assert {fault.row for fault in ledger.verify()} == {3, 4, 5}
    assert "was changed" not in " ".join(fault.what for fault in ledger.verify())


def test_a_chain_made_anew_with_its_seals_is_found_by_what_is_kept_elsewhere(ledger: Ledger) -> None:
    noted = filled(ledger).check().head
    rechain(ledger, seals=True)
    if isinstance(ledger.store, SqliteStore):
        assert {fault.row for fault in ledger.verify()} == {3, 4, 5}
        ledger.store.heads.unlink()
    assert ledger.verify() == []
    assert [fault.row for fault in ledger.verify(noted)] == [None]


def test_one_row_made_anew_with_its_seal_is_found_by_the_row_after_it(ledger: Ledger) -> None:
    entry = {**everything(filled(ledger))[2], "verbatim_quote": "Six weeks of physical therapy"}
    for column, value in (("verbatim_quote", entry["verbatim_quote"]), ("row_hash", digest(entry))):
        change(ledger, column, value, "id = 3")
    attack(ledger, f"UPDATE {TABLES[0]} SET row_hash = '{digest(entry)}' WHERE id = 3")
    if isinstance(ledger.store, SqliteStore):
        ledger.store.heads.unlink()
    assert ledger.verify() == [(4, "does not follow from the row before it")]


def rechain(ledger: Ledger, seals: bool) -> None:
    rows = everything(ledger)
    rows[2]["verbatim_quote"] = "Six weeks of physical therapy"
    change(ledger, "verbatim_quote", rows[2]["verbatim_quote"], "id = 3")
    for before, entry in pairwise(rows[1:]):
        entry["previous_hash"] = before["row_hash"]
        entry["row_hash"] = digest(entry)
        for column in ("previous_hash", "row_hash"):
            change(ledger, column, entry[column], f"id = {entry['id']}")
        if seals:
            attack(ledger, f"UPDATE {TABLES[0]} SET row_hash = '{entry['row_hash']}' WHERE id = {entry['id']}")


def test_nothing_is_written_after_a_changed_end(ledger: Ledger) -> None:
    attack(filled(ledger), "DELETE FROM rcm_evidence_ledger WHERE id = 5")
    with pytest.raises(StoreError, match="end of the ledger"):
        ledger.write(row(7))
    assert len(everything(ledger)) == 4


def test_damaged_text_and_rows_without_an_id_are_faults_not_crashes(sqlite_ledger: Ledger) -> None:
    """A table made anew without its key, a blob, and bytes that are no text."""
    moved = "ALTER TABLE c RENAME TO rcm_evidence_ledger"
    copied = "CREATE TABLE c AS SELECT * FROM rcm_evidence_ledger"
    attack(filled(sqlite_ledger), copied, "DROP TABLE rcm_evidence_ledger", moved)
    assert sqlite_ledger.verify() == []
    forged = "NULL, 'p-2', session_id, 'q', 'd', 1, '', 9, 'PASS', created_at, NULL, 'x', 'y'"
    attack(sqlite_ledger, f"INSERT INTO rcm_evidence_ledger SELECT {forged} FROM rcm_evidence_ledger WHERE id = 1")
    assert "changed after" in told(sqlite_ledger, None)
    attack(sqlite_ledger, "UPDATE rcm_evidence_ledger SET patient_id = X'702d31' WHERE id = 2")
    attack(sqlite_ledger, "UPDATE rcm_evidence_ledger SET patient_id = CAST(X'ff' AS TEXT) WHERE id = 4")
    assert "changed after" in told(sqlite_ledger, 2) and "changed after" in told(sqlite_ledger, 4)


@pytest.mark.parametrize("table", TABLES)
def test_the_database_refuses_to_change_or_remove_a_row(ledger: Ledger, table: str) -> None:
    filled(ledger)
    statements = [
        f"UPDATE {table} SET row_hash = 'x'", f"UPDATE {table} SET id = id + 9 WHERE id = 5", f"DELETE FROM {table}",
        f"DELETE FROM {table} WHERE id = 5",
    ]  # fmt: skip
    if isinstance(ledger.store, SqliteStore):
        statements += [f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} WHERE id = 2"]
        statements += [
            f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 2 ON CONFLICT DO UPDATE SET row_hash = 'x'"
        ]
    elif isinstance(ledger.store, MysqlStore):
        statements += [f"REPLACE INTO {table} SELECT * FROM {table} WHERE id = 2"]
        statements += [f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 2 ON DUPLICATE KEY UPDATE row_hash = 'x'"]
        statements += [f"TRUNCATE {table}"] if table == "rcm_evidence_ledger" else []  # the seals' is by permission
    else:
        statements += [f"TRUNCATE {table}", f"SET session_replication_role = replica; DELETE FROM {table}"]
    for statement in statements:
        with pytest.raises(StoreError) as refused, ledger.store.session([]) as connection:
            fetch(connection, statement)
        why = str(refused.value.__cause__)
        assert "append-only" in why or ("TRUNCATE" in statement and "foreign key" in why), statement
    assert ledger.verify() == [] and len(everything(ledger)) == 5


def test_sqlite_replaces_no_row_that_shares_only_its_key(sqlite_ledger: Ledger) -> None:
    filled(sqlite_ledger)
    entry = {
        **everything(sqlite_ledger)[4],
        "id": 6,
        "write_key": "k1",
        "previous_hash": "a" * 64,
        "row_hash": "b" * 64,
    }
    with pytest.raises(StoreError, match="append-only"), sqlite_ledger.store.session([]) as connection:
        marks = ", ".join("?" * len(COLUMNS))
        fetch(connection, f"INSERT OR REPLACE INTO rcm_evidence_ledger VALUES ({marks})", list(entry.values()))


def test_the_writers_role_of_postgres_may_only_read_and_append(postgres: str) -> None:
    owner = PostgresStore(postgres)
    with owner.session([]) as connection:
        for statement in [
            f"DROP TABLE IF EXISTS {', '.join(TABLES)}",
            "DROP ROLE IF EXISTS scribe",
            "CREATE ROLE scribe LOGIN",
        ]:
            fetch(connection, statement)
    ledger = Ledger(owner)
    with owner.session([]) as connection:
        fetch(connection, "SELECT rcm_evidence_ledger_writer('scribe')")
    scribe = filled(open_ledger(postgres.replace("docgemma@", "scribe@")))
    attack(ledger)  # even with the triggers gone
    for table in TABLES:
        for statement in (
            f"UPDATE {table} SET id = 9",
            f"DELETE FROM {table}",
            f"TRUNCATE {table}",
            f"DROP TABLE {table}",
        ):
            with pytest.raises(StoreError, match="InsufficientPrivilege"), scribe.store.session([]) as connection:
                fetch(connection, statement)
    assert ledger.verify() == []


def test_the_writers_account_of_mariadb_may_only_read_and_append(mariadb: str, request: pytest.FixtureRequest) -> None:
    """The grants that data/openemr/README.md tells the administrator to give."""
    readme = data_file("openemr", "README.md").read_text("utf-8")
    grants = [line.strip(" ;") for line in readme.splitlines() if line.strip().startswith(("CREATE USER", "GRANT"))]
    migration = data_file("openemr", "rcm_evidence_ledger.sql").read_text("utf-8").split(";\n")
    with MysqlStore(mariadb).session([]) as connection:
        drops = [f"DROP TABLE IF EXISTS {table}" for table in TABLES]
        for statement in filter(str.strip, [*drops, *migration, "DROP USER IF EXISTS 'docgemma'@'localhost'", *grants]):
            fetch(connection, statement)
    ledger = open_ledger(mariadb)
    account = mariadb.replace("root@", "docgemma:choose%20one@")
    scribe = filled(open_ledger(account))
    attack(ledger)
    for table in TABLES:
        for statement in (
            f"UPDATE {table} SET id = 9",
            f"DELETE FROM {table}",
            f"TRUNCATE {table}",
            f"DROP TABLE {table}",
        ):
            with pytest.raises(StoreError) as refused, scribe.store.session([]) as connection:
                fetch(connection, statement)
            assert "denied" in str(refused.value.__cause__)
    assert ledger.verify() == [] and "choose" not in str(refused.value)


def test_the_migration_goes_through_the_mysql_client_twice(mariadb: str) -> None:
    """As the README says it; the second time it changes nothing."""
    port = mariadb.split(":")[2].split("/")[0]
    client = ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", port, "-u", "root", "openemr"]
    script = data_file("openemr", "rcm_evidence_ledger.sql").read_bytes()
    for _ in range(2):
        subprocess.run(client, input=script, check=True, capture_output=True)
    assert open_ledger(mariadb).verify() == []


def writer(location: str, name: str, count: int, death: int = 0, **more: Any) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.ledger_writer", location, name, str(count), str(death)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_eight_writers_at_once_make_one_chain(location: str) -> None:
    writers = [writer(location, f"w{number}", 25) for number in range(8)]
    said = [process.communicate(timeout=120) for process in writers]
    assert [process.returncode for process in writers] == [0] * 8, said
    ids = [int(line) for out, _ in said for line in out.split()]
    assert sorted(ids) == list(range(1, 201))
    ledger = open_ledger(location, create=False)
    assert ledger.check()[::2] == (200, [])
    for number, (out, _) in enumerate(said):  # and each got back the ids of its own rows
        assert [entry["id"] for entry in ledger.rows(f"w{number}")] == [int(line) for line in out.split()]


@pytest.mark.parametrize("death", [1, 2, 3, 4, 5, 8, 10, -1])
def test_a_writer_killed_at_any_statement_goes_on_where_it_was(location: str, death: int) -> None:
    """-1: after the row is committed, before its head is kept beside the file."""
    child = os.fork()
    if child == 0:
        ledger_writer.main(location, "w", 3, death)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    ledger = open_ledger(location)
    assert ledger.verify() == []
    assert [ledger.write(row(number, "w"), f"w-{number}") for number in range(3)] == [1, 2, 3]
    assert ledger.check()[::2] == (3, [])


def test_a_busy_writer_killed_at_random_times_loses_nothing_that_it_told(tmp_path: Path) -> None:
    location, rng, known = str(tmp_path / "memory.sqlite"), random.Random(15), 0
    for _ in range(6):
        busy = writer(location, "w", 1000)
        assert busy.stdout
        told = [busy.stdout.readline() for _ in range(known + rng.randrange(1, 6))]
        time.sleep(rng.random() / 30)
        busy.kill()
        rest, _ = busy.communicate()
        lines = "".join(told).split() + rest.split()
        assert lines == [str(number + 1) for number in range(len(lines))]
        ledger = open_ledger(location)
        assert ledger.verify() == [] and len(everything(ledger)) in (len(lines), len(lines) + 1)
        known = len(lines)


def test_the_same_key_writes_once(ledger: Ledger) -> None:
    filled(ledger)
    assert ledger.write(row(2), "k2") == 3 and len(everything(ledger)) == 5
    with pytest.raises(UsageError, match="row 3"):
        ledger.write(row(4), "k2")
    assert ledger.write(row(2), "K2") == 6  # keys are told apart by case
    assert ledger.write(row(2)) == 7 and ledger.write(row(2)) == 8  # without a key each is a row
    assert ledger.verify() == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("verbatim_quote", ""), ("verbatim_quote", " \n"), ("verbatim_quote", "x" * 16_001), ("verbatim_quote", "a\0b"),
        ("verbatim_quote", "\ud800"), ("patient_id", ""), ("session_id", "s" * 129), ("source_document", "d" * 256),
        ("page_number", 0), ("page_number", 4.5), ("page_number", 2**31), ("confidence_score", -0.1),
        ("confidence_score", 100.01), ("confidence_score", float("nan")), ("auditor_result", "PASSED"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_right_is_refused_without_its_text(sqlite_ledger: Ledger, column: str, value: Any) -> None:
    with pytest.raises(UsageError) as refused:
        sqlite_ledger.write({**row(1), column: value})
    assert column in str(refused.value) and "xxx" not in str(refused.value) and "PASSED" not in str(refused.value)
    assert everything(sqlite_ledger) == []


def test_the_longest_values_and_missing_ones_are_kept(ledger: Ledger) -> None:
    long = {"verbatim_quote": "\U0001f9b5" * 16_000, "patient_id": "ż" * 64, "session_id": "s" * 128}
    ledger.write({**row(1), **long, "source_document": "d" * 255, "page_number": None, "policy_id": ""}, "k" * 255)
    ledger.write({**row(1), "confidence_score": 100, "auditor_result": "ESCALATED"})
    ledger.write({**row(1), "confidence_score": 0})
    assert ledger.verify() == [] and [entry["confidence_score"] for entry in ledger.rows("s")] == [100.0, 0.0]
    found = ledger.rows("s" * 128)[0]
    assert found["page_number"] is None and found["verbatim_quote"] == long["verbatim_quote"]


def test_only_its_owner_can_read_the_files(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        filled(open_ledger(str(tmp_path / "new" / "memory.sqlite")))
    finally:
        os.umask(old)
    files = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in files] == ["ledger.heads", "ledger.sqlite"]
    assert [oct(path.stat().st_mode & 0o777) for path in (*files, tmp_path / "new")] == ["0o600", "0o600", "0o700"]


def test_a_read_only_file_is_checked_and_refuses_a_row_in_one_line(sqlite_ledger: Ledger, tmp_path: Path) -> None:
    path = filled(sqlite_ledger).store.path
    path.chmod(0o400)
    code = """
import sys
from docgemma.errors import StoreError
from docgemma.rcm.ledger import open_ledger
from tests.ledger_writer import row
book = open_ledger(sys.argv[1])
assert book.check()[::2] == (5, [])
try:
    book.write(row(6))
except StoreError as error:
    print(error.line())
"""
    mortal = []
    if os.geteuid() == 0:  # root may write to any file, unless that is taken from it
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv, or a user who is not root")
        mortal = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    command = [*mortal, sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "readonly" in done.stdout and len(done.stdout.splitlines()) == 1, done.stderr
    assert sqlite_ledger.check()[::2] == (5, [])


def test_a_full_disk_leaves_nothing_half_written(sqlite_ledger: Ledger) -> None:
    """The size that a file may have is limited for a while: SQLite's writes then fail as they do on a full disk."""
    path = filled(sqlite_ledger).store.path
    long = {**row(9), "verbatim_quote": "x" * 16_000}
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10_000, hard))
    try:
        with pytest.raises(StoreError, match="cannot be used") as full:
            sqlite_ledger.write(long, "long")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, heard)
    assert "xxx" not in full.value.line() and not full.value.retryable
    assert sqlite_ledger.check()[::2] == (5, [])
    assert sqlite_ledger.write(long, "long") == 6 and sqlite_ledger.check()[::2] == (6, [])


def test_a_head_that_cannot_be_kept_is_said_and_the_row_stands(
    sqlite_ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    sqlite_ledger.store.heads.mkdir()
    assert sqlite_ledger.write(row(1)) == 1
    assert "could not be kept" in caplog.text and "knee" not in caplog.text
    sqlite_ledger.store.heads.rmdir()
    assert sqlite_ledger.write(row(2)) == 2 and sqlite_ledger.verify() == []


def test_a_head_cut_off_by_a_full_disk_accuses_no_row(sqlite_ledger: Ledger) -> None:
    with filled(sqlite_ledger).store.heads.open("a") as file:
        file.write("\n6 00ff")
    assert sqlite_ledger.verify() == []
    assert sqlite_ledger.write(row(6)) == 6 and sqlite_ledger.verify() == []
    attack(sqlite_ledger, *(f"DELETE FROM {table} WHERE id = 6" for table in TABLES))
    assert [fault.row for fault in sqlite_ledger.verify()] == [6]  # the line after it counts


def test_a_file_that_another_program_holds_can_be_tried_again(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docgemma.rcm.ledger_stores.WAIT_S", 0.1)
    with sqlite_ledger.store.session(["BEGIN EXCLUSIVE"]), pytest.raises(StoreError, match="locked") as held:
        sqlite_ledger.write(row(1))
    assert held.value.retryable and sqlite_ledger.write(row(1)) == 1


def test_what_is_no_ledger_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"this is no database, but a text of more than a hundred bytes " * 9)
    with pytest.raises(StoreError, match="not a database"):
        open_ledger(str(tmp_path / "memory.sqlite"))
    with pytest.raises(StoreError, match="There is no ledger"):
        open_ledger(str(tmp_path / "elsewhere" / "memory.sqlite"), create=False)
    assert not (tmp_path / "elsewhere").exists()
    for address in ("postgresql://me:hunter2@127.0.0.1:1/db", "mysql://me:hunter2@127.0.0.1:1/db"):
        with pytest.raises(StoreError, match="cannot be used") as refused:
            open_ledger(address)
        assert "hunter2" not in refused.value.line() and refused.value.retryable


def test_a_lost_ledger_is_found_when_a_new_one_was_begun(tmp_path: Path) -> None:
    filled(open_ledger(str(tmp_path / "memory.sqlite")))
    (tmp_path / "ledger.sqlite").unlink()
    ledger = open_ledger(str(tmp_path / "memory.sqlite"))
    assert [fault.row for fault in ledger.verify()] == [1, 2, 3, 4, 5]


def test_the_command_line_checks_and_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCGEMMA_HOME", str(tmp_path))
    run = CliRunner().invoke
    assert isinstance(run(app, ["verify"]).exception, StoreError) and not (tmp_path / "ledger.sqlite").exists()
    ledger = filled(open_ledger(str(tmp_path / "memory.sqlite")))
    head = ledger.check().head
    for words in (
        ["verify"],
        ["verify", "--expect", head.upper()],
        ["verify", "--at", str(tmp_path / "ledger.sqlite")],
    ):
        done = run(app, words)
        assert (done.exit_code, done.stdout) == (0, f"5 rows, chain unbroken, head {head}\n")
    assert json.loads(run(app, ["verify", "--json"]).stdout) == {"ok": True, "rows": 5, "head": head, "faults": []}
    assert [entry["id"] for entry in json.loads(run(app, ["show", "s", "--json"]).stdout)["rows"]] == [1, 2, 3, 4, 5]
    assert "(note.pdf, page 3)" in run(app, ["show", "s"]).stdout and "No row" in run(app, ["show", "t"]).stdout
    wrong = run(app, ["verify", "--expect", "0" * 63 + "1"])
    assert wrong.exit_code == 1 and "expected hash" in wrong.stderr
    change(ledger, "verbatim_quote", "Six weeks of physical therapy", "id = 2")
    done = run(app, ["verify"])
    assert done.exit_code == 1 and "row 2: was changed after it was written" in done.stderr and not done.stdout
    broken = run(app, ["verify", "--json"])
    assert broken.exit_code == 1 and [fault["row"] for fault in json.loads(broken.stdout)["faults"]] == [2]


def test_the_file_is_plain_sqlite_with_the_columns_of_the_contract(sqlite_ledger: Ledger) -> None:
    with closing(sqlite3.connect(filled(sqlite_ledger).store.path)) as connection:
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(rcm_evidence_ledger)")]
    spec = (
        "id patient_id session_id verbatim_quote source_document page_number policy_id confidence_score auditor_result"
    )
    assert columns == [*spec.split(), "created_at", "write_key", "previous_hash", "row_hash"]
