"""Bulk files in every shape they come in, and the recorded answers where they are present."""

import json
from pathlib import Path

import pytest

from docgemma.errors import UsageError
from docgemma.knowledge.snapshot import Snapshot
from docgemma.paths import kit
from tests.bulk_samples import europepmc, info, label, page, pubmed, pubmed_file, small_data, study, zipped

readers, build_from_files = kit("knowledge", "bulk_files"), kit("knowledge", "bulk").build_from_files
RECORDED = Path(__file__).parents[2] / "shared" / "fixtures"
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers are not here")


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))


@pytest.fixture
def build(tmp_path):
    def run(**given) -> tuple[Snapshot, dict]:
        report = build_from_files(tmp_path / "home", **given)
        return Snapshot(tmp_path / "home" / "snapshot.sqlite"), report

    return run


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


STUDIES = [study(1), study(2), study(3)]
SHAPES = {
    "page": json.dumps({"totalCount": 3, "studies": STUDIES, "nextPageToken": "x"}),
    "pretty": json.dumps({"studies": STUDIES}, indent=2),
    "list": json.dumps(STUDIES),
    "pretty list": json.dumps(STUDIES, indent=4),
}


@pytest.mark.parametrize("small", [4 << 20, 300], ids=["whole", "streamed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_json_is_read_in_every_shape_small_or_large(tmp_path, build, monkeypatch, shape, small):
    monkeypatch.setattr(readers, "SMALL", small)
    snapshot, report = build(ctgov=[written(tmp_path / "studies.json", SHAPES[shape])])
    assert report["problems"] == []
    assert [trial.id for trial in snapshot.trials("gout").records] == [f"NCT-INVENTED-{n}" for n in (1, 2, 3)]


def test_one_study_a_file_in_a_folder(tmp_path, build):
    folder = tmp_path / "studies" / "NCT0000xxxx"
    folder.mkdir(parents=True)
    for number, item in enumerate(STUDIES):
        written(folder / f"{number}.json", json.dumps(item, indent=1))
    written(folder / "contents.txt", "not a study")
    snapshot, report = build(ctgov=[tmp_path / "studies"])
    assert report["problems"] == [] and len(snapshot.trials("gout").records) == 3


def test_a_broken_member_of_an_archive_is_one_problem(tmp_path, build):
    members = {"1.json": json.dumps(study(1)).encode(), "2.json": b"{", "3.json": json.dumps(study(3)).encode()}
    snapshot, report = build(ctgov=[zipped(tmp_path / "ctg.zip", members)])
    assert len(snapshot.trials("gout").records) == 2
    assert [note["first"] for note in report["problems"]] == ["2.json, after record 0"]


def test_a_later_version_of_a_study_takes_its_place(tmp_path, build):
    files = [written(tmp_path / f"{n}.json", json.dumps(study(1, title))) for n, title in enumerate(("Gout", "Asthma"))]
    snapshot, _ = build(ctgov=files)
    assert snapshot.trials("gout").records == [] and len(snapshot.trials("asthma").records) == 1


def test_without_the_date_of_the_data_the_newest_study_tells(tmp_path, build):
    items = [study(1, version=None), study(2, version=None, lastUpdatePostDateStruct={"date": "2019-03-03"})]
    snapshot, _ = build(ctgov=[written(tmp_path / "studies.json", json.dumps(items))])
    assert snapshot.trials("gout").as_of == "2025-12-01"


def test_an_article_of_pubmed_is_read_whole(tmp_path, build):
    snapshot, _ = build(literature=[pubmed_file(tmp_path / "pubmed26n0001.xml.gz", [pubmed(7)])])
    (article,) = snapshot.literature("gout").records
    assert article.id == "INVENTED7" and article.title == "Gout in adults"
    assert article.authors == "Testa AB, The Invented Group."
    assert (article.journal, article.year) == ("Invented Journal", 2024)
    assert article.abstract == "Methods: We asked CO2 & more. Colchicine helped."
    assert article.url.endswith("/MED/INVENTED7")


@pytest.mark.parametrize("kind", ["Retracted Publication", "retracted publication"])
def test_a_retracted_article_is_left_out_and_counted(tmp_path, build, kind):
    files = [
        pubmed_file(tmp_path / "a.xml", [pubmed(1), pubmed(2), pubmed(3)]),
        pubmed_file(tmp_path / "b.xml", [pubmed(1, kind=kind)]),
        written(tmp_path / "c.json", json.dumps([europepmc(2, pmid="INVENTED2", pubTypeList={"pubType": [kind]})])),
    ]
    snapshot, report = build(literature=files)
    assert [article.id for article in snapshot.literature("gout").records] == ["INVENTED3"]
    assert [note["reason"] for note in report["left_out"]] == ["retracted publication"] * 2


def test_xml_that_is_cut_short_keeps_what_came_before(tmp_path, build):
    path = pubmed_file(tmp_path / "a.xml", [pubmed(n) for n in range(5)])
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"<AuthorList>")])
    snapshot, report = build(literature=[path])
    assert len(snapshot.literature("gout", limit=9).records) == 4
    assert [note["first"] for note in report["problems"]] == ["a.xml, after record 4"]


WORDLESS = pubmed(1).replace("Gout in <i>adults</i>", "").replace("AbstractText", "Other")


@pytest.mark.parametrize("bad", ["<PubmedArticle/>", "<PubmedArticle><MedlineCitation/></PubmedArticle>", WORDLESS])
def test_an_article_without_id_or_words_is_a_bad_record(tmp_path, build, bad):
    snapshot, report = build(literature=[pubmed_file(tmp_path / "a.xml", [bad, pubmed(2)])])
    assert [article.id for article in snapshot.literature("gout").records] == ["INVENTED2"]
    assert [note["first"] for note in report["problems"]] == ["a.xml, record 1"]


def test_text_that_tries_to_be_more_than_text_stays_text(tmp_path, build):
    hostile = label(
        boxed_warning="<script>x</script>\u200b\x00 WARNING <b>IGNORE</b> ALL", brand="'; DROP TABLE drug; --"
    )
    snapshot, _ = build(openfda=[written(tmp_path / "a.json", page([hostile]))])
    found = snapshot.label("'; drop table drug; --").records[0]
    assert "<" not in found.boxed_warning and "\x00" not in found.boxed_warning


def test_a_lone_surrogate_spoils_its_own_record_only(tmp_path, build):
    text = page([label("quellamab", warnings="SURROGATE"), label()]).replace(b"SURROGATE", b"\\ud800")
    snapshot, report = build(openfda=[written(tmp_path / "a.json", text)])
    assert snapshot.label("zorvatine").records
    assert [note["count"] for note in report["problems"]] == [1]


def test_an_empty_folder_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty holds no file"):
        readers.bulk_files([tmp_path / "empty"])


@recorded
def test_recorded_labels_are_built(build):
    snapshot, report = build(
        openfda=[RECORDED / "openfda" / "label_bulk_5_otc_2019.json", RECORDED / "openfda" / "label_derived_envelope"]
    )
    assert report["problems"] == []
    label = snapshot.label("acetaminophen").records[0]
    assert label.effective and label.warnings
    for name in ("amiodarone", "citalopram", "clarithromycin", "simvastatin", "warfarin"):
        assert snapshot.label(name).records[0].name == name
    pair = snapshot.interactions(["clarithromycin", "simvastatin"]).records[0]
    assert pair.severity == "contraindicated" and "clarithromycin label says" in pair.mechanism


@recorded
def test_the_recorded_bulk_file_states_its_date(build):
    snapshot, _ = build(openfda=[RECORDED / "openfda" / "label_bulk_5_otc_2019.json"])
    assert snapshot.meta["drugs.as_of"] == "2019-10-26"
    assert snapshot.label("Pressure Pain Cold PE").records[0].name.count(" / ") == 3


@recorded
def test_recorded_studies_are_built(tmp_path, build):
    files = sorted((RECORDED / "clinicaltrials").glob("study_full_*.json"))
    _, report = build(ctgov=files)
    assert report["problems"] == []
    trials = info(tmp_path / "home")["kinds"]["trials"]
    assert trials["count"] == len(files) and trials["as_of"]


@recorded
def test_recorded_literature_is_built(build):
    files = [
        *sorted((RECORDED / "ncbi").glob("biopython_pubmed*.xml")),
        RECORDED / "europepmc" / "search_cancer_core.json",
    ]
    snapshot, report = build(literature=files)
    assert report["problems"] == [] and report["kinds"]["literature"]["count"] > 25
    found = snapshot.literature("leucocyte telomere length pancreatic cancer").records[0]
    assert (found.id, found.year, found.journal) == ("27797938", 2017, "Gut")
    assert found.abstract.startswith("Objective: Telomere shortening")


@recorded
def test_a_recorded_answer_without_articles_is_nothing_usable(build):
    with pytest.raises(UsageError, match="nothing usable"):
        build(literature=[RECORDED / "europepmc" / "search_no_results.json"])
