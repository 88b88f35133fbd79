"""Drug safety and interactions, on the shipped snapshot."""

from dataclasses import replace
from itertools import combinations

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import open_knowledge
from docgemma.knowledge.base import Answer, DrugLabel, Interaction
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.paths import data_file
from docgemma.tools import ToolContext, toolbox
from docgemma.tools.drugs import DRUG_INTERACTIONS, DRUG_SAFETY, between, gravity

LONG = "A severe effect was seen in many patients and it can be fatal. " * 90


@pytest.fixture
def context(settings):
    return ToolContext(settings, store=None, knowledge=open_knowledge(settings))


@pytest.fixture
def ask(context):
    def call(*names: str, knowledge=None):
        used = replace(context, knowledge=knowledge) if knowledge else context
        if len(names) == 1:
            return toolbox().call("check_drug_safety", {"drug_name": names[0]}, used)
        return toolbox().call("check_drug_interactions", {"drug_names": list(names)}, used)

    return call


class Given:
    """A source of facts that answers as a test says; names are their own generics, or mapped."""

    def __init__(self, answer, names=None):
        self.answer, self.names = answer, names or {}

    def label(self, drug_name):
        return self.answer

    interactions = label

    def generic_name(self, drug_name):
        found = self.names.get(drug_name)
        if isinstance(found, Exception):
            raise found
        return found


def test_the_boxed_warning_comes_first(ask):
    result = ask("dofetilide")
    assert result["formatted_result"].startswith("Dofetilide has an FDA boxed warning: ")
    assert "torsade de pointes" in result["formatted_result"][:600]
    assert result["result"]["has_boxed_warning"] is True
    assert result["source"] == "label snapshot written from knowledge, not verified" and result["as_of"] == "2025-06-30"
    assert result["links"][0]["url"].startswith("https://dailymed.nlm.nih.gov/")


def test_a_known_absence_is_said_and_not_left_out(ask):
    result = ask("amlodipine")
    assert result["formatted_result"].startswith(
        "Amlodipine has no boxed warning (written from label knowledge, not verified)."
    )
    assert result["result"]["has_boxed_warning"] is False


def test_the_data_has_the_promised_keys(ask):
    assert set(ask("Coumadin")["result"]) == {
        "drug", "asked", "brand_names", "drug_classes", "boxed_warning", "has_boxed_warning", "contraindications",
        "warnings", "interactions", "max_daily_dose", "dose_rows", "condition_rows", "reference",
        "effective", "basis",
        "fell_back",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "error_type"),
    [("zzzzzz", "drug_not_in_database"), ("?", "drug_not_in_database"), ("metformn", "ambiguous_drug_name")],
)  # fmt: skip
def test_an_unknown_name_is_a_typed_error(ask, name, error_type):
    result = ask(name)
    assert result["error_type"] == error_type and result["details"]["entity"] == name


def test_a_label_that_the_source_lacks_is_not_a_label_without_warnings(ask):
    assert ask("warfarin", knowledge=Given(Answer([], "x", None)))["error_type"] == "drug_not_in_database"


def test_every_shipped_label_fits_and_its_danger_stands_in_the_head(ask):
    names = [line.split('"')[3] for line in data_file("knowledge", "drugs.jsonl").read_text().splitlines()[1:]]
    for name in names:
        result = ask(name)
        text = result["formatted_result"]
        assert len(text) <= 1500, name
        assert "check_drug" not in text
        if result["result"]["has_boxed_warning"]:
            assert result["result"]["boxed_warning"] in text[:600], name  # the edge model reads the head only


def test_a_label_as_long_as_a_real_one_is_cut_but_keeps_its_order():
    label = DrugLabel("drug", boxed_warning=LONG, contraindications=[LONG] * 9, warnings=[LONG] * 9, interactions=LONG)
    text = DRUG_SAFETY.format(label.__dict__ | {"drug": "drug", "has_boxed_warning": True, "fell_back": "timeout"})
    lines = text.splitlines()
    assert len(text) <= 1500
    assert lines[0].startswith("Drug has an FDA boxed warning") and "…" in lines[0]
    assert text.find("Drug contraindication") < 600
    assert lines[-2].endswith("further findings not shown.")
    assert "could not be reached" in lines[-1]


def test_a_fallback_is_said_in_the_text(ask):
    answer = Answer([DrugLabel("drug")], "snapshot", "2025-01-01", fell_back="timeout")
    result = ask("drug", knowledge=Given(answer))
    assert "could not be reached" in result["formatted_result"] and result["result"]["fell_back"] == "timeout"


def test_all_pairs_are_covered_the_gravest_first(ask):
    result = ask("warfarin", "aspirin", "ibuprofen")
    assert result["result"]["drugs"] == ["warfarin", "aspirin", "ibuprofen"]
    assert [item["severity"] for item in result["result"]["interactions"]] == ["major", "major", "moderate"]
    assert result["result"]["none_listed"] == []
    for pair in ("Warfarin with aspirin", "Warfarin with ibuprofen", "Aspirin with ibuprofen"):
        assert pair in result["formatted_result"]


def test_pairs_that_are_not_listed_are_named_and_never_called_safe(ask):
    result = ask("metformin", "amoxicillin")
    assert result["empty"] and result["result"]["none_listed"] == [["metformin", "amoxicillin"]]
    assert "none listed in this source" in result["formatted_result"]
    assert "safe" not in result["formatted_result"] and "no interaction" not in result["formatted_result"].lower()


def test_six_drugs_show_every_pair_within_the_bound(ask):
    names = ["warfarin", "amiodarone", "simvastatin", "clarithromycin", "colchicine", "digoxin"]
    result = ask(*names)
    text, data = result["formatted_result"], result["result"]
    assert len(text) <= 1500
    assert text.startswith("Simvastatin with clarithromycin: contraindicated interaction. Clarithromycin inhibits")
    shown = {frozenset(item["drugs"]) for item in data["interactions"]} | {frozenset(i) for i in data["none_listed"]}
    assert shown == {frozenset(pair) for pair in combinations(names, 2)}
    for a, b in [item["drugs"] for item in data["interactions"]] + data["none_listed"]:
        assert f"{a} with {b}" in text.lower()


def test_brand_and_generic_of_one_drug_are_not_two_drugs(ask):
    result = ask("Coumadin", "warfarin")
    assert result["error_type"] == "missing_required_args" and result["details"]["missing_fields"] == ["drug_names"]


def test_one_unknown_drug_does_not_hide_what_is_known_of_the_others(ask):
    result = ask("warfarin", "qqqqqq", "aspirin")
    assert result["result"]["not_checked"] == ["qqqqqq"] and len(result["result"]["interactions"]) == 1
    assert "Qqqqqq was not found in this source; its interactions were not checked." in result["formatted_result"]
    assert not result["empty"]


def test_fewer_than_two_known_drugs_are_an_error(ask):
    assert ask("warfarin", "qqqqqq")["error_type"] == "drug_not_in_database"
    assert ask("qqqqqq", "zzzzzz", "warfarin")["error_type"] == "drug_not_in_database"


def test_a_near_name_is_asked_about_before_anything_is_checked(ask):
    result = ask("warfarin", "asprin", "ibuprofen")
    assert result["error_type"] == "ambiguous_drug_name" and "aspirin" in result["details"]["suggestions"]


def pair(a: str, b: str, severity: str) -> Interaction:
    return Interaction((a, b), severity, f"The {a} label says so.", "", "ref https://x.test/y")


@pytest.mark.parametrize(
    ("found", "names"),
    [("valproic acid", {"valproate": "valproic acid", "valproic acid": "valproic acid", "aspirin": "aspirin"}),
     ("a name that nothing maps", {"valproate": "valproate", "aspirin": "aspirin"})],
)  # fmt: skip
def test_a_pair_that_the_source_names_otherwise_is_never_said_to_be_missing(ask, found, names):
    answer = Answer([pair(found, "aspirin", "avoid")], "openFDA", None)
    result = ask("valproate", "aspirin", knowledge=Given(answer, names))
    assert result["result"]["none_listed"] == [] and "none listed" not in result["formatted_result"]


def test_a_name_service_that_is_down_does_not_undo_an_answer(ask):
    answer = Answer([pair("warfarin", "aspirin", "avoid")], "openFDA", None)
    down = ToolError(ErrorType.TIMEOUT)
    result = ask("warfarin", "aspirin", knowledge=Given(answer, {"warfarin": down, "aspirin": down}))
    assert result["error"] is None and result["result"]["none_listed"] == []


def test_a_labels_own_words_are_shown_as_such_and_ranked(ask):
    records = [pair("a", "b", "monitor closely"), pair("a", "c", "contraindicated"), pair("b", "c", "avoid")]
    result = ask("a", "b", "c", knowledge=Given(Answer(records, "openFDA", None)))
    lines = result["formatted_result"].splitlines()
    assert lines[0].startswith("A with c: contraindicated interaction.")
    assert lines[1].startswith("B with c: label wording: avoid.")
    assert lines[2].startswith("A with b: label wording: monitor closely.")


@pytest.mark.parametrize(
    ("severity", "rank"),
    [("contraindicated", 0), ("Contraindicated", 0), ("major", 1), ("avoid concomitant use", 1), ("not recommended", 1),
     ("moderate", 2), ("reduce the dose", 2), ("severity not stated", 2), ("anything else", 2), ("minor", 3),
     ("monitor", 3)],
)  # fmt: skip
def test_gravity_of_wordings(severity, rank):
    assert gravity(severity) == rank


def test_fifteen_pairs_with_long_texts_stay_within_the_bound():
    drugs = ["a", "b", "c", "d", "e", "f"]
    items = [
        {"drugs": list(two), "severity": "major", "mechanism": LONG, "management": LONG, "reference": ""}
        for two in combinations(drugs, 2)
    ]
    text = DRUG_INTERACTIONS.format(
        {
            "drugs": drugs,
            "interactions": items,
            "none_listed": [],
            "not_checked": [],
            "not_covered": [],
            "fell_back": None,
        }
    )
    assert len(text) <= 1500 and text.count("major interaction") >= 13


def test_a_drug_without_any_interaction_in_the_source_is_not_covered_and_never_none_listed(ask):
    result = ask("senna", "lisinopril")
    assert result["result"]["not_covered"] == ["senna"] and not result["result"]["none_listed"] and not result["empty"]
    assert "Senna is not covered" in result["formatted_result"] and "none listed" not in result["formatted_result"]


def test_a_fact_says_how_it_was_obtained_and_never_more():
    assert DrugLabel("x").basis == "written from label knowledge, not verified"
    read = DrugLabel("x", set_id="0d6e", version="12", effective="2025-01-31")
    assert read.basis == "label 0d6e, version 12, effective 2025-01-31"


def test_a_combination_does_not_interact_with_its_own_ingredients():
    """valsartan with sacubitril/valsartan is grave of two medicines, and nothing of one."""
    entresto, valsartan = frozenset({"sacubitril", "valsartan"}), frozenset({"valsartan"})
    pair = Interaction(("valsartan", "sacubitril and valsartan"), "major", "", "", "")
    potassium = Interaction(("valsartan", "spironolactone"), "major", "", "", "")
    taken = [entresto, frozenset({"spironolactone"})]
    assert between([pair, potassium], taken, load_drug_names()) == [potassium]
    assert between([pair], [entresto, valsartan], load_drug_names()) == [pair]
