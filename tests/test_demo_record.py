"""The recorder without a browser: pacing, captions, encoding, and one clear line for whatever is missing."""

import io
import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from docgemma.demo import camera, film, record, server
from docgemma.demo.camera import Picture
from docgemma.demo.film import BAR, FPS, PAGE, SIZE, Film, Shot, animate, cut, draw, still
from docgemma.demo.scenarios import Scenario, Step, load_scenarios, load_trace, player
from docgemma.errors import ConfigError, StoreError, UsageError
from docgemma.nodes.context import never_stop

LIMITS = {"act": 3.0, "work": 2.0, "read": 2.0}


def picture(at: float, colour: str) -> Picture:
    out = io.BytesIO()
    Image.new("RGB", (64, 40), colour).save(out, "JPEG")
    return Picture(at, out.getvalue())


PICTURES = [picture(0.0, "red"), picture(4.0, "green"), picture(9.0, "blue")]


def seconds(frames: list[film.Frame]) -> float:
    return round(sum(frame.seconds for frame in frames), 3)


@pytest.mark.parametrize(
    ("kind", "end", "shown", "faster"),
    [("act", 3.0, 3.0, 1.0), ("work", 10.0, 2.0, 5.0), ("read", 10.0, 2.0, 1.0), ("title", 2.0, 2.0, 1.0)],
)
def test_a_long_wait_is_shown_faster_and_a_long_reading_is_cut_off(kind, end, shown, faster) -> None:
    frames = cut([Shot(kind, "Head", "Text", 0.0, end)], PICTURES, LIMITS)
    assert seconds(frames) == shown and {frame.faster for frame in frames} == {faster}


def test_each_moment_shows_the_last_picture_that_was_taken_by_then() -> None:
    frames = cut([Shot("work", "Head", "Text", 0.0, 10.0)], PICTURES, {"work": 5.0})
    assert [frame.picture for frame in frames] == PICTURES
    assert [round(frame.seconds, 1) for frame in frames] == [2.0, 2.5, 0.5]


def test_a_shot_from_before_any_picture_shows_the_first_one() -> None:
    frames = cut([Shot("act", "Head", "Text", -1.0, 0.0)], PICTURES, {})
    assert {frame.picture for frame in frames} == {PICTURES[0]}


def test_the_caption_stands_below_the_page_and_says_that_a_wait_is_shortened() -> None:
    shot = Shot("work", "One look-up", "Warnings come from the label.", 0.0, 10.0)
    plain, short = (draw(cut([shot], PICTURES, limits)[0]) for limits in ({}, LIMITS))
    below = (0, PAGE[1], *SIZE)
    assert plain.size == SIZE and plain.getpixel((640, 400))[0] > 200, "the page is red"
    assert len(plain.crop(below).getcolors(10_000)) > 2, "something is written"
    assert plain.crop(below).tobytes() != short.crop(below).tobytes()


def test_every_caption_of_the_scenarios_fits_its_bar() -> None:
    texts = [step.caption for item in load_scenarios() for step in item.steps] + [s.notice for s in load_scenarios()]
    assert max(len(film.textwrap.wrap(text, film.COLUMNS)) for text in texts) <= 3
    assert all(film._font(20).getlength(line) < PAGE[0] - 48 for text in texts
               for line in film.textwrap.wrap(text, film.COLUMNS))  # fmt: skip
    assert all(text.isascii() for text in texts), "the font has no other letters"


def test_a_film_can_be_read_again_and_is_as_long_as_it_says(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="the record extra is not installed")
    shots = [Shot("title", "A title", "A line", 0.0, 1.0), Shot("read", "Head", "Text", 8.0, 10.0)]
    with Film(tmp_path / "film.mp4") as made:
        made.add(cut(shots, PICTURES, {}))
    with av.open(str(tmp_path / "film.mp4")) as file:
        frames = [frame.to_image() for frame in file.decode(video=0)]
    assert len(frames) == round(made.seconds * FPS) == 30
    assert frames[0].size == SIZE and frames[0].getpixel((10, 10))[2] < 60, "the title is dark"
    assert frames[-1].getpixel((640, 400))[2] > 200, "the last picture is blue"
    assert frames[-1].getpixel((5, SIZE[1] - BAR // 2))[0] < 60, "the caption's bar is dark"


def test_the_cut_of_everything_stays_under_three_minutes_however_many_scenarios_there_are() -> None:
    for times in (1, 3):
        scenarios = load_scenarios() * times
        limits = record._within(scenarios)
        steps = sum(len(item.steps) for item in scenarios)
        longest = steps * (limits["act"] + limits["work"] + limits["read"])
        assert longest + len(scenarios) * (limits["title"] + limits["read"]) <= 170.01


def test_a_small_animation_fits_its_limit_and_moves(tmp_path: Path) -> None:
    frames = cut([Shot("read", "Head", "Text", 0.0, 10.0)], PICTURES, {})
    animate(frames, tmp_path / "a.webp", width=320, max_bytes=100_000)
    with Image.open(tmp_path / "a.webp") as moved:
        assert moved.n_frames == 3 and moved.width == 320
    with pytest.raises(ConfigError, match="larger than 0 kB"):
        animate(frames, tmp_path / "b.webp", width=320, max_bytes=10)
    assert not (tmp_path / "b.webp").exists()


def test_a_screenshot_is_made_to_fit(tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.effect_noise((800, 600), 80).save(out, "PNG")
    still(out.getvalue(), tmp_path / "a.png", 150_000)
    assert (tmp_path / "a.png").stat().st_size <= 150_000


def test_what_is_missing_is_named_with_its_install_line(monkeypatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch, pytest.raises(ConfigError) as no_chromium:
        patch.setenv("PATH", str(tmp_path))
        camera.find_chromium()
    assert "apt-get install chromium" in no_chromium.value.hint
    for load, module in ((camera.load_playwright, "playwright"), (film.load_encoder, "av")):
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


def test_the_recorded_server_gets_none_of_the_users_records(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCGEMMA_EHR", "https://ehr.example.org/fhir")
    monkeypatch.setenv("DOCGEMMA_DB", "/srv/memory.sqlite")
    monkeypatch.setenv("DOCGEMMA_MODEL", "edge")
    given = {name: value for name, value in server._environment(tmp_path, None).items() if "DOCGEMMA_" in name}
    assert given == {"DOCGEMMA_HOME": str(tmp_path), "DOCGEMMA_SOURCES": "offline", "DOCGEMMA_MODEL": "edge"}


def test_a_server_that_does_not_start_says_its_own_line(tmp_path: Path) -> None:
    """A data home that is a file: the demo cannot keep anything there."""
    started = server.Server.__new__(server.Server)
    started.log, started.url = tmp_path / "log", "http://127.0.0.1:9/"
    with started.log.open("w") as log:
        started.process = server.subprocess.Popen([sys.executable, "-c", "print('docgemma: no.'); exit(1)"], stdout=log)
    started.process.wait()
    with pytest.raises(ConfigError, match=r"did not start: docgemma: no\."):
        started.__enter__()


def test_the_trace_of_a_recording_can_be_replayed(tmp_path: Path) -> None:
    result = {
        "model": "edge", "answer": "Yes.", "path": ["input_assembly", "synthesize"],
        "timeline": [{"label": label, "detail": "", "seconds": 0.1} for label in ("Reading", "Writing")],
    }  # fmt: skip
    scenario = Scenario("one", "One", "Notice.", (Step("A caption.", ask="?"),))
    kept = record.stored(record.Take(scenario, results=[result]))
    (tmp_path / "one.json").write_text(json.dumps(kept))
    assert load_trace("one", tmp_path)["model"] == "edge"
    events: list[dict] = []
    assert player(None, scenario, 0, "t", None, tmp_path)(events.append, never_stop) == result
    assert [event["type"] for event in events] == ["start", "step", "start", "step", "answer"]
