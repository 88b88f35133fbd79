"""Renders the write-up's texts from their templates. Every figure in them is a call to `Facts`."""

from pathlib import Path
from typing import Any

import jinja2
from facts import Facts
from plots import PLAIN, label

HERE = Path(__file__).resolve().parent
TEXTS = ("writeup.md", "model_card.md", "safety_case.md")
OF_THE_RUN = "medgemma.md"  # made only where a run of the kernel was collected
README = HERE.parent / "README.md"
BEGIN, END = "<!-- medgemma:begin -->", "<!-- medgemma:end -->"
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
    path = template_of(text)
    body = fill(path.name, facts)
    title, rest = body.split("\n", 1)
    return f"{title}\n\n{NOTE.format(path.name)}{rest}"


def readme(facts: Facts) -> str:
    """README.md with its figures of MedGemma between their marks; as it is where it has no marks."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    if not begin:
        return before
    shown = fill("medgemma.j2", facts).replace("](medgemma.md)", f"]({HERE.name}/medgemma.md)")
    return f"{before}{BEGIN}\n{shown}{END}{rest.partition(END)[2]}"


def fill(template: str, facts: Facts) -> str:
    """One template of this folder."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    return environment.get_template(template).render(facts=facts, **names())


def names() -> dict[str, Any]:
    """What templates may use beside `facts`: plain words, and the recordings that are there, else None."""
    there = {name: path if (HERE / path).is_file() else None for name, path in MEDIA.items()}
    return {"decisions": PLAIN, "label": label, "levels": ("easy", "medium", "hard"), **there}
