"""Where a fact is from: the sentence of a label behind it, and the boxed warnings on which data and labels disagree."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from docgemma.cli.snapshot import app
from docgemma.demo import view
from docgemma.ehr.base import PatientMatch
from docgemma.knowledge.base import LabelSection
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.drug_rules import conditions_of, doses_of, fact_key
from docgemma.knowledge.snapshot import Snapshot
from docgemma.nodes.write_findings import order_findings
from docgemma.paths import kit
from docgemma.report import approval_text
from docgemma.rules.order_check import UNVERIFIED, Finding, shown
from docgemma.rules.override import ranked
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.tools import toolbox
from docgemma.tools.mcp_confirm import question
from tests.bulk_samples import info, label, label_zip, small_data
from tests.order_cases import chart_of

states, build_from_files = kit("knowledge", "basis").states, kit("knowledge", "bulk").build_from_files
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


ACIDOSIS = "Metformin is contraindicated in acute or chronic metabolic acidosis, including diabetic ketoacidosis."
MAXIMUM = "The maximum daily dosage is 2,550 mg."
READ = "(label set-metformin-20250301, version 1, effective 2025-03-01, section"
ORDER = {"patient_id": "x", "medication_name": "metformin", "dosage": "1000 mg", "frequency": "three times daily"}


def judged(home: Path) -> list[Finding]:
    """What the gate finds for metformin in ketoacidosis, 3 g a day, on the snapshot that was built."""
    gate = SimpleNamespace(knowledge=Snapshot(home / "snapshot.sqlite"), drugs=load_drug_names())
    return order_findings(ORDER, chart_of({"age": 50, "problems": ["Diabetic ketoacidosis"]}), gate)


def metformin(folder: Path, **sections: str) -> Path:
    return label_zip(folder, [label("metformin", **sections)])


def test_the_finding_on_a_condition_quotes_the_label_that_states_it(tmp_path, home):
    build_from_files(home, openfda=[metformin(tmp_path, contraindications=f"Hypersensitivity. {ACIDOSIS}")])
    line = next(line for line in shown(judged(home)) if line.startswith("Contraindicated (metformin)"))
    assert line.endswith(f'ketoacidosis. {READ} "Contraindications": "{ACIDOSIS}")')
    assert info(home)["kinds"]["drugs"]["conditions"] == 1 and info(home)["kinds"]["drugs"]["doses"] == 0
    assert "1 conditions, 0 maxima with the sentence" in CliRunner().invoke(app, ["info"]).stdout


def test_the_finding_on_a_dose_quotes_the_label_that_states_the_maximum(tmp_path, home):
    build_from_files(home, openfda=[metformin(tmp_path, dosage_and_administration=f"Start with 500 mg. {MAXIMUM}")])
    line = next(line for line in shown(judged(home)) if "maximum of 2,550 mg a day" in line)
    assert line.endswith(f'{READ} "Dosage and administration": "{MAXIMUM}")')
    assert info(home)["kinds"]["drugs"]["doses"] == 1


@pytest.mark.parametrize(
    ("drug", "route"), [("metformin", "INTRAVENOUS"), ("glyburide, metformin", "ORAL"), ("glyburide", "ORAL")]
)
def test_a_label_of_another_route_or_drug_proves_nothing(tmp_path, home, drug, route):
    """A condition of any route is stated by the drug's own label alone, a dose by one of its route."""
    sections = {"contraindications": ACIDOSIS, "dosage_and_administration": MAXIMUM}
    build_from_files(home, openfda=[label_zip(tmp_path, [label(drug, route=route, **sections)])])
    lines = shown(judged(home))
    assert any("2,550" in line for line in lines) and not any("2,550" in line and READ in line for line in lines)
    assert drug == "metformin" or not any("(label" in line for line in lines)
    assert UNVERIFIED in lines


def test_without_a_label_every_finding_of_a_rule_says_that_it_is_not_verified(tmp_path, home):
    build_from_files(home, openfda=[metformin(tmp_path, warnings="Rash.")])
    found = judged(home)
    rules = [item for item in ranked(found) if "metformin" in item["text"] and item["rank"] == "contraindicated"]
    assert rules and {item["basis"] for item in rules} == {NOT_VERIFIED}
    assert UNVERIFIED in shown(found) and "(label" not in " ".join(shown(found))


def test_a_fact_that_was_corrected_since_is_not_quoted(tmp_path, home):
    build_from_files(home, openfda=[metformin(tmp_path, dosage_and_administration=MAXIMUM)])
    row = next(row for row in doses_of("metformin") if row.get("max_day") == "2550 mg")
    snapshot = Snapshot(home / "snapshot.sqlite")
    assert MAXIMUM in snapshot.quotes[fact_key(row, "max_day")] and len(snapshot.quotes) == 1
    assert fact_key({**row, "note": "corrected"}, "max_day") not in snapshot.quotes


def test_card_text_and_mcp_show_the_sentence_whole(tmp_path, home):
    sections = {"contraindications": ACIDOSIS, "dosage_and_administration": MAXIMUM}
    build_from_files(home, openfda=[metformin(tmp_path, **sections)])
    found, tool = judged(home), toolbox()["prescribe_medication"]
    pending = {"label": "Prescription", "args": ORDER, "findings": shown(found), "ranked": ranked(found)}
    for text in (approval_text(pending), question(tool, ORDER, PatientMatch("x", "X", "", ""), shown(found))):
        assert f'"{ACIDOSIS}")' in text and f'"{MAXIMUM}")' in text
    card = view.card(pending)
    assert ACIDOSIS in card and MAXIMUM in card and "label set-metformin-20250301" in card


ASTHMA = {"drug": "x", "when": {"problem": "asthma"}, "rank": "major", "says": "asthma: fatal bronchospasm"}


@pytest.mark.parametrize(
    ("row", "sentence", "stated"),
    [
        ({}, "Fatal bronchospasm in asthma occurred.", True),
        ({}, "Do not use in asthma.", False),  # not what the row says
        ({}, "Fatal bronchospasm occurred.", False),  # not of whom
        ({}, "Fatal bronchospasm occurred in patients without asthma.", False),
        ({"rank": "contraindicated"}, "Fatal bronchospasm in asthma occurred.", False),
        ({"rank": "contraindicated"}, "Do not use in asthma: fatal bronchospasm.", True),
        ({"says": "avoid in asthma: bronchospasm"}, "Watch for bronchospasm in asthma.", False),  # asks for less
        ({"says": "avoid in asthma: bronchospasm"}, "Bronchospasm: avoid in asthma.", True),
        ({"says": "asthma: at most 5 mg, bronchospasm"}, "At most 10 mg in asthma: bronchospasm.", False),
        ({"when": {"egfr_below": 30}}, "Fatal bronchospasm with renal impairment, as in asthma.", False),
        ({"when": {"egfr_below": 30}}, "Fatal bronchospasm, as in asthma, with an eGFR below 30.", True),
        ({"when": {"age_below": 2}}, "Fatal bronchospasm, as in asthma, in children.", False),
        ({"when": {"lab": {"name": "potassium", "above": 5.5}}}, "Bronchospasm: asthma, potassium above 5.0.", False),
    ],
)
def test_a_sentence_states_a_condition_as_a_whole_or_is_not_quoted(row, sentence, stated):
    assert states(ASTHMA | row, "says", "warnings", sentence) is stated


@pytest.mark.parametrize(
    ("row", "sentence", "stated"),
    [
        ({}, "Do not exceed 40 mg daily.", True),
        ({}, "Maximum: 0.04 g a day.", True),
        ({}, "Take 40 mg daily.", False),  # no limit
        ({}, "Take 40 mg; the maximum is 80 mg a day.", False),
        ({}, "The maximum is 40 mcg a day.", False),
        ({}, "The maximum is 40 mg/kg a day.", False),
        ({}, "The maximum is 40 mg a week.", False),
        ({}, "As a single dose, a maximum of 40 mg on any day.", False),
        ({}, "The maximum is 40 mg daily in renal impairment.", False),
        ({}, "With concomitant CYP3A inhibitors do not exceed 40 mg daily.", False),
        ({"egfr_below": 30}, "The maximum is 40 mg daily.", False),
        ({"egfr_below": 30}, "The maximum is 40 mg daily with a creatinine clearance below 30 mL/min.", True),
        ({"for": "ascites"}, "The maximum is 40 mg daily in acne.", False),
        ({"age_from": 65, "for": "acne"}, "Elderly with acne: maximum 40 mg daily.", True),
    ],
)
def test_a_sentence_states_a_maximum_with_number_unit_and_patients_or_is_not_quoted(row, sentence, stated):
    limit = {"drug": "x", "route": "oral", "max_day": "40 mg", **row}
    assert states(limit, "max_day", "dosage_and_administration", sentence) is stated


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
    assert report["kinds"]["drugs"]["conditions"] > 25 and report["kinds"]["drugs"]["doses"] > 4
    liver = next(row for row in conditions_of("simvastatin") if "decompensated" in row["says"])
    assert "Acute liver failure or decompensated cirrhosis" in snapshot.quotes[fact_key(liver, "says")]
    most = next(row for row in doses_of("sertraline") if row["max_day"] == "200 mg")
    assert snapshot.quotes[fact_key(most, "max_day")].endswith('dose increases up to a maximum of 200 mg/day."')
