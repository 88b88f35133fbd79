"""Write a snapshot file. The shipped one comes from the reviewable files in `data/knowledge`, one record a line."""

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docgemma.errors import StoreError
from docgemma.knowledge.base import Article, DrugLabel, Interaction, Trial
from docgemma.knowledge.tables import SCHEMA, VERSION
from docgemma.paths import data_file

KINDS = ("drugs", "interactions", "literature", "trials")
TYPES: dict[str, Callable[..., Any]] = {
    "drugs": DrugLabel, "interactions": Interaction, "literature": Article, "trials": Trial,
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One kind of shipped records: source, date, and (record, further names or keywords), read once."""

    source: str
    as_of: str
    records: Iterable[tuple[Any, list[str]]]


def shipped_snapshot(home: Path, source_dir: Path | None = None) -> Path:
    """The file made from the shipped records; built now if these records have not been built before.

    Args:
        source_dir: the records, by default `data/knowledge`.

    Raises:
        StoreError: the records are broken, or `home` cannot be written.
        ConfigError: there is no data folder.
    """
    path = home / f"knowledge-{content_hash(source_dir or data_file('knowledge'))}.sqlite"
    return path if path.is_file() else build_shipped(home, source_dir)


def build_shipped(home: Path, source_dir: Path | None = None) -> Path:
    """Build it whether or not it is there. Raises as `shipped_snapshot`."""
    source_dir = source_dir or data_file("knowledge")
    content = content_hash(source_dir)
    path = home / f"knowledge-{content}.sqlite"
    adders: dict[str, Callable[..., None]] = {
        "drugs": add_drug,
        "interactions": add_interaction,
        "literature": add_article,
        "trials": add_trial,
    }
    with new_snapshot(path, content) as connection:
        for kind in KINDS:
            part = read_part(source_dir / f"{kind}.jsonl", kind)
            for record, words in part.records:
                adders[kind](connection, record, words)
            add_meta(connection, {f"{kind}.source": part.source, f"{kind}.as_of": part.as_of})
    return path


def content_hash(source_dir: Path) -> str:
    """Twelve hex digits that change with any record and with the layout of the tables."""
    digest = hashlib.sha256(f"{VERSION}{SCHEMA}".encode())
    for kind in KINDS:
        digest.update(_read(source_dir / f"{kind}.jsonl").encode())
    return digest.hexdigest()[:12]


def read_part(path: Path, kind: str) -> Part:
    """One shipped file: a head line with `source` and `as_of`, then a record a line."""
    lines = enumerate(_read(path).splitlines(), 1)
    try:
        head = json.loads(next(lines)[1])
        return Part(head["source"], head["as_of"], _records(path, kind, lines))
    except (StopIteration, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{path.name}, line 1: not a head with source and as_of.") from error


@contextmanager
def new_snapshot(path: Path, content: str, more_tables: str = "") -> Iterator[sqlite3.Connection]:
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
        with closing(sqlite3.connect(temporary, isolation_level=None, uri=True)) as connection:
            connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {SCHEMA} {more_tables} BEGIN;")
            yield connection
            built = datetime.now(UTC).isoformat(timespec="seconds")
            add_meta(connection, {"version": str(VERSION), "content": content, "built": built})
            connection.execute("COMMIT")
            connection.execute("VACUUM")
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except sqlite3.Error as error:
        hint = "Check the records and the free space."
        raise StoreError(f"The snapshot could not be built ({error}).", hint=hint) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def add_drug(
    connection: sqlite3.Connection, record: DrugLabel, words: list[str], source: str | None = None, as_of: str = ""
) -> None:
    """`source` and `as_of` where they are not those of the part."""
    values = (record.name, _json(record), source, as_of if source else None)
    connection.execute("INSERT INTO drug VALUES (?, ?, ?, ?)", values)
    if source is None:  # of many sources, names are settled between all of them
        add_names(connection, {name.lower(): record.name for name in (record.name, *record.brand_names, *words)})


def add_names(connection: sqlite3.Connection, names: dict[str, str]) -> None:
    """Further names of drugs; a name that is listed already stays as it is."""
    connection.executemany("INSERT OR IGNORE INTO drug_name VALUES (?, ?)", sorted(names.items()))


def add_interaction(connection: sqlite3.Connection, record: Interaction, words: list[str]) -> None:
    connection.execute("INSERT INTO interaction VALUES (?, ?, ?)", (*sorted(record.drugs), _json(record)))
    # a drug may be listed for its interactions alone: St John's wort has no label
    add_names(connection, {name: name for name in record.drugs})


def add_article(connection: sqlite3.Connection, record: Article, words: list[str]) -> None:
    row = connection.execute("INSERT INTO article (id, data) VALUES (?, ?)", (record.id, _json(record))).lastrowid
    text = (row, record.title, record.abstract, " ".join(words))
    connection.execute("INSERT INTO article_text (rowid, title, abstract, keywords) VALUES (?, ?, ?, ?)", text)


def add_trial(connection: sqlite3.Connection, record: Trial, words: list[str]) -> None:
    values = (record.id, record.status, _json(record))
    row = connection.execute("INSERT INTO trial (id, status, data) VALUES (?, ?, ?)", values).lastrowid
    conditions, interventions = " ; ".join(record.conditions), " ; ".join(record.interventions)
    connection.execute(
        "INSERT INTO trial_text (rowid, title, conditions, interventions, summary, keywords) VALUES (?, ?, ?, ?, ?, ?)",
        (row, record.title, conditions, interventions, record.summary, " ".join(words)),
    )


def remove(connection: sqlite3.Connection, table: str, record_id: str) -> None:
    """Remove an article or a trial, with its searchable text."""
    for (row,) in connection.execute(f"SELECT rowid FROM {table} WHERE id = ?", (record_id,)).fetchall():
        connection.execute(f"DELETE FROM {table}_text WHERE rowid = ?", (row,))
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))


def add_meta(connection: sqlite3.Connection, values: dict[str, str]) -> None:
    connection.executemany("INSERT INTO meta VALUES (?, ?)", values.items())


def _records(path: Path, kind: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[Any, list[str]]]:
    for number, line in lines:
        try:
            data = json.loads(line)
            words = data.pop("synonyms", []) + data.pop("keywords", [])
            if kind == "drugs" and data["boxed_warning"] == "none":  # looked up, and known to have none
                data["boxed_warning"] = ""
            yield TYPES[kind](**data), words
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"{path.name}, line {number}: not a record of {kind} ({error}).") from error


def _json(record: Any) -> str:
    return json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"The shipped records are missing ({path.name}).", hint="Clone the whole repository, data folder included."
        ) from error
