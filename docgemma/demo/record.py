"""`docgemma demo record`: the guided scenarios through the real app in a real browser, as films with captions.

The server is a process of its own, on a fresh data home and offline: no record but the synthetic ones is touched.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from docgemma.demo.camera import Camera, Picture, browser, find_chromium, load_playwright
from docgemma.demo.film import PAGE, Film, Frame, Shot, animate, cut, load_encoder, still
from docgemma.demo.scenarios import Scenario, load_scenarios
from docgemma.demo.server import Server
from docgemma.demo.stage import Stage
from docgemma.errors import ConfigError, StoreError, UsageError

WHOLE = "docgemma-demo.mp4"
WHOLE_S = 170.0  # the cut of everything stays under three minutes
OWN = {"act": 8.0, "work": 8.0}  # seconds at most of each kind of shot, in a scenario's own film
SHORT = {"title": 1.5, "act": 3.0, "work": 3.0, "read": 3.5}  # and in the cut of everything
TYPING_MS = 20
TURN_MS = 900_000  # a large model on a processor takes its time
TITLE_S, CLICK_S, READ_S, NOTICE_S = 2.0, 1.2, 4.0, 6.0
SMALL = {"act": 2.0, "work": 1.5, "read": 2.5}
SMALL_WIDTH, SMALL_BYTES, STILL_BYTES = 720, 1_400_000, 390_000
IN_README = "approval"  # the scenario of the README's pictures, where it is played


@dataclass
class Take:
    """One scenario as it was filmed: what was shown when, the page as a picture (PNG), each turn's trace."""

    scenario: Scenario
    shots: list[Shot] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    poster: bytes = b""
    results: list[dict[str, Any]] = field(default_factory=list)

    def shot(self, kind: str, head: str, text: str, start: float, end: float | None = None) -> None:
        self.shots.append(Shot(kind, head, text, start, end or time.time()))


def record(
    out: Path,
    chosen: Sequence[str] = (),
    *,
    media: Path | None = None,
    model: str | None = None,
    on_progress: Callable[[str], Any] = print,
) -> list[Path]:
    """Film scenarios: for each a video, a poster and its trace, and one cut of all; the files that were written.

    Args:
        chosen: ids of scenarios; none means all.
        media: a folder for a small animation and a screenshot, as a README shows them.
        model: as `docgemma demo` takes it from DOCGEMMA_MODEL.

    Raises:
        ConfigError: Chromium, Playwright or the encoder is missing; the line says how to install it.
        UsageError: no such scenario.
    """
    scenarios = select(chosen)
    load_playwright(), find_chromium(), load_encoder()  # before anything slow begins
    _folder(out), _folder(media or out)
    written: list[Path] = []
    whole = Film(out / WHOLE) if len(scenarios) > 1 else nullcontext()
    with tempfile.TemporaryDirectory(prefix="docgemma-record-") as home, whole, browser() as chromium:
        on_progress("Starting the demo.")
        with Server(Path(home), model) as server:
            for number, scenario in enumerate(scenarios, 1):
                say = _numbered(on_progress, f"{number} of {len(scenarios)}, {scenario.title}")
                take = film(chromium, server.url, scenario, say)
                written += save(take, out, say)
                if len(scenarios) > 1:
                    whole.add(cut(take.shots, take.pictures, _within(scenarios)))
                if media and scenario.id == (IN_README if IN_README in [s.id for s in scenarios] else scenarios[0].id):
                    written += save_small(take, media)
    return written + ([out / WHOLE] if len(scenarios) > 1 else [])


def missing() -> str | None:
    """What the recorder needs and does not find, in one line; None if nothing."""
    try:
        load_playwright(), find_chromium(), load_encoder()
    except ConfigError as error:
        return error.line()
    return None


def record_aside(out: Path, chosen: Sequence[str] = ()) -> list[Path]:
    """`record` in a process of its own, for a notebook: Playwright's calls cannot wait inside the kernel's loop.

    Raises:
        ConfigError: it failed; the line is its own.
    """
    command = [sys.executable, "-m", "docgemma", "demo", "record", "--out", str(out)]
    command += [part for name in chosen for part in ("--scenario", name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = ""
        for line in process.stderr:
            said = line.strip()
            print(said)
        files = process.stdout.read().split("\n")
    if process.returncode:
        raise ConfigError(f"The recording failed: {said}")
    return [Path(name) for name in files if name]


def select(chosen: Sequence[str]) -> list[Scenario]:
    """The scenarios of these ids, in their own order; all where none is named. Raises UsageError."""
    known = load_scenarios()
    if unknown := set(chosen) - {item.id for item in known}:
        ids = ", ".join(item.id for item in known)
        raise UsageError(f"There is no scenario {', '.join(sorted(unknown))}.", hint=f"Scenarios: {ids}.")
    return [item for item in known if not chosen or item.id in chosen]


def film(chromium: Any, url: str, scenario: Scenario, say: Callable[[str], Any]) -> Take:
    """Play one scenario in a browser of its own, with the camera on."""
    context = chromium.new_context(viewport=dict(zip(("width", "height"), PAGE, strict=True)), reduced_motion="reduce")
    try:
        page = context.new_page()
        stage = Stage(page, url, typing_ms=TYPING_MS, wait_ms=TURN_MS)
        stage.open()
        camera, take = Camera(page), Take(scenario)
        now = time.time()
        take.shot("title", scenario.title, "DocGemma. Decision support, not a medical device.", now, now + TITLE_S)
        for number, step in enumerate(scenario.steps):
            _step(page, stage, take, number)
            take.results.append(stage.trace())
            stage.show_outcome()
            say(f"step {number + 1} of {len(scenario.steps)}: {take.results[-1]['status'].replace('_', ' ')}")
            for line in step.unmet(take.results[-1]):
                say(f"not as promised: {line}")
        camera.stop()
        take.pictures = camera.pictures
        return take
    finally:
        context.close()


def _step(page: Any, stage: Stage, take: Take, number: int) -> None:
    """One step; each phase becomes a shot when the next one begins."""
    scenario, count = take.scenario, len(take.scenario.steps)
    head = scenario.title + (f", step {number + 1} of {count}" if count > 1 else "")
    caption, last = scenario.steps[number].caption, number + 1 == count
    before, start = "", time.time()
    for phase in stage.perform(scenario, number):
        if before:
            take.shot(before, head, caption, start)
        before, start = phase, time.time()
        if phase == "act":
            page.wait_for_timeout(CLICK_S * 1000)  # the caption can be read before anything happens
    if not take.poster and (last or page.locator("#dg-card").is_visible()):
        take.poster = page.screenshot()
    page.wait_for_timeout(READ_S * 1000)
    take.shot("read", head, caption, start)
    if last:
        start = time.time()
        page.wait_for_timeout(NOTICE_S * 1000)
        take.shot("read", "What to notice", scenario.notice, start)


def save(take: Take, out: Path, say: Callable[[str], Any]) -> list[Path]:
    """The video, the poster and the trace of one scenario."""
    video, poster, trace = (out / f"{take.scenario.id}.{kind}" for kind in ("mp4", "png", "json"))
    with Film(video) as own:
        own.add(cut(take.shots, take.pictures, OWN))
    poster.write_bytes(take.poster)
    trace.write_text(json.dumps(stored(take), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    say(f"{video.name}, {own.seconds:.0f} s")
    return [video, poster, trace]


def save_small(take: Take, folder: Path) -> list[Path]:
    """A small animation and a screenshot, for a README."""
    frames: list[Frame] = cut([shot for shot in take.shots if shot.kind != "title"], take.pictures, SMALL)
    animation, picture = folder / "demo.webp", folder / "demo.png"
    animate(frames, animation, width=SMALL_WIDTH, max_bytes=SMALL_BYTES)
    still(take.poster, picture, STILL_BYTES)
    return [animation, picture]


def stored(take: Take) -> dict[str, Any]:
    """The trace in the form that a replay reads (`scenarios.load_trace`)."""
    steps = [{"events": _events(result), "result": result} for result in take.results]
    model = take.results[0]["model"]
    return {"scenario": take.scenario.id, "model": model, "recorded": date.today().isoformat(), "steps": steps}


def _events(result: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for node, step in zip(result["path"], result["timeline"], strict=False):
        events += [{"type": "start", "node": node, "label": step["label"]}, {"type": "step", "node": node, **step}]
    return [*events, {"type": "answer", "text": result["answer"]}]


def _within(scenarios: Sequence[Scenario]) -> dict[str, float]:
    """The limits of the cut of everything, however many scenarios there are."""
    a_step = SHORT["act"] + SHORT["work"] + SHORT["read"]
    planned = sum(SHORT["title"] + SHORT["read"] + a_step * len(item.steps) for item in scenarios)
    return {kind: limit * min(1.0, WHOLE_S / planned) for kind, limit in SHORT.items()}


def _numbered(on_progress: Callable[[str], Any], head: str) -> Callable[[str], Any]:
    return lambda line: on_progress(f"{head}: {line}")


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}.", hint="Choose another with --out.") from error
