"""Interactions on the approval card, from the shipped snapshot: listed, none listed, and unknown are three things."""

import pytest

from docgemma.agent import Agent
from docgemma.errors import ErrorType, ToolError
from docgemma.nodes.context import Context
from docgemma.nodes.interactions import check_interactions
from docgemma.nodes.write_findings import findings_for


@pytest.fixture
def context(agent: Agent) -> Context:
    return Context(
        llm=agent.llm, toolbox=agent.toolbox, store=agent.store, knowledge=agent.knowledge,
        drugs=agent.drugs, reader=agent.reader, settings=agent.settings, thread="t",
    )  # fmt: skip


def active(*names: str) -> list[dict]:
    return [{"name": name, "active": True} for name in names]


def test_a_pair_that_the_snapshot_does_not_list_reads_as_none_listed_with_source_and_date(context: Context) -> None:
    checked = check_interactions("doxycycline", active("propranolol"), context)
    assert checked.found == [] and checked.unknown == []
    assert checked.none_listed == {
        "propranolol": "label snapshot written from knowledge, not verified, as of 2025-06-30"
    }


def test_a_drug_that_the_snapshot_does_not_know_stays_unknown_and_hides_no_other_pair(context: Context) -> None:
    checked = check_interactions("ibuprofen", active("melperone", "propranolol 40 mg", "warfarin"), context)
    assert checked.unknown == ["melperone"]
    assert [item.severity.lower() for item in checked.found if "warfarin" in item.drugs] == ["major"]
    assert "melperone" not in checked.none_listed and "warfarin" not in checked.none_listed


def test_an_ordered_drug_that_is_not_in_the_snapshot_is_checked_with_nothing(context: Context) -> None:
    checked = check_interactions("melperone", active("propranolol", "warfarin"), context)
    assert checked.unknown == ["propranolol", "warfarin"] and checked.none_listed == {}


def test_a_combination_is_looked_up_as_a_whole_too(context: Context) -> None:
    """The snapshot lists the combination and not sulfamethoxazole alone."""
    checked = check_interactions("Bactrim", active("warfarin"), context)
    assert [item.severity.lower() for item in checked.found] == ["major"] and checked.unknown == []


def test_only_active_medications_count_and_the_same_drug_is_no_interaction(context: Context) -> None:
    stopped = [{"name": "warfarin", "active": False}]
    checked = check_interactions("ibuprofen", [*stopped, *active("Advil 200 mg")], context)
    assert (checked.found, checked.unknown, checked.none_listed) == ([], [], {})


def test_an_outage_is_never_none_listed(context: Context, monkeypatch) -> None:
    def unreachable(drug_names: list[str]):
        raise ToolError(ErrorType.SERVICE_UNAVAILABLE)

    monkeypatch.setattr(context.knowledge, "interactions", unreachable)
    checked = check_interactions("doxycycline", active("propranolol"), context)
    assert checked.found is None and checked.none_listed == {}
    args = {"patient_id": "ghi-789", "medication_name": "doxycycline", "dosage": "100 mg", "frequency": "twice daily"}
    findings = findings_for(args, context)
    assert "interactions of doxycycline with the active medications (the look-up failed)" in findings[-1]
    assert not any("is listed" in line for line in findings)


def test_the_card_says_what_is_not_listed_and_what_could_not_be_checked_comes_last(context: Context) -> None:
    args = {"patient_id": "ghi-789", "medication_name": "doxycycline", "dosage": "100 mg", "frequency": "twice daily"}
    findings = findings_for(args, context)
    assert findings[-1] == "Could not be checked: the allergy to latex (no known drug or class)."
    (none,) = [line for line in findings if "nothing is listed" in line]
    assert none.startswith("Doxycycline with propranolol, cetirizine:")
    assert "label snapshot written from knowledge, not verified, as of 2025-06-30" in none and "does not prove" in none
