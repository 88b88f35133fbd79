"""Find what the notes of a chart say against a drug or its class, "avoid NSAIDs", and what the chart has against a note
that is about to be saved. Pure."""

from collections.abc import Mapping, Set
from itertools import chain
from typing import Any

from docgemma.rules.chart_entries import lines_of, notes_naming
from docgemma.rules.drug_classes import classes_of, duplicate_class
from docgemma.rules.grounding import split
from docgemma.rules.order_check import MAJOR, MODERATE, Finding
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import SHORT, affirmed, clinical, listed, names, plain

MOST = 2
NEAR = 3  # words between a drug and what is done with it


def of_notes(parts: Set[str], chart: Mapping[str, Any]) -> list[Finding]:
    """The newest notes in which one sentence names the drug or its class beside a word of caution, each as recorded;
    `parts` are the generic names of its ingredients."""
    called = [plain(name).removesuffix("s") for name in chain(parts, classes_of(parts))]
    found = []
    for line in lines_of(dict(chart), "notes"):
        told = (plain(sentence) for sentence, _ in split(line.item["text"]))
        if any(listed("request_words", "cautions") & set(words.split()) and names(called, words) for words in told):
            found.append(Finding(MODERATE, line.text))
    return found[:MOST]


def notes_on(drug: str, chart: Mapping[str, Any]) -> list[str]:
    """The newest notes that name a drug or what its kind is called: "dual antiplatelet therapy until April 2027"."""
    kinds = [kind for topic in clinical("topics")["topics"] for kind in topic.get("kinds") or []]
    called = [word for kind in kinds if names(kind["match"], drug) for word in kind["said"] if len(word) > SHORT]
    return notes_naming(dict(chart), [drug, *called])[:MOST]


def not_taken(text: str, chart: Mapping[str, Any], drugs: DrugNames) -> list[Finding]:
    """The medicines that a note stops or continues and nobody takes, "stop warfarin" of somebody on apixaban; and those
    that it stops and that stay active, since a note ends none."""
    lines = [line for line in lines_of(dict(chart), "meds") if line.item["active"]]
    taken = {line.short.rstrip("."): ingredients(line.name, drugs) for line in lines}
    found = []
    for name, parts in ((name, ingredients(name, drugs)) for name in beside(text, "handling", drugs)):
        instead = [told for told, theirs in taken.items() if duplicate_class(parts, theirs)]
        rest = f"; recorded is {'; '.join(instead)}. Right patient, right drug?" if instead else "."
        told = f"The note speaks of {name}, which is not among the active medications{rest}"
        if not any(parts & theirs for theirs in taken.values()):
            found.append(Finding(MAJOR if instead else MODERATE, told))
    for name in beside(affirmed(text), "stopping", drugs):
        mine = [told for told, theirs in taken.items() if ingredients(name, drugs) & theirs]
        found += [Finding(MODERATE, f"{told} stays active in the record: a note does not stop it.") for told in mine]
    return found


def beside(text: str, kind: str, drugs: DrugNames) -> list[str]:
    """The drugs of a note that stand close to one of these words of `data/clinical/request_words.yaml`."""
    near = [(item.text, f"{text[: item.start]}.", text[item.end :]) for item in drugs.find(text)]
    told = ((name, {*plain(before).split()[-NEAR:], *plain(after).split()[:NEAR]}) for name, before, after in near)
    return list(dict.fromkeys(name for name, words in told if words & listed("request_words", kind)))
