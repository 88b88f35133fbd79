"""From the pictures of a page to a film and a small animation."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import ConfigError

if TYPE_CHECKING:
    from PIL import Image

FPS = 10
STILL_S = 6.0  # a picture that does not change is shown no longer: a wait for a slow model is cut off
SMALL_S = 2.0  # and in the animation
SMALL_WIDTH = 720


class Pictures:
    """JPEG pictures of a page, each with the seconds for which it stood there; at most `FPS` a second."""

    def __init__(self) -> None:
        self.shown: list[tuple[bytes, float]] = []
        self._since = 0.0

    def add(self, frame: dict[str, Any]) -> None:
        """Take a frame of Playwright's screencast: `data`, and `timestamp` in milliseconds."""
        at = frame["timestamp"] / 1000
        if self.shown:
            jpeg, seconds = self.shown[-1]
            if at - self._since < 1 / FPS:
                self.shown[-1] = (frame["data"], seconds)
                return
            self.shown[-1] = (jpeg, at - self._since)
        self.shown.append((frame["data"], 1 / FPS))
        self._since = at

    def extend(self, other: "Pictures") -> None:
        self.shown += other.shown

    def paced(self, still_s: float, total_s: float | None = None) -> list[tuple[bytes, float]]:
        """None longer than `still_s`, and all of it within `total_s`: shown faster where it would be longer."""
        paced = [(jpeg, min(seconds, still_s)) for jpeg, seconds in self.shown]
        total = sum(seconds for _, seconds in paced)
        faster = max(1.0, total / total_s) if total_s else 1.0
        return [(jpeg, seconds / faster) for jpeg, seconds in paced]


def encode(path: Path, pictures: Pictures, total_s: float | None = None) -> None:
    """An MP4 file (H.264). Raises ConfigError where PyAV is not installed."""
    av = load_encoder()
    paced, at, ticks = pictures.paced(STILL_S, total_s), 0.0, 0
    with av.open(str(path), "w", options={"movflags": "faststart"}) as file:
        stream = file.add_stream("libx264", rate=FPS, options={"crf": "27", "preset": "veryfast"})
        stream.width, stream.height = _open(paced[0][0]).size
        stream.pix_fmt = "yuv420p"
        for jpeg, seconds in paced:
            image, at = _open(jpeg), at + seconds
            while ticks < round(at * FPS):
                file.mux(stream.encode(av.VideoFrame.from_image(image)))
                ticks += 1
        file.mux(stream.encode(None))


def load_encoder() -> Any:
    """PyAV. Raises ConfigError where it is not installed."""
    try:
        import av
    except ImportError as error:
        raise ConfigError("PyAV is not installed.", hint="Run: pip install 'docgemma[record]'") from error
    return av


def animate(pictures: Pictures, path: Path) -> Path:
    """A small animated WebP that repeats, for a README."""
    paced = pictures.paced(SMALL_S)
    images = [_narrow(_open(jpeg)) for jpeg, _ in paced]
    images[0].save(
        path, "WEBP", save_all=True, append_images=images[1:], loop=0, quality=60, method=4,
        duration=[round(seconds * 1000) for _, seconds in paced],
    )  # fmt: skip
    return path


def _open(data: bytes) -> "Image.Image":
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def _narrow(image: "Image.Image") -> "Image.Image":
    return image.resize((SMALL_WIDTH, round(image.height * SMALL_WIDTH / image.width)))
