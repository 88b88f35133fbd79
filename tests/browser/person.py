"""Somebody at a browser: types, attaches, clicks, reads. Also notes every address that the page asks for."""

from pathlib import Path
from typing import Any

from docgemma.demo.stage import AT_REST, MORE_SAID, SETTLE_MS, Stage

WAIT_MS = 20_000


class Person:
    def __init__(self, page: Any, server: Any):
        self.page, self.server, self.stage = page, server, Stage(page, server.url, wait_ms=WAIT_MS)
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.open()

    def open(self) -> None:
        self.stage.open()

    def asks(self, text: str, image: Path | None = None) -> str:
        if image:
            self.page.set_input_files("#dg-composer input[type=file]", image)
            self.page.locator("#dg-composer .thumbnail-item, #dg-composer .thumbnails").first.wait_for()
        self.page.locator("#dg-composer textarea").fill(text)
        return self.does(lambda: self.page.keyboard.press("Enter"))

    def clicks(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()

    def does(self, action: Any) -> str:
        """Do something that makes a turn, and wait until it is over; the last words."""
        before = self.page.locator(".dg-said").count()
        action()
        self.page.wait_for_function(MORE_SAID, arg=before)
        self.page.wait_for_function(AT_REST)
        self.page.wait_for_timeout(SETTLE_MS)
        return self.talk()[-1]

    def talk(self) -> list[str]:
        return self.page.locator(".dg-said, .dg-answer, .dg-notice, .dg-caption").all_inner_texts()

    def sees(self, selector: str) -> bool:
        return self.page.locator(selector).first.is_visible()

    def left_this_machine(self) -> list[str]:
        ours = (self.server.url, "data:", "blob:")
        return [url for url in self.asked if not url.startswith(ours)] + self.server.left_this_machine()
