"""The drug dictionary, compiled once from the package `drug-named-entity-recognition` and kept as a small file.

The package lists everything that DrugBank, MeSH, MedlinePlus, the NHS and Wikipedia name, enzymes and pollen included,
and takes seconds to import. Kept here: what a clinician may prescribe or ask about, as name -> generic name.
"""

import bz2
import hashlib
import json
import logging
import os
import pickle
import re
from importlib import metadata, util
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.text.drugs import DrugNames, Mention
from docgemma.text.words import clinical, listed

__all__ = ["DrugNames", "Mention", "load_drug_names"]

PACKAGE = "drug-named-entity-recognition"
MODULE = "drug_named_entity_recognition"
RULES = "1"  # raise it when the selection below changes
NAME = re.compile(r"[a-z0-9][a-z0-9 '.\-]*[a-z0-9]")
JOINING = re.compile(r"\b(?:and|with|or|of|in|for|plus)\b")
SALT_BASES = frozenset({"calcium", "iron", "magnesium", "potassium", "sodium", "zinc", "ferrous", "lithium"})
MAX_WORDS, MAX_CHARS = 4, 40

log = logging.getLogger(__name__)
_LOADED: dict[str, DrugNames] = {}  # one dictionary a process; it never changes


def load_drug_names(home: Path | None = None) -> DrugNames:
    """The dictionary, from its cache where there is one.

    Args:
        home: where the compiled file is kept; None, or a folder that cannot be written, compiles it anew each time
            (about a second).

    Raises:
        ConfigError: the package that carries the names is not installed.
    """
    path = home / f"drug_names-{_version()}.json" if home else None
    names = _read(path) if path else None
    if names is None:
        names = _compile()
        if path:
            _write(path, names)
    return DrugNames(names)


def shared_drug_names(home: Path | None = None) -> DrugNames:
    """The dictionary of this process, loaded once: it is large and never changes. Raises as `load_drug_names`."""
    version = _version()
    if version not in _LOADED:
        _LOADED[version] = load_drug_names(home)
    return _LOADED[version]


def _version() -> str:
    """Changes with the package, with the lists beside it and with the rules of selection."""
    try:
        package = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise ConfigError("The drug dictionary is not installed.", hint=f"Install it: pip install {PACKAGE}") from error
    labelled = data_file("knowledge", "drugs.jsonl").stat().st_size
    words = clinical("drug_words")
    lists = repr((RULES, labelled, words["supplement"], sorted(words["not_drugs"]), sorted(words["short"])))
    return f"{package}-{hashlib.sha256(lists.encode()).hexdigest()[:10]}"


def _read(path: Path) -> dict[str, str] | None:
    """The cache; None if it is not there or not whole, so that it is made again."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return names if isinstance(names, dict) and names else None


def _write(path: Path, names: dict[str, str]) -> None:
    """Atomically, so that two processes starting at once cannot see half a file. A cache is a convenience."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(names, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        log.info("The drug name cache cannot be written (%s); going on without.", type(error).__name__)


def _compile() -> dict[str, str]:
    """name -> generic, from the package's data file; the package itself is not imported (it indexes for seconds)."""
    spec = util.find_spec(MODULE)
    folder = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    if folder is None:
        raise ConfigError("The drug dictionary is not installed.", hint=f"Install it: pip install {PACKAGE}")
    with bz2.open(folder / "drug_ner_dictionary.pkl.bz2", "rb") as file:
        data = pickle.load(file)
    names = select(data["drug_variant_to_canonical"], data["drug_canonical_to_data"])
    return {**_labelled(names), **names}


def _labelled(names: dict[str, str]) -> dict[str, str]:
    """Brand names and synonyms of `data/knowledge/drugs.jsonl`: the package lacks Demerol and Seasonique."""
    rows = [json.loads(line) for line in data_file("knowledge", "drugs.jsonl").read_text("utf-8").splitlines()[1:]]
    said = [(row["name"], alias.lower()) for row in rows for alias in (*row["synonyms"], *row["brand_names"])]
    known = {  # a drug as the package spells it; a combination by its parts
        row["name"]: next((names[name] for name in (row["name"], *row["synonyms"]) if name in names), row["name"])
        for row in rows if " and " not in row["name"]
    }  # fmt: skip
    return {
        alias: known.get(name, name) for name, alias in said
        if alias not in listed("drug_words", "not_drugs") and NAME.fullmatch(alias) and alias.count(" ") < MAX_WORDS
    }  # fmt: skip


def select(variants: dict[str, list[str] | None], canonicals: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Keep what is a drug. Single words first, because a longer name counts only if it contains one of them, or is
    the title of a monograph (MedlinePlus, NHS)."""
    usable = {
        name: canonical for name, found in variants.items() if (canonical := _best(name, found or [], canonicals))
    }
    names = {name: generic for name, generic in usable.items() if " " not in name and _plain(name)}
    words = set(names) | SALT_BASES
    for name, generic in usable.items():
        if " " in name and _plain(name) and (_monograph(canonicals.get(name, {})) or words & set(name.split())):
            names[name] = generic
    for generic, others in clinical("drug_words")["supplement"].items():
        known = [] if " and " in generic else [generic]
        names |= dict.fromkeys([*known, *others], generic)
    return names


def _best(name: str, found: list[str], canonicals: dict[str, dict[str, Any]]) -> str | None:
    """The canonical name with a monograph, else one that DrugBank gives a structure or a single word."""
    entries = [(item, canonicals.get(item) or {}) for item in found]
    for item, entry in entries:
        if _monograph(entry):
            return item
    for item, entry in entries:
        if "wikipedia_url" in entry or ("drugbank_id" in entry and ("smiles" in entry or " " not in item)):
            return item
    return None


def _monograph(entry: dict[str, Any]) -> bool:
    return "medline_plus_id" in entry or "nhs_url" in entry


def _plain(name: str) -> bool:
    """Whether a name is written as clinicians write: no chemistry, no list, not an ordinary word."""
    words = name.split()
    if name in listed("drug_words", "not_drugs") or len(words) > MAX_WORDS or len(name) > MAX_CHARS:
        return False
    if len(name) <= 4 and name not in listed("drug_words", "short"):
        return False
    if JOINING.search(name) or not NAME.fullmatch(name):
        return False
    digits = sum(char.isdigit() for char in name)
    return digits <= 2 and name.count("-") <= 2 and len(re.sub(r"[^a-z]", "", name)) >= 3
