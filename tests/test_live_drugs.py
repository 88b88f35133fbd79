"""Labels, interactions and names from the stand-in of openFDA and RxNorm."""

from dataclasses import asdict

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import openfda
from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.live import LiveKnowledge
from docgemma.knowledge.openfda import Label, choose, max_daily_dose, merge, search
from docgemma.settings import Settings
from tests.standin import standin  # noqa: F401 (a fixture)


@pytest.fixture
def live(standin, tmp_path):  # noqa: F811
    knowledge = LiveKnowledge(Settings(home=tmp_path, **standin.urls))
    yield knowledge
    knowledge.close()


def error_of(work, *args) -> ToolError:
    with pytest.raises(ToolError) as caught:
        work(*args)
    return caught.value


def pairs(answer) -> dict:
    return {item.drugs: item for item in answer.records}


def test_live_knowledge_is_a_knowledge(live):
    for name in (name for name in dir(Knowledge) if not name.startswith("_")):
        assert hasattr(live, name), name


def test_a_label_has_its_sections_its_date_and_where_to_check_it(live):
    answer = live.label("dofetilide")
    label = answer.records[0]
    assert (answer.source, answer.as_of, answer.fell_back) == ("openFDA", "2026-01-31", None)
    assert label.name == "dofetilide"
    assert "continuous ECG monitoring" in label.boxed_warning
    assert "[see" not in label.boxed_warning
    assert len(label.contraindications) == 3
    assert "verapamil" in label.contraindications[2]
    assert label.warnings == ["Dofetilide can cause serious ventricular arrhythmias, primarily torsade de pointes."]
    assert label.drug_classes == ["Antiarrhythmic"]
    assert label.effective == "2024-01-15"
    assert label.reference == "https://dailymed.nlm.nih.gov/dailymed/drugInfo.cfm?setid=stand-in-dofetilide"


@pytest.mark.parametrize(
    ("asked", "generic"), [("Glucophage", "metformin"), ("METFORMIN", "metformin"), ("Tikosyn", "dofetilide")]
)
def test_a_brand_is_answered_by_its_generic(live, asked, generic):
    label = live.label(asked).records[0]
    assert label.name == generic
    assert label.boxed_warning


def test_the_single_ingredient_label_is_preferred_to_a_newer_combination(live):
    label = live.label("metformin").records[0]
    assert (label.effective, label.brand_names, label.max_daily_dose) == ("2024-05-01", ["Glucophage"], "2550 mg")


def test_a_combination_is_named_as_one(live):
    by_brand, by_part = live.label("Janumet").records[0], live.label("sitagliptin").records[0]
    assert by_brand.name == by_part.name == "metformin / sitagliptin"


def test_a_boxed_warning_is_not_missed_behind_a_newer_label_without_one(live):
    label = live.label("ibuprofen").records[0]
    assert label.boxed_warning.startswith("WARNING: RISK OF SERIOUS CARDIOVASCULAR")
    assert label.effective == "2021-04-01"  # of the label that the warning is from
    assert label.brand_names == ["Advil"]  # from the newer one
    assert label.warnings[0].startswith("Allergy alert")


def test_a_drug_named_in_a_brand_but_not_contained_is_not_taken_for_it(live):
    label = live.label("aspirin").records[0]
    assert "Aspirin Free Pain Relief" not in label.brand_names
    assert not any("acetaminophen" in warning for warning in label.warnings)


def test_a_label_without_classes_gets_them_from_rxnorm(live):
    assert live.label("warfarin").records[0].drug_classes == ["Vitamin K Antagonist"]


def test_a_boxed_warning_that_the_highlights_repeat_is_given_once(live):
    assert live.label("amiodarone").records[0].boxed_warning.count("WARNING:") == 1


def test_a_drug_that_openfda_has_no_label_of_is_an_empty_answer(live):
    assert live.label("merbromin").records == []


def test_an_almost_known_name_is_asked_about_and_never_taken(live):
    error = error_of(live.label, "metfromin")
    assert error.error_type is ErrorType.AMBIGUOUS_DRUG_NAME
    assert error.details["suggestions"][0] == "metformin"
    assert error.details["entity"] == "metfromin"
    assert len(set(error.details["suggestions"])) == len(error.details["suggestions"])
    assert [option["id"] for option in error.details["options"]] == error.details["suggestions"]
    assert not error.retryable
    assert live.generic_name("metfromin") is None


def test_an_unknown_name_is_not_in_the_database(live):
    error = error_of(live.label, "zzqqx")
    assert (error.error_type, error.details["entity"]) == (ErrorType.DRUG_NOT_IN_DATABASE, "zzqqx")
    assert live.generic_name("zzqqx") is None


def test_a_name_of_two_drugs_is_asked_about(live):
    error = error_of(live.label, "demo homonym")
    assert error.details["suggestions"] == ["amlodipine", "lisinopril"]
    assert error_of(live.generic_name, "demo homonym").error_type is ErrorType.AMBIGUOUS_DRUG_NAME


@pytest.mark.parametrize("name", ["", "  ", "123", "--", "x" * 201])
def test_a_name_without_letters_or_without_end_is_refused(live, name):
    assert error_of(live.label, name).error_type is ErrorType.INVALID_ARGS


@pytest.mark.parametrize(
    "name", ['warf" OR "a', 'a"b', "war\\farin\\", "x AND _exists_:boxed_warning", "(warfarin)", "[a TO z]"]
)
def test_a_name_cannot_leave_its_quotes(live, standin, name):  # noqa: F811
    error_of(live.label, name)
    for params in standin.asked("label.json"):
        assert params["search"].count('"') == 6
        assert params["search"].count("\\") == 0
        quoted = params["search"].split('"')[1]
        assert not set(quoted) & set('"\\:()[]{}*?^~!&|/')


@pytest.mark.parametrize(
    ("asked", "generic"),
    [("Coumadin", "warfarin"), ("warfarin", "warfarin"), ("metformin hydrochloride", "metformin"),
     ("Janumet", "metformin / sitagliptin"), ("nonsense", None), ("", None), ("x" * 500, None)],
)  # fmt: skip
def test_generic_names_are_known_or_none(live, asked, generic):
    assert live.generic_name(asked) == generic


def test_the_three_drugs_of_the_demo_interact_pairwise(live):
    answer = live.interactions(["warfarin", "aspirin", "ibuprofen"])
    found = pairs(answer)
    assert list(found) == [("warfarin", "aspirin"), ("warfarin", "ibuprofen"), ("aspirin", "ibuprofen")]
    first = found["warfarin", "aspirin"]
    assert first.severity == "closely monitor"
    assert "closely monitor patients receiving any such drug" in first.management
    assert "aspirin, clopidogrel" in first.mechanism
    assert first.reference.endswith("stand-in-warfarin")
    assert found["aspirin", "ibuprofen"].severity == "not generally recommended"
    assert (answer.source, answer.as_of) == ("openFDA", "2026-01-31")


def test_both_directions_are_read_and_the_gravest_wins(live):
    # the warfarin label says "closely monitor", the amiodarone label to reduce the dose
    for names in (["warfarin", "amiodarone"], ["amiodarone", "warfarin"]):
        found = live.interactions(names).records[0]
        assert found.drugs == tuple(names)
        assert found.severity == "reduce warfarin dose"
        assert "The amiodarone label says" in found.mechanism
        assert "The warfarin label says" in found.mechanism
        assert found.reference.endswith("stand-in-amiodarone")


def test_a_class_is_found_where_the_drug_is_not_named(live):
    found = live.interactions(["amoxicillin", "warfarin"]).records[0]
    assert "of the class of warfarin (Vitamin K Antagonist)" in found.mechanism
    found = live.interactions(["lisinopril", "ibuprofen"]).records[0]
    assert "Nonsteroidal Anti-inflammatory Drug" in found.mechanism


def test_a_pair_that_no_label_speaks_of_is_not_in_the_answer(live):
    answer = live.interactions(["lisinopril", "amlodipine"])
    assert answer.records == []
    assert pairs(live.interactions(["lisinopril", "amlodipine", "ibuprofen"])).keys() == {("lisinopril", "ibuprofen")}


def test_brands_and_generics_of_the_same_drug_are_one(live):
    assert error_of(live.interactions, ["Coumadin", "warfarin"]).error_type is ErrorType.INVALID_ARGS
    assert error_of(live.interactions, ["warfarin"]).error_type is ErrorType.INVALID_ARGS
    assert len(live.interactions(["Coumadin", "warfarin", "aspirin"]).records) == 1


def test_an_unknown_drug_among_several_is_named(live):
    error = error_of(live.interactions, ["warfarin", "zzqqx"])
    assert (error.error_type, error.details["entity"]) == (ErrorType.DRUG_NOT_IN_DATABASE, "zzqqx")


def test_a_drug_without_a_label_is_never_no_interaction(live):
    error = error_of(live.interactions, ["merbromin", "warfarin"])
    assert (error.error_type, error.details["entity"]) == (ErrorType.DRUG_NOT_IN_DATABASE, "merbromin")


def test_a_combination_does_not_interact_with_its_own_part(live):
    assert live.interactions(["Janumet", "metformin"]).records == []
    # openFDA has sitagliptin in combination only, and that label says much about metformin
    assert live.interactions(["sitagliptin", "metformin"]).records == []


def test_the_second_question_is_answered_from_the_cache_with_the_same_date(live, standin, tmp_path):  # noqa: F811
    first = live.label("warfarin")
    asked = len(standin.requests)
    again = LiveKnowledge(Settings(home=tmp_path, **standin.urls))
    assert asdict(again.label("warfarin").records[0]) == asdict(first.records[0])
    assert again.label("warfarin").as_of == "2026-01-31"
    again.close()
    assert len(standin.requests) == asked


# pure parts


def test_the_query_asks_every_field_for_every_name():
    assert search(["Coumadin", "warfarin"]).count("OR") == 5
    assert search(["warfarin"]) == (
        '(openfda.generic_name:"warfarin" OR openfda.brand_name:"warfarin" OR openfda.substance_name:"warfarin")'
    )


def of(generic="", substances=(), brand="", day="20240101", **sections):
    block = {"generic_name": [generic] if generic else [], "substance_name": list(substances), "brand_name": [brand]}
    return Label.model_validate(
        {"set_id": f"{generic}{brand}{day}", "effective_time": day, "openfda": block, **sections}
    )


def test_choosing_prefers_single_ingredients_and_the_newest():
    single = of("WARFARIN SODIUM", ["WARFARIN SODIUM"], day="20200101")
    newer = of("WARFARIN SODIUM", ["WARFARIN SODIUM"], day="20230101")
    combination = of("WARFARIN AND X", ["WARFARIN", "X"], day="20250101")
    assert choose([single, combination, newer], ["warfarin"]) == [newer, single]
    assert choose([combination], ["warfarin"]) == [combination]


@pytest.mark.parametrize(
    ("asked", "generic", "brand", "taken"),
    [
        ("estradiol", "ETHINYL ESTRADIOL", "X", False),
        ("ethinyl estradiol", "ETHINYL ESTRADIOL", "X", True),
        ("aspirin", "ACETAMINOPHEN", "Non-Aspirin", False),
        ("warfarin", "WARFARIN SODIUM", "X", True),
        ("morphine", "MORPHINES", "X", False),
        ("advil", "IBUPROFEN", "Advil Liqui-Gels", True),
    ],
)
def test_a_label_is_of_the_drug_only_if_its_names_begin_so(asked, generic, brand, taken):
    assert bool(choose([of(generic, [generic], brand)], [asked])) is taken


def test_an_unharmonised_label_has_no_names_and_is_not_chosen():
    assert choose([Label.model_validate({"openfda": {}, "boxed_warning": ["x"]})], ["warfarin"]) == []


def test_a_section_that_the_leading_label_lacks_comes_from_the_next():
    first = of("X", ["X"], day="20240101", boxed_warning=["WARNING: A"])
    second = of("X", ["X"], day="20250101", contraindications=["4 CONTRAINDICATIONS B."])
    merged = merge([second, first], "x", [])
    assert (merged.boxed_warning, merged.contraindications, merged.effective) == ("WARNING: A", ["B."], "2024-01-01")


@pytest.mark.parametrize(("day", "iso"), [("20240115", "2024-01-15"), ("", None), ("2024", None), ("soon", None)])
def test_dates_are_iso_or_none(day, iso):
    assert of("X", day=day).effective == iso


@pytest.mark.parametrize(
    ("text", "dose"),
    [
        ("The maximum recommended daily dose is 2550 mg.", "2550 mg"),
        ("The maximum daily dosage of metformin is 2,550mg.", "2550 mg"),
        ("Do not exceed 3200 mg per day.", "3200 mg"),
        ("The maximum daily dose is 40 mg. The maximum daily dose is 80 mg in some.", ""),
        ("In pediatric patients the maximum daily dose is 2000 mg.", ""),
        ("In renal impairment the maximum daily dose is 20 mg.", ""),
        ("The maximum daily dose is 10 mg/kg.", ""),
        ("Take one tablet.", ""),
        ("", ""),
    ],
)
def test_a_maximum_dose_is_one_unconditional_number_or_nothing(text, dose):
    assert max_daily_dose(text) == dose


@pytest.mark.parametrize(
    ("substances", "name"),
    [
        (["WARFARIN SODIUM"], "warfarin"),
        (["AMLODIPINE BESYLATE"], "amlodipine"),
        (["POTASSIUM CHLORIDE"], "potassium chloride"),
        (["SITAGLIPTIN PHOSPHATE", "METFORMIN HYDROCHLORIDE"], "metformin / sitagliptin"),
    ],
)
def test_the_generic_name_of_a_label_is_without_its_salt(substances, name):
    assert openfda.generic_of([of("x", substances)]) == name
