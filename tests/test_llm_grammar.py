"""What a model may write for a schema: its JSON to the letter, and nothing where only one answer is possible."""

from typing import Annotated, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from pydantic import BaseModel, Field, create_model

from docgemma.llm.grammar import grammar, only_answer
from docgemma.schemas import DrugInteractionArgs, ImageFindings, Schema

BYTES = LLTokenizer("byte")


def accepts(text: str, schema: type[BaseModel]) -> bool:
    """Whether a model could have written exactly this."""
    matcher = LLMatcher(BYTES, grammar(schema), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    data = list(text.encode())
    return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()


def test_a_schema_that_leaves_no_choice_has_one_answer():
    settled = create_model("Settled", quality=(Literal["rich"], ...), tool=(Literal['check "it"'], ...))
    assert only_answer(settled).model_dump() == {"quality": "rich", "tool": 'check "it"'}
    assert accepts(only_answer(settled).model_dump_json(), settled)


@pytest.mark.parametrize(
    "annotation",
    [Literal["a", "b"], Optional[Literal["a"]], str, int, Annotated[list[Literal["a"]], Field(min_length=1)]],
)
def test_where_something_is_left_to_decide_there_is_no_only_answer(annotation):
    schema = create_model("Open", settled=(Literal["a"], ...), open=(annotation, ...))
    assert only_answer(schema) is None


def test_thousands_of_choices_are_a_grammar():
    names = tuple(f"drug {number} (brand-{number})" for number in range(6000))
    schema = create_model("Copied", __base__=Schema, drug=(Literal[names], ...), other=(Literal[names], ...))
    assert accepts(f'{{"drug":"{names[5999]}","other":"{names[0]}"}}', schema)
    assert not accepts(f'{{"drug":"{names[5999]}","other":"drug 6000 (brand-6000)"}}', schema)


def test_json_is_compact_ordered_and_closed():
    good = '{"modality":"ct","findings":["a"],"impression":"b","confidence":0.75,"requires_specialist_review":true}'
    assert accepts(good, ImageFindings)
    assert ImageFindings.model_validate_json(good).confidence == 0.75
    assert not accepts(good.replace(",", ", "), ImageFindings)  # free whitespace
    assert not accepts(good[:-1] + ',"extra":1}', ImageFindings)
    assert not accepts(good.replace("0.75", "0." + "7" * 40), ImageFindings)  # digits without end
    assert not accepts(good.replace("0.75", "1.5"), ImageFindings)
    swapped = '{"findings":["a"],"modality":"ct","impression":"b","confidence":0.75,"requires_specialist_review":true}'
    assert not accepts(swapped, ImageFindings)


# random flat schemas

CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))
CHOICES = st.lists(
    st.text(CHARACTERS, min_size=1, max_size=8),
    min_size=1,
    max_size=5,
    unique=True,
)


@st.composite
def scalars(draw) -> tuple[object, st.SearchStrategy]:
    """An annotation, and what may stand in it."""
    if draw(st.booleans()):
        choices = tuple(draw(CHOICES))
        return Literal[choices], st.sampled_from(choices)
    low = draw(st.integers(0, 3))
    high = low + draw(st.integers(1, 12))
    return Annotated[str, Field(min_length=low, max_length=high)], st.text(CHARACTERS, min_size=low, max_size=high)


@st.composite
def annotations(draw) -> tuple[object, st.SearchStrategy]:
    kind, values = draw(scalars())
    if draw(st.booleans()):
        low = draw(st.integers(1, 3))
        high = low + draw(st.integers(0, 3))
        kind = Annotated[list[kind], Field(min_length=low, max_length=high)]
        values = st.lists(values, min_size=low, max_size=high)
    if draw(st.booleans()):
        return Optional[kind], st.none() | values
    return kind, values


@st.composite
def flat_values(draw) -> BaseModel:
    parts = draw(st.lists(annotations(), min_size=1, max_size=4))
    definition = {
        f"field_{index}": (kind, None if type(None) in getattr(kind, "__args__", ()) else ...)
        for index, (kind, _) in enumerate(parts)
    }
    schema = create_model("Random", __base__=Schema, **definition)
    return schema(**{f"field_{index}": draw(values) for index, (_, values) in enumerate(parts)})


@settings(deadline=None, max_examples=200)
@given(flat_values())
def test_what_a_schema_holds_could_have_been_generated(value):
    text = value.model_dump_json()
    assert accepts(text, type(value))
    assert type(value).model_validate_json(text) == value


@pytest.mark.parametrize("names", [["warfarin"], list("abcdefg"), ["a", "b" * 61]], ids=["few", "many", "long"])
def test_bounds_are_kept(names):
    assert not accepts(DrugInteractionArgs.model_construct(drug_names=names).model_dump_json(), DrugInteractionArgs)
