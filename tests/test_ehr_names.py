"""Names: what is the same, what is near, and what is noise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.ehr.names import allowed_edits, closeness, index_tokens, query_tokens
from docgemma.text.words import fold


@pytest.mark.parametrize(
    ("typed", "tokens"),
    [
        ("John Smith", ["john", "smith"]),
        ("  JOHN   smith ", ["john", "smith"]),
        ("Smith, John", ["smith", "john"]),
        ("Dr. John Smith Jr.", ["john", "smith"]),
        ("Mrs O'Brien", ["obrien"]),
        ("O’Brien", ["obrien"]),
        ("Lefèvre-Dubois", ["lefevre", "dubois"]),
        ("王小明", ["王小明"]),
        ("John John", ["john"]),
        ("Dr", ["dr"]),
        ("", []),
        (" .,- ", []),
        ("\u202eJohn\u0000 Smith", ["john", "smith"]),
    ],
)
def test_a_typed_name_becomes_its_words(typed: str, tokens: list[str]) -> None:
    assert query_tokens(typed) == tokens


@pytest.mark.parametrize(
    ("name", "findable"),
    [
        ("Siobhán O'Brien", {"siobhan", "obrien", "brien"}),
        ("Zoë Lefèvre-Dubois", {"zoe", "lefevre", "dubois", "lefevredubois"}),
        ("Anneliese Schäfer", {"schafer", "schaefer"}),
        ("Björn Þórsson", {"bjorn", "bjoern", "thorsson"}),
        ("Ewa Wiśniewska", {"wisniewska"}),
        ("Thị Hồng Nguyễn", {"thi", "hong", "nguyen"}),
        ("Łukasz Ørsted", {"lukasz", "orsted"}),
    ],
)
def test_a_name_is_found_by_each_way_of_writing_it(name: str, findable: set[str]) -> None:
    assert findable <= index_tokens(name)


@pytest.mark.parametrize(
    ("token", "alone", "edits"),
    [
        ("li", False, 0),
        ("jon", False, 1),
        ("jon", True, 0),
        ("john", True, 1),
        ("thornto", False, 1),
        ("thornton", True, 2),
    ],
)
def test_short_words_forgive_less(token: str, alone: bool, edits: int) -> None:
    assert allowed_edits(token, alone) == edits


@pytest.mark.parametrize(
    ("typed", "recorded", "near"),
    [
        ("John Smith", "John Smith", 0),
        ("smith john", "John Smith", 0),
        ("J Smith", "John Smith", 1),
        ("Jhon Smith", "John Smith", 2),  # neighbours swapped is one error
        ("Jhon Smiht", "John Smith", 3),
        ("John Q Smith", "John Smith", 4),
        ("Joan Smythes", "John Smith", None),
        ("Jane Smith", "John Smith", None),
        ("John", "Jane Doe", None),
        ("Li", "Lu Wang", None),
    ],
)
def test_closeness_of_names(typed: str, recorded: str, near: int | None) -> None:
    assert closeness(query_tokens(typed), index_tokens(recorded)) == near


@given(st.text(max_size=60))
def test_a_name_is_always_findable_as_written(name: str) -> None:
    tokens = query_tokens(name)
    assert not tokens or closeness(tokens, index_tokens(name)) == 0


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)
