"""What the demo does for several windows and several people, on the real graph and stores, without a browser."""

import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("gradio", reason="the demo extra is not installed")

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.everyday import Everyday
from docgemma.demo.handlers import Handlers
from docgemma.demo.screen import FIELDS, Session
from docgemma.errors import StoppedError, StoreError
from docgemma.settings import Settings
from docgemma.turns import Turns
from tests.scenario_model import ScenarioLLM

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"


class Names:
    """Stands for the components: each update is found by its component's name."""

    fields = [f"field-{number}" for number in range(FIELDS)]  # noqa: RUF012
    found, alternatives = ("found-0",), ("instead-0",)

    def __getattr__(self, name: str) -> str:
        return name


@pytest.fixture(scope="module")
def agent(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("handlers") / "home"))
    with Agent(Settings(home=home, sources="offline"), llm=ScenarioLLM()) as agent:
        yield agent


@contextmanager
def running(agent: Agent) -> Iterator[Everyday]:
    """The handlers of a demo that nobody looks at, ended with their turns and files."""
    turns = Turns(8)
    handlers = Everyday(agent, turns)
    handlers.screen.ui = Names()
    yield handlers
    turns.close()
    handlers.screen.files.cleanup()


@pytest.fixture
def handlers(agent: Agent) -> Iterator[Everyday]:
    with running(agent) as handlers:
        yield handlers


class Window:
    """A browser window of somebody who may have signed in; `browser` is what its storage keeps."""

    def __init__(self, handlers: Handlers, user: str | None = None, browser: str | None = None):
        self.handlers, self.session, self.browser = handlers, Session(), browser
        self.request = SimpleNamespace(username=user, session_hash=str(id(self)))
        self.does("open")

    def does(self, name: str, *more: object) -> str:
        more = more or (("The allergy was ruled out.",) if name == "approve" else ())
        *_, last = getattr(self.handlers, name)(self.session, self.browser, *more, self.request)
        return self._shown(last)

    def asks(self, text: str) -> str:
        *_, last = self.handlers.send({"text": text}, self.session, self.browser, None, self.request)
        return self._shown(last)

    def _shown(self, last: dict) -> str:
        self.browser, self.last = last["browser"], last
        return last["chat"][-1]["content"] if last["chat"] else ""


def signed(handlers: Handlers) -> list[str]:
    """Who stands behind each medication of the patient, as the record keeps it."""
    with closing(sqlite3.connect(handlers.agent.settings.home / "ehr.sqlite")) as records:
        rows = records.execute("SELECT body FROM resource WHERE type='Provenance' ORDER BY rowid")
        return [json.loads(row[0])["agent"][0]["who"]["display"] for row in rows]


def orders(handlers: Handlers) -> list[str]:
    return [item["medicationCodeableConcept"]["text"] for item in handlers.agent.store.chart("ghi-789").medications]


def test_an_entry_is_signed_by_whoever_signed_in_and_else_by_the_clinician(handlers: Handlers) -> None:
    for user in ("dr-a", "dr-b", None):
        window = Window(handlers, user)
        window.asks(ORDER)
        window.does("approve")
    assert signed(handlers)[-3:] == ["dr-a", "dr-b", "clinician"]
    badges = view.badges(handlers.agent, None, "dr-a")
    assert "Signed in: dr-a" in badges and "Signed in" not in view.badges(handlers.agent, None, None)


def test_a_window_approves_only_the_entry_that_it_shows(handlers: Handlers) -> None:
    first, before = Window(handlers), orders(handlers)
    first.asks(ORDER)
    second = Window(handlers, browser=first.browser)
    second.does("reject")
    second.asks("Prescribe warfarin 5 mg once daily for ghi-789")
    assert "changed since it was shown" in first.does("approve") and orders(handlers) == before
    assert "warfarin" in first.last["what"], "what waits by now is shown"
    first.does("approve")
    assert len(orders(handlers)) == len(before) + 1


@pytest.mark.parametrize("late", ["approve", "reject", "take_up"])
def test_an_entry_that_was_decided_elsewhere_is_not_decided_again(handlers: Handlers, late: str) -> None:
    first = Window(handlers)
    first.asks(ORDER)
    Window(handlers, browser=first.browser).does("approve")
    before = orders(handlers)
    assert "changed since it was shown" in first.does(late) and orders(handlers) == before
    assert not first.last["what"]


def test_an_entry_that_waits_is_corrected_and_rejected_in_words_and_questions_beside_it_are_answered(
    handlers: Handlers,
) -> None:
    window, before = Window(handlers), orders(handlers)
    window.asks(ORDER)
    window.asks("make it 250 mg")
    assert window.session.stands["pending"]["args"]["dosage"] == "250 mg" and "250 mg" in window.last["what"]
    said = window.asks("What is hypertension?")
    assert "hypertension" in said.lower() and "250 mg" in window.last["what"] and window.last["card"]["visible"]
    window.asks("no, scrap that")
    assert not window.last["what"] and not window.last["card"]["visible"] and orders(handlers) == before


def test_words_about_an_entry_that_this_window_never_showed_change_nothing(handlers: Handlers) -> None:
    first = Window(handlers)
    first.asks(ORDER)
    second = Window(handlers, browser=first.browser)
    second.does("reject")
    second.asks("Prescribe warfarin 5 mg once daily for ghi-789")
    assert "changed since it was shown" in first.asks("make it 2 mg")
    assert first.last["composer"]["text"] == "make it 2 mg" and "5 mg" in first.last["what"]


def test_a_window_of_somebody_who_signed_out_opens_nothing_for_the_next(handlers: Handlers) -> None:
    window, before = Window(handlers, "dr-a"), orders(handlers)
    window.asks(ORDER)
    window.request.username = "dr-b"
    window.does("approve")
    assert orders(handlers) == before and not window.session.thread and len(window.last["chat"]) == 1


def test_a_stop_after_the_approval_does_not_say_that_nothing_was_written(handlers: Handlers, monkeypatch) -> None:
    window, before = Window(handlers), orders(handlers)
    window.asks(ORDER)
    decide = handlers.agent.decide

    def cut_off(*args, **how):
        written = lambda: len(orders(handlers)) > len(before)  # noqa: E731
        return decide(*args, **how | {"stop": written})

    monkeypatch.setattr(handlers.agent, "decide", cut_off)
    assert "may be in the record already" in window.does("approve")
    assert window.session.stands["unfinished"] and len(orders(handlers)) == len(before) + 1
    window.does("take_up")
    assert len(orders(handlers)) == len(before) + 1


def test_a_stop_before_the_approval_took_effect_shows_the_card_again(handlers: Handlers, monkeypatch) -> None:
    window, before = Window(handlers), orders(handlers)
    window.asks(ORDER)

    def stopped(*args, **how):
        raise StoppedError("Stopped.")

    monkeypatch.setattr(handlers.agent, "decide", stopped)
    assert "Stopped." in window.does("approve") and "amoxicillin" in window.last["what"] and orders(handlers) == before


def test_a_question_that_cannot_be_asked_leaves_nothing_to_take_up(handlers: Handlers) -> None:
    window = Window(handlers)
    window.asks("What is hypertension?")
    assert "at most 20,000" in window.asks("x" * 20_001)
    assert not window.session.stands["unfinished"] and not window.last["take_up"]["visible"]


def test_where_the_memory_cannot_be_read_the_page_says_so_and_works_later(handlers: Handlers, monkeypatch) -> None:
    window = Window(handlers)
    window.asks(ORDER)

    def lost(*_: object):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(handlers.agent, "conversation", lost)
        assert "cannot be read or kept" in window.does("approve") and not window.last["what"]
    assert "changed since it was shown" in window.does("approve") and "amoxicillin" in window.last["what"]


def test_a_question_while_another_is_answered_waits_and_is_asked_next(handlers: Handlers) -> None:
    window, over = Window(handlers), threading.Event()
    window.asks("What is hypertension?")
    turn = handlers.turns.begin(window.session.thread, lambda on_event, stop: over.wait(60))
    before = list(window.session.messages)
    sent = {"text": "Check FDA warnings for dofetilide"}
    *_, last = handlers.send(sent, window.session, window.browser, None, window.request)
    assert "dofetilide" in last["waits"] and window.session.messages == before
    reloaded = Session()
    page = handlers.open(reloaded, window.browser, SimpleNamespace(username=None, session_hash="reloaded"))
    assert "dofetilide" in next(page)["waits"]
    back = handlers.withdraw({"text": "a draft"}, reloaded)
    assert back["composer"]["text"] == "Check FDA warnings for dofetilide\na draft" and not back["waits"]
    over.set()
    list(turn.follow())


def test_a_click_of_ones_own_ends_a_guided_scenario(handlers: Handlers) -> None:
    window = Window(handlers)
    *_, last = handlers.play("approval", window.session, None, window.request)
    assert last["play"]["value"] == "Next step"
    window.does("reject")
    assert window.last["play"]["value"] == "Play" and window.session.scenario is None


def test_a_forced_approval_of_a_card_for_another_patient_than_the_banners_writes_nothing(handlers: Handlers) -> None:
    window, before = Window(handlers), orders(handlers)
    window.session.patient = "abc-123"
    window.asks(ORDER)
    assert "of two patients" in window.does("approve") and orders(handlers) == before
    assert not window.last["approve"]["interactive"] and "Aisha Rahman" in window.last["whom"]
    handlers.keep(window.session)
    handlers.switch(window.session)
    window.does("approve")
    assert len(orders(handlers)) == len(before) + 1


def test_a_forced_approval_without_a_reason_against_a_red_finding_writes_nothing(handlers: Handlers) -> None:
    window, before = Window(handlers), orders(handlers)
    window.asks(ORDER)
    *_, last = handlers.approve(window.session, window.browser, "  ", window.request)
    assert "Write the reason first" in last["what"] and orders(handlers) == before


def test_a_search_that_cannot_reach_the_store_never_says_nobody(handlers: Handlers, monkeypatch) -> None:
    window = Window(handlers)
    assert "Nobody found" in handlers.search("Nobody Atall", window.session)["count"]

    def lost(*_: object):
        raise StoreError("The record store cannot be reached.")

    monkeypatch.setattr(handlers.agent.store, "by_identifier", lost)
    shown = handlers.search("Aisha", window.session)["count"]
    assert "cannot be reached" in shown and "Nobody" not in shown and 'role="alert"' in shown
