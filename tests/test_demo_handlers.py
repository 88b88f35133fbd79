"""What the demo does for several windows and several people, on the real graph and stores, without a browser."""

import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("gradio", reason="the demo extra is not installed")

from docgemma.agent import Agent
from docgemma.demo.handlers import Desk
from docgemma.demo.ids import Ids
from docgemma.demo.scenarios import load_scenarios
from docgemma.demo.screen import FIELDS
from docgemma.demo.session import Session
from docgemma.errors import StoppedError
from docgemma.settings import Settings
from tests.scenario_model import ScenarioLLM

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"


class Names:
    """Stands for the components: each update is found by its component's name."""

    fields = [f"field-{number}" for number in range(FIELDS)]  # noqa: RUF012

    def __getattr__(self, name: str) -> str:
        return name


@pytest.fixture(scope="module")
def agent(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("desk") / "home"))
    with Agent(Settings(home=home, sources="offline"), llm=ScenarioLLM()) as agent:
        yield agent


@pytest.fixture
def desk(agent: Agent) -> Iterator[Desk]:
    desk = Desk(agent, Ids(agent.settings.home), load_scenarios())
    desk.screen.ui = Names()
    yield desk
    desk.screen.files.cleanup()


class Window:
    """A browser window of somebody who may have signed in; `browser` is what its storage keeps."""

    def __init__(self, desk: Desk, user: str | None = None, browser: str | None = None):
        self.desk, self.session, self.browser = desk, Session(), browser
        self.request = SimpleNamespace(username=user)
        self.does("open")

    def does(self, name: str, *more: object) -> str:
        *_, last = getattr(self.desk, name)(self.session, self.browser, *more, self.request)
        return self._shown(last)

    def asks(self, text: str) -> str:
        *_, last = self.desk.send({"text": text}, self.session, self.browser, None, self.request)
        return self._shown(last)

    def _shown(self, last: dict) -> str:
        self.browser, self.last = last["browser"], last
        return last["chat"][-1]["content"] if last["chat"] else ""


def signed(desk: Desk) -> list[str]:
    """Who stands behind each medication of the patient, as the record keeps it."""
    with closing(sqlite3.connect(desk.agent.settings.home / "ehr.sqlite")) as records:
        rows = records.execute("SELECT body FROM resource WHERE type='Provenance' ORDER BY rowid")
        return [json.loads(row[0])["agent"][0]["who"]["display"] for row in rows]


def orders(desk: Desk) -> list[str]:
    return [item["medicationCodeableConcept"]["text"] for item in desk.agent.store.chart("ghi-789").medications]


def test_an_entry_is_signed_by_whoever_signed_in_and_else_by_the_clinician(desk: Desk) -> None:
    for user in ("dr-a", "dr-b", None):
        window = Window(desk, user)
        window.asks(ORDER)
        window.does("approve")
    assert signed(desk)[-3:] == ["dr-a", "dr-b", "clinician"]
    assert "Signed in: dr-a" in desk.screen.badges(None, "dr-a") and "Signed in" not in desk.screen.badges()


def test_a_window_approves_only_the_entry_that_it_shows(desk: Desk) -> None:
    first, before = Window(desk), orders(desk)
    first.asks(ORDER)
    second = Window(desk, browser=first.browser)
    second.does("reject")
    second.asks("Prescribe warfarin 5 mg once daily for ghi-789")
    assert "changed since it was shown" in first.does("approve") and orders(desk) == before
    assert "warfarin" in first.last["what"], "what waits by now is shown"
    first.does("approve")
    assert len(orders(desk)) == len(before) + 1


@pytest.mark.parametrize("late", ["approve", "reject", "take_up"])
def test_an_entry_that_was_decided_elsewhere_is_not_decided_again(desk: Desk, late: str) -> None:
    first = Window(desk)
    first.asks(ORDER)
    Window(desk, browser=first.browser).does("approve")
    before = orders(desk)
    assert "changed since it was shown" in first.does(late) and orders(desk) == before
    assert not first.last["what"]


def test_a_question_while_an_entry_waits_says_so_and_keeps_the_words(desk: Desk) -> None:
    window = Window(desk)
    window.asks(ORDER)
    said = window.asks("What is hypertension?")
    assert "waits for your decision" in said and "web." not in said
    assert window.last["composer"]["text"] == "What is hypertension?" and "amoxicillin" in window.last["what"]


def test_a_window_of_somebody_who_signed_out_opens_nothing_for_the_next(desk: Desk) -> None:
    window, before = Window(desk, "dr-a"), orders(desk)
    window.asks(ORDER)
    window.request.username = "dr-b"
    window.does("approve")
    assert orders(desk) == before and window.session.thread is None and len(window.last["chat"]) == 1


def test_a_stop_after_the_approval_does_not_say_that_nothing_was_written(desk: Desk, monkeypatch) -> None:
    window, before = Window(desk), orders(desk)
    window.asks(ORDER)
    decide = desk.agent.decide

    def cut_off(*args, **how):
        written = lambda: len(orders(desk)) > len(before)  # noqa: E731
        return decide(*args, **how | {"stop": written})

    monkeypatch.setattr(desk.agent, "decide", cut_off)
    assert "may be in the record already" in window.does("approve")
    assert window.session.stands["unfinished"] and len(orders(desk)) == len(before) + 1
    window.does("take_up")
    assert len(orders(desk)) == len(before) + 1


def test_a_stop_before_the_approval_took_effect_shows_the_card_again(desk: Desk, monkeypatch) -> None:
    window, before = Window(desk), orders(desk)
    window.asks(ORDER)

    def stopped(*args, **how):
        raise StoppedError("Stopped.")

    monkeypatch.setattr(desk.agent, "decide", stopped)
    assert "Stopped." in window.does("approve") and "amoxicillin" in window.last["what"] and orders(desk) == before


def test_a_question_that_cannot_be_asked_leaves_nothing_to_take_up(desk: Desk) -> None:
    window = Window(desk)
    window.asks("What is hypertension?")
    assert "at most 20,000" in window.asks("x" * 20_001)
    assert not window.session.stands["unfinished"] and not window.last["take_up"]["visible"]


def test_where_the_memory_cannot_be_read_the_page_says_so_and_works_again_later(desk: Desk, monkeypatch) -> None:
    window = Window(desk)
    window.asks(ORDER)

    def lost(*_: object):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(desk.agent, "conversation", lost)
        assert "cannot be read or kept" in window.does("approve") and not window.last["what"]
    assert "changed since it was shown" in window.does("approve") and "amoxicillin" in window.last["what"]


def test_a_question_while_another_is_answered_changes_nothing_on_the_page(desk: Desk) -> None:
    window, over = Window(desk), threading.Event()
    window.asks("What is hypertension?")
    turn = desk.turns.begin(window.session.thread, lambda on_event, stop: over.wait(60), [])
    before = list(window.session.messages)
    with pytest.warns(UserWarning, match="still being answered"):
        *_, last = desk.send({"text": "And now?"}, window.session, window.browser, None, window.request)
    assert list(last) == ["composer"] and window.session.messages == before, "Stop stays, and so do the words"
    over.set()
    list(turn.follow())


def test_a_click_of_ones_own_ends_a_guided_scenario(desk: Desk) -> None:
    window = Window(desk)
    *_, last = desk.play("approval", window.session, None, window.request)
    assert last["play"]["value"] == "Next step"
    window.does("reject")
    assert window.last["play"]["value"] == "Play" and window.session.scenario is None
