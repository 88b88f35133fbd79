"""Load the payers' policies of `data/rcm/policies`, checked, their `$lists` of terms filled in. No search here."""

from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.rcm.records import Policy

FIELDS = {"id", "payer", "title", "effective", "notice", "procedures", "criteria", "request_needs"}
NEEDS = {"billing code", "diagnosis code", "requested duration", "follow-up plan"}
PLACES = {"sentence", "section", "page"}
PARTS = {"either", "both"}
PATTERN = {"any", "within", "measure", "refuted_by", "absent", "side", "date_within_days", "planned", "family"}
READ = {"item", "measure", "side", "date_within_days", "planned", "family", "born_before"}
BESIDE = {"side", "refuted_by", "date_within_days"}  # may stand beside `either` and `both`
BOUNDS = {"at_least", "at_most", "above", "below"}
MEASURE = {"name", "unit", "bare", "of", "ago", "optional"}
UNITS = frozenset(
    " day week month year session dose episode % kg/m2 /h mg/dl mm grade 20/ degree class point mmhg mmol/l".split(" ")
)


@lru_cache(maxsize=4)
def load_policies(folder: Path | None = None) -> dict[str, Policy]:
    """Every policy by its id; `$name` in a pattern is replaced by the terms of `terms.yaml`. Not to be changed.

    Args:
        folder: `data/rcm/policies` unless told.

    Raises:
        ConfigError: a file is no YAML, or says something that the format (README.md there) does not know.
    """
    folder = folder or data_file("rcm", "policies")
    lists = read_yaml(folder / "terms.yaml")
    policies: dict[str, Policy] = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.name not in ("terms.yaml", "queries.yaml", "axes.yaml"):
            policies[path.stem] = _policy(path, read_yaml(path), lists)
    return policies


def payers() -> list[str]:
    """The payers that have a policy here, in order."""
    return sorted({policy["payer"] for policy in load_policies().values()})


def read_yaml(path: Path) -> dict[str, Any]:
    """A file of the folder as it stands. Raises ConfigError: it cannot be read."""
    import yaml

    try:
        read = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _wrong(path, "it cannot be read") from error
    if not isinstance(read, dict):
        raise _wrong(path, "it is no mapping")
    return read


def _policy(path: Path, read: dict[str, Any], lists: dict[str, Any]) -> Policy:
    if set(read) != FIELDS:
        raise _wrong(path, f"missing or unknown: {', '.join(sorted(set(read) ^ FIELDS))}")
    if read["id"] != path.stem or not str(read["notice"]).startswith("Fictitious"):
        raise _wrong(path, "its id is not the file's name, or its notice does not say that it is fictitious")
    if not all(isinstance(read[key], str) for key in ("payer", "title", "effective")) or len(read["effective"]) != 10:
        raise _wrong(path, "payer, title and effective are texts, the last an ISO date in quotes")
    if not read["procedures"] or not all(set(one) == {"name", "codes", "also"} for one in read["procedures"]):
        raise _wrong(path, "a procedure is {name, codes, also}")
    if not set(read["request_needs"]) <= NEEDS:
        raise _wrong(path, f"request_needs are of: {', '.join(sorted(NEEDS))}")
    for number, criterion in enumerate(read["criteria"], 1):
        if set(criterion) != {"id", "text", "shown_by", "read_by"} or criterion["id"] != f"{path.stem}.{number}":
            raise _wrong(path, f"criterion {number} is not {{id: {path.stem}.{number}, text, shown_by, read_by}}")
        try:
            criterion["shown_by"] = _pattern(criterion["shown_by"], lists)
            criterion["read_by"] = _read_by(criterion["read_by"], lists)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _wrong(path, f"shown_by or read_by of criterion {number}: {error}") from error
    return cast(Policy, {key: value for key, value in read.items() if key != "notice"})


def _pattern(pattern: dict[str, Any], lists: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """A pattern with its lists filled in. Raises ValueError or KeyError for what the format forbids."""
    parts = PARTS & set(pattern)
    unknown = set(pattern) - (BESIDE | PARTS if parts else PATTERN)
    if unknown or len(parts) > 1 or (parts and depth) or not (parts or {"any", "measure"} & set(pattern)):
        raise ValueError(f"these keys do not go together: {', '.join(sorted(map(str, pattern)))}")
    full = dict(pattern)
    for part in parts:
        full[part] = [_pattern(one, lists, depth + 1) for one in pattern[part]]
    if "any" in pattern:
        full["any"] = [_terms(group, lists) for group in pattern["any"]]
    if "refuted_by" in pattern:
        full["refuted_by"] = _terms(pattern["refuted_by"], lists)
    if "measure" in pattern:
        full["measure"] = _measure(pattern["measure"], lists)
    if pattern.get("within", "sentence") not in PLACES:
        raise ValueError("within is sentence, section or page")
    return full


def _read_by(pattern: dict[str, Any], lists: dict[str, Any]) -> dict[str, Any]:
    """A pattern for the evidence reader, its lists filled in. Raises ValueError or KeyError for what is forbidden."""
    parts = PARTS & set(pattern)
    if (
        set(pattern) - (parts or READ) - {"side"}
        or len(parts) > 1
        or not (parts or {"item", "measure", "born_before"} & set(pattern))
    ):
        raise ValueError(f"these keys do not go together: {', '.join(sorted(map(str, pattern)))}")
    full = {**pattern, **{part: [_read_by(one, lists) for one in pattern[part]] for part in parts}}
    return {**full, "measure": _measure(pattern["measure"], lists)} if "measure" in pattern else full


def _terms(said: list[Any], lists: dict[str, Any]) -> list[str]:
    """A list of terms, `$name` replaced, without doubles."""
    listed = [term for one in said for term in (lists[one[1:]] if one.startswith("$") else [one])]
    if not listed or not all(isinstance(term, str) and term and term == term.lower() for term in listed):
        raise ValueError("terms are texts in lower case, at least one")
    return list(dict.fromkeys(listed))


def _measure(measure: dict[str, Any], lists: dict[str, Any]) -> dict[str, Any]:
    bounds = BOUNDS & set(measure)
    if not bounds or set(measure) - bounds - MEASURE or measure["unit"] not in UNITS:
        raise ValueError(
            "a measure is {name, unit, at_least | at_most | above | below, bare, of, ago}, its unit as listed"
        )
    return {**measure, "name": _terms(measure["name"], lists), **{bound: float(measure[bound]) for bound in bounds}}


def _wrong(path: Path, why: str) -> ConfigError:
    return ConfigError(f"The policy file {path.name} is wrong: {why}.", hint="See data/rcm/policies/README.md.")
