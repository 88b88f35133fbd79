"""One notebook for Kaggle from the ordered ones: the cells tagged "kernel", behind a cell that installs and one that
loads the model."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError

TAG = "kernel"
LIMIT = 1_000_000  # bytes; Kaggle answers "The kernel source must be less than 1 megabytes in size."
MODEL_LINE = re.compile(r"^MODEL = .*\n?", re.MULTILINE)  # a notebook's own; here the start cell has set it
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

TITLE = """\
# DocGemma: an offline-capable clinical agent

A clinician's question, answered from drug labels, literature, trials and records by **MedGemma 1.5 4B** on a T4, or \
by a small reader and code without a GPU. *Classification goes to the model, control flow goes to code.* This is \
the short version of the project's notebooks; press **Run all**.

**Not a medical device.** Decision support for research and demonstration. All patients are synthetic."""
INSTALL = "## Install\n\nFrom the attached dataset. What Kaggle has already, torch above all, stays as it is."
MODEL = """\
## The model

MedGemma where it is attached and a GPU is there, a copy on each GPU; else the edge model, with a notice."""
START = "from docgemma.kaggle.start import ready\n\nMODEL = ready()"
TOGETHER = """\
## Two people at once

A turn runs on one GPU. With two T4s two turns run side by side, each on its own copy of the model."""
ASK_TOGETHER = """\
from concurrent.futures import ThreadPoolExecutor

from docgemma.notebook import start

agent = start(MODEL, sources="offline")
questions = ["Check FDA warnings for metformin", "Check interactions between warfarin and ibuprofen"]
with ThreadPoolExecutor(2) as people:
    answers = list(people.map(agent.ask, questions))
for question, answer in zip(questions, answers, strict=True):
    print(f"{question}\\n   {answer['answer'].splitlines()[0][:160]}\\n")
print("generations on each GPU:", agent.llm.describe().get("generations", "one model"))"""
DEMO = """\
## The demo

In a session that you have open (not in a saved run, which nobody watches) this starts the browser demo and prints a \
link to it."""
LAUNCH = """\
import os

if os.environ.get("KAGGLE_KERNEL_RUN_TYPE") == "Interactive":
    from docgemma.demo.start import launch

    launch(agent, share=True)"""


def build_kernel(notebooks: Sequence[Path]) -> dict[str, Any]:
    """The kernel's notebook, as JSON.

    Raises:
        ConfigError: a notebook cannot be read, or none has a tagged cell.
    """
    chosen = [cell for path in sorted(notebooks) for cell in tagged(path)]
    if not chosen:
        raise ConfigError(f"No notebook has a cell tagged {TAG!r}.", hint="Restore notebooks/ from the repository.")
    install = Path(__file__).with_name("install_cell.py").read_text(encoding="utf-8").rstrip()
    head = [("title", TITLE), ("install", INSTALL), ("pip", install), ("model", MODEL), ("start", START)]
    tail = [("together", TOGETHER), ("ask-together", ASK_TOGETHER), ("demo", DEMO), ("launch", LAUNCH)]
    code = {"pip", "start", "ask-together", "launch"}
    frame = [[_cell(f"kernel-{name}", text, name in code) for name, text in part] for part in (head, tail)]
    return {"cells": [*frame[0], *chosen, *frame[1]], "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def tagged(path: Path) -> list[dict[str, Any]]:
    """A notebook's cells for the kernel: its headings one level down, its own choice of a model left out."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, json.JSONDecodeError, KeyError) as error:
        raise ConfigError(f"The notebook {path} cannot be read.", hint="Restore it from the repository.") from error
    kept = []
    for cell in cells:
        if TAG not in cell.get("metadata", {}).get("tags", []):
            continue
        text, is_code = "".join(cell["source"]), cell["cell_type"] == "code"
        text = MODEL_LINE.sub("", text) if is_code else re.sub(r"^#", "##", text, flags=re.MULTILINE)
        if text.strip():
            kept.append(_cell(f"{path.stem[:2]}-{cell['id']}", text.strip(), is_code))
    return kept


def sent_bytes(notebook: dict[str, Any]) -> int:
    """What Kaggle weighs: the notebook as its client sends it, outputs left out, each source one string."""
    cells = [{**cell, "source": "".join(cell["source"])} for cell in notebook["cells"]]
    cells = [{**cell, "outputs": []} if cell["cell_type"] == "code" else cell for cell in cells]
    return len(json.dumps({**notebook, "cells": cells}).encode())


def _cell(name: str, text: str, is_code: bool) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
    if is_code:
        return {"cell_type": "code", **cell, "execution_count": None, "outputs": []}
    return {"cell_type": "markdown", **cell}
