"""Where the project's data files are: DOCGEMMA_DATA, else inside the package (a wheel), else beside it (a checkout)."""

import os
from pathlib import Path

from docgemma.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent


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
