"""What one window of the RCM tab works on: its PDFs, its conversation, the last answer. Forgotten as a whole."""

import base64
import io
import shutil
import uuid
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.demo.screen import forget, problem
from docgemma.errors import DocGemmaError
from docgemma.forget import image_folder
from docgemma.graphs.rcm import PREFIX, parts_of, run
from docgemma.paths import private_folder
from docgemma.rcm.records import REVIEW
from docgemma.text.characters import visible
from docgemma.turns import Stop, between_steps

SHOWN_APART = (
    "Note: ",
    "Could not be checked:",
    "Not readable:",
    "Contradiction (",
    "Ledger: ",
    "For a human reviewer:",
)


class Case:
    """Attributes:
    papers: PDFs by the name under which they are cited; `pages`: how many each has.
    told: the last answer, as `docgemma rcm ask --json` gives it; {} before it.
    ledger: ids of the rows that were written.
    unread: papers came since the last question. `cut_off`: that was stopped, or failed. `asked`: there was one.
    """

    def __init__(self, agent: Agent):
        self.agent, self.thread = agent, f"{PREFIX}{uuid.uuid4().hex[:12]}"
        self.papers, self.pages, self.ledger = dict[str, Path](), dict[str, int](), list[int]()
        self.told: dict[str, Any] = {}
        self.unread = self.cut_off = self.asked = False

    def take(self, path: Path) -> None:
        """Add a PDF where it lies; a question that waits for its answer must be asked anew.

        Raises:
            UsageError: it cannot be read.
        """
        from docgemma.rcm.pdf import count_pages

        self.pages[path.name], self.papers[path.name], self.unread = count_pages(path), path, True
        if self.told.get("status") == "needs_clarification":
            self.told, self.cut_off = {}, True

    def take_over(self, given: Path) -> None:
        """Move an upload into the conversation's own folder and add it. Raises UsageError: it cannot be read."""
        folder = private_folder(image_folder(self.agent.settings, self.thread) / "papers")
        names = (f"{given.stem}{f' ({at})' if at > 1 else ''}{given.suffix}" for at in count(1))
        path = folder / next(name for name in map(visible, names) if name not in self.papers)
        shutil.move(given, path)
        try:
            self.take(path)
        except DocGemmaError:
            path.unlink()
            raise

    def work(self, question: str, actor: str, on_event: Any, stop: Stop) -> dict[str, Any]:
        """A turn of `docgemma.turns.Turns`; one that was stopped goes on where it stopped."""
        told = between_steps(on_event, stop, "Stopped. Run goes on from there.")
        agent, asked_back = self.agent, self.told.get("status") == "needs_clarification"
        pdf = [] if asked_back else list(self.papers.values())
        if self.cut_off and self.unread:  # else it would go on without the new papers
            agent.memory.delete_thread(self.thread)
        self.unread, self.cut_off, self.asked, self.told = False, True, True, {}
        self.told = run(question, pdf=pdf, thread=self.thread, on_step=told, **parts_of(agent))
        self.cut_off = False
        self.ledger += self.told["ledger_ids"]
        return self.told

    def page(self, at: Any) -> str:
        """The page of a place that the last answer cites, as a picture inside the answer: no address serves it."""
        from docgemma.rcm.highlight import page_image

        places = cited(self.told)
        if not isinstance(at, int) or not 0 <= at < len(places):
            return ""
        place = places[at]
        if place["document"] not in self.papers:
            return view.html("rcm_page", place)
        try:
            image = page_image(self.papers[place["document"]], place["page"], [place["quote"]] * bool(place["quote"]))
        except DocGemmaError as error:
            return view.html("rcm_page", place, "", False, problem(error))
        out = io.BytesIO()
        image.save(out, "PNG")
        return view.html("rcm_page", place, base64.b64encode(out.getvalue()).decode(), not image.info["missing"])

    def remove(self) -> str:
        """Remove the conversation with its documents; why that failed, or ""."""
        return forget(self.agent, self.thread)


def cited(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The places that an answer cites, in the order in which page.html numbers them."""
    if not told:
        return []
    pairs = [pair[side] for pair in told["contradictions"] for side in ("one", "other")]
    unread = [{**page, "quote": "", "section": ""} for page in told["failed_pages"]]
    return [*told["criteria"], *pairs, *unread, *told["claims"]]


def first_shown(told: Mapping[str, Any], papers: Mapping[str, Path]) -> int | None:
    """The number of the first place that stands in one of the papers."""
    return next((at for at, one in enumerate(cited(told)) if one["quote"] and one["document"] in papers), None)


def said(told: Mapping[str, Any]) -> Sequence[str]:
    """The verdict, then the lines of an answer that stand nowhere else on the tab."""
    if not told:
        return []
    labelled = told["status"] == "answered" and told["patient"]
    lines = told["answer"].splitlines()[1 if labelled else 0 :]
    body = list(takewhile(lambda line: line and not line.startswith(SHOWN_APART), lines))
    return body[:1] if told["criteria"] and not body[0].startswith(REVIEW) else body
