"""Recorded answers of the real services, through the real client and parsers. Skipped where they are absent."""

import json
from pathlib import Path

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import literature
from docgemma.knowledge import trials as registry
from docgemma.knowledge.label_interactions import Drug, find
from docgemma.knowledge.live import LiveKnowledge
from docgemma.knowledge.openfda import Label, Page, choose, merge, scanned_sections
from docgemma.knowledge.rxnorm import Properties, Related
from docgemma.settings import Settings
from tests.standin import standin  # noqa: F401 (a fixture)
from tests.standin.misbehave import Misbehaving, status

RECORDED = Path(__file__).parents[2] / "shared" / "fixtures"
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers are not here")
LABELS = sorted((RECORDED / "openfda" / "label_derived_envelope").glob("*.json"))
TRIALS = sorted((RECORDED / "clinicaltrials").glob("search_*.json"))
STUDIES = [path for kind in ("study_full", "get") for path in (RECORDED / "clinicaltrials").glob(f"{kind}_*.json")]


def load(name: str):
    return json.loads((RECORDED / name).read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("docgemma.http.BACKOFF_S", 0.01)


@pytest.fixture
def open_live(standin, tmp_path):  # noqa: F811
    opened = []

    def build(**urls) -> LiveKnowledge:
        opened.append(LiveKnowledge(Settings(home=tmp_path, **{**standin.urls, **urls})))
        return opened[-1]

    yield build
    for live in opened:
        live.close()


@pytest.mark.parametrize("path", LABELS, ids=lambda path: path.stem)
def test_a_recorded_label_is_read_whole(open_live, path):
    raw = json.loads(path.read_bytes())["results"][0]
    with Misbehaving(status(200, path.read_bytes())) as server:
        label = open_live(openfda_url=server.url).label(path.stem).records[0]
    assert label.name == path.stem
    assert bool(label.boxed_warning) is ("boxed_warning" in raw)
    assert bool(label.contraindications) is ("contraindications" in raw)
    assert label.warnings
    assert label.reference.endswith(raw["openfda"]["spl_set_id"][0])
    everything = " ".join([label.boxed_warning, *label.contraindications, *label.warnings, label.interactions])
    for rest in ("[see", "[ see", "<td", "  "):
        assert rest not in everything


def sections(name: str) -> dict[str, str]:
    return scanned_sections(Page.model_validate(load(f"openfda/label_derived_envelope/{name}.json")).results)


@pytest.mark.parametrize(
    ("label", "other", "classes", "severity"),
    [
        ("amiodarone", "warfarin", (), "reduce warfarin dose"),
        ("amiodarone", "simvastatin", (), "limit the coadministered dose"),
        ("warfarin", "aspirin", (), "closely monitor"),
        ("warfarin", "ibuprofen", (), "closely monitor"),
        ("warfarin", "amiodarone", (), "closely monitor"),
        ("ketorolac", "aspirin", (), "contraindicated"),
        ("sildenafil", "riociguat", (), "do not use"),
        ("sildenafil", "nitroglycerin", ("Nitrate Vasodilator [EPC]",), "contraindicated"),
        ("simvastatin", "amiodarone", (), "do not exceed simvastatin 20 mg daily"),
        ("citalopram", "warfarin", (), "carefully monitor"),
        ("clarithromycin", "simvastatin", (), "contraindicated"),
        ("ibuprofen", "aspirin", (), "ask a doctor or pharmacist before use"),
    ],
)
def test_recorded_labels_say_what_they_say(label, other, classes, severity):
    found = find(Drug(label, (label,), sections=sections(label)), Drug(other, (other,), (), classes))
    assert found.severity == severity


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("apixaban", "clarithromycin"),
        ("clarithromycin", "fluconazole"),
        ("ibuprofen", "metformin"),
        ("sildenafil", "alcohol"),
    ],
)
def test_recorded_denials_and_silence_are_no_finding(label, other):
    assert find(Drug(label, (label,), sections=sections(label)), Drug(other, (other,))) is None


def test_a_recorded_brand_label_is_found_by_its_brand():
    page = Page.model_validate(load("openfda/label_jantoven_warfarin_envelope.json"))
    labels = choose(page.results, ["Jantoven", "warfarin"])
    assert merge(labels, "warfarin", []).brand_names == ["Jantoven"]
    assert page.last_updated == "2026-09-18"


@pytest.mark.parametrize("names", [["Keytruda", "pembrolizumab"], ["Keytruda"]])
def test_the_single_ingredient_keytruda_is_preferred(names):
    labels = choose(Page.model_validate(load("openfda/label_keytruda_reduced.json")).results, names)
    assert [label.openfda.brand_name for label in labels] == [("KEYTRUDA",)]


def test_an_unharmonised_label_is_not_taken_for_any_drug():
    page = Page.model_validate(load("openfda/label_default_no_search_unharmonized.json"))
    assert len(page.results) == 1
    assert choose(page.results, ["warfarin"]) == []


def test_full_and_bulk_labels_have_the_same_shape():
    full = [Label.model_validate(item) for item in load("openfda/label_results_full_3.json")]
    bulk = Page.model_validate(load("openfda/label_bulk_5_otc_2019.json")).results
    assert (len(full), len(bulk)) == (3, 5)
    assert any(label.boxed_warning for label in full)
    assert all(label.effective for label in bulk)


def test_a_count_is_not_taken_for_labels():
    with pytest.raises(ValueError):
        Page.model_validate({"meta": {}, "result": load("openfda/label_count_manufacturer_first5.json")})


EXPECTED = {400: ErrorType.INVALID_ARGS, 403: ErrorType.NOT_PERMITTED, 500: ErrorType.SERVER_ERROR}


def test_recorded_openfda_errors_have_their_types(open_live):
    seen = set()
    for item in load("openfda/errors_recorded_vcr.json"):
        code, body = item["response"]["status"], json.dumps(item["response"]["body"]).encode()
        seen.add(code)
        with Misbehaving(status(code, body)) as server:
            live = open_live(openfda_url=server.url)
            if code == 404:
                assert live.label("warfarin").records == []
                continue
            with pytest.raises(ToolError) as caught:
                live.label("warfarin")
            assert caught.value.error_type is EXPECTED[code]
    assert seen == {400, 403, 404, 500}


def test_the_recorded_rate_limit_is_one(open_live):
    body = (RECORDED / "openfda/error_429_over_rate_limit.json").read_bytes()
    with Misbehaving(status(429, body)) as server, pytest.raises(ToolError) as caught:
        open_live(openfda_url=server.url).label("warfarin")
    assert caught.value.error_type is ErrorType.RATE_LIMIT
    assert "contact" not in str(caught.value)


def test_recorded_names_are_read():
    related = Related.model_validate(load("rxnorm/2026_related_860975.json"))
    assert [item.name for group in related.groups if group.tty == "IN" for item in group.conceptProperties] == [
        "metformin"
    ]


def test_recorded_unknowns_are_unknown(open_live):
    shapes = {
        item["request"].split("/")[2].split("?")[0]: item["body"]
        for item in load("rxnorm/2026_not_found_shapes_reported.json")
    }
    assert Properties.model_validate(shapes["rxcui"]).properties.name == ""
    with Misbehaving(status(200, json.dumps(shapes["rxcui.json"]).encode())) as server:
        assert open_live(rxnav_url=server.url).generic_name("zzqqx") is None


@pytest.mark.parametrize("path", sorted((RECORDED / "europepmc").glob("search_*.json")), ids=lambda path: path.stem)
def test_recorded_literature_is_read(open_live, path):
    raw = json.loads(path.read_bytes())["resultList"]["result"]
    with Misbehaving(status(200, path.read_bytes())) as server:
        found = open_live(europepmc_url=server.url).literature("cancer", limit=100).records
    assert [article.id for article in found] == [item.get("pmid") or item["source"] + item["id"] for item in raw]
    for article, item in zip(found, raw, strict=True):
        assert bool(article.title) is ("title" in item)
        assert "<h4>" not in article.abstract
        assert article.url.startswith("https://")


def test_the_recorded_abstracts_are_plain():
    found = literature.parse(load("europepmc/search_cancer_core.json"))
    assert sum(bool(article.abstract) for article in found) > 10
    assert all(article.journal and article.year for article in found)


@pytest.mark.parametrize("name", ["search_cancer.xml", "error_supplementary_not_open_access.xml"])
def test_recorded_xml_is_an_invalid_response(open_live, name):
    with Misbehaving(status(200, (RECORDED / "europepmc" / name).read_bytes())) as server:
        live = open_live(europepmc_url=server.url)
        with pytest.raises(ToolError) as caught:
            live.literature("cancer")
    assert caught.value.error_type is ErrorType.INVALID_RESPONSE


@pytest.mark.parametrize("path", TRIALS, ids=lambda path: path.stem)
def test_recorded_trials_are_read(open_live, path):
    raw = json.loads(path.read_bytes())["studies"]
    with Misbehaving(status(200, path.read_bytes())) as server:
        found = open_live(ctgov_url=server.url).trials("any", limit=len(raw)).records
    assert [trial.id for trial in found] == [item["protocolSection"]["identificationModule"]["nctId"] for item in raw]
    assert all(trial.title and trial.url.endswith(trial.id) for trial in found)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_recorded_full_studies_are_read(path):
    trial = registry.parse(registry.Study.model_validate(json.loads(path.read_bytes())))
    assert trial.id.lower() in path.stem.lower()
    assert trial.status and trial.conditions


def test_recorded_refusals_of_the_registry_are_invalid_args(open_live):
    for item in load("clinicaltrials/errors_reported.json"):
        if item["status"] == 400:
            with Misbehaving(status(400, item["body"].encode(), Content_Type="text/plain")) as server:
                live = open_live(ctgov_url=server.url)
                with pytest.raises(ToolError) as caught:
                    live.trials("melanoma")
            assert caught.value.error_type is ErrorType.INVALID_ARGS
