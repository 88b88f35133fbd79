"""What a chart says to what was asked: values first, whole lists, and "not recorded" only where nothing is."""

from datetime import date

import pytest

from docgemma.rules.chart_answer import chart_lines
from docgemma.rules.chart_entries import MANY, overview
from tests.rules_help import allergic, chart_of, dictionary, drug, measured, order, problem, request, taken

TODAY = date(2026, 11, 22)
POTASSIUM = measured(
    "Potassium", "5.9", "mmol/L", flag="high",
    earlier=[{"value": "5.1", "date": "2026-04-06"}, {"value": "4.8", "date": "2025-10-01"}],
)  # fmt: skip
CHART = chart_of(
    "metformin", labs=[POTASSIUM, measured("Creatinine", "1.78", "mg/dL", flag="high")],
    vitals=[measured("Blood pressure", "138/84", "mmHg"), measured("Body weight", "91", "kg")],
    conditions=[problem("Type 2 diabetes mellitus"), problem("Gout", active=False)],
    allergies=[allergic("sulfamethoxazole", "rash", "mild"), allergic("penicillin", "anaphylaxis", "severe")],
    notes=[{"type": "Progress note", "date": "2026-10-12", "author": "Dr. Ray", "text": "Feels well. No falls."}],
    social=[measured("Tobacco smoking status", "Never smoked")],
    immunizations=[{"name": "Influenza, seasonal", "date": "2026-10-12"}],
)  # fmt: skip
EMPTY = chart_of()


def lines(*asks: str, chart=CHART, **given) -> list[str]:
    return chart_lines(request(*asks, **given), chart, dictionary(), TODAY)


def said(*asks: str, **given) -> str:
    return "\n".join(lines(*asks, **given))


@pytest.mark.parametrize("measure", ["potassium", "k+", "K", "serum potassium"])
def test_a_value_comes_first_with_unit_flag_date_and_the_values_before(measure: str) -> None:
    first = lines("labs", measures=[measure], said=f"{measure}?")[0]
    assert all(part in first for part in ("5.9 mmol/L", "high", "2026-10-12", "5.1 (2026-04-06)", "4.8 (2025-10-01)"))
    assert "Creatinine" not in first


@pytest.mark.parametrize(("values", "word"), [(("4.8", "5.1", "5.9"), "Rising"),
                                              (("5.9", "5.1", "4.8"), "Falling"),
                                              (("4.8", "5.9", "5.1"), ""),
                                              (("4.8", "5.1", "see report"), "")])  # fmt: skip
def test_a_direction_is_said_only_where_all_values_go_one_way(values: tuple[str, str, str], word: str) -> None:
    earlier = [{"value": values[1], "date": "2026-04-06"}, {"value": values[0], "date": "2025-10-01"}]
    chart = chart_of(labs=[measured("Potassium", values[2], earlier=earlier)])
    text = said("labs", measures=["potassium"], chart=chart)
    assert (word in text) if word else ("Rising" not in text and "Falling" not in text)


ASKED = [
    ("meds", "metformin"), ("alg", "penicillin (anaphylaxis, severe)"), ("prob", "Type 2 diabetes mellitus"),
    ("vit", "138/84 mmHg"), ("labs", "1.78 mg/dL"), ("notes", "No falls"), ("imm", "Influenza"),
    ("soc", "Never smoked"),
    ("demo", "1958-04-12"), ("seen", "2026-10-12"), ("chart", "metformin"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "fact"), ASKED)
def test_each_topic_gives_its_entries(ask: str, fact: str) -> None:
    assert fact in said(ask)


@pytest.mark.parametrize("ask", [ask for ask, _ in ASKED if ask not in ("demo", "chart")])
def test_each_empty_topic_says_that_nothing_is_recorded(ask: str) -> None:
    text = said(ask, chart=EMPTY)
    assert "recorded" in text and "No" in text


def test_no_recorded_allergy_is_not_no_allergy() -> None:
    assert "not documented that there are none" in said("alg", chart=EMPTY)
    assert "No known allergies" in said("alg", chart=chart_of(no_known_allergies=True))


def test_the_worst_allergy_comes_first() -> None:
    text = said("alg")
    assert text.index("penicillin") < text.index("sulfamethoxazole")


def test_the_age_is_counted_to_the_day_and_not_for_the_dead() -> None:
    assert "68 years old" in said("demo")
    assert "years old" not in said("demo", chart=chart_of(deceased="2026-03-22"))


def test_a_long_list_says_how_many_more_there_are() -> None:
    many = [measured(f"Analyte {number}", "1") for number in range(MANY + 7)]
    assert "And 7 more." in lines("labs", chart=chart_of(labs=many))


def test_a_value_that_is_not_recorded_is_said_to_be_not_recorded_and_no_other_value_stands_for_it() -> None:
    text = said("labs", measures=["sodium"], said="sodium?")
    assert "5.9" not in text and "1.78" not in text and ("Not among" in text or "ot recorded" in text)


def test_a_medicine_by_its_brand_is_the_one_on_record() -> None:
    assert "metformin" in lines("meds", measures=["Glucophage"])[0].lower()
    assert "not among the recorded medications" in said("meds", measures=["warfarin"])


def test_a_past_medicine_is_not_an_active_one() -> None:
    chart = chart_of(medications=[taken("warfarin", active=False)])
    text = said("meds", chart=chart)
    assert "Past medication" in text and "Active medication" not in text


def test_every_sentence_of_the_overview_comes_from_the_chart() -> None:
    told = overview(CHART)
    assert told.index(next(line for line in told if "penicillin" in line)) == 0
    for fact in ("metformin", "5.9", "138/84", "No falls", "Influenza", "Never smoked"):
        assert any(fact in line for line in told), fact


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("bp, and his goal?", "No target is recorded."),
        ("when was his metformin last given", "The date on which metformin was last given or taken is not recorded"),
        ("when is his next k due", "When the next one is due is not recorded."),
        ("which pharmacy does he use", "A chart as it is read here holds no pharmacy"),
        ("who is he, and his k?", "Active problems: Type 2 diabetes mellitus"),
    ],
)
def test_what_is_asked_beyond_a_value_is_shown_or_said_to_be_missing(question: str, told: str) -> None:
    assert told in said("vit", said=question, drugs=[drug("metformin")] * ("metformin" in question))


def test_the_note_that_holds_a_target_is_shown() -> None:
    note = {"type": "Clinic note", "date": "2026-11-09", "author": "", "text": "INR 2.6 at a target of 2 to 3."}
    found = said("labs", chart=chart_of("warfarin", notes=[note]), measures=["inr"], said="inr and target?")
    assert "at a target of 2 to 3" in found
    assert "No target is recorded" not in found
    ordered = [order("warfarin", "5 mg", "once daily")]
    assert "target" not in said("labs", chart=CHART, orders=ordered, said="warfarin 5 mg od, inr not on target")


def test_of_a_group_every_measure_is_given_or_said_to_be_missing() -> None:
    found = said("labs", measures=["renal panel"], said="renal panel?")
    assert "Creatinine: 1.78" in found
    assert "Not among the results: egfr, urea, sodium." in found


def test_hba1c_is_converted_by_the_master_equation() -> None:
    chart = chart_of(labs=[measured("Hemoglobin A1c", "7.6", "%")])
    assert "about 60 mmol/mol" in said("labs", chart=chart, measures=["hba1c"], said="hba1c in mmol/mol?")
