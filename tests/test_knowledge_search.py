"""From what a clinician types to a full-text query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.search import MAX_CONCEPTS, concepts, match_expression, statuses


@pytest.mark.parametrize(
    ("text", "first_words"),
    [
        ("evidence on SGLT2 inhibitors in heart failure", ["sglt2", "inhibitors", "heart failure"]),
        ("What are the latest studies on TNBC?", ["tnbc"]),
        ("heart attack", ["heart attack"]),
        ("the of and", []),
        ("", []),
        ("   \x00 ", []),
        ("warfarin warfarin WARFARIN", ["warfarin"]),
    ],
)
def test_stop_words_go_and_phrases_stay_whole(text, first_words):
    assert [ways[0] for ways in concepts(text)] == first_words


@pytest.mark.parametrize(
    ("said", "also"),
    [("breast carcinoma", "cancer"), ("heart attack", "myocardial infarction"), ("htn", "hypertension"),
     ("tnbc", "triple negative breast cancer"), ("children", "pediatric"), ("statins", "simvastatin")],
)  # fmt: skip
def test_other_ways_to_say_it_are_searched_too(said, also):
    assert any(also in ways for ways in concepts(said))


def test_one_drug_does_not_stand_for_every_other_of_its_class():
    assert concepts("simvastatin") == [["simvastatin"]]


def test_a_long_question_is_bounded():
    assert len(concepts(" ".join(f"word{n}" for n in range(500)))) == MAX_CONCEPTS


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        (None, ()), ("", ()), ("any", ()), ("recruiting", ("RECRUITING",)), ("RECRUITING", ("RECRUITING",)),
        ("currently recruiting", ("RECRUITING",)), ("active_not_recruiting", ("ACTIVE_NOT_RECRUITING",)),
        ("Active, not recruiting", ("ACTIVE_NOT_RECRUITING",)), ("completed", ("COMPLETED",)),
        ("not yet recruiting", ("NOT_YET_RECRUITING",)),
        ("active", ("RECRUITING", "ACTIVE_NOT_RECRUITING", "ENROLLING_BY_INVITATION")),
    ],
)  # fmt: skip
def test_a_status_as_said_becomes_the_registrys_codes(said, codes):
    assert statuses(said) == codes


def test_a_word_that_is_no_status_is_refused_rather_than_ignored():
    with pytest.raises(ToolError) as caught:
        statuses("blue")
    assert caught.value.error_type is ErrorType.INVALID_ARGS
    assert caught.value.details["missing_fields"] == ["status"]


@given(st.text(max_size=300))
def test_any_text_makes_a_query_without_operators_of_its_own(text):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        if expression := match_expression(text):
            connection.execute("SELECT * FROM t WHERE t MATCH ?", (expression,)).fetchall()


@pytest.mark.parametrize(
    "text", ['" OR 1=1 --', "NEAR(a b, 5)", "title:secret", "a* ^b {c d}:e", "'; DROP TABLE article; --"]
)
def test_query_syntax_in_the_text_is_only_words(text):
    assert all(part not in match_expression(text) for part in ("NEAR(", "title:", "*", "^", "{", ";"))
