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
        create: make the named file if it is not there, empty, to load records into. Without it a wrong path is an
            error and never an empty record store.

    Raises:
        StoreError, ConfigError: the store cannot be opened; credentials are incomplete.
    """
    if settings.ehr_location.lower().startswith(("http://", "https://")):
        from docgemma.ehr.auth import auth_from
        from docgemma.ehr.remote import RemoteStore

        base_url = settings.ehr_location.rstrip("/")
        return RemoteStore(base_url, auth_from(settings, base_url), settings.tool_timeout)
    from docgemma.ehr.sqlite import SqliteStore

    if settings.ehr:
        return SqliteStore(settings.ehr, create=create)
    home = Path(settings.ehr_location).parent
    try:
        private_folder(home)
    except OSError as error:
        hint = "Make it writable, or set DOCGEMMA_HOME to another folder."
        raise StoreError(f"The data home {home} cannot be made.", hint=hint) from error
    return SqliteStore(settings.ehr_location, seed=seed_resources())


def seed_resources() -> Iterator[Resource]:
    """Every resource of the synthetic patients (data/ehr), each patient before the entries.

    Raises:
        StoreError, ConfigError: the file cannot be read, or is not there.
    """
    path = data_file("ehr", "patients.ndjson")
    try:
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    except (OSError, ValueError) as error:
        hint = "Reinstall docgemma, or set DOCGEMMA_EHR to a record store of your own."
        raise StoreError(f"The synthetic patients in {path} cannot be read.", hint=hint) from error
