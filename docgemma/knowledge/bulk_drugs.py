"""Staged labels made into drugs: labels of one drug merged newest first, names, and the shipped facts beside them."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from docgemma.knowledge.base import DrugLabel
from docgemma.knowledge.build import Part, add_drug
from docgemma.knowledge.bulk_openfda import packed, prune, unpacked
from docgemma.knowledge.openfda import Label, classes_of, leading, merge

MAX_READ = 5  # labels of a drug that are read for other drugs, as the live path reads them
READ = {field for field in Label.model_fields if field != "dosage_and_administration"}
FACTS = ("boxed_warning", "contraindications", "warnings", "interactions", "max_daily_dose")


@dataclass(frozen=True)
class Origin:
    """Where a fact is from and as of when."""

    source: str
    as_of: str


def finish(connection: sqlite3.Connection, bulk: Origin, shipped: Part, on_drug: Callable[[int], None]) -> int:
    """Fill `drug`, `drug_name` and `label_text`; the number of drugs with a label from the bulk files.

    A section that the bulk labels of a drug lack is taken from the shipped record, and the answer then names both
    sources: a partial download must not lose a boxed warning. Shipped drugs without a bulk label stay as they are.
    """
    prune(connection)
    kept = {record.name: (record, words) for record, words in shipped.records}
    count = 0
    for drug, labels in _drugs(connection):
        record = replace(merge(labels, drug, classes_of(labels)), name=drug)
        origin = bulk
        if drug in kept:
            record, origin = fill(record, kept[drug][0], bulk, Origin(shipped.source, shipped.as_of))
        add_drug(connection, record, [], origin.source, origin.as_of)
        rows = [(drug, number, packed(label, READ)) for number, label in enumerate(leading(labels)[:MAX_READ])]
        connection.executemany("INSERT INTO label_text VALUES (?, ?, ?)", rows)
        count += 1
        on_drug(count)
    for name, (record, _) in kept.items():
        if not connection.execute("SELECT 1 FROM drug WHERE name = ?", (name,)).fetchone():
            add_drug(connection, record, [], shipped.source, shipped.as_of)
    _add_names(connection, kept)
    return count


def fill(record: DrugLabel, shipped: DrugLabel, bulk: Origin, own: Origin) -> tuple[DrugLabel, Origin]:
    """The bulk record with what it lacks from the shipped one, and the origin of both where something was taken."""
    missing = {name: getattr(shipped, name) for name in FACTS if not getattr(record, name) and getattr(shipped, name)}
    if missing:
        bulk = Origin(f"{bulk.source}, {own.source}", min(filter(None, (bulk.as_of, own.as_of)), default=""))
    return replace(record, **missing, brand_names=_both(record.brand_names, shipped.brand_names)), bulk


def _both(first: list[str], second: list[str]) -> list[str]:
    return list({name.lower(): name for name in (*second, *first)}.values())


def _drugs(connection: sqlite3.Connection) -> Iterator[tuple[str, list[Label]]]:
    """Each drug with its labels, newest first; one drug in memory at a time."""
    rows = connection.execute("SELECT drug, data FROM staged ORDER BY drug, effective DESC, key")
    for drug, group in groupby(rows, key=lambda row: row[0]):
        yield drug, [unpacked(data) for _, data in group]


def _add_names(connection: sqlite3.Connection, kept: dict[str, tuple[DrugLabel, list[str]]]) -> None:
    """Drugs' own names first, then the shipped other names, then names that the bulk labels give to one drug alone.

    "Pain Relief" is sold with three different drugs inside: such a name is listed for none of them.
    """
    listed = "INSERT OR IGNORE INTO drug_name"
    connection.execute(f"{listed} SELECT name, name FROM drug")
    for name, (record, words) in kept.items():
        others = {word.lower() for word in (*record.brand_names, *words)}
        connection.executemany(f"{listed} VALUES (?, ?)", [(word, name) for word in sorted(others)])
    connection.execute(
        f"{listed} SELECT alias, min(drug) FROM staged_name JOIN drug ON drug.name = staged_name.drug"
        " GROUP BY alias HAVING count(*) = 1"
    )
