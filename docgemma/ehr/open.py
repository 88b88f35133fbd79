"""Which record store the settings name: the synthetic patients at home, a file, or a FHIR server."""

import json
from collections.abc import Iterator
from pathlib import Path

from docgemma.ehr.base import RecordStore, Resource
from docgemma.errors import StoreError
from docgemma.paths import data_file, private_folder
from docgemma.settings import Settings


def open_store(settings: Settings, *, create: bool = False) -> RecordStore:
    """Open `DOCGEMMA_EHR`, or the store under the data home, which is made and seeded at its first use.

    Args:
        settings: `ehr` is None, a path, or the base URL of a FHIR R4 server.
        create: make the named file if it is not there, empty, to load records into. Without it a wrong path is an
            error and never an empty record store.

    Raises:
        StoreError: the store cannot be opened.
        ConfigError: credentials are incomplete.
    """
    if settings.ehr_location.lower().startswith(("http://", "https://")):
        from docgemma.ehr.remote import RemoteStore

        return RemoteStore.from_settings(settings)

    from docgemma.ehr.sqlite import SqliteStore

    if settings.ehr:
        return SqliteStore(settings.ehr, create=create)
    path = Path(settings.ehr_location)
    try:
        private_folder(path.parent)
    except OSError as error:
        hint = "Make it writable, or set DOCGEMMA_HOME to another folder."
        raise StoreError(f"The data home {path.parent} cannot be made.", hint=hint) from error
    return SqliteStore(path, seed=seed_resources())


def seed_resources() -> Iterator[Resource]:
    """Every resource of the synthetic patients (data/ehr), each patient before the entries.

    Raises:
        ConfigError: the file is not there.
        StoreError: it cannot be read.
    """
    path = data_file("ehr", "patients.ndjson")
    try:
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    except (OSError, ValueError) as error:
        hint = "Reinstall docgemma, or set DOCGEMMA_EHR to a record store of your own."
        raise StoreError(f"The synthetic patients in {path} cannot be read.", hint=hint) from error
