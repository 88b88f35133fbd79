"""The demo in ipywidgets: the same turns, driven through its buttons and fields, on the real graph and stores."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("ipywidgets", reason="the notebooks extra is not installed")

from docgemma.demo.widgets import WidgetDemo
from tests.scenario_model import ScenarioLLM

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"
WAIT_S = 60


@pytest.fixture
def demo(settings) -> WidgetDemo:
    from docgemma.agent import Agent

    with Agent(settings, llm=ScenarioLLM()) as agent:
        yield WidgetDemo(agent)


def sends(demo: WidgetDemo, text: str) -> str:
    demo.text.value = text
    demo.send.click()
    demo.wait(WAIT_S)
    return demo.talk.value


def clicks(demo: WidgetDemo, button) -> str:
    button.click()
    demo.wait(WAIT_S)
    return demo.talk.value


def orders(demo: WidgetDemo) -> int:
    return len(demo.agent.store.chart("ghi-789").medications)


def test_a_question_is_answered_with_sources_and_a_folded_timeline(demo: WidgetDemo) -> None:
    shown = sends(demo, "Check FDA warnings for dofetilide")
    assert "boxed warning" in shown and "Sources" in shown
    assert "<details><summary>How this was answered" in shown and "Understanding the question" in shown
    assert demo.text.value == "" and not demo.send.disabled and demo.decision.layout.display == "none"


def test_an_order_waits_on_its_card_and_is_written_once_when_approved(demo: WidgetDemo) -> None:
    before = orders(demo)
    sends(demo, ORDER)
    assert demo.decision.layout.display == "" and "Allergy to penicillin" in demo.card.value
    assert "Aisha Rahman" in demo.card.value and orders(demo) == before
    clicks(demo, demo.approve)
    assert orders(demo) == before + 1 and demo.decision.layout.display == "none"


def test_a_rejected_order_is_not_written_and_says_so(demo: WidgetDemo) -> None:
    before = orders(demo)
    sends(demo, ORDER)
    assert "not recorded" in clicks(demo, demo.reject) and orders(demo) == before


def test_a_changed_order_is_shown_again_before_it_is_written(demo: WidgetDemo) -> None:
    before = orders(demo)
    sends(demo, ORDER)
    boxes = {box.description: box for box in demo.fields.children}
    boxes["Medication name"].value, boxes["Dosage"].value = "doxycycline", "100 mg"
    assert "Changed: Medication name doxycycline; Dosage 100 mg" in clicks(demo, demo.save)
    assert "doxycycline" in demo.card.value and orders(demo) == before
    clicks(demo, demo.approve)
    assert orders(demo) == before + 1


def test_a_clarification_is_answered_with_a_button(demo: WidgetDemo) -> None:
    sends(demo, "Find patient James Wilson and check his chart")
    assert len(demo.choices.children) == 3
    chosen = demo.choices.children[1]
    assert chosen.description in clicks(demo, chosen) and not demo.choices.children


def test_an_image_is_shown_and_the_upload_leaves_no_file_behind(demo: WidgetDemo, tmp_path, monkeypatch) -> None:
    from pydicom.data import get_testdata_file

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    content = Path(get_testdata_file("CT_small.dcm", download=False)).read_bytes()
    file = {"name": "scan.dcm", "type": "", "size": len(content), "content": memoryview(content)}
    demo.upload.value = ({**file, "last_modified": datetime.now(UTC)},)
    shown = sends(demo, "What do you see in this CT image?")
    assert "data:image/jpeg" in shown and "128 x 128" in shown
    assert not list(tmp_path.glob("*.dcm")) and demo.upload.value == ()


def test_a_file_that_is_no_image_gets_one_line(demo: WidgetDemo, tmp_path) -> None:
    (tmp_path / "scan.png").write_text("not an image")
    demo.ask("What is this?", tmp_path / "scan.png")
    assert "not an image that can be read" in demo.talk.value and (tmp_path / "scan.png").exists()


def test_stop_ends_a_turn_and_the_conversation_stays_usable(demo: WidgetDemo) -> None:
    demo.agent.llm.enqueue("synthesize", "Word by word. " * 200)
    demo.agent.llm.complete = _until_stopped(demo, demo.agent.llm.complete)
    assert "Stopped." in sends(demo, "What is hypertension?")
    del demo.agent.llm.complete
    assert "boxed warning" in sends(demo, "Check FDA warnings for dofetilide")


def _until_stopped(demo: WidgetDemo, complete):
    """The person presses Stop while the model answers."""

    def answer(*args, **kwargs):
        demo.halt.click()
        return complete(*args, **kwargs)

    return answer


def test_text_that_others_wrote_is_escaped(demo: WidgetDemo) -> None:
    assert "<script" not in sends(demo, "<script>alert(1)</script> Check FDA warnings for dofetilide")


def test_where_gradio_is_not_installed_a_notebook_gets_the_widgets(demo: WidgetDemo, monkeypatch, capsys) -> None:
    from docgemma.demo import open_in_notebook

    monkeypatch.setitem(sys.modules, "docgemma.demo.app", None)
    opened = open_in_notebook(demo.agent)
    assert isinstance(opened, WidgetDemo)
    assert "The demo is not installed. These are notebook widgets instead." in capsys.readouterr().err
    opened.close()
