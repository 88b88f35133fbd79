"""The SQLite record store: search, charts, writes that happen once, and files that are not what they should be."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from benchmarks.ehr_search import main
from docgemma.ehr.base import Provenance
from docgemma.ehr.fhir import KEY_SYSTEM, THREAD_SYSTEM, problems_of
from docgemma.ehr.open import open_store, seed_resources
from docgemma.ehr.sqlite import SqliteStore
from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.settings import Settings


def patient(patient_id: str, given: str, family: str, **more) -> dict:
    name = {"given": given.split(), "family": family}
    return {"resourceType": "Patient", "id": patient_id, "name": [name], "gender": "female", **more}


def allergy(patient_id: str, substance: str = "penicillin") -> dict:
    subject = {"reference": f"Patient/{patient_id}"}
    return {"resourceType": "AllergyIntolerance", "patient": subject, "code": {"text": substance}}


def by(key: str) -> Provenance:
    return Provenance(actor="Dr. Lee", thread="thread-7", key=key)


@pytest.fixture(scope="module")
def seeded() -> Iterator[SqliteStore]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(f"{folder}/ehr.sqlite", seed_resources())) as store,
    ):
        yield store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    people = [patient("p1", "Ana", "Reyes"), patient("p2", "Ben", "Okoro")]
    with closing(SqliteStore(tmp_path / "ehr.sqlite", people)) as store:
        yield store


# search


@pytest.mark.parametrize(
    "typed",
    ["John Smith", "john smith", "SMITH, John", "Dr. John Smith", "  John  Smith ", "Smith John Jr.", "abc-123"],
)
def test_john_smith_is_exactly_one_patient(seeded: SqliteStore, typed: str) -> None:
    found = seeded.search_patients(typed)
    assert [(match.id, match.guessed) for match in found] == [("abc-123", False)]


def test_three_james_wilsons_are_three_patients(seeded: SqliteStore) -> None:
    found = seeded.search_patients("James Wilson")
    assert [match.birth_date for match in found] == ["1949-02-11", "1985-07-30", "2001-12-05"]
    assert not any(match.guessed for match in found)
    assert len({match.label for match in found}) == 3


@pytest.mark.parametrize(
    ("typed", "family", "guessed"),
    [
        ("maria garcia", "Garcia", False),
        ("María García", "Garcia", False),
        ("nguyen", "Nguyễn", False),
        ("Zoe Lefevre Dubois", "Lefèvre-Dubois", False),
        ("siobhan obrien", "O'Brien", False),
        ("D’Angelo", "D'Angelo", False),
        ("Thorsson", "Þórsson", False),
        ("Schaefer", "Schäfer", False),
        ("王小明", "Wang", False),
        ("Suparman", "Suparman", False),
        ("Allegra", "Allegra", False),
        ("Jhon Smith", "Smith", True),
        ("Jon Smith", "Smith", True),
        ("Maria Gracia", "Garcia", True),
        ("Dorothy Okafer", "Okafor", True),
        ("J. Smith", "Smith", True),
        ("Maria Gar", "Garcia", True),
        ("John Q. Smith", "Smith", True),
    ],
)
def test_spelling_is_forgiven_and_a_guess_is_called_one(seeded: SqliteStore, typed, family, guessed) -> None:
    (found,) = seeded.search_patients(typed)
    assert found.name.endswith(family)
    assert found.guessed is guessed


@pytest.mark.parametrize(
    "typed", ["", "   ", ".", "%", "_", "*", '"', "' OR 1=1 --", "\x00", "Xqzv", "Johnny Smithers", "Li", "x" * 100_000]
)
def test_nobody_of_that_name_is_an_empty_list(seeded: SqliteStore, typed: str) -> None:
    assert seeded.search_patients(typed) == []


def test_the_limit_holds(seeded: SqliteStore) -> None:
    assert len(seeded.search_patients("James Wilson", limit=2)) == 2


def test_a_patient_added_after_a_guess_can_be_guessed_too(store: SqliteStore) -> None:
    assert store.search_patients("Wintherbotom") == []
    store.save([patient("p3", "Cy", "Winterbottom")])
    assert [match.id for match in store.search_patients("Wintherbottom")] == ["p3"]


def test_a_renamed_patient_is_found_by_the_new_name_only(store: SqliteStore) -> None:
    store.save([patient("p1", "Ana", "Quintero")])
    assert store.search_patients("Reyes") == []
    assert [match.id for match in store.search_patients("Quintero")] == ["p1"]


def test_ids_are_matched_exactly(store: SqliteStore) -> None:
    assert store.patient("p1").name == "Ana Reyes"
    assert [store.patient(wrong) for wrong in ("P1", "p", "p1 ", "", "p1' --")] == [None] * 5


def test_the_search_benchmark_runs(capsys: pytest.CaptureFixture) -> None:
    main(["--patients", "300"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["full", "name", "40", "40", "0"] in [line[:5] for line in lines]  # all found, none guessed
    assert ["nobody", "40", "0", "0"] in [line[:4] for line in lines]


# charts


def test_the_chart_of_john_smith(seeded: SqliteStore) -> None:
    chart = seeded.chart("abc-123")
    assert [item["medicationCodeableConcept"]["text"] for item in chart.medications] == [
        "metformin", "atorvastatin", "lisinopril",
    ]  # fmt: skip
    egfr = [item for item in chart.labs if item["code"]["coding"][0]["code"] == "98979-8"]
    assert [item["effectiveDateTime"] for item in egfr] == ["2026-10-12", "2026-04-06", "2025-10-01"]
    assert egfr[0]["valueQuantity"]["value"] == 41
    assert egfr[0]["interpretation"][0]["coding"][0]["code"] == "L"
    assert chart.allergies and chart.notes and chart.vitals and chart.immunizations and chart.observations


def test_a_section_is_newest_first_and_a_day_keeps_its_order(store: SqliteStore) -> None:
    days = {"a": "2024-05", "b": "2025-01-02", "c": "2025-01-02", "d": None, "e": "2025-01-02T08:00:00Z"}
    entries = [allergy("p1") | {"id": name} | ({"recordedDate": day} if day else {}) for name, day in days.items()]
    store.save(entries)
    assert [item["id"] for item in store.chart("p1").allergies] == ["e", "b", "c", "a", "d"]


def test_an_unknown_patient_has_no_chart_and_a_new_one_an_empty_chart(store: SqliteStore) -> None:
    assert store.chart("nobody") is None
    chart = store.chart("p1")
    assert chart.patient.name == "Ana Reyes"
    assert chart.allergies == chart.medications == chart.labs == []


def test_entries_in_error_stay_out_of_the_chart(store: SqliteStore) -> None:
    wrong = allergy("p1") | {"id": "a1", "verificationStatus": {"coding": [{"code": "entered-in-error"}]}}
    note = {
        "resourceType": "DocumentReference", "id": "d1", "status": "entered-in-error",
        "subject": {"reference": "Patient/p1"}, "content": [{"attachment": {"title": "x"}}],
    }  # fmt: skip
    store.save([wrong, note])
    chart = store.chart("p1")
    assert chart.allergies == [] and chart.notes == []
    assert len(kept(store, "AllergyIntolerance")) == 1


def test_absolute_and_versioned_references_belong_to_the_patient(store: SqliteStore) -> None:
    far = allergy("p1") | {"id": "a1", "patient": {"reference": "https://example.org/fhir/Patient/p1/_history/3"}}
    store.save([far])
    assert len(store.chart("p1").allergies) == 1


def test_a_drug_ordered_by_reference_is_shown_by_name(store: SqliteStore) -> None:
    order = {
        "resourceType": "MedicationRequest", "id": "m1", "status": "active", "intent": "order",
        "subject": {"reference": "Patient/p1"}, "medicationReference": {"reference": "Medication/d1"},
    }  # fmt: skip
    store.save([{"resourceType": "Medication", "id": "d1", "code": {"text": "warfarin 5 mg tablet"}}, order])
    assert store.chart("p1").medications[0]["medicationReference"]["display"] == "warfarin 5 mg tablet"


# writing


def test_a_write_is_stored_with_version_key_and_author(store: SqliteStore) -> None:
    stored = store.create(allergy("p1"), by("k1"))
    assert stored["meta"]["versionId"] == "1" and stored["meta"]["lastUpdated"].endswith("Z")
    assert {"system": KEY_SYSTEM, "value": "k1"} in stored["identifier"]
    assert store.chart("p1").allergies == [stored] == kept(store, "AllergyIntolerance")
    (record,) = kept(store, "Provenance")
    plain = f"AllergyIntolerance/{stored['id']}"
    assert record["target"] == [{"reference": f"{plain}/_history/1"}, {"reference": plain}]
    assert record["agent"][0]["who"]["display"] == "Dr. Lee"
    assert record["entity"][0]["what"]["identifier"] == {"system": THREAD_SYSTEM, "value": "thread-7"}
    assert record["recorded"] == stored["meta"]["lastUpdated"]
    assert problems_of(record) == []


def test_the_same_key_writes_once_even_with_other_content(store: SqliteStore) -> None:
    first = store.create(allergy("p1", "penicillin"), by("k1"))
    assert store.create(allergy("p2", "latex"), by("k1")) == first
    assert (len(kept(store, "AllergyIntolerance")), len(kept(store, "Provenance"))) == (1, 1)


@pytest.mark.parametrize(
    ("resource", "error_type"),
    [
        (allergy("nobody"), ErrorType.NOT_FOUND),
        ({"resourceType": "AllergyIntolerance", "code": {"text": "x"}}, ErrorType.INVALID_ARGS),
        (allergy("p1") | {"colour": "red"}, ErrorType.INVALID_ARGS),
        (allergy("p1") | {"criticality": "enormous"}, ErrorType.INVALID_ARGS),
        (allergy("p1") | {"recordedDate": "yesterday"}, ErrorType.INVALID_ARGS),
        ({"resourceType": "Spell", "patient": {"reference": "Patient/p1"}}, ErrorType.INVALID_ARGS),
        ({"resourceType": "HumanName", "family": "x"}, ErrorType.INVALID_ARGS),
        ({"resourceType": "DomainResource"}, ErrorType.INVALID_ARGS),
        (allergy("p1") | {"identifier": "text"}, ErrorType.INVALID_ARGS),
        (allergy("p1") | {"identifier": {"value": "one"}}, ErrorType.INVALID_ARGS),
        ({"resourceType": "Basic", "code": {"text": "x"}}, ErrorType.NOT_FOUND),
        ({"patient": {"reference": "Patient/p1"}}, ErrorType.INVALID_ARGS),
        (None, ErrorType.INVALID_ARGS),
    ],
)
def test_what_is_not_valid_is_not_written(store: SqliteStore, resource, error_type) -> None:
    with pytest.raises(ToolError) as caught:
        store.create(resource, by("k1"))
    assert caught.value.error_type is error_type
    assert len(kept(store, "AllergyIntolerance")) == len(kept(store, "Provenance")) == 0


def test_a_refusal_names_the_element_and_not_its_content(store: SqliteStore) -> None:
    with pytest.raises(ToolError) as caught:
        store.create(allergy("p1") | {"recordedDate": "Ana Reyes was here"}, by("k1"))
    assert "recordedDate" in str(caught.value) and "Ana" not in str(caught.value)
    assert caught.value.details["missing_fields"] == ["recordedDate"]


def test_a_write_without_a_key_is_refused(store: SqliteStore) -> None:
    with pytest.raises(ToolError, match="key"):
        store.create(allergy("p1"), by(""))


def test_a_failure_inside_a_write_leaves_nothing_behind(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args):
        raise RuntimeError("power cut")

    monkeypatch.setattr(SqliteStore, "_sign", fail)
    with pytest.raises(RuntimeError):
        store.create(allergy("p1"), by("k1"))
    monkeypatch.undo()
    assert len(kept(store, "AllergyIntolerance")) == 0
    store.create(allergy("p1"), by("k1"))
    assert (len(kept(store, "AllergyIntolerance")), len(kept(store, "Provenance"))) == (1, 1)


def test_threads_share_a_store(store: SqliteStore) -> None:
    def work(number: int) -> None:
        for step in range(5):
            store.create(allergy("p1"), by(f"k{step}"))
            store.create(allergy("p2"), by(f"{number}-{step}"))
            assert store.search_patients("Ana Reyes")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert (len(store.chart("p1").allergies), len(store.chart("p2").allergies)) == (5, 20)


WRITER = """
import sys
from docgemma.ehr.base import Provenance
from docgemma.ehr.open import seed_resources
from docgemma.ehr.sqlite import SqliteStore
path, number = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
store = SqliteStore(path, seed_resources())
allergy = {"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/def-456"}, "code": {"text": "latex"}}
same = store.create(allergy, Provenance("a", "t", "one key"))
for step in range(5):
    store.create(allergy, Provenance("a", "t", f"{number} {step}"))
print(same["id"])
"""


def test_eight_processes_make_one_file_and_write_each_key_once(tmp_path: Path) -> None:
    """All begin at the same moment, on a file that does not exist yet."""
    path = tmp_path / "ehr.sqlite"
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*command, str(number)], **pipes) for number in range(8)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    ids = {process.communicate(timeout=120)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 8
    assert len(ids) == 1
    with closing(SqliteStore(path)) as store:
        assert len(kept(store, "Patient")) == 51
        assert len(store.chart("def-456").allergies) == 1 + 1 + 8 * 5  # recorded, the same key, the different keys
        assert len(kept(store, "Provenance")) == 1 + 8 * 5
        assert len(store.search_patients("James Wilson")) == 3


def test_a_process_killed_in_a_write_leaves_the_store_whole(tmp_path: Path) -> None:
    path = tmp_path / "ehr.sqlite"
    SqliteStore(path, [patient("p1", "Ana", "Reyes")]).close()
    dying = f"""
import os, signal
from docgemma.ehr.sqlite import SqliteStore
from docgemma.ehr.base import Provenance
SqliteStore._sign = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
SqliteStore({str(path)!r}).create({allergy("p1")!r}, Provenance("a", "t", "k1"))
"""
    assert subprocess.run([sys.executable, "-c", dying]).returncode == -9
    with closing(SqliteStore(path)) as store:
        assert store.chart("p1").allergies == []
        store.create(allergy("p1"), by("k1"))
        assert len(store.chart("p1").allergies) == 1


# files that are not what they should be


def line_of(action) -> str:
    with pytest.raises(StoreError) as caught:
        action()
    assert caught.value.hint and "\n" not in caught.value.line()
    return caught.value.line()


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    assert "does not exist" in line_of(lambda: SqliteStore(tmp_path / "nowhere" / "ehr.sqlite"))


def test_a_named_store_that_is_missing_is_not_an_empty_one(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, ehr=str(tmp_path / "clinic.sqlite"))
    assert "There is no record store" in line_of(lambda: open_store(settings))
    assert not (tmp_path / "clinic.sqlite").exists()
    open_store(settings, create=True).close()
    with closing(open_store(settings)) as store:
        assert store.search_patients("John Smith") == []  # a clinic's own store has no synthetic patients


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to be read as one" * 40])
def test_a_file_that_is_no_record_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ehr.sqlite"
    path.write_bytes(content)
    said = line_of(lambda: open_store(Settings(home=tmp_path, ehr=str(path))))
    assert "not a record store" in said or "not a database" in said
    assert path.read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photo (id)")
        connection.commit()
    assert "not a record store" in line_of(lambda: SqliteStore(path))


@pytest.mark.parametrize("version", [1, 2, 99])
def test_another_version_of_the_store_is_refused_and_left_as_it_is(tmp_path: Path, version: int) -> None:
    path = tmp_path / "ehr.sqlite"
    SqliteStore(path, [patient("p1", "Ana", "Reyes")]).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    assert "another version" in line_of(lambda: SqliteStore(path))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM resource").fetchone() == (1,)


def test_a_store_damaged_while_open_is_not_an_empty_chart(tmp_path: Path) -> None:
    path = tmp_path / "ehr.sqlite"
    SqliteStore(path, seed_resources()).close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\x55" * (len(damaged) - 4096)
    path.write_bytes(damaged)

    def read() -> None:
        with closing(SqliteStore(path)) as store:
            store.chart("abc-123")

    assert "malformed" in line_of(read)


def test_a_damaged_entry_is_an_error_and_not_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "ehr.sqlite"
    with closing(SqliteStore(path, seed_resources())) as store:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE resource SET body = substr(body, 1, 40) WHERE type = 'AllergyIntolerance'")
            connection.commit()
        assert "damaged" in line_of(lambda: store.chart("abc-123"))


def test_a_locked_store_says_so_and_may_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "ehr.sqlite"
    people = [patient("p1", "Ana", "Reyes")]
    with closing(SqliteStore(path, people, busy_timeout_s=0.05)) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError) as caught:
            store.create(allergy("p1"), by("k1"))
        assert caught.value.retryable and "locked" in str(caught.value)
        assert store.search_patients("Ana Reyes")  # reading goes on
        other.rollback()
        store.create(allergy("p1"), by("k1"))
        assert len(store.chart("p1").allergies) == 1


def test_a_closed_store_is_an_error(store: SqliteStore) -> None:
    store.close()
    store.close()
    line_of(lambda: store.chart("p1"))


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder that this user owns, where file permissions count (they do not for root)."""
    if not hasattr(os, "seteuid"):
        pytest.skip("file permissions are POSIX")
    with tempfile.TemporaryDirectory() as name:
        folder, is_root = Path(name), os.geteuid() == 0
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o700)


def test_a_read_only_store_is_an_error_when_written_and_never_an_empty_chart() -> None:
    with as_nobody() as folder:
        path = folder / "ehr.sqlite"
        SqliteStore(path, [patient("p1", "Ana", "Reyes")]).close()
        path.chmod(0o400)
        folder.chmod(0o500)
        try:
            store = SqliteStore(path)
        except StoreError as error:
            assert error.hint  # an older SQLite cannot read a WAL database without its side files
        else:
            with closing(store):
                assert store.chart("p1").patient.name == "Ana Reyes"
                assert "readonly" in line_of(lambda: store.create(allergy("p1"), by("k1")))


def test_a_store_that_may_not_be_read_says_so() -> None:
    with as_nobody() as folder:
        path = folder / "ehr.sqlite"
        SqliteStore(path).close()
        path.chmod(0o000)
        assert "unable to open" in line_of(lambda: SqliteStore(path))


def test_a_home_that_cannot_be_made_says_so() -> None:
    with as_nobody() as folder:
        folder.chmod(0o500)
        assert "cannot be made" in line_of(lambda: open_store(Settings(home=folder / "a" / "b")))


def test_the_home_store_is_seeded_once(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "a" / "b")
    with closing(open_store(settings)) as store:
        store.create(allergy("ghi-789", "latex gloves"), by("k1"))
        store.save([patient("abc-123", "John", "Smythe")])
    with closing(open_store(settings)) as store:
        assert store.patient("abc-123").name == "John Smythe"
        assert len(store.chart("ghi-789").allergies) == 3


def kept(store: SqliteStore, kind: str) -> list[dict]:
    """What the file holds of this type, asked without our code."""
    with closing(sqlite3.connect(store.path)) as connection:
        query = "SELECT body FROM resource WHERE type = ?"
        return [json.loads(body) for (body,) in connection.execute(query, (kind,))]
