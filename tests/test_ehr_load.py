"""Loading FHIR files, and charts as plain JSON."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from docgemma.cli.terminal import Terminal
from docgemma.ehr.load import load_files
from docgemma.ehr.open import seed_resources
from docgemma.ehr.remote import RemoteStore
from docgemma.ehr.sqlite import SqliteStore
from docgemma.ehr.summary import print_chart, summarize
from docgemma.errors import StoreError, UsageError

FIXTURES = Path(__file__).resolve().parents[2] / "shared" / "fixtures" / "fhir"
recorded = pytest.mark.skipif(not FIXTURES.is_dir(), reason="the recorded responses are not here")

PATIENT = {"resourceType": "Patient", "id": "p1", "name": [{"given": ["Ana"], "family": "Reyes"}]}
ALLERGY = {
    "resourceType": "AllergyIntolerance",
    "id": "a1",
    "patient": {"reference": "Patient/p1"},
    "code": {"text": "latex"},
}
BAD = {"resourceType": "AllergyIntolerance", "id": "a2", "code": {"text": "Ana Reyes"}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ehr.sqlite")) as store:
        yield store


def written(path: Path, content) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def ndjson(*resources: dict) -> str:
    return "\n".join(json.dumps(item) for item in resources)


def bundle(*resources: dict, kind: str = "collection") -> dict:
    return {"resourceType": "Bundle", "type": kind, "entry": [{"resource": item} for item in resources]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.json", json.dumps(bundle(PATIENT, ALLERGY))),
        ("b.ndjson", ndjson(PATIENT, ALLERGY)),
        ("b.jsonl", "\n" + ndjson(PATIENT, ALLERGY) + "\n\n"),
        ("list.json", json.dumps([PATIENT, ALLERGY])),
        ("bom.json", "\ufeff" + json.dumps(bundle(PATIENT, ALLERGY))),
    ],
)
def test_every_kind_of_file_is_loaded(store: SqliteStore, tmp_path: Path, name: str, content: str) -> None:
    report = load_files(store, [written(tmp_path / name, content)])
    assert (report.loaded, report.changed, report.skipped) == (2, 2, [])
    assert len(store.chart("p1").allergies) == 1


def test_one_bad_resource_does_not_lose_the_others(store: SqliteStore, tmp_path: Path) -> None:
    lines = [
        json.dumps(PATIENT),
        "{broken",
        json.dumps(BAD),
        '"text"',
        '{"resourceType": "Patient", "id": "a b"}',
        json.dumps(ALLERGY),
    ]
    report = load_files(store, [written(tmp_path / "x.ndjson", "\n".join(lines))])
    assert report.loaded == 2
    assert report.skipped == [
        "x.ndjson line 2: cannot be read (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))",
        "x.ndjson line 3: AllergyIntolerance: patient: missing",
        "x.ndjson line 4: not a FHIR resource",
        "x.ndjson line 5: Patient: its id is not a FHIR id",
    ]
    assert "Ana" not in str(report)


def test_one_bad_file_does_not_lose_the_others(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00PK")
    deep = written(tmp_path / "deep.json", "[" * 200_000)
    nan = written(tmp_path / "nan.json", '{"resourceType": "Observation", "valueInteger": NaN}')
    good = written(tmp_path / "good.json", PATIENT)
    paths = [tmp_path / "binary.json", tmp_path / "none.json", tmp_path, deep, nan, good]
    report = load_files(store, paths)
    assert report.loaded == 1 and len(report.skipped) == 5
    said = ["can't decode", "No such file", "Is a directory", "recursion", "Observation"]
    assert all(part in line for part, line in zip(said, report.skipped, strict=True)), report.skipped


def test_a_number_that_json_does_not_have_is_not_stored(store: SqliteStore, tmp_path: Path) -> None:
    result = {"resourceType": "Observation", "status": "final", "code": {"text": "x"}}
    result |= {"valueQuantity": {"value": float("nan")}}
    assert load_files(store, [written(tmp_path / "nan.json", result)]).loaded == 0


def test_a_transaction_bundle_keeps_its_references(store: SqliteStore, tmp_path: Path) -> None:
    person, entry = {k: v for k, v in PATIENT.items() if k != "id"}, {k: v for k, v in ALLERGY.items() if k != "id"}
    entry["patient"] = {"reference": "urn:uuid:8d1f0c9e-61a3-4f43-a3ff-0a45f2a8e5d1"}
    content = bundle(person, entry, kind="transaction")
    content["entry"][0]["fullUrl"] = "urn:uuid:8d1f0c9e-61a3-4f43-a3ff-0a45f2a8e5d1"
    report = load_files(store, [written(tmp_path / "t.json", content)])
    assert (report.loaded, report.skipped) == (2, [])
    assert len(store.chart("8d1f0c9e-61a3-4f43-a3ff-0a45f2a8e5d1").allergies) == 1


def test_loading_again_changes_nothing_and_a_correction_makes_a_version(store: SqliteStore, tmp_path: Path) -> None:
    without_id = {key: value for key, value in ALLERGY.items() if key != "id"}
    path = written(tmp_path / "b.json", bundle(PATIENT, ALLERGY, without_id))
    assert load_files(store, [path]).changed == 3
    again = load_files(store, [path])
    assert (again.loaded, again.changed) == (3, 0)
    written(path, bundle(PATIENT, ALLERGY | {"code": {"text": "natural latex"}}))
    assert load_files(store, [path]).changed == 1
    (corrected,) = [item for item in store.chart("p1").allergies if item["id"] == "a1"]
    assert (corrected["code"]["text"], corrected["meta"]["versionId"]) == ("natural latex", "2")


def test_entries_may_be_loaded_before_their_patient(store: SqliteStore, tmp_path: Path) -> None:
    assert load_files(store, [written(tmp_path / "a.json", ALLERGY)]).loaded == 1
    assert store.chart("p1") is None
    load_files(store, [written(tmp_path / "p.json", PATIENT)])
    assert len(store.chart("p1").allergies) == 1


def test_a_servers_error_message_is_not_a_record(store: SqliteStore, tmp_path: Path) -> None:
    outcome = {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "code": "exception"}]}
    report = load_files(store, [written(tmp_path / "o.json", bundle(outcome, bundle()))])
    assert report.loaded == 0 and len(report.skipped) == 2


def test_progress_is_told(store: SqliteStore, tmp_path: Path) -> None:
    many = [PATIENT | {"id": f"p{number}"} for number in range(1200)]
    said: list[str] = []
    load_files(store, [written(tmp_path / "m.ndjson", ndjson(*many))], said.append)
    assert said == [f"m.ndjson: {number} resources loaded" for number in (500, 1000, 1200)]


def test_a_server_is_not_loaded_and_a_broken_store_is_said(store: SqliteStore, tmp_path: Path) -> None:
    path = written(tmp_path / "p.json", PATIENT)
    with pytest.raises(UsageError, match="SQLite"):
        load_files(RemoteStore("http://127.0.0.1:9/fhir"), [path])
    store.close()
    with pytest.raises(StoreError):
        load_files(store, [path])


# recorded files


@recorded
def test_a_synthea_bundle_loads_whole(store: SqliteStore) -> None:
    report = load_files(store, [FIXTURES / "synthea_bundle_carroll_r4.json"])
    assert (report.loaded, report.skipped) == (171, [])
    (found,) = store.search_patients("274f5452-2a39-44c4-a7cb-f36de467762e")
    summary = summarize(store.chart(found.id))
    assert summary["patient"]["name"] == "Carroll471 O'Hara248"
    assert {"Body mass index 30+ - obesity (finding)"} <= {
        item["name"] for item in summary["problems"] if item["active"]
    }
    assert len(summary["immunizations"]) == 11
    assert len(summary["labs"]) + len(summary["vitals"]) + len(summary["observations"]) == 88


@recorded
def test_a_recorded_bundle_with_faults_loads_the_rest(store: SqliteStore) -> None:
    report = load_files(store, [FIXTURES / "ms_r4_smart_patient_bundle.json"])
    assert report.loaded == 18 and len(report.skipped) == 2


@recorded
def test_a_recorded_search_result_loads_its_patients(store: SqliteStore) -> None:
    assert load_files(store, [FIXTURES / "kit_search-results.json"]).loaded == 3


# summaries


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path = tmp_path_factory.mktemp("summaries") / "ehr.sqlite"
    with closing(SqliteStore(path, seed_resources())) as store:
        yield store


def test_a_summary_is_json_with_units_flags_and_dates(charts: SqliteStore) -> None:
    summary = summarize(charts.chart("abc-123"))
    assert json.loads(json.dumps(summary)) == summary
    assert summary["patient"] == {
        "id": "abc-123", "name": "John Smith", "birth_date": "1958-04-12", "sex": "male", "deceased": "",
        "language": "",
    }  # fmt: skip
    egfr = next(item for item in summary["labs"] if item["code"] == "98979-8")
    assert (egfr["value"], egfr["unit"], egfr["flag"], egfr["date"]) == ("41", "mL/min/1.73 m²", "low", "2026-10-12")
    assert summary["medications"][0]["name"] == "metformin" and summary["medications"][0]["active"]
    assert summary["allergies"][0]["substance"] == "sulfamethoxazole"
    assert summary["observations"][0]["value"] == "Never smoked"
    assert "metformin" in summary["notes"][0]["text"]


def test_a_deceased_patient_and_a_resolved_problem_are_said(charts: SqliteStore) -> None:
    (harold,) = charts.search_patients("Harold Baxter")
    assert summarize(charts.chart(harold.id))["patient"]["deceased"] == "2026-03-22"
    (aroha,) = charts.search_patients("Aroha Ngata")
    pneumonia = next(item for item in summarize(charts.chart(aroha.id))["problems"] if item["name"] == "Pneumonia")
    assert (pneumonia["active"], pneumonia["resolved"]) == (False, "2025-08-01")


def test_every_synthetic_chart_can_be_summarized(charts: SqliteStore) -> None:
    ids = [item["id"] for item in seed_resources() if item["resourceType"] == "Patient"]
    for patient_id in ids:
        assert all(item["name"] for item in summarize(charts.chart(patient_id))["medications"])


def test_a_printed_chart_has_headed_tables_and_no_raw_values(charts: SqliteStore, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    print_chart(summarize(charts.chart("abc-123")), Terminal())
    said = capsys.readouterr().out
    assert said.startswith("John Smith\nmale, born 1958-04-12, ID abc-123\n")
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert "Substance Reaction Severity Recorded" in rows and "Drug Dose Since For Status" in rows
    assert "sulfamethoxazole rash moderate 2016-02-08" in rows
    egfr = next(row for row in rows if row.startswith("eGFR"))
    assert egfr.endswith("41 mL/min/1.73 m² low 60 or more 2026-10-12 46 (2026-04-06); 49 (2025-10-01)")
    assert "True" not in said and "None" not in said and "98979-8" not in said


def test_a_printed_chart_says_what_is_past_and_what_is_not_recorded(charts: SqliteStore, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (aroha,) = charts.search_patients("Aroha Ngata")
    chart = summarize(charts.chart(aroha.id))
    print_chart(chart | {"allergies": [], "notes": [{"type": "note", "text": "a \x1b[31m[bold]b"}]}, Terminal())
    said = capsys.readouterr().out
    past = said[said.index("Past problems") :]
    assert "Pneumonia" in past and "2025-08-01" in past
    assert "not the same as no known allergies" in said and "a [31m[bold]b" in said


def test_a_printed_chart_names_the_language_that_the_patient_is_spoken_to_in(charts: SqliteStore, capsys) -> None:
    print_chart(summarize(charts.chart("def-456")), Terminal())
    assert "preferred language Spanish, ID def-456" in capsys.readouterr().out
