"""Training turns in any number, reproducible from a seed; none of them asks what an evaluation set asks."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable

from docgemma.edge.examples import Builder, Example, cases
from docgemma.edge.lexicon import Lexicon
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.paths import data_file


def make(
    count: int, seed: int, exclude: frozenset[str] = frozenset(), log: Callable[[str], object] | None = None
) -> tuple[list[Example], Counter]:
    """`count` turns, and how often a gold argument was no option that code offered (by tool and field).

    Args:
        exclude: normalised questions that must not be trained on.
    """
    lexicon = Lexicon(random.Random(seed))
    builder = Builder(lexicon, load_drug_names())
    made: list[Example] = []
    seen = set(exclude)
    for case, how in cases(lexicon):
        key = normal(case.question)
        short = len(case.question) < 25  # few words have few ways
        if key in exclude or (key in seen and not (short or case.before or how == "whole")):
            continue
        seen.add(key)
        made.append(builder.failing(case) if how == "failing" else builder.build(case, how == "whole"))
        if log and len(made) % 2000 == 0:
            log(f"{len(made)} of {count} turns made")
        if len(made) == count:
            return made, builder.skipped
    raise AssertionError("cases never end")


def heldout_questions() -> frozenset[str]:
    """The questions of both hand-written sets, normalised."""
    found = set()
    for name in ("heldout", "dev"):
        for line in data_file("edge", f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            found.add(normal(json.loads(line)["question"]))
    return frozenset(found)


def normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
