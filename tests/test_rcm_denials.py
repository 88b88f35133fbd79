"""The history of denials: made again byte for byte, counted as by hand, widened and refused where rows are few."""

import csv
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from docgemma.errors import StoreError
from docgemma.experiments.statistics import wilson
from docgemma.paths import data_file
from docgemma.rcm.denials import ENOUGH, HIGH, MEDIUM, WORDS, analyze
from docgemma.rcm.sentences import lists

HISTORY = data_file("rcm", "denials", "denials.csv")
NORTHGATE, PRAIRIE = "Northgate Health Plan", "Prairie Community Care"
KNEE = "total knee arthroplasty"


def rows() -> list[dict[str, str]]:
    with HISTORY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def build() -> Any:
    spec = importlib.util.spec_from_file_location("denials_build", HISTORY.with_name("build.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_hand(procedure: str, lacks: set[str], payer: str = "") -> list[dict[str, str]]:
    """Comparable requests, counted without DuckDB."""
    mine = [row for row in rows() if row["procedure"] == procedure and payer in ("", row["payer"])]
    lacked = [(row, set(filter(None, row["lacking"].split("; ")))) for row in mine]
    return [row for row, lacking in lacked if (lacks <= lacking if lacks else not lacking)]


def test_the_history_is_what_its_generator_makes(tmp_path: Path) -> None:
    build().write(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == HISTORY.read_bytes()


def test_the_history_is_large_and_says_why_each_was_denied() -> None:
    assert len(rows()) >= 800
    known = {item["reason"] for item in lists(WORDS)["elements"].values()} | set(lists(WORDS)["others"])
    for row in rows():
        assert (row["outcome"] == "denied") == bool(row["reason"]) and (
            row["reason"] or "not a covered benefit"
        ) in known
        there, lacking = (set(filter(None, row[key].split("; "))) for key in ("documented", "lacking"))
        assert not there & lacking


def test_tables_and_words_name_the_same_things() -> None:
    tables = build().tables()
    assert list(tables["Payers"]) == lists(WORDS)["payers"]
    assert set(tables["Procedures"]) == set(lists(WORDS)["procedures"])
    assert set(tables["Elements"]) == set(lists(WORDS)["elements"])
    assert set(tables["Denials whatever is documented"]) == set(lists(WORDS)["others"])


@pytest.mark.parametrize("lacks", [[], ["functional limitation"], ["conservative therapy"], ["follow-up plan"]])
def test_a_share_is_counted_as_by_hand(lacks: list[str]) -> None:
    risk = analyze(NORTHGATE, KNEE, lacks)
    same = by_hand(KNEE, set(lacks), NORTHGATE)
    denied = sum(row["outcome"] == "denied" for row in same)
    assert risk["n"] == len(same) >= ENOUGH
    assert (risk["share"], risk["low"], risk["high"]) == pytest.approx(
        (denied / len(same), *wilson(denied, len(same))), abs=0.0006
    )
    for item in risk["reasons"]:
        count = sum(row["reason"] == item["reason"] for row in same)
        assert (item["share"], item["low"], item["n"]) == pytest.approx(
            (count / len(same), wilson(count, len(same))[0], len(same)), abs=0.0006
        )
        assert item["add"]
    assert sum(item["share"] for item in risk["reasons"]) == pytest.approx(risk["share"], abs=0.005)


def test_a_complete_request_is_low_and_one_without_therapy_high_and_what_to_add_is_said() -> None:
    complete, lacking = analyze(NORTHGATE, KNEE, []), analyze(NORTHGATE, KNEE, ["conservative therapy"])
    assert (complete["level"], lacking["level"]) == ("low", "high")
    assert complete["share"] < MEDIUM and lacking["share"] >= HIGH
    first = lacking["reasons"][0]
    assert first["reason"] == "conservative therapy not documented" and "was tried" in first["add"]
    assert first["base"] < first["share"]  # among all requests it is rarer than among these


def test_few_rows_widen_to_all_payers_and_it_is_told() -> None:
    own = by_hand(KNEE, {"side of the body"}, PRAIRIE)
    everybody = by_hand(KNEE, {"side of the body"})
    assert len(own) < ENOUGH <= len(everybody)
    risk = analyze(PRAIRIE, KNEE, ["side of the body"])
    assert risk["n"] == len(everybody) and f"Of {PRAIRIE} alone there are too few" in risk["told"]


def test_a_payer_that_nobody_knows_is_compared_with_all_and_it_is_told() -> None:
    risk = analyze("Some Other Plan", KNEE, [])
    assert risk["n"] == len(by_hand(KNEE, set())) and "Some Other Plan is not in the history" in risk["told"]


def test_an_element_that_the_procedure_does_not_demand_counts_as_another_criterion() -> None:
    risk = analyze(PRAIRIE, "CPAP", ["the side of the body", "laterality"])
    same = {"another criterion"}
    assert risk["n"] in (len(by_hand("CPAP for obstructive sleep apnea", same, whose)) for whose in ("", PRAIRIE))
    assert "laterality" in risk["told"]


def test_too_few_requests_of_anybody_are_unknown_and_never_low(monkeypatch: pytest.MonkeyPatch) -> None:
    own, everybody = by_hand(KNEE, {"imaging"}, PRAIRIE), by_hand(KNEE, {"imaging"})
    monkeypatch.setattr("docgemma.rcm.denials.ENOUGH", len(everybody) + 1)
    risk = analyze(PRAIRIE, KNEE, ["imaging"])
    assert risk["level"] == "unknown" and risk["share"] is risk["low"] is risk["high"] is None and risk["reasons"] == []
    assert risk["n"] == len(everybody) > len(own) and f"only {len(everybody)} requests" in risk["told"]


def test_several_things_lacked_by_few_are_at_least_as_bad_as_the_worst_of_them() -> None:
    lacks = ["billing code", "diagnosis code", "conservative therapy", "imaging"]
    assert len(by_hand(KNEE, set(lacks))) < ENOUGH
    risk = analyze(NORTHGATE, KNEE, lacks)
    worst = max(
        sum(row["outcome"] == "denied" for row in same) / len(same)
        for same in (by_hand(KNEE, {name}) for name in lacks)
    )
    assert risk["level"] == "high" and risk["share"] == pytest.approx(worst, abs=0.0006) and "at least" in risk["told"]


@pytest.mark.parametrize("procedure", ["heart transplant", "", "'; drop table history; --", "knee' or '1'='1"])
def test_a_procedure_that_is_not_in_the_history_is_unknown(procedure: str) -> None:
    risk = analyze(NORTHGATE, procedure, [])
    assert (risk["level"], risk["n"]) == ("unknown", 0)


def test_words_of_a_policy_name_the_element_and_what_is_not_known_is_told() -> None:
    said = "At least two kinds of conservative treatment were tried for 6 weeks or more."
    risk = analyze(NORTHGATE.upper(), "right knee replacement", [said])
    assert risk["n"] == analyze(NORTHGATE, KNEE, ["conservative therapy"])["n"]


def test_a_criterion_that_no_list_names_is_never_taken_for_a_complete_request() -> None:
    risk = analyze(NORTHGATE, KNEE, ["The body mass index is below 40 kg/m2."])
    assert risk["n"] == len(by_hand(KNEE, {"another criterion"})) and "body mass index" in risk["told"]
    assert risk["share"] > analyze(NORTHGATE, KNEE, [])["high"]


def test_a_missing_history_is_an_error_and_not_an_unknown_risk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rcm" / "denials"
    folder.mkdir(parents=True)
    lists(WORDS)
    (folder / "denials.csv").write_text("no,history\n1,2\n")
    monkeypatch.setenv("DOCGEMMA_DATA", str(tmp_path))
    with pytest.raises(StoreError):
        analyze(NORTHGATE, KNEE, [])
