"""From pictures to films: waits are shortened and said to be, captions are burned in below the page."""

import io
import textwrap
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from docgemma.demo.camera import Picture
from docgemma.errors import ConfigError

FPS = 10
PAGE = (1280, 800)  # pixels of the page; the captions' bar stands below it
BAR = 120
SIZE = (PAGE[0], PAGE[1] + BAR)
DARK, LIGHT, ACCENT = "#0f172a", "#f8fafc", "#5eead4"
COLUMNS = 118  # characters of a caption's line
FASTER = 1.5  # a shot that is shown faster than this says so
HELD = frozenset({"title", "read"})  # nothing moves in these: they are cut off, not shown faster


@dataclass(frozen=True)
class Shot:
    """A stretch of time with one caption, in seconds of the pictures' clock. `kind` limits how long it is shown."""

    kind: str  # title, act, work, read
    head: str
    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Frame:
    """One moment of a film: which picture (None: a title), for how many seconds, under which caption."""

    picture: Picture | None
    shot: Shot
    seconds: float
    faster: float


def cut(shots: Sequence[Shot], pictures: Sequence[Picture], limits_s: Mapping[str, float]) -> list[Frame]:
    """Each shot within its limit: a wait that took longer is shown faster. A frame a change, at most `FPS` a second.

    Args:
        limits_s: seconds at most, by the kind of shot; a kind that is not named is shown as long as it was.
    """
    frames = []
    for shot in shots:
        real = shot.end - shot.start
        shown = min(real, limits_s.get(shot.kind, real))
        faster = real / shown if shown and shot.kind not in HELD else 1.0
        for at, seconds in _ticks(shown):
            picture = None if shot.kind == "title" else _picture_at(pictures, shot.start + at * faster)
            if frames and frames[-1].picture is picture and frames[-1].shot is shot:
                frames[-1] = Frame(picture, shot, frames[-1].seconds + seconds, faster)
            else:
                frames.append(Frame(picture, shot, seconds, faster))
    return frames


def _ticks(seconds: float) -> Iterator[tuple[float, float]]:
    for number in range(round(seconds * FPS)):
        yield number / FPS, 1 / FPS


def _picture_at(pictures: Sequence[Picture], at: float) -> Picture | None:
    """The last picture that was taken by then; the first one before there was any."""
    number = bisect_right([item.at for item in pictures], at)
    return pictures[max(0, number - 1)] if pictures else None


def draw(frame: Frame) -> Image.Image:
    """The page with its caption below, or a title: `SIZE` pixels, RGB."""
    image = Image.new("RGB", SIZE, DARK)
    if frame.shot.kind == "title":
        _title(ImageDraw.Draw(image), frame.shot)
        return image
    if frame.picture:
        with Image.open(io.BytesIO(frame.picture.jpeg)) as page:
            image.paste(page.convert("RGB").resize(PAGE), (0, 0))
    head = frame.shot.head
    if frame.faster > FASTER:
        head += f"   (shown {frame.faster:.0f} times faster)"
    pen = ImageDraw.Draw(image)
    pen.text((24, PAGE[1] + 10), head, font=_font(20), fill=ACCENT)
    lines = textwrap.wrap(frame.shot.text, COLUMNS)[:3]
    pen.multiline_text((24, PAGE[1] + 38), "\n".join(lines), font=_font(20), fill=LIGHT, spacing=5)
    return image


def _title(pen: ImageDraw.ImageDraw, shot: Shot) -> None:
    middle = SIZE[0] // 2, SIZE[1] // 2
    pen.text((middle[0], middle[1] - 60), shot.head, font=_font(52), fill=LIGHT, anchor="mm")
    for number, line in enumerate(textwrap.wrap(shot.text, 70)):
        pen.text((middle[0], middle[1] + 20 + 36 * number), line, font=_font(26), fill=ACCENT, anchor="mm")


@lru_cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size=size)


class Film:
    """An MP4 file (H.264) that grows frame by frame; use it as a context.

    Raises:
        ConfigError: PyAV, the encoder, is not installed.
    """

    def __init__(self, path: Path):
        av = load_encoder()
        self.seconds = 0.0
        self._av, self._file = av, av.open(str(path), "w", options={"movflags": "faststart"})
        self._stream = self._file.add_stream("libx264", rate=FPS, options={"crf": "27", "preset": "veryfast"})
        self._stream.width, self._stream.height = SIZE
        self._stream.pix_fmt = "yuv420p"

    def __enter__(self) -> "Film":
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.mux(self._stream.encode(None))
        self._file.close()

    def add(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            image = draw(frame)
            for _ in range(round(frame.seconds * FPS)):
                self._file.mux(self._stream.encode(self._av.VideoFrame.from_image(image)))
                self.seconds += 1 / FPS


def load_encoder() -> Any:
    """PyAV. Raises ConfigError where it is not installed."""
    try:
        import av
    except ImportError as error:
        raise ConfigError("PyAV is not installed.", hint="Run: pip install 'docgemma[record]'") from error
    return av


def animate(frames: Sequence[Frame], path: Path, *, width: int, max_bytes: int) -> None:
    """A small animated WebP that repeats; its quality is lowered until it fits.

    Raises:
        ConfigError: it does not fit at the lowest quality either.
    """
    height = round(SIZE[1] * width / SIZE[0])
    images = [draw(frame).resize((width, height), Image.Resampling.LANCZOS) for frame in frames]
    for quality in (75, 60, 45, 30, 15):
        images[0].save(
            path, "WEBP", save_all=True, append_images=images[1:], loop=0, quality=quality, method=4,
            duration=[round(frame.seconds * 1000) for frame in frames],
        )  # fmt: skip
        if path.stat().st_size <= max_bytes:
            return
    path.unlink()
    raise ConfigError(f"The animation is larger than {max_bytes // 1000} kB.", hint="Choose a shorter scenario.")


def still(png: bytes, path: Path, max_bytes: int) -> None:
    """A screenshot as PNG; with 256 colours, then smaller, where it would be larger than `max_bytes`."""
    with Image.open(io.BytesIO(png)) as image:
        picture = image.convert("RGB")
    width = picture.width
    picture.save(path, "PNG", optimize=True)
    while path.stat().st_size > max_bytes and width > 300:
        smaller = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
        smaller.quantize(256).save(path, "PNG", optimize=True)
        width = width * 4 // 5
