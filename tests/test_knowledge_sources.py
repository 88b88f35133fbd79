"""Live first, the snapshot behind it; an outage is never an empty answer. The live side is real, on a local server."""

import socket

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import open_knowledge
from docgemma.knowledge.live import LiveKnowledge
from docgemma.knowledge.snapshot import Snapshot
from docgemma.knowledge.sources import REST_S, WithFallback, open_snapshot
from docgemma.settings import Settings
from tests.standin import standin  # noqa: F401


def nowhere() -> dict[str, str]:
    """URLs of a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    return {"openfda_url": url, "rxnav_url": url, "europepmc_url": url, "ctgov_url": url}


@pytest.fixture
def cut_off(home):
    """Automatic choice with every service unreachable."""
    knowledge = open_knowledge(Settings(home=home, sources="auto", tool_timeout=5, **nowhere()))
    yield knowledge
    knowledge.close()


@pytest.mark.parametrize(("sources", "kind"), [("offline", Snapshot), ("live", LiveKnowledge), ("auto", WithFallback)])
def test_the_setting_chooses_the_source(home, sources, kind):
    knowledge = open_knowledge(Settings(home=home, sources=sources))
    knowledge.close()
    assert isinstance(knowledge, kind)


def test_a_snapshot_that_was_built_into_the_home_is_preferred(home):
    shipped = open_snapshot(Settings(home=home)).path
    (home / "snapshot.sqlite").write_bytes(shipped.read_bytes())
    assert open_snapshot(Settings(home=home)).path == home / "snapshot.sqlite"


@pytest.mark.parametrize(
    ("method", "args"),
    [("label", ("dofetilide",)), ("interactions", (["warfarin", "aspirin"],)), ("literature", ("heart failure",)),
     ("trials", ("breast cancer",))],
)  # fmt: skip
def test_an_outage_falls_back_to_the_snapshot_and_says_so(cut_off, method, args):
    answer = getattr(cut_off, method)(*args)
    assert answer.records
    assert answer.fell_back == "service_unavailable"
    assert answer.as_of == ("2026-11-26" if method == "literature" else "2025-06-30")


@pytest.mark.parametrize(
    ("method", "args"),
    [("label", ("zzzzzz",)), ("label", ("metformn",)), ("literature", ("unicorn horns",)),
     ("trials", ("unicorn horns",)), ("interactions", (["warfarin", "zzzzzz"],))],
)  # fmt: skip
def test_an_outage_is_not_nothing_found(cut_off, method, args):
    with pytest.raises(ToolError) as caught:
        getattr(cut_off, method)(*args)
    assert caught.value.error_type is ErrorType.SERVICE_UNAVAILABLE


def test_no_listed_interaction_is_an_answer_of_the_snapshot_that_says_where_it_is_from(cut_off):
    answer = cut_off.interactions(["metformin", "amoxicillin"])
    assert answer.records == [] and answer.fell_back


def test_the_live_answer_is_used_where_there_is_one(home, standin):  # noqa: F811
    knowledge = open_knowledge(Settings(home=home, sources="auto", **standin.urls))
    answer = knowledge.label("dofetilide")
    knowledge.close()
    assert answer.fell_back is None and answer.source == "openFDA"


class Counting:
    """A live service that fails as it is told, and counts how often it is asked."""

    def __init__(self, error_type: ErrorType | None):
        self.error_type, self.calls = error_type, 0

    def label(self, drug_name):
        self.calls += 1
        if self.error_type:
            raise ToolError(self.error_type, entity=drug_name)
        return "the live answer"

    def generic_name(self, drug_name):
        raise ToolError(ErrorType.TIMEOUT)


@pytest.fixture
def clocked(settings):
    now = [0.0]
    live = Counting(ErrorType.TIMEOUT)
    return WithFallback(live, open_snapshot(settings), clock=lambda: now[0]), live, now


def test_a_service_that_failed_is_left_alone_for_a_minute(clocked):
    knowledge, live, now = clocked
    assert [knowledge.label("warfarin").fell_back for _ in range(3)] == ["timeout"] * 3
    assert live.calls == 1
    now[0], live.error_type = REST_S + 1, None
    assert knowledge.label("warfarin") == "the live answer"
    assert live.calls == 2


@pytest.mark.parametrize(
    "error_type", [ErrorType.DRUG_NOT_IN_DATABASE, ErrorType.AMBIGUOUS_DRUG_NAME, ErrorType.INVALID_ARGS]
)
def test_an_answer_of_the_service_is_not_replaced_by_the_snapshot(settings, error_type):
    knowledge = WithFallback(Counting(error_type), open_snapshot(settings))
    with pytest.raises(ToolError) as caught:
        knowledge.label("warfarin")
    assert caught.value.error_type is error_type


def test_a_name_that_neither_side_knows_is_none_and_no_outage(clocked):
    assert clocked[0].generic_name("Tikosyn") == "dofetilide"
    assert clocked[0].generic_name("zzzzzz") is None
