"""What was measured: a row a condition, with its interval, the reported figure and the comparison with the base."""

import tempfile
from math import comb
from statistics import fmean
from typing import TYPE_CHECKING, Any

from docgemma.experiments.statistics import wilson
from docgemma.llm.load import default_model
from docgemma.paths import kit
from docgemma.settings import read_settings

if TYPE_CHECKING:
    from data.experiments.kit.runner import Row, Rows, by_code, model_key, run_suites
    from data.experiments.kit.suites import QUICK, Condition, Suite, load_suites
else:
    runner, suites = kit("experiments", "runner"), kit("experiments", "suites")
    Row, Rows, by_code = runner.Row, runner.Rows, runner.by_code
    model_key, run_suites = runner.model_key, runner.run_suites
    QUICK, Condition, Suite, load_suites = suites.QUICK, suites.Condition, suites.Suite, suites.load_suites

NEEDS_A_MODEL = "needs a language model"


def measure(conditions: dict[str, list[str]], model: str | None = None) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """Run a few conditions of each suite now, on the fixed quick sample: the model's name, and a table a suite."""
    settings = read_settings(home=tempfile.mkdtemp(prefix="docgemma-notebook-"))
    name, suites = model or settings.model or default_model(settings), []
    for suite in (load_suites()[key] for key in conditions):
        chosen = [item for item in suite.conditions if item.name in conditions[suite.name]]
        suites.append(suite.model_copy(update={"conditions": chosen}))
    rows = run_suites(suites, name, settings, n=QUICK)
    return model_key(name, settings), {suite.name: table(suite, rows, name == "edge") for suite in suites}


def table(suite: Suite, rows: Rows, edge: bool) -> list[dict[str, Any]]:
    """The conditions of a suite in order. `n`: answers that could be parsed; `low`, `high`: the 95 % interval of
    correct / n; `p_vs_base`: an exact McNemar test on the cases of both."""
    return [_row(suite, condition, rows, edge) for condition in suite.conditions]


def _row(suite: Suite, condition: Condition, rows: Rows, edge: bool) -> dict[str, Any]:
    every = [row for key, row in rows.items() if key[:2] == (suite.name, condition.name)]
    own, base = _right(suite.name, condition.name, rows), _right(suite.name, suite.base, rows)
    low, high = wilson(sum(own.values()), len(own))
    both = own.keys() & base.keys() if condition.name != suite.base else set()
    gained, lost = (sum(one[case] > other[case] for case in both) for one, other in ((own, base), (base, own)))
    calls, seconds = sum(row["calls"] for row in every), sum(row["seconds"] for row in every)
    reported = condition.reported
    names: list[str] = next((list(row["checks"]) for row in every if row["checks"]), [])
    return {
        "suite": suite.name, "condition": condition.name, "n": len(own), "correct": sum(own.values()),
        "low": round(low, 4), "high": round(high, 4), "unparsed": len(every) - len(own),
        "reported": reported.share if reported else None,
        "p_vs_base": round(mcnemar(gained, lost), 4) if both else None,
        "reported_text": f"{reported.text} ({reported.section})" if reported else "", "findings": condition.findings,
        "calls": calls, "seconds_a_call": round(seconds / calls, 3) if calls else None,
        "seconds_a_trial": round(seconds / len(every), 3) if every else None,
        "tokens": {kind: sum(row[f"{kind}_tokens"] for row in every) for kind in ("prompt", "completion")},
        "checks": {name: sum(row["checks"].get(name, False) for row in every) for name in names},
        "means": _means(every),
        "filled": _filled(every), "note": NEEDS_A_MODEL if edge and not by_code(suite.options_of(condition)) else "",
    }  # fmt: skip


def _right(suite: str, condition: str, rows: Rows) -> dict[str, bool]:
    """Of the cases whose answer could be parsed, whether it was right."""
    return {
        key[2]: row["correct"] for key, row in rows.items() if key[:2] == (suite, condition) and not row["unparsed"]
    }


def _means(rows: list[Row]) -> dict[str, float]:
    """Of what each trial counts: the share of facts in an answer, its words, the share of right steps of a plan."""
    details: list[dict[str, Any]] = [row["detail"] for row in rows if row["detail"]]
    names = [name for name, value in details[0].items() if isinstance(value, int | float)] if details else []
    return {name: round(fmean(detail[name] for detail in details), 4) for name in names}


def _filled(rows: list[Row]) -> list[list[int]]:
    """Of arguments: for each position, how many were wanted and how many were filled."""
    positions: list[list[int]] = []
    for row in rows:
        for at, filled in enumerate(row["detail"].get("filled", {}).values()):
            positions += [[0, 0]] * (at == len(positions))
            positions[at] = [positions[at][0] + 1, positions[at][1] + filled]
    return positions


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided p of a paired comparison: cases right only now, and cases right only before.

    Source: McNemar, Psychometrika 1947;12:153-157, with the binomial distribution instead of its approximation.
    """
    differing = gained + lost
    tail = sum(comb(differing, count) for count in range(min(gained, lost) + 1))
    return min(1.0, float(2 * tail / 2**differing))
