"""Reading a label for another drug: what counts as a finding, how grave it is, and what is quoted."""

from dataclasses import replace

import pytest

from docgemma.knowledge.base import LabelSection
from docgemma.knowledge.label_interactions import UNGRADED, Drug, find, wordings
from docgemma.knowledge.label_text import around, boxed, clip, items, section, sentences, subsections

OWN = Drug("owndrug", ("owndrug",), classes=("Nonsteroidal Anti-inflammatory Drug [EPC]",))
WARFARIN = Drug("warfarin", ("warfarin",), ("Coumadin",), ("Vitamin K Antagonist [EPC]",))
ASPIRIN = Drug("aspirin", ("aspirin",), (), ("Nonsteroidal Anti-inflammatory Drug [EPC]",))
FLUCONAZOLE = Drug("fluconazole", ("fluconazole",), (), ("Cytochrome P450 3A4 Inhibitors [MoA]",))


def read(text, other=WARFARIN, field="drug_interactions"):
    return find(replace(OWN, sections={field: LabelSection(section([text]))}), other)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("Use with warfarin is contraindicated.", "contraindicated"),
        ("Do not use with warfarin.", "do not use"),
        ("Warfarin should not be co-administered.", "should not be co-administered"),
        ("Avoid concomitant use with warfarin.", "avoid concomitant use"),
        ("Concomitant use with warfarin should be avoided.", "avoided"),
        ("Use with warfarin is not recommended.", "not recommended"),
        ("Reduce the dose of warfarin by half.", "reduce the dose"),
        ("A dose reduction of warfarin may be needed.", "dose reduction"),
        ("Do not exceed warfarin 5 mg daily.", "do not exceed warfarin 5 mg daily"),
        ("Closely monitor INR in patients on warfarin.", "closely monitor"),
        ("Use caution with warfarin.", "use caution"),
        ("Warfarin: increases the risk of bleeding.", "increases the risk"),
        ("Warfarin levels rose by 20% in a study.", UNGRADED),
        ("Use with warfarin is not contraindicated but monitor INR.", "monitor"),
        ("With Coumadin, monitor INR.", "monitor"),
        ("With COUMADIN, monitor INR.", "monitor"),
    ],
)
def test_severity_is_in_the_labels_own_words(text, severity):
    assert read(text).severity == severity


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Monitor digoxin levels.",
        "Warfarin did not affect the pharmacokinetics of owndrug.",
        "No clinically significant interaction with warfarin was seen.",
        "No dose adjustment is needed with warfarin.",
        "Acenowarfarin is another drug.",
        "Patients on coumadinol.",
    ],
)
def test_no_mention_and_a_denied_effect_are_no_finding(text):
    assert read(text) is None


def test_a_denial_does_not_hide_a_warning_beside_it():
    assert read("Warfarin did not affect owndrug. Warfarin with owndrug: monitor INR.").severity == "monitor"


@pytest.mark.parametrize("field", ["contraindications", "warnings", "boxed_warning"])
def test_an_allergy_to_the_other_drug_is_not_an_interaction(field):
    assert read("Do not use in patients with asthma or allergic-type reactions after aspirin.", ASPIRIN, field) is None


def test_a_contraindication_to_receiving_both_is_found_beside_an_allergy():
    text = "Contraindicated in patients allergic to it and in patients receiving aspirin."
    assert read(text, ASPIRIN, "contraindications").severity == "contraindicated"


def test_what_stands_among_the_contraindications_is_contraindicated():
    assert read("Concomitant warfarin.", field="contraindications").severity == "contraindicated"


def test_advice_in_the_next_sentence_belongs_to_the_mention():
    found = read("Warfarin Potentiates the response. Reduce warfarin dose by half. Phenytoin Levels rise. Avoid use.")
    assert (found.severity, found.management) == ("reduce warfarin dose", "Reduce warfarin dose by half.")


def test_advice_on_another_drug_is_not_taken():
    found = read("Warfarin levels rise. Phenytoin is contraindicated.")
    assert found.severity == UNGRADED
    assert found.management == ""


def test_advice_above_a_table_holds_for_its_rows():
    text = (
        "7.3 Drugs that Increase Bleeding Risk Closely monitor patients receiving any such drug. "
        "Table 3: Anticoagulants argatroban, heparin, warfarin, dabigatran"
    )
    assert read(text).severity == "closely monitor"


def test_advice_of_another_subsection_is_not_taken():
    text = "7.1 Statins Closely monitor patients on any such drug. 7.2 Others argatroban, heparin, warfarin, dabigatran"
    assert read(text).severity == UNGRADED


def test_a_row_of_a_table_does_not_lend_its_gravity_to_the_next():
    text = "Antifungals: Fluconazole No Dose Adjustment Antigout: Colchicine Contraindicated Statins: Simvastatin Avoid"
    assert read(text, Drug("fluconazole", ("fluconazole",))) is None
    assert read(text, Drug("colchicine", ("colchicine",))).severity == "contraindicated"


def test_the_gravest_finding_of_all_sections_is_given():
    sections = {
        "drug_interactions": LabelSection("With warfarin, monitor INR."),
        "boxed_warning": LabelSection("Do not use with warfarin."),
    }
    assert find(replace(OWN, sections=sections), WARFARIN).severity == "do not use"


def test_a_class_is_found_and_named():
    found = read("Anticoagulants: monitor closely.")
    assert (found.severity, found.by_class) == ("monitor closely", "Vitamin K Antagonist [EPC]")


def test_an_adjective_is_not_a_class():
    assert read("Cimetidine may increase the anticoagulant response.") is None


def test_the_labels_own_class_is_not_the_other_drug():
    assert read("NSAIDs increase the risk of bleeding.", ASPIRIN) is None
    assert read("Avoid use with other NSAIDs.", ASPIRIN).by_class == "Nonsteroidal Anti-inflammatory Drug [EPC]"


def test_what_is_said_of_some_of_a_class_is_not_claimed_of_all():
    found = read("Strong CYP3A4 inhibitors are contraindicated.", FLUCONAZOLE)
    assert found.severity == "contraindicated for some of its class"
    named = read("Strong CYP3A4 inhibitors are contraindicated. With fluconazole, reduce the dose.", FLUCONAZOLE)
    assert named.severity == "reduce the dose"


def test_a_drug_does_not_interact_with_a_name_it_shares():
    sections = {"drug_interactions": LabelSection("Avoid metformin.")}
    combination = Drug("metformin / sitagliptin", ("janumet", "metformin", "sitagliptin"), sections=sections)
    assert find(combination, Drug("metformin", ("metformin",))) is None


def test_a_name_with_signs_in_it_is_only_a_name():
    assert read("Avoid a.b*", Drug("a.b*", ("a.b*", "(", "[x"))) is not None
    assert read("Avoid axb", Drug("a.b*", ("a.b*",))) is None


def test_quotes_are_bounded_and_contain_the_drug():
    long = ", ".join(f"drug{number}" for number in range(200))
    found = read(f"Table 1 {long}, warfarin, {long}.")
    assert len(found.quote) < 400
    assert "warfarin" in found.quote
    assert found.quote.startswith("…")
    assert found.quote.endswith("…")


def test_hostile_text_is_read_in_reasonable_time():
    # quadratic patterns would not come back
    for text in ("(see " * 20_000, "[" * 50_000, "a, " * 50_000 + "warfarin", "1.1 " * 20_000, "<a" * 50_000):
        read(text)


# plain text


def test_a_section_loses_its_heading_references_and_markup():
    text = "7 DRUG INTERACTIONS <b>Warfarin</b> [see Warnings (5.1)] potentiates ( 7 , 12.3 ) . (see WARNINGS)"
    assert section([text]) == "Warfarin potentiates."


@pytest.mark.parametrize("text", ["a value of (5 mg)", "(n = 12)", "WARNING: BLEEDING"])
def test_what_is_not_a_reference_stays(text):
    assert section([text]) == text


def test_invisible_and_control_characters_go():
    assert section(["war\u200bning\x00 \u202eleft"]) == "warning left"


def test_a_boxed_warning_is_kept_where_it_is_not_repeated():
    assert boxed(["WARNING: A See full prescribing information for complete boxed warning."]).startswith("WARNING: A")


def test_abbreviations_do_not_end_a_sentence():
    assert sentences("Drugs (e.g. Aspirin) and St. John's wort. Next one.") == [
        "Drugs (e.g. Aspirin) and St. John's wort.",
        "Next one.",
    ]


def test_numbered_subsections_are_parts_and_numbers_in_text_are_not():
    assert subsections("First. 7.1 Nitrates Avoid. 7.2 Alcohol Fine.") == ["First.", "Nitrates Avoid.", "Alcohol Fine."]
    assert subsections("An INR of 2.5 In the study.") == ["An INR of 2.5 In the study."]


def test_list_items_are_unique_and_bounded():
    assert items("A is bad. A is bad. B is worse.") == ["A is bad.", "B is worse."]
    assert all(len(item) <= 50 for item in items("word " * 200, 50))
    assert items("") == []


def test_clipping_cuts_at_words():
    assert clip("one two three", 8) == "one…"
    assert clip("short", 8) == "short"
    assert "needle" in around("hay " * 300 + "needle " + "hay " * 300, 1200, 1206, 100)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Vitamin K Antagonist [EPC]", "vitamin"),
        ("Unheard-of Class [EPC]", "unheard"),
        ("Cytochrome P450 3A4 Inhibitors [MoA]", "CYP"),
        ("P-Glycoprotein Inhibitors [MoA]", "P-?"),
    ],
)
def test_every_class_has_a_wording(name, expected):
    assert any(expected in word for word in wordings(name))


def test_no_class_has_none():
    assert wordings("") == []
    assert wordings(" [EPC]") == []
