"""Load the payers' policies of `data/rcm/policies`, their `$lists` of terms filled in. No search here."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.rcm.records import Policy

BESIDE = ("terms", "queries", "axes")  # files of the folder that are no policies


@lru_cache(maxsize=4)
def load_policies(folder: Path | None = None) -> dict[str, Policy]:
    """Every policy by its id; `$name` in a pattern is replaced by the terms of `terms.yaml`. Not to be changed.

    Args:
        folder: `data/rcm/policies` unless told.

    Raises:
        ConfigError: a file is no YAML, or no policy in the form that README.md there tells.
    """
    folder = folder or data_file("rcm", "policies")
    loader, check = getattr(yaml, "CSafeLoader", yaml.SafeLoader), TypeAdapter(Policy)
    lists, policies = dict[str, list[str]](), dict[str, Policy]()
    for path in sorted(folder.glob("*.yaml"), key=lambda path: (path.stem != "terms", path.stem)):
        try:
            read = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
            if path.stem == "terms":
                lists = read
            elif path.stem not in BESIDE:
                policies[path.stem] = check.validate_python(_filled(read, lists))
        except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError, KeyError) as error:
            why = " ".join(str(error).split())[:200]
            hint = "See data/rcm/policies/README.md."
            raise ConfigError(f"The policy file {path.name} is wrong: {why}.", hint=hint) from error
    return policies


def payers() -> list[str]:
    """The payers that have a policy here, in order."""
    return sorted({policy["payer"] for policy in load_policies().values()})


def _filled(part: Any, lists: dict[str, list[str]]) -> Any:
    """A part of a file with its `$lists` filled in, no term twice."""
    if isinstance(part, dict):
        return {key: _filled(value, lists) for key, value in part.items()}
    if not isinstance(part, list):
        return part
    if all(isinstance(one, str) for one in part):
        return list(dict.fromkeys(term for one in part for term in (lists[one[1:]] if one[:1] == "$" else [one])))
    return [_filled(one, lists) for one in part]
