"""Labels of openFDA's bulk files made into drugs. Of each drug the newest are kept, as many as the live search reads.

Labels that FDA has not harmonised name no ingredient: they belong to no drug and are counted, not guessed.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Any

from docgemma.knowledge import basis
from docgemma.knowledge.base import DrugLabel, Interaction
from docgemma.knowledge.build import Part, add_drug, add_names
from docgemma.knowledge.label_text import clip
from docgemma.knowledge.live import MAX_READ, Found, called, interaction
from docgemma.knowledge.openfda import LIMIT, UNSCANNED, Label, classes_of, generic_of, leading, merge

SOURCE = "openFDA bulk labels"
SCHEMA = """
CREATE TABLE staged (key TEXT PRIMARY KEY, drug TEXT NOT NULL, boxed INTEGER NOT NULL, effective TEXT NOT NULL,
    data BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX staged_drug ON staged (drug, boxed, effective DESC, key);
CREATE TABLE staged_name (alias TEXT, drug TEXT, PRIMARY KEY (alias, drug)) WITHOUT ROWID;
"""
KNOWN_BY = ("openfda", "set_id", "id", "effective_time")  # what a label has and other records have not
# newest labels of a drug with a boxed warning and newest without, apart: as the live search asks for them
PRUNE = f"""DELETE FROM staged WHERE key IN (SELECT key FROM (
    SELECT key, row_number() OVER (PARTITION BY drug, boxed ORDER BY effective DESC, key) AS place FROM staged)
    WHERE place > {LIMIT})"""
FACTS = ("boxed_warning", "contraindications", "warnings", "interactions", "max_daily_dose")
QUOTE = 300
Rows = Callable[..., list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Origin:
    """Where a fact is from and as of when."""

    source: str
    as_of: str


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


def stage(connection: sqlite3.Connection, raw: Any, names: Names) -> Label | None:
    """Keep one label until all are there; of two versions of the same label the newer stays. None: of no drug.

    Raises:
        ValueError: it is not a label.
    """
    if not isinstance(raw, dict) or not raw.keys() & set(KNOWN_BY):
        raise ValueError("not a label")
    label = Label.model_validate(raw)
    drug = names.drug(label)
    if not drug:
        return None
    data = packed(label)
    key = label.set_id or str(raw.get("id") or hashlib.sha256(data).hexdigest())
    connection.execute(
        """INSERT INTO staged VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET drug = excluded.drug,
           boxed = excluded.boxed, effective = excluded.effective, data = excluded.data
           WHERE excluded.effective > staged.effective""",
        (key, drug, bool(label.boxed_warning), label.effective or "", data),
    )
    aliases = {" ".join(name.lower().split()) for name in label.product_names} - {""}
    connection.executemany("INSERT OR IGNORE INTO staged_name VALUES (?, ?)", [(name, drug) for name in aliases])
    return label


def finish(connection: sqlite3.Connection, bulk: Origin, shipped: Part) -> list[dict[str, str]]:
    """Fill `drug`, `drug_name`, `label_text` and the basis of conditions and doses.

    A section that the bulk labels of a drug lack is taken from the shipped record, and the answer then names both
    sources: a partial download must not lose a boxed warning. Shipped drugs without a bulk label stay as they are.

    Returns:
        [{"drug", "shipped", "label"}], the boxed warnings ("" for none) of every drug where only one side has one.
    """
    connection.execute(PRUNE)
    kept = {record.name: (record, words) for record, words in shipped.records}
    own, boxed = Origin(shipped.source, shipped.as_of), []
    for drug, labels in _drugs(connection):
        record, origin = replace(merge(labels, drug, classes_of(labels)), name=drug), bulk
        if drug in kept:
            before = kept[drug][0]
            if bool(record.boxed_warning) != bool(before.boxed_warning):
                said = (clip(before.boxed_warning, QUOTE), clip(record.boxed_warning, QUOTE))
                boxed.append({"drug": drug, "shipped": said[0], "label": said[1]})
            record, origin = fill(record, before, bulk, own)
        add_drug(connection, record, [], origin.source, origin.as_of)
        rows = [(drug, number, packed(label, UNSCANNED)) for number, label in enumerate(leading(labels)[:MAX_READ])]
        connection.executemany("INSERT INTO label_text VALUES (?, ?, ?)", rows)
        basis.add_drug_facts(connection, drug, leading(labels)[:MAX_READ])
    listed = {name for (name,) in connection.execute("SELECT name FROM drug")}
    for name, (record, _) in kept.items():
        if name not in listed:
            add_drug(connection, record, [], own.source, own.as_of)
    _settle_names(connection, kept)
    return boxed


def fill(record: DrugLabel, shipped: DrugLabel, bulk: Origin, own: Origin) -> tuple[DrugLabel, Origin]:
    """The bulk record with what it lacks from the shipped one, and the origin of both where something was taken."""
    missing = {name: getattr(shipped, name) for name in FACTS if not getattr(record, name) and getattr(shipped, name)}
    if missing:
        record = replace(record, set_id="", version="")  # not every fact is of that label any more
        bulk = Origin(f"{bulk.source}, {own.source}", min(filter(None, (bulk.as_of, own.as_of)), default=""))
    brands = list({name.lower(): name for name in (*shipped.brand_names, *record.brand_names)}.values())
    return replace(record, **missing, brand_names=brands), bulk


def _drugs(connection: sqlite3.Connection) -> Iterator[tuple[str, list[Label]]]:
    """Each drug with its labels, newest first; one drug in memory at a time."""
    rows = connection.execute("SELECT drug, data FROM staged ORDER BY drug, effective DESC, key")
    for drug, group in groupby(rows, key=lambda row: str(row[0])):
        yield drug, [unpacked(data) for _, data in group]


def _settle_names(connection: sqlite3.Connection, kept: dict[str, tuple[DrugLabel, list[str]]]) -> None:
    """Drugs' own names first, then the shipped other names, then names that the bulk labels give to one drug alone.

    "Pain Relief" is sold with three different drugs inside: such a name is listed for none of them.
    """
    connection.execute("INSERT INTO drug_name SELECT name, name FROM drug")
    for name, (record, words) in kept.items():
        add_names(connection, {word.lower(): name for word in (*record.brand_names, *words)})
    connection.execute(
        "INSERT OR IGNORE INTO drug_name SELECT alias, min(drug) FROM staged_name GROUP BY alias HAVING count(*) = 1"
    )


def packed(label: Label, without: set[str] | None = None) -> bytes:
    """The parsed sections, compressed."""
    data = label.model_dump(exclude_defaults=True, exclude=without)
    return zlib.compress(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def unpacked(data: bytes) -> Label:
    return Label.model_validate_json(zlib.decompress(data))


def stored_drug(rows: Rows, name: str) -> Found:
    """A drug with its labels, from an open snapshot (`rows` runs a query on it).

    Names, brands and classes are those of all its labels, not of the few that are kept.
    """
    labels = [unpacked(data) for (data,) in rows("SELECT data FROM label_text WHERE drug = ? ORDER BY number", name)]
    records = [DrugLabel(**json.loads(data)) for (data,) in rows("SELECT data FROM drug WHERE name = ?", name)]
    names = [name, *(part.strip() for part in name.replace(" and ", " / ").split(" / "))]
    brands = [brand for record in records for brand in record.brand_names]
    return Found(called(name, names, brands, [word for record in records for word in record.drug_classes]), labels)


def said_by_labels(rows: Rows, drugs: list[str], skip: set[frozenset[str]]) -> list[Interaction]:
    """One entry for each pair that a label of either drug speaks of, in the label's own words; not for `skip`."""
    pairs = [pair for pair in combinations(drugs, 2) if frozenset(pair) not in skip]
    stored = {name: stored_drug(rows, name) for name in {name for pair in pairs for name in pair}}
    return [found for a, b in pairs if (found := interaction(stored[a], stored[b]))]
