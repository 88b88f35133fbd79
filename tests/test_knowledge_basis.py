"""Where a fact is from: the sentence of a label behind it, and the boxed warnings on which data and labels disagree."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docgemma.cli.snapshot import app
from docgemma.knowledge.base import NOT_VERIFIED, LabelSection
from docgemma.knowledge.bulk import build_from_files
from docgemma.knowledge.snapshot import Snapshot
from tests.bulk_samples import info, label, label_zip, small_data

RECORDED = Path(__file__).parents[2] / "shared" / "fixtures" / "openfda" / "label_derived_envelope"
NSAIDS = (
    "7 DRUG INTERACTIONS Food has no effect. NSAIDs including ibuprofen increase the risk of bleeding. Other words."
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))
    monkeypatch.setenv("DOCGEMMA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_shipped_interaction_carries_the_sentence_of_a_label(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("warfarin sodium", drug_interactions=NSAIDS)])])
    (found,) = Snapshot(home / "snapshot.sqlite").interactions(["ibuprofen", "warfarin"]).records
    assert found.severity == "major"
    assert found.basis == (
        'label set-warfarin sodium-20250301, version 1, effective 2025-03-01, section "Drug interactions": '
        '"NSAIDs including ibuprofen increase the risk of bleeding."'
    )
    assert info(home)["kinds"]["interactions"]["with_basis"] == 1


def test_a_fact_that_no_label_supports_has_no_basis(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("warfarin", drug_interactions="Avoid cranberry.")])])
    (found,) = Snapshot(home / "snapshot.sqlite").interactions(["ibuprofen", "warfarin"]).records
    assert found.basis == NOT_VERIFIED and info(home)["kinds"]["interactions"]["with_basis"] == 0


def test_an_interaction_read_from_a_label_says_which(tmp_path, home):
    labels = [label("quellamab", drug_interactions="Avoid zorvatine."), label("zorvatine")]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    (found,) = Snapshot(home / "snapshot.sqlite").interactions(["quellamab", "zorvatine"]).records
    assert found.basis == "label set-quellamab-20250301, version 1, effective 2025-03-01"


def test_a_sentence_is_quoted_from_the_label_that_has_it(tmp_path, home):
    labels = [
        label("warfarin", date="20250401", key="boxed", boxed_warning="WARNING: BLEEDING RISK"),
        label("warfarin", date="20240401", key="older", drug_interactions=NSAIDS),
    ]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    (found,) = Snapshot(home / "snapshot.sqlite").interactions(["ibuprofen", "warfarin"]).records
    assert found.basis.startswith("label set-older, version 1, effective 2024-04-01, section")


def test_a_drug_from_the_files_says_its_label(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label(key="abc", warnings="Rash.")])])
    found = Snapshot(home / "snapshot.sqlite").label("zorvatine").records[0]
    assert (found.set_id, found.version, found.effective) == ("set-abc", "1", "2025-03-01")


def test_a_drug_with_facts_of_both_sides_claims_no_label(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("warfarin", warnings="Rash.")])])
    found = Snapshot(home / "snapshot.sqlite").label("warfarin").records[0]
    assert found.boxed_warning and found.basis == NOT_VERIFIED


def test_a_quote_is_bounded_and_plain(tmp_path, home):
    text = f"Avoid <b>ibuprofen</b>\u200b {'and more of this ' * 400}."
    build_from_files(home, openfda=[label_zip(tmp_path, [label("warfarin", drug_interactions=text)])])
    (found,) = Snapshot(home / "snapshot.sqlite").interactions(["ibuprofen", "warfarin"]).records
    quote = found.basis.partition('": "')[2].removesuffix('"')
    assert len(quote) <= 360 and "<" not in quote and "\u200b" not in quote


def test_boxed_warnings_that_disagree_are_reported_and_counted(tmp_path, home):
    labels = [
        label("acetaminophen", warnings="Liver."),
        label("warfarin", boxed_warning="WARNING: BLEEDING RISK"),
        label("dofetilide", warnings="-"),
        label("zorvatine", boxed_warning="WARNING: NEW DRUG"),
    ]
    shipped = Path(home.parent / "data" / "knowledge" / "drugs.jsonl")
    lines = [json.loads(line) for line in shipped.read_text(encoding="utf-8").splitlines()]
    text = [line | ({"boxed_warning": "none"} if line.get("name") == "warfarin" else {}) for line in lines]
    shipped.write_text("\n".join(map(json.dumps, text)), encoding="utf-8")
    path = label_zip(tmp_path, labels)
    report = build_from_files(home, openfda=[path])
    found = {item["drug"]: item for item in report["boxed_warnings"]}
    assert set(found) == {"acetaminophen", "dofetilide", "warfarin"}
    assert (found["warfarin"]["shipped"], "BLEEDING" in found["warfarin"]["label"]) == ("", True)
    assert found["dofetilide"]["shipped"] and not found["dofetilide"]["label"]
    assert info(home)["kinds"]["drugs"]["boxed_warnings"] == 3
    result = CliRunner().invoke(app, ["build", "--openfda", str(path)])
    assert result.stderr.count("Disagreement: ") == 3 and "Disagreement: warfarin: no boxed warning" in result.stderr
    assert "3 boxed warnings disagree" in CliRunner().invoke(app, ["info"]).stdout


def test_the_text_names_only_what_is_known():
    assert LabelSection("", "abc").basis("boxed_warning", "Q.") == 'label abc, section "Boxed warning": "Q."'


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers are not here")
def test_recorded_labels_support_shipped_facts(tmp_path, monkeypatch):
    report = build_from_files(tmp_path, openfda=[RECORDED])
    assert report["problems"] == []
    snapshot = Snapshot(tmp_path / "snapshot.sqlite")
    (found,) = snapshot.interactions(["simvastatin", "clarithromycin"]).records
    assert found.basis.startswith("label ") and "clarithromycin" in found.basis
    assert report["kinds"]["interactions"]["with_basis"] > 100
