"""FHIR R4 files into the record store: bundles, NDJSON, single resources. One bad resource does not lose the others."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from docgemma.ehr.base import RecordStore, Resource
from docgemma.ehr.fhir import ID, problems_of
from docgemma.ehr.sqlite import SqliteStore
from docgemma.errors import UsageError

BATCH = 500  # resources a transaction
LINES = frozenset({".ndjson", ".jsonl"})  # one resource a line, streamed; any other file is one JSON document
NAMESPACE = uuid.UUID("0f4fd0de-6a3c-4d0e-8f4e-6a0f6f3d1b52")  # of ids for resources that bring none


@dataclass
class LoadReport:
    """What a load did. `skipped` are lines for a person and hold no content of the records."""

    loaded: int = 0  # now in the store, those that were already there unchanged included
    changed: int = 0  # new, or a new version
    skipped: list[str] = field(default_factory=list)


def load_files(
    store: RecordStore, paths: Iterable[str | Path], on_progress: Callable[[str], None] = lambda line: None
) -> LoadReport:
    """Store every valid resource of these files. Loading the same file again changes nothing.

    Raises:
        UsageError: the store is a server.
        StoreError: the store cannot be written. What was stored before stays.
    """
    if not isinstance(store, SqliteStore):
        hint = "Use the server's own import, or point DOCGEMMA_EHR at a file."
        raise UsageError("Files are loaded into a SQLite record store only.", hint=hint)
    report = LoadReport()
    for path in map(Path, paths):
        resources = _valid(path, report)
        while batch := list(islice(resources, BATCH)):
            report.changed += store.save(batch)
            report.loaded += len(batch)
            on_progress(f"{path.name}: {report.loaded} resources loaded")
    return report


def _valid(path: Path, report: LoadReport) -> Iterator[Resource]:
    """The resources of a file that can be stored; why the others cannot stands in the report."""
    for where, resource in _read(path):
        if reason := _refusal(resource):
            report.skipped.append(f"{where}: {reason}")
        else:
            content = json.dumps(resource, sort_keys=True, ensure_ascii=False)
            yield {"id": str(uuid.uuid5(NAMESPACE, content)), **resource}


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """(where, what stands there); an exception where it cannot be read."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            if path.suffix in LINES:
                yield from ((f"{path.name} line {at}", _json(line)) for at, line in enumerate(file, 1) if line.strip())
                return
            content = _json(file.read())
    except (OSError, UnicodeDecodeError) as error:
        content = error
    if isinstance(content, dict) and content.get("resourceType") == "Bundle":
        content = _bundled(content)
    if isinstance(content, list):
        yield from ((f"{path.name} entry {number}", item) for number, item in enumerate(content, 1))
    else:
        yield path.name, content


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return error


def _bundled(bundle: Resource) -> list[Any]:
    """The resources, with ids for those that have only a fullUrl, and references between entries made local."""
    listed = bundle.get("entry")
    entries = [item if isinstance(item, dict) else {} for item in listed] if isinstance(listed, list) else []
    targets: dict[Any, str] = {}
    for entry in entries:
        resource, url = entry.get("resource"), entry.get("fullUrl")
        if isinstance(resource, dict) and isinstance(url, str):
            if url.startswith("urn:uuid:"):
                resource.setdefault("id", url.removeprefix("urn:uuid:"))
            targets[url] = f"{resource.get('resourceType')}/{resource.get('id')}"

    def local(item: Resource) -> Resource:
        target = targets.get(item["reference"]) if isinstance(item.get("reference"), str) else None
        return {**item, "reference": target} if target else item

    return [json.loads(json.dumps(entry.get("resource")), object_hook=local) for entry in entries]


def _refusal(resource: Any) -> str:
    """Why this cannot be stored, or ""."""
    if isinstance(resource, Exception):  # none of these texts quotes the file
        return f"cannot be read ({getattr(resource, 'strerror', None) or resource})"
    if not isinstance(resource, dict) or not isinstance(resource.get("resourceType"), str):
        return "not a FHIR resource"
    kind = resource["resourceType"]
    if kind in ("Bundle", "OperationOutcome"):
        return f"{kind}: not a record"
    if "id" in resource and not (isinstance(resource["id"], str) and ID.fullmatch(resource["id"])):
        return f"{kind}: its id is not a FHIR id"
    problems = problems_of(resource)
    return f"{kind}: " + "; ".join(f"{name}: {why}" for name, why in problems[:3]) if problems else ""
