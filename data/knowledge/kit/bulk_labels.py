"""Labels of openFDA's bulk files made into drugs. Of each drug the newest are kept, as many as the live search reads.

Labels that FDA has not harmonised name no ingredient: they belong to no drug and are counted, not guessed.
"""

import sqlite3
import zlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from docgemma.knowledge.base import DrugLabel
from docgemma.knowledge.build import Part, add_drug, add_names
from docgemma.knowledge.drug_rules import conditions_of, doses_of, product_of
from docgemma.knowledge.label_interactions import Drug, drug_of
from docgemma.knowledge.label_text import clip
from docgemma.knowledge.openfda import LIMIT, Label, classes_of, generic_of, merge, scanned_sections
from docgemma.paths import kit
from docgemma.text.quoted import NOT_VERIFIED

STAGED = (
    """CREATE TABLE staged (key TEXT PRIMARY KEY, drug TEXT NOT NULL, boxed INTEGER NOT NULL, effective TEXT NOT NULL,
       data BLOB NOT NULL) WITHOUT ROWID""",
    "CREATE TABLE staged_name (alias TEXT, drug TEXT, PRIMARY KEY (alias, drug)) WITHOUT ROWID",
)
# newest labels of a drug with a boxed warning and newest without, apart: as the live search asks for them
PRUNE = f"""DELETE FROM staged WHERE key IN (SELECT key FROM (
    SELECT key, row_number() OVER (PARTITION BY drug, boxed ORDER BY effective DESC, key) AS place FROM staged)
    WHERE place > {LIMIT})"""
FACTS = ("boxed_warning", "contraindications", "warnings", "interactions", "max_daily_dose")
QUOTE = 300

quotes = kit("knowledge", "basis").quotes


class Names:
    """Which drug a label is of: its ingredients without salts, under the name that the shipped records use.

    Args:
        shipped: name -> synonyms of every shipped drug.
    """

    def __init__(self, shipped: dict[str, list[str]]):
        single = {name: words for name, words in shipped.items() if " and " not in name}
        self._one = {word.lower(): name for name, words in single.items() for word in (*words, name)}
        self._many = {tuple(sorted(name.split(" and "))): name for name in shipped if " and " in name}

    def drug(self, label: Label) -> str:
        """ "warfarin", or "a / b" for a combination; "" where the label names no ingredient."""
        parts = tuple(sorted({self._one.get(part, part) for part in generic_of([label]).split(" / ") if part}))
        return self._many.get(parts) or " / ".join(parts)


def stage(db: sqlite3.Connection, raw: Any, names: Names) -> Label | None:
    """Keep one label until all are there; of two versions of the same label the newer stays. None: of no drug.

    Raises:
        ValueError, KeyError: it is not a label.
    """
    label = Label.model_validate(raw)
    key, drug = label.known_as or str(raw["id"]), names.drug(label)
    if not drug:
        return None
    data = zlib.compress(label.model_dump_json(exclude_defaults=True).encode(), 1)
    db.execute(
        """INSERT INTO staged VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET drug = excluded.drug,
           boxed = excluded.boxed, effective = excluded.effective, data = excluded.data
           WHERE excluded.effective > staged.effective""",
        (key, drug, bool(label.boxed_warning), label.effective or "", data),
    )
    aliases = {" ".join(name.lower().split()) for name in label.product_names} - {""}
    db.executemany("INSERT OR IGNORE INTO staged_name VALUES (?, ?)", [(name, drug) for name in aliases])
    return label


def add_labels(db: sqlite3.Connection, source: str, as_of: str, shipped: Part) -> tuple[dict[str, Drug], list[Any]]:
    """Fill `drug` and `drug_name`, and `basis` of the conditions and doses.

    A section that the bulk labels of a drug lack is taken from the shipped record, and the answer then names both
    sources: a partial download must not lose a boxed warning. Shipped drugs without a bulk label stay as they are.

    Returns:
        The drugs by name, to be read for each other; and [{"drug", "shipped", "label"}], the boxed warnings ("" for
        none) of every drug where only one side has one.
    """
    db.execute(PRUNE)
    words = {record.name: (record, names) for record, names in shipped.records}
    left = {name: record for name, (record, _) in words.items()}
    drugs: dict[str, Drug] = {}
    boxed = []
    rows = db.execute("SELECT drug, data FROM staged ORDER BY drug, effective DESC, key")
    for name, group in groupby(rows, key=lambda row: str(row[0])):
        labels = [Label.model_validate_json(zlib.decompress(data)) for _, data in group]
        record, own = replace(merge(labels, name, classes_of(labels)), name=name), left.pop(name, None)
        origin = source, as_of
        if own:
            if bool(record.boxed_warning) != bool(own.boxed_warning):
                said = clip(own.boxed_warning, QUOTE), clip(record.boxed_warning, QUOTE)
                boxed.append({"drug": name, "shipped": said[0], "label": said[1]})
            record = fill(record, own)
            if record.mixed:
                origin = f"{source}, {shipped.source}", min(filter(None, (as_of, shipped.as_of)), default="")
        sections = scanned_sections(labels)
        add_drug(db, record, *origin, sections)
        product = product_of(name.replace(" / ", " and ").split(" and "))
        add_basis(db, "conditions", quotes(conditions_of(product), labels))
        add_basis(db, "doses", quotes(doses_of(product), labels))
        drugs[name] = drug_of(name, record, sections)
    for name, record in left.items():
        add_drug(db, record, shipped.source, shipped.as_of)
        drugs[name] = drug_of(name, record, {})
    # drugs' own names first, then the shipped other names, then names that the bulk labels give to one drug alone:
    # "Pain Relief" is sold with three different drugs inside, and is listed for none of them
    db.execute("INSERT INTO drug_name SELECT name, name FROM drug")
    for name, (record, synonyms) in words.items():
        add_names(db, name, [*record.brand_names, *synonyms])
    db.execute(
        "INSERT OR IGNORE INTO drug_name SELECT alias, min(drug) FROM staged_name GROUP BY alias HAVING count(*) = 1"
    )
    return drugs, boxed


def fill(record: DrugLabel, shipped: DrugLabel) -> DrugLabel:
    """The bulk record with what it lacks from the shipped one."""
    missing = {name: getattr(shipped, name) for name in FACTS if not getattr(record, name) and getattr(shipped, name)}
    brands = list({name.lower(): name for name in (*shipped.brand_names, *record.brand_names)}.values())
    return replace(record, **missing, brand_names=brands, mixed=bool(missing))


def add_basis(db: sqlite3.Connection, kind: str, facts: Iterable[tuple[str, str]]) -> None:
    """Of shipped facts, by `fact_key`, the label that states each; one without a set id is no label to name."""
    told = [(fact, said) for fact, said in facts if said != NOT_VERIFIED]
    db.executemany("INSERT OR IGNORE INTO basis VALUES (?, ?, ?)", [(fact, kind, said) for fact, said in told])
