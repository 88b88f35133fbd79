"""Write a snapshot file. The shipped one comes from the reviewable files in `data/knowledge`, one record a line.

Tables: `drug` with the JSON of its `DrugLabel`, the source of that, and the `sections` of the label that are read for
other drugs (NULL where none was read); `drug_name`; `interaction` with a < b; `basis` with the sentence of a label that
states a shipped fact (`fact` of `fact_key`, `kind` of its file); `article` and `trial`, full-text tables.
"""

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docgemma.errors import StoreError
from docgemma.knowledge.base import Article, DrugLabel, Interaction, LabelSection, Trial
from docgemma.paths import data_file

VERSION = 7
DOCUMENT = "id, status, data, title, conditions, interventions, body, keywords"
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE drug (name TEXT PRIMARY KEY, data TEXT NOT NULL, source TEXT, as_of TEXT, sections TEXT);
CREATE TABLE drug_name (alias TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE interaction (a TEXT, b TEXT, data TEXT NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE basis (fact TEXT PRIMARY KEY, kind TEXT NOT NULL, said TEXT NOT NULL) WITHOUT ROWID;
"""
for _table in ("article", "trial"):
    SCHEMA += f"""
CREATE VIRTUAL TABLE {_table} USING fts5({DOCUMENT.replace(",", " UNINDEXED,", 3)},
    tokenize='porter unicode61 remove_diacritics 2');
"""
TYPES: dict[str, Any] = {"drugs": DrugLabel, "interactions": Interaction, "literature": Article, "trials": Trial}


@dataclass(frozen=True)
class Part:
    """One kind of shipped records: source, date, and (record, further names or keywords), read once."""

    source: str
    as_of: str
    records: Iterable[tuple[Any, list[str]]]


def shipped_snapshot(home: Path) -> Path:
    """The file made from the shipped records; built now if these records have not been built before.

    Raises:
        StoreError: the records are broken, or `home` cannot be written.
        ConfigError: they are not there.
    """
    path = home / f"knowledge-{content_hash()}.sqlite"
    if path.is_file():
        return path
    with new_snapshot(path) as db:
        for kind in TYPES:
            part = read_part(kind)
            for record, words in part.records:
                if kind == "drugs":
                    add_drug(db, record, part.source, part.as_of)
                    add_names(db, record.name, [record.name, *record.brand_names, *words])
                elif kind == "interactions":
                    add_interaction(db, record)
                else:
                    add_document(db, record, words)
            add_meta(db, {f"{kind}.source": part.source, f"{kind}.as_of": part.as_of})
    return path


def content_hash() -> str:
    """Twelve hex digits that change with any record and with the layout of the tables."""
    digest = hashlib.sha256(f"{VERSION}{SCHEMA}".encode())
    for kind in TYPES:
        digest.update(data_file("knowledge", f"{kind}.jsonl").read_bytes())
    return digest.hexdigest()[:12]


def read_part(kind: str) -> Part:
    """One shipped file: a head line with `source` and `as_of`, then a record a line.

    Raises:
        StoreError: it is broken.
        ConfigError: it is missing.
    """
    path = data_file("knowledge", f"{kind}.jsonl")
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    try:
        head = json.loads(next(lines)[1])
        return Part(head["source"], head["as_of"], _records(path, kind, lines))
    except (StopIteration, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{path.name}, line 1: not a head with source and as_of.") from error


@contextmanager
def new_snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A new database that takes the place of `path` in one step when the block ends without an error.

    Raises:
        StoreError: a record is doubled, or the folder cannot be written or is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
    except OSError as error:
        raise StoreError("The data home cannot be written.", hint="Set DOCGEMMA_HOME to a folder that can.") from error
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None, uri=True)) as db:
            db.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {SCHEMA} BEGIN;")
            yield db
            built = datetime.now(UTC).isoformat(timespec="seconds")
            add_meta(db, {"version": str(VERSION), "built": built})
            db.execute("COMMIT")
            db.execute("VACUUM")
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except sqlite3.Error as error:
        hint = "Check the records and the free space."
        raise StoreError(f"The snapshot could not be built ({error}).", hint=hint) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def add_drug(
    db: sqlite3.Connection, record: DrugLabel, source: str, as_of: str, sections: dict[str, LabelSection] | None = None
) -> None:
    values = (record.name, _json(asdict(record)), source, as_of, sections if sections is None else _json(sections))
    db.execute("INSERT INTO drug VALUES (?, ?, ?, ?, ?)", values)


def add_names(db: sqlite3.Connection, drug: str, names: Iterable[str]) -> None:
    """Further names of a drug; a name that is listed already stays as it is."""
    db.executemany("INSERT OR IGNORE INTO drug_name VALUES (?, ?)", [(name.lower(), drug) for name in names])


def add_interaction(db: sqlite3.Connection, record: Interaction) -> None:
    db.execute("INSERT INTO interaction VALUES (?, ?, ?)", (*sorted(record.drugs), _json(asdict(record))))
    for name in record.drugs:  # a drug may be listed for its interactions alone: St John's wort has no label
        add_names(db, name, [name])


def add_document(db: sqlite3.Connection, record: Article | Trial, words: Iterable[str], insert: str = "INSERT") -> None:
    """An article or a trial; one whose id is there already is an error, or with INSERT OR REPLACE takes its place."""
    if isinstance(record, Trial):
        table, status, body = "trial", record.status, record.summary
        conditions, interventions = " ; ".join(record.conditions), " ; ".join(record.interventions)
    else:
        table, status, body, conditions, interventions = "article", "", record.abstract, "", ""
    text = (record.title, conditions, interventions, body, " ".join(words))
    values = (row_of(record.id), record.id, status, _json(asdict(record)), *text)
    db.execute(f"{insert} INTO {table} (rowid, {DOCUMENT}) VALUES ({', '.join('?' * len(values))})", values)


def row_of(record_id: str) -> int:
    """The row of an article or a trial: 62 bits of a hash of its id."""
    return int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:8]) >> 2


def add_meta(db: sqlite3.Connection, values: dict[str, str]) -> None:
    db.executemany("INSERT INTO meta VALUES (?, ?)", values.items())


def _records(path: Path, kind: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[Any, list[str]]]:
    for number, line in lines:
        try:
            data = json.loads(line)
            words = data.pop("synonyms", []) + data.pop("keywords", [])
            fields = {name: value for name, value in data.items() if name not in ("checked", "doi")}
            if kind == "drugs" and data["boxed_warning"] == "none":  # looked up, and known to have none
                fields["boxed_warning"] = ""
            first, *others = data["drugs"] if kind == "interactions" else ["", ""]  # the first with each of the others
            for other in others:
                yield TYPES[kind](**fields | ({"drugs": (first, other)} if other else {})), words
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"{path.name}, line {number}: not a record of {kind} ({error}).") from error


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
