"""What a month of charts costs: tokens measured a chart, times the prices that the specification's Part 7 implies."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from docgemma.errors import UsageError
from docgemma.paths import data_yaml

MILLION = 1_000_000


def tokens_per_chart(reports: Iterable[Mapping[str, Any]]) -> float:
    """Tokens read and written a chart, on average over the answers of a batch (`result` of its lines).

    Raises:
        UsageError: there is none.
    """
    spent = [report["tokens"]["prompt"] + report["tokens"]["completion"] for report in reports]
    if not spent:
        raise UsageError("No chart was measured.", hint="Run a batch first: docgemma rcm batch FOLDER")
    return fmean(spent)


def monthly_cost(tokens: float) -> list[dict[str, Any]]:
    """Part 7 again, at each of its four scales, a month: charts, prices a million tokens and cost, in US dollars.

    Args:
        tokens: measured a chart, read and written. 0 where no model was asked: what code and an encoder on this
            machine cost is not a price a token, and not in these rows.

    Source: data/rcm/cost.yaml.
    """
    spec = data_yaml("rcm", "cost.yaml")
    rows, assumed = [], spec["tokens_per_chart"]
    for scale in spec["scales"]:
        millions, row = (
            scale["charts"] * assumed / MILLION,
            {name: scale[name] for name in ("scale", "users", "charts")},
        )
        for end in ("low", "high"):  # the price that the specification's month implies, and the measured tokens at it
            row |= {f"price_{end}": round(scale[end] / millions, 4), f"spec_{end}": scale[end]}
            row[end] = round(scale[end] * tokens / assumed, 2)
        rows.append(row)
    return rows
