"""A guided scenario played in a browser as a person plays it: types, attaches, chooses, edits, approves.

The recorder films it and the browser tests check it. What a person cannot do by hand (make a source fail) and what a
replay shows is played from the Scenarios tab.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from docgemma.demo.scenarios import Scenario, Step
from docgemma.demo.view import field_label

Phase = Literal["act", "work", "read"]  # something is being done; the turn runs; its outcome can be read
AT_REST = "() => document.querySelector('#dg-new:not([disabled])')"  # nothing is being loaded or worked on
MORE_SAID = "count => document.querySelectorAll('.dg-said').length > count"
SETTLE_MS = 300  # the last update of a page


class Stage:
    """One page of the demo.

    Args:
        page: a Playwright page.
        url: of the demo.
        typing_ms: between two keys; 0 fills a field at once.
        wait_ms: the longest wait for the end of a turn.
    """

    def __init__(self, page: Any, url: str, *, typing_ms: int = 0, wait_ms: int = 20_000):
        self.page, self.url, self.typing_ms = page, url, typing_ms
        page.set_default_timeout(wait_ms)

    def open(self) -> None:
        """The page is there once the server has said what belongs on it."""
        self.page.goto(self.url)
        self.page.wait_for_function(AT_REST)

    @property
    def replays(self) -> bool:
        return self.page.locator(".dg-replay").count() > 0

    def perform(self, scenario: Scenario, number: int) -> Iterator[Phase]:
        """Play step `number` (from 0); yields each phase as it begins."""
        step = scenario.steps[number]
        played = self.replays or bool(step.fails)
        yield "act"
        begin = self._from_the_list(scenario, number) if played else self._by_hand(step)
        said = self.page.locator(".dg-said").count()
        begin()
        yield "work"
        self.page.wait_for_function(MORE_SAID, arg=said)
        self.page.wait_for_function(AT_REST)
        self.page.wait_for_timeout(SETTLE_MS)
        self.show_outcome()
        yield "read"

    def trace(self) -> dict[str, Any]:
        """The last turn, as the page exports it."""
        self._tab("Reasoning")
        with self.page.expect_download() as download:
            self.page.locator("#dg-export").click()
        return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))

    def show_outcome(self) -> None:
        """The card that waits, the chart that was read, or else the reasoning."""
        card = self.page.locator("#dg-card")
        charted = self.page.locator("#dg-chart article").count() > 0
        self._tab("Patient" if charted else "Reasoning")
        if card.is_visible():
            card.scroll_into_view_if_needed()

    def _from_the_list(self, scenario: Scenario, number: int) -> Any:
        self._tab("Scenarios")
        if number == 0:
            self.page.get_by_label(scenario.title).check()
        return self.page.locator("#dg-play").click

    def _by_hand(self, step: Step) -> Any:
        """Everything up to the last click or key, which begins the turn and is handed back."""
        if step.decide:
            return self._decision(step)
        if step.choose:
            choices = self.page.locator("#dg-chat .options button, #dg-chat button.option")
            return choices.nth(step.choose - 1).click
        if step.image_path:
            self.page.set_input_files("#dg-composer input[type=file]", step.image_path)
            self.page.locator("#dg-composer .thumbnail-item, #dg-composer .thumbnails").first.wait_for()
        self._type(self.page.locator("#dg-composer textarea"), step.ask)
        return lambda: self.page.keyboard.press("Enter")

    def _decision(self, step: Step) -> Any:
        if step.decide != "edit":
            return self.page.locator(f"#dg-{step.decide}").click
        self.page.locator("#dg-edit").click()
        for name, value in step.change.items():
            self._type(self.page.get_by_label(field_label(name)), str(value))
        return self.page.locator("#dg-save").click

    def _type(self, field: Any, text: str) -> None:
        field.fill("")
        if self.typing_ms:
            field.press_sequentially(text, delay=self.typing_ms)
        else:
            field.fill(text)

    def _tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()
