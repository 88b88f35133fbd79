"""The recorder without a browser: pacing, encoding, and one clear line for whatever is missing."""

import io
import sys
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("gradio", reason="the demo extra is not installed")

from data.film.kit import record
from data.film.kit.record import FPS, Frames, animate, encode, load_script, paced
from docgemma.demo.scenarios import load_scenarios
from docgemma.errors import ConfigError, StoreError, UsageError


def taken(*seconds: float) -> Frames:
    """Pictures of one page at these seconds: red, green, blue, and so on."""
    frames: Frames = []
    for at, colour in zip(seconds, ("red", "green", "blue", "white"), strict=False):
        out = io.BytesIO()
        Image.new("RGB", (64, 40), colour).save(out, "JPEG")
        frames.append((at, out.getvalue()))
    return frames


def seconds(shown: list[tuple[bytes, float]]) -> list[float]:
    return [round(stood, 3) for _, stood in shown]


def test_each_picture_is_shown_for_as_long_as_it_stood_but_not_for_a_long_wait() -> None:
    assert seconds(paced(taken(0.0, 4.0, 9.0), 6.0)) == [4.0, 5.0, 0.1]
    assert seconds(paced(taken(0.0, 4.0, 90.0), 6.0)) == [4.0, 6.0, 0.1]


def test_pictures_in_quick_succession_become_one_the_last() -> None:
    shown = paced(taken(0.0, 0.03, 0.06, 1.0), 6.0)
    assert seconds(shown) == [1.0, 0.1]
    assert shown[0][0] == taken(0.0, 1.0, 2.0)[2][1]


def test_a_film_can_be_read_again_and_is_as_long_as_its_pictures(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="the record extra is not installed")
    encode(tmp_path / "film.mp4", paced(taken(0.0, 1.0, 1.9), 6.0))
    with av.open(str(tmp_path / "film.mp4")) as file:
        frames = [frame.to_image() for frame in file.decode(video=0)]
    assert len(frames) == 2 * FPS and frames[0].size == (64, 40)
    assert frames[0].getpixel((10, 10))[0] > 200 and frames[-1].getpixel((10, 10))[2] > 200


def test_a_small_animation_moves(tmp_path: Path) -> None:
    with Image.open(animate(tmp_path / "a.webp", taken(0.0, 4.0, 9.0))) as moved:
        assert moved.n_frames == 3 and moved.width == record.SMALL_WIDTH


def test_what_is_missing_is_named_with_its_install_line(monkeypatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch, pytest.raises(ConfigError) as no_chromium:
        patch.setenv("PATH", str(tmp_path))
        record.record(tmp_path)
    assert "apt-get install chromium" in no_chromium.value.hint
    monkeypatch.setattr(record.stage, "find_chromium", lambda: "chromium")
    for load, module in (
        (lambda: record.stage.browser().__enter__(), "playwright.sync_api"),
        (record.load_encoder, "av"),
    ):
        with monkeypatch.context() as patch, pytest.raises(ConfigError) as missing:
            patch.setitem(sys.modules, module, None)
            load()
        assert "pip install 'docgemma[record]'" in missing.value.hint


def test_an_unknown_scenario_and_a_folder_that_cannot_be_written_get_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no scenario nope"):
        record.select(["single-tool", "nope"])
    assert [item.id for item in record.select(["single-tool"])] == ["single-tool"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        record._folder(tmp_path / "file" / "out")


def test_the_recorded_demo_gets_none_of_the_users_records(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCGEMMA_EHR", "https://ehr.example.org/fhir")
    monkeypatch.setenv("DOCGEMMA_DB", "/srv/memory.sqlite")
    monkeypatch.setenv("DOCGEMMA_MODEL", "edge")
    settings = record.fresh_settings(tmp_path)
    assert (settings.home, settings.ehr, settings.db, settings.sources) == (tmp_path, None, None, "offline")
    assert settings.model == "edge"


def test_the_script_tells_scenes_that_are_there_and_each_of_their_steps() -> None:
    script, scenarios = load_script(), {item.id: item for item in load_scenarios()}
    assert script.opening[0].head and script.closing
    for name, said in script.scenes.items():
        assert len(said) == len(scenarios[name].steps) + 1, name
    untold = next(item for item in scenarios.values() if item.id not in script.scenes)
    assert script.lines(untold) == [*(step.caption for step in untold.steps), untold.notice]


def test_the_film_can_be_read_aloud_in_its_time() -> None:
    script = load_script()
    card_words = [word for card in (*script.opening, *script.closing) for word in f"{card.head} {card.text}".split()]
    said = [word for lines in script.scenes.values() for line in lines for word in line.split()]
    assert (len(card_words) + len(said)) / record.WORDS_A_SECOND < record.WHOLE_S


def test_a_film_that_is_too_long_is_shown_faster_and_a_short_one_as_it_is() -> None:
    assert record.fitted([(b"", 30.0), (b"", 10.0)], 20.0) == [(b"", 15.0), (b"", 5.0)]
    assert record.fitted([(b"", 3.0)], 20.0) == [(b"", 3.0)]


def test_every_caption_fits_its_bar() -> None:
    texts = [line for item in load_scenarios() for line in load_script().lines(item)]
    assert max(map(len, texts)) <= 330, "three lines of about 130 letters"
