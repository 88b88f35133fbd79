"""Literature from the stand-in of Europe PMC."""

import os
import time
from datetime import UTC, datetime

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import literature, search
from docgemma.knowledge.live import LiveKnowledge
from docgemma.settings import Settings
from tests.standin import standin  # noqa: F401 (a fixture)


@pytest.fixture
def live(standin, tmp_path):  # noqa: F811
    knowledge = LiveKnowledge(Settings(home=tmp_path, **standin.urls))
    yield knowledge
    knowledge.close()


def test_an_article_has_what_a_reader_needs(live):
    answer = live.literature("SGLT2 heart failure")
    article = answer.records[0]
    assert (answer.source, article.id, article.year) == ("Europe PMC", "DEMO-LIT-901", 2024)
    assert article.title == "Demonstration: SGLT2 inhibitors in heart failure."
    assert article.authors == "Example A, Sample B."
    assert article.journal == "Demonstration Journal"
    assert article.abstract == "Background: An invented trial. Results: Hospital stays fell (p < 0.05)."
    assert article.url == "https://europepmc.org/articles/DEMO901"
    assert len(answer.as_of) == 10


def test_a_kept_answer_says_its_own_date(live, tmp_path):
    live.literature("metformin kidney")
    for file in (tmp_path / "http-cache").iterdir():
        os.utime(file, times=(time.time() - 3600,) * 2)
    then = datetime.fromtimestamp(time.time() - 3600, UTC).date().isoformat()
    assert live.literature("metformin kidney").as_of == then


def test_an_article_without_free_text_links_to_its_page(live):
    assert live.literature("metformin kidney").records[0].url == "https://europepmc.org/article/MED/DEMO-LIT-902"


def test_nothing_found_is_empty(live):
    assert live.literature("xyzzy").records == []


def test_the_limit_is_kept(live):
    assert len(live.literature("demonstration", limit=2).records) == 2


@pytest.mark.parametrize("query", ["", "  ", '"()"', "***", "-"])
def test_a_query_without_words_is_refused(live, query):
    with pytest.raises(ToolError) as caught:
        live.literature(query)
    assert caught.value.error_type is ErrorType.INVALID_ARGS


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ('heart) OR (AUTH:"Smith"', "heart or AUTH Smith"),
        ("SRC:PPR NOT cancer", "SRC PPR not cancer"),
        ("COVID-19 -aspirin +x", "COVID-19 aspirin x"),
        ("what* is ~this^2?", "what is this 2"),
        ("a/b [2020 TO 2024] {x}", "a b 2020 TO 2024 x"),
        ("Crohn's disease", "Crohn's disease"),
        ("β-blockers", "β-blockers"),
    ],
)
def test_no_query_syntax_survives(query, words):
    assert search.words(query, "query") == words


def test_only_pubmed_and_nothing_retracted_is_asked_for(live, standin):  # noqa: F811
    live.literature('x") OR (y')
    query = standin.asked("search")[0]["query"]
    assert query == '(x or y) AND SRC:MED AND NOT PUB_TYPE:"retracted publication"'


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("<h4>Aim</h4>We saw <i>x</i>.", "Aim: We saw x."),
        ("<h4>Aim:</h4> We saw.", "Aim: We saw."),
        ("p &lt; 0.05 and n &gt; 10", "p < 0.05 and n > 10"),
        ("p <0.05 and n> 10", "p <0.05 and n> 10"),
        ("CO<sub>2</sub> &amp; H<sub>2</sub>O", "CO2 & H2O"),
        ("two\n lines\x00\u202e", "two lines"),
        ("", ""),
    ],
)
def test_abstracts_become_plain(marked, text):
    assert literature.text(marked) == text


@pytest.mark.parametrize("raw", [None, [], {}, {"hitCount": 1}, {"hitCount": "x", "resultList": {}}, {"errCode": 404}])
def test_another_shape_is_not_an_empty_answer(raw):
    with pytest.raises(ValueError):
        literature.parse(raw)


def test_a_record_with_hardly_anything_is_still_a_record():
    raw = {"hitCount": 1, "resultList": {"result": [{"id": 7, "source": "PPR", "pubYear": None, "abstractText": None}]}}
    article = literature.parse(raw)[0]
    assert (article.id, article.year, article.abstract, article.title) == ("PPR7", None, "", "")
