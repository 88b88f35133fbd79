"""Where a fact is from: the sentence of a label behind it, and the boxed warnings on which data and labels disagree."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docgemma.cli.snapshot import app
from docgemma.knowledge import drug_rules
from docgemma.knowledge.base import NOT_VERIFIED, basis_text
from docgemma.knowledge.basis import condition_sentence, dose_sentence, fact_key
from docgemma.knowledge.bulk import build_from_files, info
from docgemma.knowledge.drug_rules import conditions_of
from docgemma.knowledge.openfda import Label
from docgemma.knowledge.snapshot import Snapshot
from tests.bulk_samples import label, label_zip, small_data

RECORDED = Path(__file__).parents[2] / "shared" / "fixtures" / "openfda" / "label_derived_envelope"
NSAIDS = (
    "7 DRUG INTERACTIONS Food has no effect. NSAIDs including ibuprofen increase the risk of bleeding. Other words."
)


@pytest.fixture(autouse=True)
def fresh_rows():
    """The rows are read once a process; tests change the data folder."""
    drug_rules._rows.cache_clear()
    yield
    drug_rules._rows.cache_clear()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCGEMMA_DATA", str(small_data(tmp_path / "data")))
    monkeypatch.setenv("DOCGEMMA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def rows(home: Path, kind: str) -> list[tuple]:
    with closing(sqlite3.connect(home / "snapshot.sqlite")) as connection:
        return connection.execute("SELECT * FROM fact_basis WHERE kind = ? ORDER BY quote", (kind,)).fetchall()


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
    assert found.basis == NOT_VERIFIED and rows(home, "interaction") == []


def test_an_interaction_read_from_a_label_says_which(tmp_path, home):
    labels = [label("quellamab", drug_interactions="Avoid zorvatine."), label("zorvatine")]
    build_from_files(home, openfda=[label_zip(tmp_path, labels)])
    (found,) = Snapshot(home / "snapshot.sqlite").interactions(["quellamab", "zorvatine"]).records
    assert found.basis == "label set-quellamab-20250301, version 1, effective 2025-03-01"


def test_a_drug_from_the_files_says_its_label(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label(key="abc", warnings="Rash.")])])
    found = Snapshot(home / "snapshot.sqlite").label("zorvatine").records[0]
    assert (found.set_id, found.version, found.effective) == ("set-abc", "1", "2025-03-01")


def test_a_drug_with_facts_of_both_sides_claims_no_label(tmp_path, home):
    build_from_files(home, openfda=[label_zip(tmp_path, [label("warfarin", warnings="Rash.")])])
    found = Snapshot(home / "snapshot.sqlite").label("warfarin").records[0]
    assert found.boxed_warning and found.basis == NOT_VERIFIED


def test_conditions_and_doses_get_their_sentences(tmp_path, home):
    metformin = label(
        "metformin",
        boxed_warning="WARNING: LACTIC ACIDOSIS. Excessive alcohol intake is a risk factor for lactic acidosis.",
        dosage_and_administration="Start with 500 mg. The maximum daily dosage is 2,550 mg. Give with meals.",
    )
    build_from_files(home, openfda=[label_zip(tmp_path, [metformin])])
    keys = {fact_key(row) for row in conditions_of("metformin")}
    found = rows(home, "condition")
    assert found and {row[1] for row in found} <= keys
    assert all(row[2:6] == ("metformin", "set-metformin-20250301", "1", "2025-03-01") for row in found)
    assert ("dosage_and_administration", "The maximum daily dosage is 2,550 mg.") in {
        row[6:] for row in rows(home, "dose")
    }


ASTHMA = {
    "drug": "x",
    "when": {"problem": "asthma"},
    "says": "asthma: fatal bronchospasm",
    "section": "Contraindications",
}


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Not in bronchial asthma. Fatal bronchospasm in asthma occurred.", "Fatal bronchospasm in asthma occurred."),
        ("Do not use in asthma.", None),  # one word is not enough
        ("Fatal bronchospasm occurred.", None),  # the condition is not named
        ("", None),
    ],
)  # fmt: skip
def test_no_sentence_is_better_than_a_wrong_one(text, quoted):
    found = condition_sentence(ASTHMA, Label(contraindications=(text,), warnings=("Fatal bronchospasm in asthma.",)))
    assert (found[1] if found else None) == quoted


@pytest.mark.parametrize(
    ("row", "text", "quoted"),
    [
        ({}, "Take 40 mg. Do not exceed 40 mg daily.", "Do not exceed 40 mg daily."),
        ({}, "Up to 140 mg. Up to 40 mg/kg. Up to 0.40 mg. Up to 40 mcg. Take 40 mg.", None),
        ({}, "In renal impairment the maximum is 40 mg.", None),
        ({}, "As a single dose, up to 40 mg.", None),
        (
            {"egfr_below": 30},
            "The maximum is 40 mg. In renal impairment up to 40 mg.",
            "In renal impairment up to 40 mg.",
        ),
        ({"for": "ascites"}, "In acne, at a maximum of 40 mg.", None),
        ({"age_from": 65, "for": "acne"}, "Elderly with acne: maximum 40 mg.", "Elderly with acne: maximum 40 mg."),
    ],
)
def test_a_limit_is_quoted_with_its_number_its_unit_and_its_patients(row, text, quoted):
    found = dose_sentence({"drug": "x", "max_day": "40 mg", **row}, Label(dosage_and_administration=(text,)))
    assert (found[1] if found else None) == quoted


def test_a_quote_is_bounded_and_plain(tmp_path, home):
    text = f"Avoid <b>ibuprofen</b>\u200b {'and more of this ' * 400}."
    build_from_files(home, openfda=[label_zip(tmp_path, [label("warfarin", drug_interactions=text)])])
    ((*_, quote),) = rows(home, "interaction")
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
    assert basis_text("abc", "", None, "boxed_warning", "Q.") == 'label abc, section "Boxed warning": "Q."'


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers are not here")
def test_recorded_labels_support_shipped_facts(tmp_path, monkeypatch):
    report = build_from_files(tmp_path, openfda=[RECORDED])
    assert report["problems"] == []
    snapshot = Snapshot(tmp_path / "snapshot.sqlite")
    (found,) = snapshot.interactions(["simvastatin", "clarithromycin"]).records
    assert found.basis.startswith("label ") and "clarithromycin" in found.basis
    counts = {kind: len(rows(tmp_path, kind)) for kind in ("interaction", "condition", "dose")}
    assert counts["interaction"] > 100 and counts["condition"] > 20 and counts["dose"] > 4, counts
    assert max(len(row[7]) for kind in counts for row in rows(tmp_path, kind)) <= 370
