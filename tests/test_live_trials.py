"""Trials from the stand-in of ClinicalTrials.gov."""

import pytest

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import search
from docgemma.knowledge import trials as registry
from docgemma.knowledge.live import LiveKnowledge
from docgemma.settings import Settings
from tests.standin import standin  # noqa: F401 (a fixture)


@pytest.fixture
def live(standin, tmp_path):  # noqa: F811
    knowledge = LiveKnowledge(Settings(home=tmp_path, **standin.urls))
    yield knowledge
    knowledge.close()


def ids(answer) -> list[str]:
    return [trial.id[-3:] for trial in answer.records]


def test_a_trial_has_what_a_reader_needs(live):
    answer = live.trials("melanoma")
    trial = answer.records[0]
    assert (answer.source, len(answer.as_of)) == ("ClinicalTrials.gov", 10)
    assert (trial.id, trial.status, trial.phase) == ("DEMO-TRIAL-905", "RECRUITING", "Phase 2")
    assert (trial.conditions, trial.interventions) == (["Melanoma"], ["Antibody"])
    assert trial.locations == ["Demonstration Hospital, Springfield, United States"] * 2
    assert trial.url == "https://clinicaltrials.gov/study/DEMO-TRIAL-905"
    assert trial.summary


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, ["901", "902", "903", "904", "906"]),
        ("", ["901", "902", "903", "904", "906"]),
        ("any", ["901", "902", "903", "904", "906"]),
        ("recruiting", ["901", "902"]),
        ("Recruiting trials", ["901", "902"]),
        ("RECRUITING", ["901", "902"]),
        ("active", ["901", "902", "903"]),
        ("Active, not recruiting", ["903"]),
        ("ACTIVE_NOT_RECRUITING", ["903"]),
        ("not yet recruiting", ["906"]),
        ("open", ["901", "902", "906"]),
        ("completed", ["904"]),
        ("terminated", []),
    ],
)
def test_a_status_in_anyones_words_is_the_registrys(live, status, expected):
    assert ids(live.trials("heart failure", status)) == expected


@pytest.mark.parametrize("status", ["purple", "recruiting; drop table", "RECRUITING|COMPLETED"])
def test_an_unknown_status_is_refused_with_the_allowed_ones(live, standin, status):  # noqa: F811
    with pytest.raises(ToolError) as caught:
        live.trials("heart failure", status)
    assert caught.value.error_type is ErrorType.INVALID_ARGS
    assert "recruiting" in caught.value.details["suggestions"]
    assert "completed" in caught.value.hint
    assert standin.requests == []


def test_nothing_found_is_empty(live):
    assert live.trials("xyzzy").records == []


def test_pages_are_followed_up_to_the_limit(live, standin, monkeypatch):  # noqa: F811
    monkeypatch.setattr(registry, "PAGE_SIZE", 2)
    assert ids(live.trials("heart failure", limit=3)) == ["901", "902", "903"]
    assert [params.get("pageToken") for params in standin.asked("studies")] == [None, "2"]
    assert len(live.trials("heart failure", limit=50).records) == 5


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("breast cancer, stage IV", "breast cancer stage IV"),
        ("AREA[Phase]PHASE3", "AREA Phase PHASE3"),
        ("heart failure AND NOT diabetes", "heart failure and not diabetes"),
        ("(melanoma)", "melanoma"),
        ("Crohn's disease", "Crohn's disease"),
        ("non-small cell", "non-small cell"),
    ],
)
def test_no_query_syntax_survives(condition, words):
    assert search.words(condition, "condition") == words


@pytest.mark.parametrize("condition", ["", "()", "[]", " - "])
def test_a_condition_without_words_is_refused(live, condition):
    with pytest.raises(ToolError) as caught:
        live.trials(condition)
    assert caught.value.error_type is ErrorType.INVALID_ARGS


@pytest.mark.parametrize(
    ("phases", "kind", "expected"),
    [
        (["PHASE1", "PHASE2"], "INTERVENTIONAL", "Phase 1/Phase 2"),
        (["NA"], "INTERVENTIONAL", "Not applicable"),
        (["EARLY_PHASE1"], "INTERVENTIONAL", "Early Phase 1"),
        ([], "OBSERVATIONAL", "Observational"),
        ([], "", ""),
    ],
)
def test_phases_are_words(phases, kind, expected):
    assert registry.phase(phases, kind) == expected


def test_a_trial_with_hardly_anything_is_still_a_trial():
    raw = {"studies": [{"protocolSection": {"identificationModule": {"nctId": "DEMO-1"}}}]}
    trial = registry.parse(registry.Studies.model_validate(raw).studies[0])
    assert (trial.id, trial.status, trial.phase, trial.locations) == ("DEMO-1", "", "", [])
