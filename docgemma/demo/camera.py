"""Chromium from the PATH, driven by Playwright, and the pictures of a page as it changes."""

import base64
import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from docgemma.errors import ConfigError

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUALITY = 85  # of a picture, JPEG


@dataclass(frozen=True)
class Picture:
    """The page at one moment: `at` in seconds of the wall clock, `jpeg` the encoded picture."""

    at: float
    jpeg: bytes


def find_chromium() -> str:
    """Its path. Raises ConfigError where it is not installed."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise ConfigError("Chromium is not on the PATH.", hint="Install it (Debian: apt-get install chromium).")


def load_playwright() -> Any:
    """Raises ConfigError where it is not installed."""
    try:
        from playwright import sync_api
    except ImportError as error:
        raise ConfigError("Playwright is not installed.", hint="Run: pip install 'docgemma[record]'") from error
    return sync_api


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A running headless Chromium. Raises ConfigError where Playwright or Chromium is missing."""
    playwright, path = load_playwright(), find_chromium()
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield chromium
        finally:
            chromium.close()


class Camera:
    """Takes a picture whenever the page has changed. The browser sends them; nothing is polled."""

    def __init__(self, page: Any):
        self.pictures: list[Picture] = []
        self._stopped, self._failed = False, load_playwright().Error
        self._session = page.context.new_cdp_session(page)
        self._session.on("Page.screencastFrame", self._take)
        self._session.send("Page.startScreencast", {"format": "jpeg", "quality": QUALITY})

    def _take(self, event: dict[str, Any]) -> None:
        at = event["metadata"].get("timestamp") or time.time()
        self.pictures.append(Picture(at, base64.b64decode(event["data"])))
        try:
            self._session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})
        except self._failed:
            if not self._stopped:  # else the page went while its last picture was on the way
                raise

    def stop(self) -> None:
        self._stopped = True
        self._session.send("Page.stopScreencast")
        self._session.detach()
