"""How long somebody waits at the demo: for the page, for the first words of an answer, for Approve.

    python benchmarks/demo_page.py [--repeats N] [--load L]

A real demo process with the edge model on an empty data home, offline, and a real Chromium on the same machine. Usable:
from the call of the address until the composer takes text and a question may be sent, with the page's files in the
browser's cache (`first visit`: without). First sign: from Enter until the question stands on the page. First words:
from Enter until the answer's first words stand there. Approve: from the click until the page says that the entry is
recorded and the card is gone. Before each measure the machine is given some seconds to become quiet; "quiet" is what
was measured while at most --load other processes wanted a processor.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import Report, middle, prepared, say, spread

from docgemma.paths import kit

ROOT = Path(__file__).parents[1]
stage_of = kit("film", "stage")
AT_REST, browser = stage_of.AT_REST, stage_of.browser

QUESTIONS = {
    "a label": "Check FDA warnings for dofetilide",
    "a chart and a drug": "Is metformin ok for John Smith?",
    "general knowledge": "What is hypertension?",
}
ORDER = "Prescribe cetirizine 10 mg once daily for abc-123"  # whose chart is open then
TARGETS = {"usable": 1.0, "words": 0.5, "approve": 0.5}
READY = f"() => !document.querySelector('#dg-composer textarea')?.disabled && ({AT_REST})()"
SAID = "count => document.querySelectorAll('.dg-said').length > count"
WORDS = "count => [...document.querySelectorAll('.dg-answer')].slice(count).some(item => item.innerText.trim())"
RECORDED = """count => document.querySelectorAll('.dg-answer').length > count
  && !document.querySelector('#dg-card .dg-card')
  && /in the record/.test([...document.querySelectorAll('.dg-answer')].at(-1).innerText)"""
HEAD = ["wait", "target", "n", "s", "middle half", "others at work", "quiet, n", "quiet, s"]


@contextmanager
def demo(home: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.browser.serve", str(home), "edge", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield next(line.strip() for line in process.stdout or () if line.startswith("http"))
        finally:
            process.kill()


def quiet(most: float) -> None:
    """Wait for the others of this machine, a few seconds at most."""
    end = time.monotonic() + 5
    while running() > most and time.monotonic() < end:
        time.sleep(0.5)


def running() -> float:
    """How many processes want a processor, now."""
    return int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1


def timed(page: Any, action: Any, *until: tuple[str, int]) -> list[float]:
    """Seconds from an action to each of what follows it, looked at on every frame that is drawn."""
    start = time.perf_counter()
    action()
    found = []
    for condition, count in until:
        page.wait_for_function(condition, arg=count, polling="raf")
        found.append(time.perf_counter() - start)
    return found


def turn(stage: Any, question: str) -> list[float]:
    page = stage.page
    page.locator("#dg-composer textarea").fill(question)
    said, answers = page.locator(".dg-said").count(), page.locator(".dg-answer").count()
    settled = page.evaluate("Number(document.documentElement.dataset.dgSettled ?? 0)")
    found = timed(page, lambda: page.keyboard.press("Enter"), (SAID, said), (WORDS, answers))
    page.wait_for_function("count => Number(document.documentElement.dataset.dgSettled ?? 0) > count", arg=settled)
    page.wait_for_function(AT_REST)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--load", type=float, default=1, help="other processes at work that are still quiet")
    given = parser.parse_args()
    about = " ".join(__doc__.partition("\n\n")[2].partition("\n\n")[2].split())
    seconds: dict[str, list[tuple[float, float]]] = {}

    def keep(wait: str, value: float, load: float) -> None:
        seconds.setdefault(wait, []).append((value, (load + running()) / 2))

    with prepared() as settings, demo(settings.home) as url, browser() as chromium:
        for repeat in range(given.repeats + 1):  # the first one is not counted: the server makes its caches
            say(f"{repeat} of {given.repeats}, load {os.getloadavg()[0]:.1f}")
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            stage = stage_of.Stage(context.new_page(), url)
            for wait in ("page usable, first visit", "page usable"):
                quiet(given.load)
                load = running()
                (value,) = timed(stage.page, lambda: stage.page.goto(url, wait_until="commit"), (READY, 0))  # noqa: B023
                keep(wait, value, load)
            for kind, question in QUESTIONS.items():
                quiet(given.load)
                load = running()
                said, words = turn(stage, question)
                keep(f"first sign, {kind}", said, load)
                keep(f"first words, {kind}", words, load)
            turn(stage, ORDER)
            quiet(given.load)
            load, answers = running(), stage.page.locator(".dg-answer").count()
            page = stage.page
            if page.locator("#dg-reason textarea").is_visible():
                page.locator("#dg-reason textarea").fill("Measured")
            (value,) = timed(page, lambda: page.locator("#dg-approve").click(), (RECORDED, answers))  # noqa: B023
            keep("Approve", value, load)
            context.close()
            if not repeat:
                seconds.clear()
    report = Report("demo_page", about, repeats=given.repeats)
    rows = []
    for wait, found in sorted(seconds.items()):
        target = next((limit for word, limit in TARGETS.items() if word in wait.lower()), "-")
        values, loads = zip(*found, strict=True)
        calm = [value for value, load in found if load <= given.load]
        rows.append(
            [
                wait,
                target,
                len(values),
                middle(values),
                spread(values),
                middle(loads),
                len(calm),
                middle(calm) if calm else "-",
            ]
        )
    report.table("waits at the page", HEAD, rows)
    report.keep("seconds", seconds)


if __name__ == "__main__":
    main()
