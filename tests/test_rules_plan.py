"""The plan of a turn: who is meant, charts, knowledge, entries, in this order; what was done is not done again."""

import pytest

from docgemma.rules.plan import MAX_DRUGS, MAX_STEPS, complete, is_repeat, missing, planned, runnable, same
from docgemma.tools import toolbox
from tests.rules_help import chart, drug, failed, order, patient_found, person, request, result, turn

WRITES = {"prescribe_medication", "add_allergy", "save_clinical_note"}
JOHN = person(search="John Smith")
SMITH = [person()]
ORDER = order("lisinopril", "10 mg", "once daily")


def tools(*asks: str, results=(), **given) -> list[str]:
    return [step.tool for step in missing(turn(request(*asks, **given), *results))]


PLANS = [
    ("a value of a patient by id", ["labs"], {"patients": SMITH}, ["get_patient_chart"]),
    ("a value of a patient by name", ["labs"], {"patients": [JOHN]}, ["search_patient", "get_patient_chart"]),
    ("only who", ["find"], {"patients": SMITH}, ["search_patient"]),
    ("a name that several have", ["labs"], {"unclear": ["James Wilson"]}, ["search_patient"]),
    ("two charts", ["labs"], {"patients": [*SMITH, person("def-456", "Maria Garcia")]}, ["get_patient_chart"] * 2),
    ("a label", ["safe"], {"drugs": [drug("metformin")]}, ["check_drug_safety"]),
    ("a pair", ["ddi"], {"drugs": [drug("warfarin"), drug("aspirin")]}, ["check_drug_interactions"]),
    ("literature", ["lit"], {"query": "SGLT2 in heart failure"}, ["search_medical_literature"]),
    ("trials", ["trial"], {"conditions": ["asthma"]}, ["find_clinical_trials"]),
    ("an order", ["rx"], {"patients": SMITH, "orders": [ORDER], "meant": "ordered"}, ["prescribe_medication"]),
    ("two orders", ["rx"], {"patients": SMITH, "orders": [ORDER, ORDER], "meant": "ordered"},
     ["prescribe_medication"] * 2),
    ("an allergy", ["allergy"], {"patients": SMITH, "allergies": [{"substance": "penicillin"}], "meant": "ordered"},
     ["add_allergy"]),
    ("manners", ["chat"], {}, []), ("knowledge", ["gk"], {}, []), ("nothing", [], {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("asks", "given", "expected"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS])
def test_each_ask_has_its_steps(asks, given, expected) -> None:
    assert tools(*asks, **given) == expected


@pytest.mark.parametrize("meant", ["asked", "refused", "unsure", ""])
@pytest.mark.parametrize("ask", ["rx", "allergy", "note"])
def test_only_what_is_plainly_ordered_is_ever_a_card(ask: str, meant: str) -> None:
    given = {"orders": [ORDER], "allergies": [{"substance": "penicillin"}], "notes": [{"note_text": "Well."}]}
    state = turn(request(ask, meant=meant, patients=SMITH, **given))
    assert not {step.tool for step in planned(state)} & WRITES and not runnable(state) & WRITES


def test_cancelled_and_unclear_orders_are_no_card() -> None:
    given = {"orders": [ORDER], "meant": "ordered"}
    assert not set(tools("rx", "cancel", patients=SMITH, **given)) & WRITES
    assert not set(tools("rx", unclear=["James Wilson"], **given)) & WRITES


def test_whether_a_drug_suits_reads_the_chart_before_the_interactions() -> None:
    given = {"patients": SMITH, "drugs": [drug("ibuprofen")]}
    assert tools("may", **given)[0] == "get_patient_chart"
    steps = missing(turn(request("may", **given), chart("warfarin", "metformin")))
    pairs = next(step for step in steps if step.tool == "check_drug_interactions")
    assert pairs.args["drug_names"] == ["ibuprofen", "warfarin", "metformin"], "with everything active"


def test_no_check_asks_for_more_drugs_than_it_may() -> None:
    drugs = [drug(name) for name in "abcdefghijk"]
    (step,) = planned(turn(request("ddi", drugs=drugs)))
    assert len(step.args["drug_names"]) == MAX_DRUGS


def test_what_failed_is_not_tried_again_by_the_plan() -> None:
    asked = request("safe", drugs=[drug("metformin")])
    assert missing(turn(asked, failed("check_drug_safety", "timeout", {"drug_name": "metformin"}))) == []


def test_entries_are_counted_whatever_was_changed_on_the_card() -> None:
    asked = request("rx", patients=SMITH, orders=[ORDER, order("aspirin", "75 mg", "od")], meant="ordered")
    changed = {"patient_id": "abc-123", "medication_name": "enalapril", "dosage": "5 mg", "frequency": "twice daily"}
    one = result("prescribe_medication", changed)
    (left,) = missing(turn(asked, one))
    assert left.args["medication_name"] == "aspirin" and missing(turn(asked, one, one)) == []
    rejected = result("prescribe_medication", changed, data={"decision": "rejected"})
    assert missing(turn(asked, rejected, rejected)) == []


def test_a_search_that_a_model_worded_itself_is_done() -> None:
    asked = request("lit", query="SGLT2 inhibitors heart failure")
    assert missing(turn(asked, result("search_medical_literature", {"query": "gliflozins in HFrEF"}))) == []


def test_an_order_that_failed_beside_one_that_was_made_hides_none() -> None:
    """Two orders without a patient: the first asks, is completed and written; the second is still to come."""
    orders = [order("lisinopril", "10 mg", "once daily"), order("aspirin", "75 mg", "once daily")]
    asked = request("rx", patients=SMITH, orders=orders, meant="ordered")
    refused = failed("prescribe_medication", "missing_required_args", {"medication_name": "lisinopril"})
    written = result("prescribe_medication", {"patient_id": "abc-123", "medication_name": "lisinopril"})
    assert [step.args["medication_name"] for step in missing(turn(asked, refused, written))] == ["aspirin"]


def test_a_turn_ends_at_its_limit_of_calls() -> None:
    asked = request("labs", patients=SMITH)
    assert not complete(turn(asked, step_count=MAX_STEPS - 1)) and complete(turn(asked, step_count=MAX_STEPS))
    assert MAX_STEPS == 8


def test_somebody_who_is_named_wins_over_the_open_patient() -> None:
    state = turn(
        request("labs", patients=[person("def-456", "Maria Garcia")]), active_patient={"id": "abc-123", "name": "J"}
    )
    assert [step.args for step in planned(state)] == [{"patient_id": "def-456"}]
    nobody = turn(request("labs", unclear=["Q. Zzyzx"]), active_patient={"id": "abc-123", "name": "J"})
    assert [step.tool for step in planned(nobody)] == ["search_patient"]


def test_a_pronoun_means_the_open_patient() -> None:
    state = turn(request("meds"), active_patient={"id": "abc-123", "name": "John Smith"})
    assert [step.args for step in planned(state)] == [{"patient_id": "abc-123"}]


def test_a_repeat_is_the_same_call_that_succeeded() -> None:
    done = result("check_drug_interactions", {"drug_names": ["Warfarin", "aspirin"]})
    state = turn(request("ddi"), done)
    assert is_repeat("check_drug_interactions", {"drug_names": ["aspirin", "warfarin "]}, state)
    assert not is_repeat("check_drug_interactions", {"drug_names": ["aspirin", "ibuprofen"]}, state)
    assert not is_repeat(
        "check_drug_safety", {"drug_name": "x"}, turn(request(), failed("check_drug_safety", "timeout"))
    )
    assert same({"a": "", "b": None}) == same({})


def test_every_planned_tool_exists() -> None:
    for _, asks, given, _ in PLANS:
        assert {step.tool for step in planned(turn(request(*asks, **given), patient_found()))} <= set(toolbox().tools)
