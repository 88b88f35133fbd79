"""What label and guideline say of a drug, for code to match: `conditions.jsonl` and `doses.jsonl` of `data/knowledge`;
and the drugs' RxNorm codes (`rxnorm.jsonl`).

Written from label knowledge, not verified against the labels but for what `docgemma snapshot build` finds stated there
(`basis.py`); a condition names the section it should stand in.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError
from docgemma.paths import data_file

Row = dict[str, Any]
PARTS = ("says", "max_day", "max_single", "max_day_per_kg", "max_single_per_kg")  # of a row that a label may state


def conditions_of(drug: str) -> list[Row]:
    """Rows {"drug", "when", "rank", "says", "section"} of a generic name: states of a patient that speak against it."""
    return _rows(data_file("knowledge", "conditions.jsonl")).get(drug, [])


def doses_of(drug: str) -> list[Row]:
    """Rows of limits of a generic name: {"drug", "route", "max_day", "max_single", "single", "age_from", …}; of a
    combination those that count one of its ingredients name that: {"part"}."""
    return _rows(data_file("knowledge", "doses.jsonl")).get(drug, [])


def fact_key(row: Mapping[str, Any], part: str = "drugs") -> str:
    """Names one fact of a row; it changes with the row, so that an older quote is not shown for a corrected fact."""
    told = {key: value for key, value in row.items() if key != "basis"}
    return hashlib.sha256(json.dumps([told, part], sort_keys=True).encode()).hexdigest()[:16]


def rxnorm_code(drug: str) -> str:
    """The RxNorm ingredient code of a generic name; "" for a drug whose code could not be checked."""
    rows = _rows(data_file("knowledge", "rxnorm.jsonl")).get(drug, [])
    return rows[0]["rxcui"] if rows else ""


def product_of(ingredients: Iterable[str]) -> str:
    """One name of a combination, whatever the order: "sacubitril and valsartan"."""
    return " and ".join(sorted(part.strip() for part in ingredients))


@lru_cache(maxsize=4)
def _rows(path: Path) -> dict[str, list[Row]]:
    """Every row by drug; kept by path, so that another data folder has its own.

    Raises:
        ConfigError: the file is missing or no JSON lines.
    """
    found: dict[str, list[Row]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(product_of(row["drug"].split(" and ")), []).append(row)
    except ValueError as error:
        raise ConfigError(f"data/knowledge/{path.name} cannot be read.", hint="Clone the repository again.") from error
    return found
