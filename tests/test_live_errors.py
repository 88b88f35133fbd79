"""Each of the four questions to a service that misbehaves: always the right error, never an empty answer."""

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.live import LiveKnowledge
from docgemma.settings import Settings
from tests.standin import misbehave as bad
from tests.standin import standin  # noqa: F401 (a fixture)
from tests.standin.misbehave import Misbehaving, status

QUESTIONS = {
    "openfda_url": lambda knowledge: knowledge.label("warfarin"),
    "europepmc_url": lambda knowledge: knowledge.literature("heart failure"),
    "ctgov_url": lambda knowledge: knowledge.trials("heart failure"),
    "rxnav_url": lambda knowledge: knowledge.generic_name("Coumadin"),
}
FAILURES = [
    (bad.hang, 0.4, ErrorType.TIMEOUT),
    (bad.drip_body, 0.4, ErrorType.TIMEOUT),
    (status(429, Retry_After="60"), 5, ErrorType.RATE_LIMIT),
    (status(500), 5, ErrorType.SERVER_ERROR),
    (status(503, Retry_After="60"), 5, ErrorType.SERVICE_UNAVAILABLE),
    (bad.half, 5, ErrorType.INVALID_RESPONSE),
    (bad.HTML, 5, ErrorType.INVALID_RESPONSE),
    (bad.BROKEN_JSON, 5, ErrorType.INVALID_RESPONSE),
    (bad.WRONG_SHAPE, 5, ErrorType.INVALID_RESPONSE),
    (bad.A_LIST, 5, ErrorType.INVALID_RESPONSE),
    (bad.HTML_404, 5, ErrorType.INVALID_RESPONSE),
    (bad.endless, 9, ErrorType.INVALID_RESPONSE),
    (status(400), 5, ErrorType.INVALID_ARGS),
    (status(403), 5, ErrorType.NOT_PERMITTED),
]
NAMES = ["hang", "drip", "429", "500", "503", "half", "html", "broken", "shape", "list", "404", "50MB", "400", "403"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("docgemma.http.BACKOFF_S", 0.01)


@pytest.fixture
def ask(standin, tmp_path):  # noqa: F811
    """Ask with some services replaced; the others are the well-behaved stand-in."""
    opened = []

    def run(question, timeout=5.0, **urls):
        settings = Settings(home=tmp_path, tool_timeout=timeout, **{**standin.urls, **urls})
        opened.append(LiveKnowledge(settings))
        return question(opened[-1])

    yield run
    for knowledge in opened:
        knowledge.close()


@pytest.mark.parametrize("service", QUESTIONS)
@pytest.mark.parametrize(("behaviour", "timeout", "expected"), FAILURES, ids=NAMES)
def test_every_service_fails_in_the_known_ways(ask, service, behaviour, timeout, expected):
    with Misbehaving(behaviour) as server, pytest.raises(ToolError) as caught:
        ask(QUESTIONS[service], timeout, **{service: server.url})
    assert caught.value.error_type is expected
    assert caught.value.retryable is (expected not in (ErrorType.INVALID_ARGS, ErrorType.NOT_PERMITTED))


@pytest.mark.parametrize("behaviour", [case[0] for case in FAILURES], ids=NAMES)
def test_without_rxnorm_a_drug_is_searched_as_it_was_named(ask, behaviour):
    with Misbehaving(behaviour) as server:
        answer = ask(lambda knowledge: knowledge.label("Coumadin"), 6, rxnav_url=server.url)
    assert answer.records[0].name == "warfarin"
    assert "bleeding" in answer.records[0].boxed_warning


def test_without_rxnorm_a_name_that_openfda_lacks_is_an_outage_and_not_an_unknown_drug(ask):
    with Misbehaving(status(503, Retry_After="60")) as server, pytest.raises(ToolError) as caught:
        ask(lambda knowledge: knowledge.label("dofetilid"), rxnav_url=server.url)
    assert caught.value.error_type is ErrorType.SERVICE_UNAVAILABLE


def test_interactions_by_name_are_found_without_rxnorm(ask):
    with Misbehaving(status(503, Retry_After="60")) as server:
        answer = ask(lambda knowledge: knowledge.interactions(["warfarin", "aspirin"]), rxnav_url=server.url)
    assert answer.records[0].severity == "closely monitor"


def test_no_finding_without_the_classes_is_an_outage_and_not_no_interaction(ask):
    with Misbehaving(status(503, Retry_After="60")) as server, pytest.raises(ToolError) as caught:
        ask(lambda knowledge: knowledge.interactions(["hydralazine", "metformin"]), rxnav_url=server.url)
    assert caught.value.error_type is ErrorType.SERVICE_UNAVAILABLE


def test_trials_that_fail_on_the_second_page_are_an_outage_and_not_half_an_answer(ask):
    page = b'{"studies": [{"protocolSection": {"identificationModule": {"nctId": "DEMO-1"}}}], "nextPageToken": "x"}'
    with Misbehaving(status(200, page), status(403)) as server, pytest.raises(ToolError) as caught:
        ask(lambda knowledge: knowledge.trials("heart failure", limit=2), ctgov_url=server.url)
    assert caught.value.error_type is ErrorType.NOT_PERMITTED


def test_a_failed_call_is_asked_again_and_not_remembered(ask):
    with Misbehaving(status(403), status(200, b'{"hitCount": 0, "resultList": {"result": []}}')) as server:
        with pytest.raises(ToolError):
            ask(QUESTIONS["europepmc_url"], europepmc_url=server.url)
        assert ask(QUESTIONS["europepmc_url"], europepmc_url=server.url).records == []
