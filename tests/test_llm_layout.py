"""Lines: what `write` makes, `parse` reads and the grammar accepts, and nothing else."""

from enum import StrEnum
from typing import Annotated, Literal, Optional

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from pydantic import BaseModel, Field, create_model

from docgemma.llm.grammar import grammar
from docgemma.llm.layout import fields, only_answer, parse, write
from docgemma.schemas import (
    AddAllergyArgs,
    ClinicalTrialsArgs,
    DrugInteractionArgs,
    ImageFindings,
    IntentClassification,
    PrescribeMedicationArgs,
    RetryStrategy,
    Schema,
)

BYTES = LLTokenizer("byte")


def accepts(text: str, schema: type[BaseModel], layout: str = "lines") -> bool:
    """Whether a model could have written exactly this."""
    matcher = LLMatcher(BYTES, grammar(schema, layout), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    data = list(text.encode())
    return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (DrugInteractionArgs(drug_names=["warfarin", "aspirin"]), "warfarin; aspirin"),
        (ClinicalTrialsArgs(condition="melanoma"), "melanoma\n-"),
        (ClinicalTrialsArgs(condition="melanoma", status="RECRUITING"), "melanoma\nRECRUITING"),
        (RetryStrategy(strategy="retry_same"), "retry_same\n-"),
        (IntentClassification(intent="DIRECT", task_summary="über 5 µg – ok"), "DIRECT\nüber 5 µg – ok\n-"),
        (AddAllergyArgs(patient_id="abc-123", substance="-", reaction="a; b"), "abc-123\n-\na; b\n-"),
    ],
)
def test_a_value_is_one_field_a_line(value, text):
    assert write(value, "lines") == text
    assert parse(text, type(value), "lines") == value
    assert parse(text + "\n", type(value), "lines") == value
    assert accepts(text, type(value))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (DrugInteractionArgs, "warfarin"),  # two at least
        (DrugInteractionArgs, "a; b; c; d; e; f; g"),  # six at most
        (DrugInteractionArgs, "a; " + "b" * 61),
        (DrugInteractionArgs, "a; b\n"),
        (ClinicalTrialsArgs, "melanoma"),
        (ClinicalTrialsArgs, "\n-"),
        (ClinicalTrialsArgs, "melanoma\n-\n-"),
        (RetryStrategy, "give_up\n-"),
        (PrescribeMedicationArgs, "a\nb\nc\nd"),
    ],
)
def test_what_is_not_the_layout_is_neither_generated_nor_read(schema, text):
    assert not accepts(text, schema)
    if not text.endswith("\n"):
        with pytest.raises(ValueError):
            parse(text, schema, "lines")


@pytest.mark.parametrize(
    "value",
    [
        DrugInteractionArgs(drug_names=["a; b", "c"]),
        DrugInteractionArgs(drug_names=["a;", "c"]),
        ClinicalTrialsArgs(condition="two\nlines"),
        ClinicalTrialsArgs(condition="melanoma", status="-"),
    ],
)
def test_an_ambiguous_value_is_not_written(value):
    with pytest.raises(ValueError):
        write(value, "lines")


class Colour(StrEnum):
    RED = "red"
    BLUE = "dark blue"


class Coloured(Schema):
    one: Colour
    many: list[Colour] = Field(min_length=1, max_length=2)
    perhaps: Optional[Colour] = None
    fixed: Literal["only"]


def test_enums_and_lists_of_choices_are_flat():
    value = Coloured(one=Colour.BLUE, many=[Colour.RED, Colour.BLUE], fixed="only")
    assert write(value, "lines") == "dark blue\nred; dark blue\n-\nonly"
    assert parse(write(value, "lines"), Coloured, "lines") == value
    assert accepts(write(value, "lines"), Coloured)
    assert not accepts("red\nred; red; red\n-\nonly", Coloured)


class Open(Schema):
    items: list[str]


class Patterned(Schema):
    code: str = Field(pattern="^a+$")


class Dashed(Schema):
    choice: Literal["-", "x"]


class Nested(Schema):
    inner: Coloured


@pytest.mark.parametrize("schema", [ImageFindings, Open, Patterned, Dashed, Nested])
def test_a_schema_that_is_not_flat_is_refused(schema):
    with pytest.raises(TypeError):
        fields(schema)


@pytest.mark.parametrize("layout", ["json", "lines"])
def test_a_schema_that_leaves_no_choice_has_one_answer(layout):
    settled = create_model("Settled", quality=(Literal["rich"], ...), tool=(Literal['check "it"'], ...))
    text = only_answer(settled, layout)
    assert accepts(text, settled, layout)
    assert parse(text, settled, layout).model_dump() == {"quality": "rich", "tool": 'check "it"'}


@pytest.mark.parametrize(
    "annotation",
    [Literal["a", "b"], Optional[Literal["a"]], str, int, Annotated[list[Literal["a"]], Field(min_length=1)]],
)
def test_where_something_is_left_to_decide_there_is_no_only_answer(annotation):
    schema = create_model("Open", settled=(Literal["a"], ...), open=(annotation, ...))
    assert only_answer(schema, "json") is None


def test_thousands_of_choices_are_a_grammar():
    names = tuple(f"drug {number} (brand-{number})" for number in range(6000))
    schema = create_model("Copied", __base__=Schema, drug=(Literal[names], ...), other=(Literal[names], ...))
    assert accepts(f"{names[5999]}\n{names[0]}", schema)
    assert not accepts(f"{names[5999]}\ndrug 6000 (brand-6000)", schema)
    assert accepts(f'{{"drug":"{names[1]}","other":"{names[2]}"}}', schema, "json")


def test_json_is_compact_ordered_and_closed():
    good = '{"modality":"ct","findings":["a"],"impression":"b","confidence":0.75,"requires_specialist_review":true}'
    assert accepts(good, ImageFindings, "json")
    assert parse(good, ImageFindings, "json").confidence == 0.75
    assert not accepts(good.replace(",", ", "), ImageFindings, "json")  # free whitespace
    assert not accepts(good[:-1] + ',"extra":1}', ImageFindings, "json")
    assert not accepts(good.replace("0.75", "0." + "7" * 40), ImageFindings, "json")  # digits without end
    assert not accepts(good.replace("0.75", "1.5"), ImageFindings, "json")
    swapped = '{"findings":["a"],"modality":"ct","impression":"b","confidence":0.75,"requires_specialist_review":true}'
    assert not accepts(swapped, ImageFindings, "json")


# random flat schemas

CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Cs",))
CHOICES = st.lists(
    st.text(CHARACTERS, min_size=1, max_size=8).filter(lambda item: item != "-" and not set(";\n") & set(item)),
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
def test_what_is_written_is_read_back_and_could_have_been_generated(value):
    try:
        text = write(value, "lines")
    except ValueError:
        assume(False)
    assert parse(text, type(value), "lines") == value
    assert accepts(text, type(value))


@settings(deadline=None, max_examples=200)
@given(flat_values(), st.data())
def test_what_could_have_been_generated_is_what_write_makes(value, data):
    """The other direction, on texts one edit away from a written one."""
    try:
        text = write(value, "lines")
    except ValueError:
        assume(False)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 2))
    edited = text[:at] + data.draw(st.sampled_from(["", "-", ";", "; ", "\n", "x"])) + text[at + cut :]
    try:
        canonical = write(parse(edited, type(value), "lines"), "lines") == edited
    except ValueError:
        canonical = False
    assert accepts(edited, type(value)) == canonical
