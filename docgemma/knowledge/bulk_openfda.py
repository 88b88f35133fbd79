"""Labels of openFDA's bulk zips. Of each drug the newest are kept, as many as the live search would read.

Labels that FDA has not harmonised name no ingredient: they belong to no drug and are counted, not guessed.
"""

import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from docgemma.knowledge.bulk_json import Open, json_records, stated_value
from docgemma.knowledge.bulk_staging import Note
from docgemma.knowledge.openfda import LIMIT, Label, generic_of

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


class Names:
    """Which drug a label is of: its ingredients without salts, under the name that the shipped records use.

    Args:
        shipped: name -> synonyms of every shipped drug.
    """

    def __init__(self, shipped: dict[str, list[str]]):
        single = {name: words for name, words in shipped.items() if " and " not in name}
        self._one = {word.lower(): name for name, words in single.items() for word in words} | {
            name: name for name in single
        }
        self._shipped = shipped

    @cached_property
    def _combinations(self) -> dict[tuple[str, ...], str]:
        return {tuple(sorted(name.split(" and "))): name for name in self._shipped if " and " in name}

    def drug(self, label: Label) -> str:
        """ "warfarin", or "a / b" for a combination; "" where the label names no ingredient."""
        parts = tuple(sorted({self._one.get(part, part) for part in generic_of([label]).split(" / ") if part}))
        return self._combinations.get(parts) or " / ".join(parts)


class Reader:
    """Stages labels; `bulk_drugs` makes drugs of them at the end."""

    SOURCE, SCHEMA = SOURCE, SCHEMA

    def __init__(self, names: Names):
        self._names = names

    def records(self, open_document: Open) -> Iterator[Any]:
        return json_records(open_document, ("results",))

    def stated(self, open_document: Open) -> str | None:
        return stated_value(open_document, "meta.last_updated", "results")

    def add(self, connection: sqlite3.Connection, raw: Any) -> Note:
        """Stage one label; of two versions of the same label the newer stays.

        Raises:
            ValueError: it is not a label.
        """
        if not isinstance(raw, dict) or not raw.keys() & set(KNOWN_BY):
            raise ValueError("not a label")
        label = Label.model_validate(raw)
        drug = self._names.drug(label)
        if not drug:
            return Note(skipped="not harmonised by FDA: the label names no ingredient", newest=label.effective)
        effective, boxed, data = label.effective or "", bool(label.boxed_warning), packed(label)
        key = label.set_id or str(raw.get("id") or hashlib.sha256(data).hexdigest())
        connection.execute(
            """INSERT INTO staged VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET drug = excluded.drug,
               boxed = excluded.boxed, effective = excluded.effective, data = excluded.data
               WHERE excluded.effective > staged.effective""",
            (key, drug, boxed, effective, data),
        )
        aliases = {alias for name in names_of(label) if (alias := " ".join(name.lower().split()))}
        connection.executemany(
            "INSERT OR IGNORE INTO staged_name VALUES (?, ?)", [(alias, drug) for alias in sorted(aliases)]
        )
        return Note(newest=label.effective)

    def tidy(self, connection: sqlite3.Connection) -> None:
        prune(connection)


def prune(connection: sqlite3.Connection) -> None:
    """Drop the labels of each drug that newer ones push out."""
    connection.execute(PRUNE)


def names_of(label: Label) -> list[str]:
    """Names that mean the product as a whole: an ingredient of a combination is not one."""
    whole = label.openfda.substance_name if len(label.ingredients) == 1 else ()
    return [*whole, *label.openfda.generic_name, *(re.sub(r"[®™]", "", name) for name in label.openfda.brand_name)]


def packed(label: Label, only: set[str] | None = None) -> bytes:
    """The parsed sections, compressed."""
    data = label.model_dump(exclude_defaults=True, include=only)
    return zlib.compress(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def unpacked(data: bytes) -> Label:
    return Label.model_validate_json(zlib.decompress(data))
