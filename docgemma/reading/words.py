"""The word lists of `data/clinical`: what clinicians say, and what charts, labels and dictionaries call it. Data only."""

from functools import lru_cache
from typing import Any

from docgemma.errors import ConfigError
from docgemma.paths import data_file


@lru_cache(maxsize=16)
def clinical(name: str) -> dict[str, Any]:
    """One file of `data/clinical` as it stands; read at its first use.

    Raises:
        ConfigError: it is missing or is no YAML.
    """
    import yaml

    path = data_file("clinical", f"{name}.yaml")
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigError(f"The word list {path.name} cannot be read.", hint="Reinstall docgemma.") from error


def plain(text: str) -> str:
    """For comparing: lower case, without accents, single blanks; `+`, `-` and `/` stay ("k+", "x-ray")."""
    import unicodedata

    folded = "".join(char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))
    kept = "".join(char if char.isalnum() or char in "+-/'&%" else " " for char in folded.replace("’", "'"))
    return " ".join(kept.split())
