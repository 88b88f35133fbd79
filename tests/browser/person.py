"""Somebody at a browser: types, attaches, clicks, reads. Also notes every address that the page asks for."""

from pathlib import Path
from typing import Any

from data.film.kit.stage import Stage


class Person:
    def __init__(self, page: Any, server: Any):
        self.page, self.server, self.stage = page, server, Stage(page, server.url)
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.open()

    def open(self) -> None:
        self.stage.open()

    def asks(self, text: str, image: Path | None = None) -> str:
        return self.does(self.stage.types(text, image))

    def clicks(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()

    def does(self, action: Any) -> str:
        """Do something that makes a turn, and wait until it is over; the last words."""
        self.stage.does(action)
        return self.talk()[-1]

    def talk(self) -> list[str]:
        return self.page.locator(".dg-said, .dg-answer, .dg-notice, .dg-caption").all_inner_texts()

    def sees(self, selector: str) -> bool:
        return self.page.locator(selector).first.is_visible()

    def left_this_machine(self) -> list[str]:
        ours = (self.server.url, "data:", "blob:")
        return [url for url in self.asked if not url.startswith(ours)] + self.server.left_this_machine()
