"""What stored labels say of other drugs: the live path's reading, on labels from the bulk files."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

from docgemma.knowledge.base import DrugLabel, Interaction
from docgemma.knowledge.bulk_openfda import unpacked
from docgemma.knowledge.label_interactions import Drug
from docgemma.knowledge.live import Found, interaction

Rows = Callable[..., list[tuple]]


@dataclass(frozen=True)
class Stored(Found):
    """A drug of the snapshot. Names, brands and classes are those of all its labels, not of the few that are read."""

    as_drug: Drug = field(kw_only=True)


def said_by_labels(rows: Rows, drugs: list[str], skip: set[frozenset[str]]) -> list[Interaction]:
    """One entry for each pair that a label of either drug speaks of, in the label's own words.

    Args:
        rows: runs a query on the snapshot.
        drugs: names as the snapshot lists them.
        skip: pairs that are not looked up.
    """
    pairs = [pair for pair in combinations(drugs, 2) if frozenset(pair) not in skip]
    stored = {name: _stored(rows, name) for name in {name for pair in pairs for name in pair}}
    return [found for a, b in pairs if (found := interaction(stored[a], stored[b]))]


def _stored(rows: Rows, name: str) -> Stored:
    labels = [unpacked(data) for (data,) in rows("SELECT data FROM label_text WHERE drug = ? ORDER BY number", name)]
    record = next(
        (DrugLabel(**json.loads(data)) for (data,) in rows("SELECT data FROM drug WHERE name = ?", name)), None
    )
    return Stored(name, name, labels, "", [], None, as_drug=_drug(name, record))


def _drug(name: str, record: DrugLabel | None) -> Drug:
    parts = (name, *(part.strip() for part in name.replace(" and ", " / ").split(" / ")))
    brands = [brand for brand in record.brand_names if brand.isalpha() and len(brand) > 3] if record else []
    return Drug(name, tuple(dict.fromkeys(parts)), tuple(brands), tuple(record.drug_classes) if record else ())
