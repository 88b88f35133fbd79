"""The drug dictionary: name -> generic name of what a clinician may prescribe or ask about."""

import json
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from docgemma.paths import data_root
from docgemma.text.drugs import DrugNames
from docgemma.text.words import clinical, listed

__all__ = ["DrugNames", "load_drug_names"]

MAX_WORDS = 4


def load_drug_names() -> DrugNames:
    """The dictionary, read once a process: it is large and never changes.

    Raises:
        ConfigError: there is no data folder.
    """
    return _load(data_root() / "knowledge")


@lru_cache(maxsize=2)
def _load(folder: Path) -> DrugNames:
    names: dict[str, str] = {}
    for line in (folder / "drug_names.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            generic, _, called = line.partition("\t")
            names |= dict.fromkeys(called.split("|"), generic)
    for generic, others in clinical("drug_names")["supplement"].items():
        names |= dict.fromkeys([*([] if " and " in generic else [generic]), *others], generic)
    not_drugs, forms = listed("drug_words", "not_drugs"), listed("drug_words", "forms")
    labelled = _labelled(folder, names)  # magnesium sulfate has a label of its own; "fentanyl patch" holds fentanyl
    names = labelled | names
    bare = {generic: without_end(generic, forms) for generic in {*names.values()} - {*labelled.values()}}
    names = {name: bare[generic] if bare.get(generic) in names else generic for name, generic in names.items()}
    return DrugNames({name: generic for name, generic in names.items() if name not in not_drugs})


def without_end(name: str, endings: Collection[str]) -> str:
    """A lower-case name without the salts or forms at its end; one word stays."""
    words = name.split()
    while len(words) > 1 and words[-1] in endings:
        words.pop()
    return " ".join(words)


def _labelled(folder: Path, names: dict[str, str]) -> dict[str, str]:
    """Brand names and synonyms of `drugs.jsonl`: the dictionary lacks Demerol and Seasonique."""
    rows = [json.loads(line) for line in (folder / "drugs.jsonl").read_text("utf-8").splitlines()[1:]]
    known = {  # a drug as the dictionary spells it; a combination by its parts
        row["name"]: next((names[name] for name in (row["name"], *row["synonyms"]) if name in names), row["name"])
        for row in rows if " and " not in row["name"]
    }  # fmt: skip
    said = [(row["name"], alias.lower()) for row in rows for alias in (*row["synonyms"], *row["brand_names"])]
    return {alias: known.get(name, name) for name, alias in said if "/" not in alias and alias.count(" ") < MAX_WORDS}
