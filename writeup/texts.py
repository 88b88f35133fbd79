"""Renders the write-up's texts from their templates. Every figure in them is a call to `Facts`."""

from pathlib import Path
from typing import Any

import jinja2
from facts import Facts
from plots import PLAIN, label

HERE = Path(__file__).resolve().parent
TEXTS = ("writeup.md", "model_card.md")
MEDIA = {"recorded": "media/docgemma-demo.mp4", "screenshot": "media/demo.png"}
NOTE = "<!-- made by writeup/build.py from {}: edit that -->\n"


def template_of(text: str) -> Path:
    path = Path(text)
    return HERE / f"{path.stem}.template{path.suffix}"


def render(text: str, facts: Facts) -> str:
    """One text of `TEXTS`, its figures noted in `facts.quotes`.

    Raises:
        jinja2.UndefinedError: the template asks for something that is not there.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    path = template_of(text)
    body = environment.get_template(path.name).render(facts=facts, **names())
    title, rest = body.split("\n", 1)
    return f"{title}\n\n{NOTE.format(path.name)}{rest}"


def names() -> dict[str, Any]:
    """What templates may use beside `facts`: plain words, and the recordings that are there, else None."""
    there = {name: path if (HERE / path).is_file() else None for name, path in MEDIA.items()}
    return {"decisions": PLAIN, "label": label, "levels": ("easy", "medium", "hard"), **there}
