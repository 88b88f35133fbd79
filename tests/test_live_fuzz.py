"""Whatever a service or a user sends: a parser says ValueError or answers, and no query leaves its quotes."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docgemma.errors import ToolError
from docgemma.knowledge import literature
from docgemma.knowledge import trials as registry
from docgemma.knowledge.base import LabelSection
from docgemma.knowledge.label_interactions import Drug, find
from docgemma.knowledge.label_text import around, boxed, clip, items, section
from docgemma.knowledge.openfda import Page, choose, merge, nothing_found, search
from docgemma.knowledge.rxnorm import Classes, Ids, Related
from docgemma.knowledge.search import words

KEYS = st.sampled_from(
    [
        "results",
        "openfda",
        "generic_name",
        "substance_name",
        "boxed_warning",
        "effective_time",
        "meta",
        "studies",
        "protocolSection",
        "nctId",
        "identificationModule",
        "resultList",
        "result",
        "hitCount",
        "id",
        "idGroup",
        "rxnormId",
        "relatedGroup",
        "conceptGroup",
        "pubYear",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4),
    max_leaves=25,
)
PARSERS = [literature.parse, *(shape.model_validate for shape in (Ids, Related, Classes))]


def labels(raw):
    return [merge([label], "x", []) for label in choose(Page.model_validate(raw).results, ["x"])]


def trials(raw):
    return [registry.parse(study) for study in registry.Studies.model_validate(raw).studies]


few = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("parse", [labels, trials, *PARSERS])
@few
@given(raw=JSON)
def test_any_json_is_parsed_or_is_a_value_error(parse, raw):
    try:
        parse(raw)
    except ValueError:
        return


@few
@given(body=st.binary(max_size=60) | JSON.map(lambda raw: json.dumps(raw).encode()))
def test_only_openfdas_own_404_is_nothing_found(body):
    try:
        found = nothing_found(body)
    except ValueError:
        return
    assert b"NOT_FOUND" in body
    assert found.results == []


@few
@given(name=st.text(min_size=1, max_size=40))
def test_a_drug_name_never_leaves_its_quotes(name):
    query = search([name])
    for quoted in query.split('"')[1::2]:
        assert not set(quoted) & set('"\\:()[]{}*?^~!&|/')
    assert query.count('"') in (0, 6)


@few
@given(text=st.text(max_size=60))
def test_a_question_never_becomes_a_command(text):
    try:
        found = words(text, "query")
    except ToolError:
        return
    assert not set(found) & set('"\\:()[]{}*?^~!&|/,+')
    assert not {"AND", "OR", "NOT"} & set(found.split())
    assert not any(word.startswith("-") for word in found.split())


@few
@given(text=st.text(alphabet="aA1.,;:()[]<>7 ●\n-–“WARNINGSee", max_size=200), limit=st.integers(10, 80))
def test_any_text_becomes_plain_and_bounded(text, limit):
    plain = section([text])
    assert "  " not in plain
    assert len(boxed([text])) <= len(text)
    assert all(len(item) <= limit for item in items(plain, limit))
    assert len(clip(plain, limit)) <= limit
    assert len(around(plain, 0, min(3, len(plain)), limit)) <= limit + 2


@few
@given(text=st.text(alphabet="warfin Avoid.,:7", max_size=120))
def test_a_finding_quotes_the_label(text):
    found = find(Drug("x", ("x",), sections={"drug_interactions": LabelSection(text)}), Drug("war", ("war",)))
    if found:
        assert found.quote.strip("…") in " ".join(text.split())
        assert "war" in found.quote.lower()
