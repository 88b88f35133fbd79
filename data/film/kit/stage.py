"""A guided scenario played in a browser as a person plays it: types, attaches, chooses, edits, approves.

The recorder films it and the browser tests check it. What a person cannot do by hand (make a source fail) and what a
replay shows is played from the Scenarios tab.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.demo.scenarios import Scenario, Step
from docgemma.demo.view import field_label
from docgemma.doctor import find_chromium
from docgemma.errors import ConfigError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
AT_REST = "() => document.querySelector('#dg-new:not([disabled])')"  # nothing is being loaded or worked on
MORE_SAID = "count => document.querySelectorAll('.dg-said').length > count"
SETTLED = "count => Number(document.documentElement.dataset.dgSettled ?? 0) > count"  # turns, focus and scroll included


@contextmanager
def browser() -> Iterator["Browser"]:
    """A running headless Chromium. Raises ConfigError where Playwright or Chromium is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise ConfigError("Playwright is not installed.", hint="Run: pip install 'docgemma[record]'") from error
    path = find_chromium()
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield chromium
        finally:
            chromium.close()


class Stage:
    """One page of the demo. `typing_ms`: between two keys; `wait_ms`: the longest wait for the end of a turn."""

    def __init__(self, page: "Page", url: str, *, typing_ms: int = 0, wait_ms: int = 60_000):
        self.page, self.url, self.typing_ms = page, url, typing_ms
        page.set_default_timeout(wait_ms)

    def open(self) -> None:
        """The page is there once the server has said what belongs on it."""
        self.page.goto(self.url)
        self.page.wait_for_function(AT_REST)

    def perform(self, scenario: Scenario, number: int) -> None:
        """Play step `number` (from 0) until its outcome can be read."""
        step = scenario.steps[number]
        if step.fails:
            self._tab("Scenarios")
            if number == 0:
                self.page.get_by_label(scenario.title).check()
            self.does(self.page.locator("#dg-play").click)
        else:
            self.does(self._by_hand(step))
        self.show_outcome()

    def does(self, action: Callable[[], object]) -> None:
        """Do something that makes a turn, and wait until it is over."""
        before = self.page.locator(".dg-said").count()
        settled = self.page.evaluate("Number(document.documentElement.dataset.dgSettled ?? 0)")
        action()
        try:
            self.page.wait_for_function(MORE_SAID, arg=before)
            self.page.wait_for_function(SETTLED, arg=settled)
            self.page.wait_for_function(AT_REST)
        except Exception as error:
            error.add_note(f"The page then: {self.page.locator('#dg-talk').inner_text()}")
            raise

    def trace(self) -> dict[str, Any]:
        """The last turn, as the page exports it."""
        self._tab("Reasoning")
        with self.page.expect_download() as download:
            self.page.locator("#dg-export").click()
        result: dict[str, Any] = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
        self.show_outcome()
        return result

    def show_outcome(self) -> None:
        """The card that waits, the chart that was read, or else the reasoning."""
        charted = self.page.locator("#dg-chart article").count() > 0
        self._tab("Patient" if charted else "Reasoning")
        card = self.page.locator("#dg-card")
        if card.is_visible():
            card.scroll_into_view_if_needed()

    def _by_hand(self, step: Step) -> Callable[[], object]:
        """Everything up to the last click or key, which begins the turn and is handed back."""
        if step.decide == "edit":
            self.page.locator("#dg-edit").click()
            for name, value in step.change.items():
                self._type(self.page.get_by_label(field_label(name)), str(value))
            return self.page.locator("#dg-save").click
        if step.decide:
            return self.page.locator(f"#dg-{step.decide}").click
        if step.choose:
            choices = self.page.locator("#dg-chat .options button, #dg-chat button.option")
            return choices.nth(step.choose - 1).click
        return self.types(step.ask, step.image_path)

    def types(self, text: str, image: Path | None = None) -> Callable[[], object]:
        """Type a question, with an image perhaps; the key that sends it is handed back."""
        if image:
            self.page.set_input_files("#dg-composer input[type=file]", image)
            self.page.locator("#dg-composer .thumbnail-item, #dg-composer .thumbnails").first.wait_for()
        self._type(self.page.locator("#dg-composer textarea"), text)
        return lambda: self.page.keyboard.press("Enter")

    def _type(self, field: "Locator", text: str) -> None:
        field.fill("")
        field.press_sequentially(text, delay=self.typing_ms)

    def _tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()
