"""Reading the answer to a question back: by id, name, place, birth date; never by guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.rules.clarify import birth_dates, read_answer, read_missing
from docgemma.state import Clarification, Option

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
        ("I meant the third one", UUID), ("1st", "p-1"), ("first", "p-1"), ("one", "p-1"), ("last", UUID),
        ("the last one", UUID), ("4", None), ("0", None), ("no one", None), ("the one", None),
        ("James Wilson", "p-1"), ("james a wilson", "abc-123"), ("Jamie", UUID), ("jamie wilsn", UUID),
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
    [("yes", "metformin"), ("Yes, please", "metformin"), ("that's right", "metformin"), ("metfornin", "metformin"),
     ("no", None), ("aspirin", None), ("yes but with aspirin", None)],
)  # fmt: skip
def test_yes_accepts_a_single_suggestion(said, chosen):
    assert read_answer(said, question("drug", Option(id="metformin", label="metformin"))) == chosen


def test_two_names_that_are_both_near_are_not_decided_by_a_typo():
    drugs = question(
        "drug", Option(id="prednisone", label="prednisone"), Option(id="prednisolone", label="prednisolone")
    )
    assert read_answer("prednisne", drugs) in ("prednisone", None)
    assert read_answer("prednisolne", drugs) in ("prednisolone", None)
    assert read_answer("predniso", drugs) is None


def test_without_options_nothing_is_chosen():
    assert read_answer("2", question("missing")) is None


@given(st.text(max_size=200))
def test_any_text_gives_an_option_or_none(said):
    assert read_answer(said, WILSONS) in {None, "p-1", "abc-123", UUID}


@pytest.mark.parametrize(
    ("said", "missing", "given", "values"),
    [
        ("abc-123", ["patient_id"], {}, {"patient_id": "abc-123"}),
        ("for DEF-456 please", ["patient_id"], {}, {"patient_id": "def-456"}),
        ("John Smith", ["patient_id"], {}, {}),
        ("500 mg twice daily", ["dosage", "frequency"], {}, {"dosage": "500 mg", "frequency": "twice daily"}),
        ("500 mg", ["dosage", "frequency"], {}, {"dosage": "500 mg"}),
        ("hives", ["reaction"], {}, {"reaction": "hives"}),
        ("it's penicillin", ["substance"], {}, {"substance": "penicillin"}),
        ("penicillin, hives", ["substance", "reaction"], {}, {"substance": "penicillin", "reaction": "hives"}),
        ("warfarin and aspirin", ["drug_names"], {}, {"drug_names": ["warfarin", "aspirin"]}),
        ("aspirin", ["drug_names"], {"drug_names": ["warfarin"]}, {"drug_names": ["warfarin", "aspirin"]}),
        ("aspirin", ["drug_names"], {}, {}),
        ("What is COPD?", ["reaction"], {}, {}),
        ("Check metformin safety", ["reaction"], {}, {}),
        ("never mind", ["reaction"], {}, {}),
        ("", ["reaction"], {}, {}),
        ("hives", [], {}, {}),
        ("y" * 1000, ["reaction"], {}, {}),
    ],
)
def test_missing_values_are_read_from_the_message_or_it_is_a_new_question(said, missing, given, values):
    assert read_missing(said, question("missing", missing=tuple(missing), args=given)) == values


def test_dates_in_every_notation_become_iso_dates():
    assert (
        birth_dates("12 March 1970") == birth_dates("March 12th, 1970") == birth_dates("1970-03-12") == {"1970-03-12"}
    )
    assert birth_dates("30 February 1970, 99/99/1970, 12 Foo 1970") == set()
