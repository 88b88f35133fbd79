"""Studies of ClinicalTrials.gov's downloads (version 2 of its data), as trials of the snapshot."""

import sqlite3
from collections.abc import Iterator
from typing import Any

from docgemma.knowledge.build import add_trial
from docgemma.knowledge.bulk_json import Open, json_records
from docgemma.knowledge.bulk_staging import Note
from docgemma.knowledge.ctgov import Study, parse

SOURCE = "ClinicalTrials.gov bulk data"
SCHEMA = ""


def records(open_document: Open) -> Iterator[Any]:
    """Studies of a page of the API, a list, a file with one study, or one a line."""
    return json_records(open_document, ("studies",))


def stated(open_document: Open) -> None:
    """The registry states the date of its data in every study instead."""


def add(connection: sqlite3.Connection, raw: Any) -> Note:
    """Store one study; a later one with the same number takes its place.

    Raises:
        ValueError: it is not a study.
    """
    trial = parse(Study.model_validate(raw))
    forget(connection, trial.id)
    keywords = [str(word) for word in _at(raw, "protocolSection", "conditionsModule", "keywords") or []]
    add_trial(connection, trial, keywords)
    version = _at(raw, "derivedSection", "miscInfoModule", "versionHolder")
    updated = _at(raw, "protocolSection", "statusModule", "lastUpdatePostDateStruct", "date")
    return Note(stated=version, newest=updated)


def tidy(connection: sqlite3.Connection) -> None:
    """Nothing is left to tidy."""


def forget(connection: sqlite3.Connection, trial_id: str) -> None:
    for (row,) in connection.execute("SELECT rowid FROM trial WHERE id = ?", (trial_id,)).fetchall():
        connection.execute("DELETE FROM trial_text WHERE rowid = ?", (row,))
        connection.execute("DELETE FROM trial WHERE rowid = ?", (row,))


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
