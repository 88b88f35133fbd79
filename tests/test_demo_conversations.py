"""Which conversations come back to whom, what is forgotten, and what thumbs keep, without a browser."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("gradio", reason="the demo extra is not installed")

from docgemma.demo import conversations
from docgemma.demo.everyday import Everyday
from docgemma.forget import FEEDBACK, image_folder
from tests.test_demo_handlers import ORDER, Names, Window, agent, running  # noqa: F401

QUESTION = "Find patient Tomasz Nowak and check his chart"


@pytest.fixture
def demo(agent):  # noqa: F811
    with running(agent) as demo:
        yield demo


def keep(window: Window, kept: list[str] | None = None, keep: bool = True) -> list[str]:
    return window.handlers.remember(keep, window.session, kept)["kept"]


def ends(window: Window) -> dict:
    """New conversation, to its end."""
    first, *_ = list(window.handlers.begin_anew(window.session, window.request))
    return first


def chooses(window: Window, kept: list[str], **what: object) -> dict:
    event = SimpleNamespace(_data={"number": 0, "name": "", **what})
    shown: dict = {}
    for updates in window.handlers.choose_listed(window.session, kept, window.request, event):
        shown |= updates
    return shown


def texts(window: Window) -> str:
    return " ".join(item["content"] for item in window.last["chat"])


def test_a_page_that_is_loaded_again_shows_nobody_the_patient_before(demo: Everyday) -> None:
    window = Window(demo)
    window.asks(QUESTION)
    assert "Nowak" in texts(window)
    again = Window(demo, browser=window.browser)
    assert again.last["chat"] == [] and not again.session.patient and not again.browser
    assert "Nowak" not in str(again.last)


def test_an_entry_that_waits_comes_back_to_its_tab_and_can_be_rejected(demo: Everyday) -> None:
    window = Window(demo)
    window.asks(ORDER)
    again = Window(demo, browser=window.browser)
    assert "amoxicillin" in again.last["what"]
    assert "not recorded" in again.does("reject").lower()


def test_who_signed_in_comes_back_to_their_conversation_and_nobody_else_does(demo: Everyday) -> None:
    window = Window(demo, "dr-a")
    window.asks(QUESTION)
    assert "Nowak" in texts(Window(demo, "dr-a", window.browser))
    for other in ("dr-b", None):
        assert Window(demo, other, window.browser).last["chat"] == []
        assert "Nowak" not in str(demo.list(Window(demo, other).session, [window.browser]))
    assert "Nowak" in demo.list(window.session, [])["list"]


def test_a_new_conversation_forgets_the_old_one_with_its_files(demo: Everyday) -> None:
    window = Window(demo)
    window.asks(ORDER)
    old, folder = window.session.thread, demo.screen.export_folder(window.session.thread)
    assert any(folder.iterdir())
    shown = ends(window)
    assert shown["chat"] == [] and not shown["what"] and not window.session.patient and shown["browser"] == ""
    assert "Aisha" not in shown["chart"] and not shown["export"]["visible"]
    assert demo.agent.conversation(old) is None and not folder.exists()
    assert Window(demo, browser=old).last["chat"] == []


def test_a_conversation_that_was_kept_stays_for_this_browser_until_it_is_deleted(demo: Everyday) -> None:
    window = Window(demo)
    window.asks(QUESTION)
    kept, thread = keep(window), window.session.thread
    ends(window)
    assert thread not in demo.list(window.session, kept)["list"], "ids stay on the server"
    assert "Nowak" not in demo.list(Window(demo).session, [])["list"], "another browser has kept nothing"
    assert "Nowak" in " ".join(item["content"] for item in chooses(window, kept, do="open")["chat"])
    chooses(window, kept, do="rename", name="  Ward round  ")
    assert "Ward round" in demo.list(window.session, kept)["list"]
    about = image_folder(demo.agent.settings, thread)
    assert (about / "about.json").stat().st_mode & 0o077 == 0
    assert chooses(window, kept, do="delete")["chat"] == [], "it stood on the page, too"
    assert demo.agent.conversation(thread) is None and not about.exists()


def test_a_conversation_that_is_no_longer_kept_goes_with_the_next_new_one(demo: Everyday) -> None:
    window = Window(demo)
    window.asks(QUESTION)
    old, kept = window.session.thread, keep(window)
    assert keep(window, kept, keep=False) == []
    ends(window)
    assert demo.agent.conversation(old) is None


def test_a_browser_that_names_a_conversation_it_did_not_keep_is_shown_nothing(demo: Everyday) -> None:
    window = Window(demo)
    window.asks(QUESTION)
    assert "Nowak" not in demo.list(Window(demo).session, [window.session.thread])["list"]


@pytest.mark.parametrize("number", [-1, 5, "0", None, True])
def test_a_choice_that_is_not_in_the_list_does_nothing(demo: Everyday, number: object) -> None:
    window = Window(demo, "dr-c")
    with pytest.warns(UserWarning, match="This list has changed"):
        chooses(window, [], do="delete", number=number)


def test_a_page_that_was_away_too_long_is_forgotten_and_an_open_one_is_not(demo: Everyday, monkeypatch) -> None:
    left, here, kept = Window(demo), Window(demo), Window(demo)
    for window in (left, here, kept):
        window.asks(ORDER)
    keep(kept)
    demo.closed(left.request)
    demo.closed(kept.request)
    assert "amoxicillin" in Window(demo, browser=left.browser).last["what"], "in time"
    monkeypatch.setattr(conversations, "RETURN_S", -1)
    again = Window(demo, browser=here.browser)  # a second window on it
    demo.closed(again.request)
    demo.conversations.sweep()
    assert demo.agent.conversation(here.session.thread), "the first window is still open"
    demo.conversations._leave([left.session.thread, kept.session.thread])
    demo.conversations.sweep()
    assert demo.agent.conversation(left.session.thread) is None
    assert demo.agent.conversation(kept.session.thread)
    left.does("approve")
    assert "has been forgotten" in texts(left) and not left.last["what"], "a window that wakes up says so"


def test_after_a_restart_what_nobody_returns_to_is_forgotten(demo: Everyday, monkeypatch) -> None:
    window, kept, signed_in = Window(demo), Window(demo), Window(demo, "dr-a")
    for item in (window, kept, signed_in):
        item.asks(QUESTION)
    keep(kept)
    monkeypatch.setattr(conversations, "RETURN_S", -1)
    restarted = Everyday(demo.agent, demo.turns)
    restarted.screen.ui = Names()
    restarted.conversations.sweep()
    known = [demo.agent.conversation(item.session.thread) is not None for item in (window, kept, signed_in)]
    assert known == [False, True, True]
    restarted.screen.files.cleanup()


def test_thumbs_keep_no_words_unless_somebody_agrees_and_only_their_own_are_exported(demo: Everyday) -> None:
    file = Path(demo.agent.settings.home, FEEDBACK)
    window = Window(demo, "dr-a")
    window.asks(QUESTION)
    last = len(window.session.messages) - 1
    like = SimpleNamespace(index=last, liked=True)
    shown = demo.thumb(window.session, False, like)["feedback"]
    exported = json.loads(Path(shown["value"]).read_text(encoding="utf-8"))
    assert [(item["liked"], item["status"]) for item in exported] == [(True, "answered")]
    assert "Nowak" not in file.read_text(encoding="utf-8") and window.session.thread not in file.read_text("utf-8")
    assert file.stat().st_mode & 0o077 == 0
    demo.thumb(window.session, True, SimpleNamespace(index=last, liked=False))
    (mine,) = demo.conversations.thumbs(window.session)
    assert mine["liked"] is False and "Nowak" in mine["answer"] and mine["question"] == QUESTION
    assert demo.conversations.thumbs(Window(demo, "dr-a").session) == [mine]
    assert demo.conversations.thumbs(Window(demo, "dr-b").session) == []
    demo.agent.forget()
    assert not file.exists()


def test_without_a_login_the_next_person_exports_no_thumb_of_the_one_before(demo: Everyday) -> None:
    first, second = Window(demo), Window(demo)
    first.asks(QUESTION)
    demo.thumb(first.session, True, SimpleNamespace(index=len(first.session.messages) - 1, liked=True))
    (mine,) = demo.conversations.thumbs(first.session)
    assert "Nowak" in mine["answer"]
    ends(first)
    for window in (first, second):
        assert demo.conversations.thumbs(window.session) == []
        assert not demo.list(window.session, [])["feedback"]["visible"]


def test_nobody_works_out_where_an_export_lies_and_it_goes_with_its_page(demo: Everyday) -> None:
    window = Window(demo, "dr-a")
    window.asks(QUESTION)
    shown = Path(window.last["export"]["value"])
    assert "Nowak" in shown.read_text(encoding="utf-8")
    elsewhere = Everyday(demo.agent, demo.turns)
    thread = window.session.thread
    assert elsewhere.screen.export_folder(thread).name != demo.screen.export_folder(thread).name, "a secret of its own"
    elsewhere.screen.files.cleanup()
    demo.closed(window.request)
    assert not shown.exists()
    assert Path(Window(demo, "dr-a", window.browser).last["export"]["value"]).exists(), "who comes back gets it again"
