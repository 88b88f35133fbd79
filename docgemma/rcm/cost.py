"""What a month of charts costs: tokens measured a chart, times the prices that the specification's Part 7 implies."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, TypedDict

from docgemma.errors import UsageError
from docgemma.paths import data_file

MILLION = 1_000_000


class Row(TypedDict):
    """One scale of Part 7, a month: `price_*` in US dollars a million tokens, the others in US dollars."""

    scale: str
    users: int
    charts: int
    price_low: float  # implied by the specification's month
    price_high: float
    low: float  # the measured tokens at these prices
    high: float
    spec_low: float  # as projected there
    spec_high: float


def tokens_per_chart(reports: Iterable[Mapping[str, Any]]) -> float:
    """Tokens read and written a chart, on average over the answers of a batch (`result` of its lines).

    Raises:
        UsageError: there is none.
    """
    spent = [report["tokens"]["prompt"] + report["tokens"]["completion"] for report in reports]
    if not spent:
        raise UsageError("No chart was measured.", hint="Run a batch first: docgemma rcm batch FOLDER")
    return fmean(spent)


def monthly_cost(tokens: float) -> list[Row]:
    """Part 7 again, at each of its four scales.

    Args:
        tokens: measured a chart, read and written. 0 where no model was asked: what code and an encoder on this
            machine cost is not a price a token, and not in these rows.

    Source: data/rcm/cost.yaml.
    """
    import yaml

    spec = yaml.safe_load(data_file("rcm", "cost.yaml").read_text(encoding="utf-8"))
    return [_row(scale, spec["tokens_per_chart"], tokens) for scale in spec["scales"]]


def _row(scale: dict[str, Any], assumed: float, tokens: float) -> Row:
    millions = scale["charts"] * assumed / MILLION  # of tokens a month, as assumed
    part = tokens / assumed
    return Row(
        scale=scale["scale"], users=scale["users"], charts=scale["charts"],
        price_low=round(scale["low"] / millions, 4), price_high=round(scale["high"] / millions, 4),
        low=round(scale["low"] * part, 2), high=round(scale["high"] * part, 2),
        spec_low=scale["low"], spec_high=scale["high"],
    )  # fmt: skip
