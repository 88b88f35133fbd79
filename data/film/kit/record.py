"""`docgemma demo record`: play the guided scenarios through the real app in a real browser, as films with captions.

Playwright takes the pictures and shows the captions; the demo runs on a fresh data home and offline, so that no record
but the synthetic ones is touched.
"""

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel

from docgemma.agent import Agent
from docgemma.demo.scenarios import Scenario, load_scenarios
from docgemma.demo.start import launch
from docgemma.errors import ConfigError, StoreError, UsageError
from docgemma.llm.base import LLM
from docgemma.paths import data_file, kit
from docgemma.settings import Settings, read_settings

stage, store = kit("film", "stage"), kit("film", "traces").store_trace


if TYPE_CHECKING:
    from PIL import Image
    from playwright.sync_api import Browser, Page

Say = Callable[[str], Any]
Frames = list[tuple[float, bytes]]  # seconds at which it was taken, JPEG
Shown = list[tuple[bytes, float]]  # JPEG, seconds for which it is shown
WHOLE = "docgemma-demo.mp4"
WHOLE_S = 170.0  # the cut of the script's scenes stays under three minutes
WORDS_A_SECOND = 2.8  # as read aloud
PAGE = {"width": 1280, "height": 920}  # pixels; the captions stand on the last 110 of them
BAR = """<div style="position: fixed; inset: auto 0 0 0; height: 94px; padding: 8px 24px; background: #0f172a;
  color: #f8fafc; font: 19px/1.35 system-ui, sans-serif"><b style="color: #5eead4">{head}</b><br>{text}</div>"""
CARD = """<body style="margin: 0; height: 100vh; display: grid; place-content: center; background: #0f172a;
  color: #f8fafc; font: 34px/1.5 system-ui, sans-serif"><div style="max-width: 980px">
  <h1 style="color: #5eead4; font-size: 54px">{head}</h1><p>{text}</p></div></body>"""
BELOW = ":root { --dg-height: calc(100dvh - 110px) !important; scroll-padding-bottom: 110px }"  # above the bar
TYPING_MS = 20
TURN_MS = 900_000  # a large model on a processor takes its time
TITLE_MS, CLICK_MS, READ_MS, NOTICE_MS = 2000, 1200, 4000, 6000
FPS = 10
STILL_S, SMALL_STILL_S = 6.0, 2.0  # a picture that does not change is shown no longer, in a film and in the animation
SMALL_WIDTH = 720
IN_README = "approval"  # the scenario of the README's pictures, where it is played


class Card(BaseModel):
    """Words on an empty picture."""

    head: str
    text: str


class Script(BaseModel):
    """The film of everything: its cards, and the lines of each scene (one for each step, one for its end)."""

    opening: list[Card]
    scenes: dict[str, list[str]]
    closing: list[Card]

    def lines(self, scenario: Scenario) -> list[str]:
        """What is said in a scene; where the script does not tell it, the scenario's own captions."""
        return self.scenes.get(scenario.id) or [*(step.caption for step in scenario.steps), scenario.notice]


def load_script() -> Script:
    return Script.model_validate(yaml.safe_load(data_file("film", "film.yaml").read_text(encoding="utf-8")))


def record(
    out: Path,
    chosen: Sequence[str] = (),
    *,
    media: Path | None = None,
    model: str | None = None,
    llm: LLM | None = None,
    on_progress: Say = print,
) -> list[Path]:
    """Film scenarios: for each a video, a poster and its trace, and the script's film; the files that were written.

    Args:
        chosen: ids of scenarios; none means all.
        media: a folder for a small animation and a screenshot, as a README shows them.
        llm: a loaded model, instead of loading `model`.

    Raises:
        ConfigError: Chromium, Playwright or the encoder is missing; the line says how to install it.
        UsageError: no such scenario.
    """
    scenarios = select(chosen)
    stage.find_chromium(), load_encoder()  # before anything slow begins
    for folder in (out, media or out):
        _folder(folder)
    in_readme = IN_README if IN_README in [item.id for item in scenarios] else scenarios[0].id
    written: list[Path] = []
    script, scenes = load_script(), dict[str, Shown]()
    with stage.browser() as chromium, _fresh_demo(model, llm, on_progress) as url:
        for number, scenario in enumerate(scenarios, 1):
            on_progress(f"{number} of {len(scenarios)}, {scenario.title}")
            poster = out / f"{scenario.id}.png"
            frames, results = film(chromium, url, scenario, script.lines(scenario), poster, on_progress)
            scenes[scenario.id] = shown = paced(frames, STILL_S)
            written += [encode(out / f"{scenario.id}.mp4", shown), poster, store(out, scenario.id, results)]
            if media and scenario.id == in_readme:
                written += [animate(media / "demo.webp", frames), Path(shutil.copy(poster, media / "demo.png"))]
        if set(script.scenes) <= set(scenes):
            first, last = cards(chromium, script.opening), cards(chromium, script.closing)
            told = [item for name in script.scenes for item in scenes[name]]
            written.append(encode(out / WHOLE, first + fitted(told, WHOLE_S - length(first + last)) + last))
    return written


def cards(chromium: "Browser", words: Sequence[Card]) -> Shown:
    """Each as a picture, for as long as it takes to read aloud."""
    with closing(chromium.new_context(viewport=PAGE)) as context:  # type: ignore[arg-type]
        page, shown = context.new_page(), []
        for card in words:
            page.set_content(CARD.format(head=escape(card.head), text=escape(card.text)))
            said = f"{card.head} {card.text}".split()
            shown.append((page.screenshot(type="jpeg", quality=90), len(said) / WORDS_A_SECOND))
    return shown


def length(shown: Shown) -> float:
    return sum(seconds for _, seconds in shown)


def fitted(shown: Shown, most_s: float) -> Shown:
    """The same, shown faster where it would take longer than that."""
    faster = max(1.0, length(shown) / most_s)
    return [(jpeg, seconds / faster) for jpeg, seconds in shown]


def select(chosen: Sequence[str]) -> list[Scenario]:
    """The scenarios of these ids, in their own order; all where none is named. Raises UsageError."""
    known = load_scenarios()
    if unknown := set(chosen) - {item.id for item in known}:
        ids = ", ".join(item.id for item in known)
        raise UsageError(f"There is no scenario {', '.join(sorted(unknown))}.", hint=f"Scenarios: {ids}.")
    return [item for item in known if not chosen or item.id in chosen]


def film(
    chromium: "Browser", url: str, scenario: Scenario, lines: Sequence[str], poster: Path, on_progress: Say
) -> tuple[Frames, list[dict[str, Any]]]:
    """Play one scenario in a browser of its own, with the camera on; `lines` are said, one a step and one at the end.

    Returns:
        The pictures, and the result of each step.
    """
    frames: Frames = []
    results: list[dict[str, Any]] = []
    with closing(chromium.new_context(viewport=PAGE, reduced_motion="reduce")) as context:  # type: ignore[arg-type]
        page = context.new_page()
        scene = stage.Stage(page, url, typing_ms=TYPING_MS, wait_ms=TURN_MS)
        scene.open()
        page.add_style_tag(content=BELOW)
        page.screencast.start(
            on_frame=lambda frame: frames.append((frame["timestamp"] / 1000, frame["data"])),
            size=PAGE, quality=85,  # type: ignore[arg-type]
        )  # fmt: skip
        device = "Decision support, not a medical device."
        page.screencast.show_chapter(scenario.title, description=device, duration=TITLE_MS)
        for number, step in enumerate(scenario.steps):
            head = f"{scenario.title}, step {number + 1} of {len(scenario.steps)}"
            with _caption(page, head, lines[number]):
                page.wait_for_timeout(CLICK_MS)  # the caption can be read before anything happens
                scene.perform(scenario, number)
                page.wait_for_timeout(READ_MS)
                if not (results and results[0]["pending_write"]):  # the first card tells more than what follows it
                    page.screenshot(path=poster)
            results.append(scene.trace())
            for line in step.unmet(results[-1]):
                on_progress(f"not as promised: {line}")
        with _caption(page, "What to notice", lines[-1]):
            page.wait_for_timeout(NOTICE_MS)
        page.screencast.stop()
    return frames, results


def _caption(page: "Page", head: str, text: str) -> Any:
    return page.screencast.show_overlay(BAR.format(head=escape(head), text=escape(text)))


@contextmanager
def _fresh_demo(model: str | None, llm: LLM | None, on_progress: Say) -> Iterator[str]:
    """The demo at work; its address."""
    on_progress("Starting the demo.")
    with (
        tempfile.TemporaryDirectory(prefix="docgemma-record-") as home,
        Agent(fresh_settings(Path(home)), model=model, llm=llm, on_progress=on_progress) as agent,
    ):
        blocks = launch(agent, share=False, quiet=True, inline=False)
        try:
            yield blocks.local_url
        finally:
            blocks.close(verbose=False)


def fresh_settings(home: Path) -> Settings:
    """Nobody's records and memory: of the user's own settings only those that choose the model are kept."""
    return read_settings(home=home, sources="offline", ehr=None, db=None, mcp_url=None)


def paced(frames: Frames, still_s: float) -> Shown:
    """How long each picture is shown: as long as it stood there, at most `still_s`; at most `FPS` a second."""
    shown: Shown = []
    ends = [at for at, _ in frames[1:]] + [frames[-1][0] + 1 / FPS]
    for (at, jpeg), end in zip(frames, ends, strict=True):
        stood = end - at
        if shown and shown[-1][1] < 1 / FPS:  # in quick succession: the later one stands for both
            stood += shown.pop()[1]
        shown.append((jpeg, min(stood, still_s)))
    return shown


def encode(path: Path, shown: Shown) -> Path:
    """An MP4 file (H.264). Raises ConfigError where PyAV is not installed."""
    av, at, ticks = load_encoder(), 0.0, 0
    with av.open(str(path), "w", options={"movflags": "faststart"}) as file:
        stream = file.add_stream("libx264", rate=FPS, options={"crf": "27", "preset": "veryfast"})
        stream.width, stream.height = _open(shown[0][0]).size
        stream.pix_fmt = "yuv420p"
        for jpeg, seconds in shown:
            image, at = _open(jpeg), at + seconds
            while ticks < round(at * FPS):
                file.mux(stream.encode(av.VideoFrame.from_image(image)))
                ticks += 1
        file.mux(stream.encode(None))
    return path


def load_encoder() -> Any:
    """PyAV. Raises ConfigError where it is not installed."""
    try:
        import av
    except ImportError as error:
        raise ConfigError("PyAV is not installed.", hint="Run: pip install 'docgemma[record]'") from error
    return av


def animate(path: Path, frames: Frames) -> Path:
    """A small animated WebP that repeats, for a README."""
    shown = paced(frames, SMALL_STILL_S)
    images = [_open(jpeg, SMALL_WIDTH) for jpeg, _ in shown]
    images[0].save(
        path, "WEBP", save_all=True, append_images=images[1:], loop=0, quality=60, method=4,
        duration=[round(seconds * 1000) for _, seconds in shown],
    )  # fmt: skip
    return path


def _open(jpeg: bytes, width: int = 0) -> "Image.Image":
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as image:
        whole = image.convert("RGB")
    return whole.resize((width, round(whole.height * width / whole.width))) if width else whole


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}.", hint="Choose another with --out.") from error
