"""Reading the answer to a question back: by id, name, place, birth date; never by guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.rules.answered import read_missing
from docgemma.rules.clarify import read_answer
from docgemma.rules.described import described
from docgemma.state import Clarification, Option
from tests.rules_help import chart_of, drug, order, person, problem, request

UUID = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
JAMES = Option(id="p-1", label="James Wilson, male, born 1950-03-04")
JAMES_A = Option(id="abc-123", label="James A. Wilson, male, born 1971-12-25")
JAMIE = Option(id=UUID, label="Jamie Wilson, female, born 1988-01-02")


def question(kind: str, *options: Option, missing: tuple[str, ...] = (), args: dict | None = None) -> Clarification:
    return Clarification(
        kind=kind,
        question="Which?",
        options=list(options),
        tool="search_patient",
        args=args or {},
        missing=list(missing),
    )


WILSONS = question("patient", JAMES, JAMES_A, JAMIE)


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("abc-123", "abc-123"), ("ABC-123.", "abc-123"), (UUID.upper(), UUID), ("the one with id abc-123", "abc-123"),
        ("xyz-999", None), ("abc-123 or p-1", None),
        ("2", "abc-123"), ("#2", "abc-123"), ("2.", "abc-123"), ("(2)", "abc-123"), ("no. 2", "abc-123"),
        ("number two", "abc-123"), ("option 3 please", UUID), ("second", "abc-123"), ("the second one", "abc-123"),
        ("I meant the third one", UUID), ("1st", "p-1"), ("first", "p-1"), ("one", None), ("last", UUID),
        ("the last one", UUID), ("4", None), ("0", None), ("no one", None), ("the one", None),
        ("James Wilson", "p-1"), ("james a wilson", "abc-123"), ("Jamie", UUID), ("jamie wilsn", None),
        ("the female one", UUID), ("James", None), ("Wilson", None), ("Maria", None),
        ("1950-03-04", "p-1"), ("born March 4, 1950", "p-1"), ("4 March 1950", "p-1"), ("4.3.1950", "p-1"),
        ("25/12/1971", "abc-123"), ("12/25/1971", "abc-123"), ("the one born in 1971", "abc-123"), ("1988", UUID),
        ("James, 1988", None), ("1999", None), ("31/02/1950", None),
        ("the older one", None), ("yes", None), ("no", None), ("neither", None), ("never mind", None),
        ("What is hypertension?", None), ("Find patient Maria Garcia", None), ("Check metformin safety", None),
        ("", None), ("   ", None), ("\u200f", None), ("x" * 5000, None), ("2\u200f", "abc-123"),
    ],
)  # fmt: skip
def test_an_answer_names_one_option_or_none(said, chosen):
    assert read_answer(said, WILSONS) == chosen


def test_a_date_that_reads_both_ways_chooses_only_if_one_option_fits():
    april, march = Option(id="a", label="A, born 1970-04-03"), Option(id="m", label="M, born 1970-03-04")
    assert read_answer("03/04/1970", question("patient", april)) == "a"
    assert read_answer("03/04/1970", question("patient", april, march)) is None


@pytest.mark.parametrize(
    ("said", "chosen"),
    [("yes", "metformin"), ("Yes, please", "metformin"), ("that's right", "metformin"), ("metfornin", None),
     ("no", None), ("aspirin", None), ("yes but with aspirin", None)],
)  # fmt: skip
def test_yes_accepts_a_single_suggestion(said, chosen):
    assert read_answer(said, question("drug", Option(id="metformin", label="metformin"))) == chosen


def test_without_options_nothing_is_chosen():
    assert read_answer("2", question("missing")) is None


@given(st.text(max_size=200))
def test_any_text_gives_an_option_or_none(said):
    assert read_answer(said, WILSONS) in {None, "p-1", "abc-123", UUID}


SAID = [
    (["patient_id"], {}, request(patients=[person()], said="abc-123"), {"patient_id": "abc-123"}),
    (["patient_id"], {}, request(unclear=["James Wilson"], said="James Wilson"), {}),
    (["dosage", "frequency"], {}, request(details={"dose": "500 mg", "frequency": "twice daily"},
    said="500 mg twice daily"),
     {"dosage": "500 mg", "frequency": "twice daily"}),
    (["dosage", "frequency"], {}, request("rx", orders=[order("metformin", "500 mg")], said="metformin 500 mg"),
     {"dosage": "500 mg"}),
    (["reaction"], {}, request(said="hives"), {"reaction": "hives"}),
    (["drug_names"], {}, request(drugs=[drug("warfarin"), drug("aspirin")], said="warfarin and aspirin"),
     {"drug_names": ["warfarin", "aspirin"]}),
    (["drug_names"], {"drug_names": ["warfarin"]}, request(drugs=[drug("aspirin")], said="aspirin"),
     {"drug_names": ["warfarin", "aspirin"]}),
    (["dosage"], {}, request("labs", patients=[person()], said="labs of abc-123"), {}),
    (["reaction"], {}, request("safe", drugs=[drug("metformin")], said="Check metformin safety"), {}),
    (["reaction"], {}, request("cancel", said="never mind"), {}),
    (["reaction"], {}, request(said="so what's saved now"), {}),
    (["reaction"], {}, request(said="did it save"), {}),
    (["reaction"], {}, request(said="had hives"), {"reaction": "had hives"}),
    (["reaction"], {}, request(said=""), {}),
    (["reaction"], {}, request(said="y " * 1000), {}),
    ([], {}, request(said="hives"), {}),
]  # fmt: skip


@pytest.mark.parametrize(("missing", "given", "asked", "values"), SAID)
def test_missing_values_are_read_from_the_message_or_it_is_a_new_question(missing, given, asked, values):
    found = read_missing(asked, question("missing", missing=tuple(missing), args=given), "rx")
    assert {key: value for key, value in found.items() if value} == values


CHARTS = {
    "p-1": chart_of("warfarin", patient_id="p-1", conditions=[problem("Atrial fibrillation")]),
    "abc-123": chart_of("metformin", conditions=[problem("Type 2 diabetes mellitus")]),
}


@pytest.mark.parametrize(
    ("said", "chosen"),
    [("the warfarin one", "p-1"), ("the one with diabetes", "abc-123"), ("the one on aspirin", None), ("the man", None),
     ("the older one", None), ("", None)],
)  # fmt: skip
def test_a_description_chooses_the_one_whose_chart_has_it(said, chosen):
    """Both were born on the same day here, so that "the older one" is nobody."""
    assert described(said, CHARTS) == chosen


@pytest.mark.parametrize(
    ("said", "chosen"),
    [("yeah the feb 49 one", "old"), ("the old boy, 1949", "old"), ("the 2001 lad", "young"), ("dec '01", "young"),
     ("the eldest", "old"), ("the june 49 one", None)],
)  # fmt: skip
def test_a_month_with_a_short_year_and_a_word_for_a_man_choose_among_namesakes(said, chosen):
    charts = {"old": chart_of("warfarin", patient_id="old"), "young": chart_of("insulin", patient_id="young")}
    charts["old"]["patient"]["birth_date"], charts["young"]["patient"]["birth_date"] = "1949-02-11", "2001-12-05"
    assert described(said, charts) == chosen
