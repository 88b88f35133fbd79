"""Which record store the settings name: the synthetic patients at home, a file, or a FHIR server."""

from pathlib import Path

from docgemma.ehr.base import RecordStore
from docgemma.errors import StoreError
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
    if is_url(settings.ehr_location):
        from docgemma.ehr.remote import RemoteStore

        return RemoteStore.from_settings(settings)

    from docgemma.ehr.sqlite import SqliteStore

    if settings.ehr:
        return SqliteStore(settings.ehr, create=create)
    return _home_store(Path(settings.ehr_location))


def is_url(location: str) -> bool:
    return location.lower().startswith(("http://", "https://"))


def _home_store(path: Path) -> RecordStore:
    from docgemma.ehr.seed import seed_resources
    from docgemma.ehr.sqlite import SqliteStore

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "Make it writable, or set DOCGEMMA_HOME to another folder."
        raise StoreError(f"The data home {path.parent} cannot be made.", hint=hint) from error
    return SqliteStore(path, seed=seed_resources())
