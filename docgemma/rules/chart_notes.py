"""Find what the notes of a chart say against a drug or its class: "No opioids", "avoid NSAIDs". Pure."""

from collections.abc import Mapping, Set
from itertools import chain
from typing import Any

from docgemma.rules.chart_entries import lines_of
from docgemma.rules.drug_classes import classes_of
from docgemma.rules.grounding import split
from docgemma.rules.order_check import MODERATE, Finding
from docgemma.text.words import listed, names, plain

MOST = 2


def of_notes(parts: Set[str], chart: Mapping[str, Any]) -> list[Finding]:
    """The newest notes in which one sentence names the drug or its class beside a word of caution, each as recorded.

    Args:
        parts: generic names of the ordered drug's ingredients.
    """
    called = [plain(name).removesuffix("s") for name in chain(parts, classes_of(parts))]
    found = []
    for line in lines_of(dict(chart), "notes"):
        told = (plain(sentence) for sentence, _ in split(line.item["text"]))
        if any(listed("request_words", "cautions") & set(words.split()) and names(called, words) for words in told):
            found.append(Finding(MODERATE, line.text))
    return found[:MOST]
