"""What the offline snapshot holds, from which files, and how old it is."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from docgemma.knowledge.build import shipped_snapshot
from docgemma.knowledge.bulk import NAME
from docgemma.knowledge.snapshot import Snapshot


def info(home: Path) -> dict[str, Any]:
    """The snapshot that is used: the one built into `home`, else the shipped one.

    Returns:
        `path`, `content`, `built` (ISO time), `shipped` (True: the one that comes with the package), and `kinds`, for
        each `count`, `source`, `as_of` (ISO date or None), `age_days` (None if unknown), `demonstration` (how many
        records are invented), `files` (at most 50, [{"file", "bytes", "records", "as_of"}]) and `file_count`; for drugs
        also `bulk_labels`: how many have a label from the files, the others being the shipped records.

    Raises:
        StoreError: it is corrupt, or was made by another version.
    """
    built = home / NAME
    path = built if built.is_file() else shipped_snapshot(home)
    snapshot = Snapshot(path)
    found = {**snapshot.info(), "shipped": path != built}
    for kind, part in found["kinds"].items():
        part["age_days"] = age_days(part["as_of"])
        part["demonstration"] = _invented(snapshot, kind)
        part["files"] = json.loads(snapshot.meta.get(f"{kind}.files", "[]"))
        part["file_count"] = int(snapshot.meta.get(f"{kind}.file_count", "0"))
    found["kinds"]["drugs"]["bulk_labels"] = snapshot._rows("SELECT count(DISTINCT drug) FROM label_text")[0][0]
    return found


def age_days(as_of: str | None) -> int | None:
    """Days since an ISO date; None if it is not known."""
    try:
        return (datetime.now(UTC).date() - date.fromisoformat(as_of or "")).days
    except ValueError:
        return None


def _invented(snapshot: Snapshot, kind: str) -> int:
    """Invented records come only with the package, and their ids say so."""
    table = {"literature": "article", "trials": "trial"}.get(kind)
    return snapshot._rows(f"SELECT count(*) FROM {table} WHERE id LIKE 'DEMO-%'")[0][0] if table else 0
