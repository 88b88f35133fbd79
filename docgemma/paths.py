"""Where the project's data files are, and files that only their owner may read."""

import importlib.util
import logging
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent
log = logging.getLogger(__name__)
_loading = threading.RLock()


def data_root() -> Path:
    """The first data folder that exists.

    Raises:
        ConfigError: there is none.
    """
    if chosen := os.environ.get("DOCGEMMA_DATA"):
        candidates = [Path(chosen)]
    else:
        candidates = [PACKAGE / "data", PACKAGE.parent / "data"]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise ConfigError(
        f"There is no data folder at {candidates[-1]}.",
        hint="Clone the repository, or set DOCGEMMA_DATA to its data folder.",
    )


def data_file(*parts: str) -> Path:
    """One file or folder of `data/`, `data_file("edge", "reader.npz")`.

    Raises:
        ConfigError: it is not there.
    """
    path = data_root().joinpath(*parts)
    if not path.exists():
        raise ConfigError(
            f"The data file {path} is missing.",
            hint="Clone the repository again, or set DOCGEMMA_DATA to its data folder.",
        )
    return path


def data_yaml(*parts: str) -> dict[str, Any]:
    """One YAML file of `data/`, `data_yaml("clinical", "measures.yaml")`.

    Raises:
        ConfigError: it is missing or is no YAML.
    """
    import yaml

    text = data_file(*parts).read_text(encoding="utf-8")
    try:
        read: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigError(f"data/{'/'.join(parts)} cannot be read.", hint="Clone the repository again.") from error
    return read


def kit(part: str, name: str) -> Any:
    """A module of `data/<part>/kit`, loaded once: what builds and measures data stands beside them, not in the package.

    Raises:
        ConfigError: it is not there.
    """
    known = f"docgemma_kit_{part}_{name}"
    with _loading:
        if known not in sys.modules:
            spec = importlib.util.spec_from_file_location(known, data_file(part, "kit", f"{name}.py"))
            assert spec and spec.loader
            sys.modules[known] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


def in_kit(part: str, module: str, name: str, /, *args: Any, **options: Any) -> Any:
    """Call what is defined in a kit. Another process can import this function, and no kit's module by its name: what
    is pickled for one says so with it."""
    return getattr(kit(part, module), name)(*args, **options)


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner may open (0700), whatever the umask says; one that exists is mended.

    Raises:
        OSError: it cannot be made.
    """
    for folder in [*reversed(path.parents), path]:
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    _only_owner(path, 0o700)
    return path


def private_file(path: Path) -> Path:
    """Make an empty file that only its owner may read (0600); one that exists is mended, SQLite's -wal and -shm too.

    SQLite gives a new -wal and -shm the mode of the database. A folder that exists is left as it is: it may be shared.

    Raises:
        OSError: it cannot be made.
    """
    if not path.parent.exists():
        private_folder(path.parent)
    if not path.exists():
        with suppress(FileExistsError):  # another process was faster
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        _only_owner(file, 0o600)
    return path


def _only_owner(path: Path, mode: int) -> None:
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(mode)
    except FileNotFoundError:
        return  # no -wal, or SQLite has just removed it
    except OSError:
        log.warning("%s can be read by other users of this machine; its owner can change that: chmod %o", path, mode)
