"""What a window of the RCM tab keeps: every paper is read, and all of it is forgotten."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pdfplumber", reason="the rcm extra is not installed")
pytest.importorskip("gradio", reason="the demo extra is not installed")

from docgemma.agent import Agent
from docgemma.demo.rcm_case import Case
from docgemma.demo.rcm_tab import QUESTION
from docgemma.errors import StoppedError, UsageError
from docgemma.forget import image_folder
from docgemma.paths import data_file
from docgemma.settings import Settings

NOTES = data_file("rcm", "notes")


@pytest.fixture
def case(settings: Settings) -> Iterator[Case]:
    with Agent(settings, model="edge") as agent:
        yield Case(agent)


def asks(case: Case, steps_left: int = 1_000) -> list[str]:
    """Ask, and stop after so many steps; what each step told."""
    told = list[str]()
    case.work(QUESTION, "clinician", lambda step: told.append(step["detail"]), lambda: len(told) >= steps_left)
    return told


def copied(folder: Path, note: str, name: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(NOTES / note, folder / (name or note)))


def test_uploads_of_one_name_are_told_apart_moved_and_forgotten(case: Case, tmp_path: Path) -> None:
    given = [copied(tmp_path / str(at), "kahananui_semaglutide.pdf", "note.pdf") for at in range(3)]
    for path in given:
        case.take_over(path)
    folder = image_folder(case.agent.settings, case.thread)
    assert list(case.papers) == ["note.pdf", "note (2).pdf", "note (3).pdf"]
    assert not any(path.exists() for path in given) and folder.stat().st_mode & 0o077 == 0
    assert case.remove() == "" and not folder.exists()


def test_what_is_no_pdf_is_not_kept(case: Case, tmp_path: Path) -> None:
    fake = tmp_path / "letter.pdf"
    fake.write_text("no PDF")
    with pytest.raises(UsageError, match="is not a PDF"):
        case.take_over(fake)
    kept = image_folder(case.agent.settings, case.thread) / "papers"
    assert case.papers == {} and list(kept.iterdir()) == []


def test_a_paper_added_while_a_question_waits_is_read(case: Case) -> None:
    case.take(NOTES / "wilson_without_birth_date.pdf")
    asks(case)
    assert case.told["status"] == "needs_clarification"
    case.take(NOTES / "wilson_with_birth_date.pdf")
    assert case.told == {} and "page 1 of 1 of wilson_with_birth_date.pdf" in asks(case)


def test_a_paper_added_after_a_stop_is_read(case: Case) -> None:
    case.take(NOTES / "maddox_knee_mri.pdf")
    with pytest.raises(StoppedError):
        asks(case, steps_left=2)
    case.take(NOTES / "lindqvist_knee_mri.pdf")
    assert "page 4 of 4 of lindqvist_knee_mri.pdf" in asks(case)


def test_a_stopped_turn_goes_on_where_it_stopped(case: Case) -> None:
    case.take(NOTES / "maddox_knee_mri.pdf")
    with pytest.raises(StoppedError):
        asks(case, steps_left=2)  # the question, and page 1
    told = asks(case)
    assert told[0] == "page 2 of 2 of maddox_knee_mri.pdf" and case.told["status"] == "answered"
