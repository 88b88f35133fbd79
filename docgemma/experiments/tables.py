"""What was measured: a row a condition, with its interval, the reported figure and the comparison with the base."""

from collections.abc import Sequence
from typing import Any

from docgemma.experiments.runner import Row, Rows, by_code
from docgemma.experiments.statistics import mcnemar, wilson
from docgemma.experiments.suites import Condition, Suite

NEEDS_A_MODEL = "needs a language model"


def table(suite: Suite, rows: Rows, edge: bool) -> list[dict[str, Any]]:
    """The conditions of a suite in order. `n`: answers that could be parsed; `low`, `high`: the 95 % interval of
    correct / n; `p_vs_base`: an exact McNemar test on the cases of both."""
    return [_row(suite, condition, rows, edge) for condition in suite.conditions]


def _row(suite: Suite, condition: Condition, rows: Rows, edge: bool) -> dict[str, Any]:
    every, base = _of(suite.name, condition.name, rows), _parsed(_of(suite.name, suite.base, rows))
    own = _parsed(every)
    correct, calls = sum(row["correct"] for row in own.values()), sum(row["calls"] for row in every.values())
    low, high = wilson(correct, len(own))
    pairs = [(own[case]["correct"], base[case]["correct"]) for case in own.keys() & base.keys()]
    paired = condition.name != suite.base and pairs
    spent = sum(row["seconds"] for row in every.values())
    reported = condition.reported
    return {
        "suite": suite.name, "condition": condition.name, "n": len(own), "correct": correct,
        "low": round(low, 4), "high": round(high, 4), "unparsed": len(every) - len(own),
        "reported": reported.share if reported else None, "p_vs_base": round(_p(pairs), 4) if paired else None,
        "reported_text": f"{reported.text} ({reported.section})" if reported else "", "findings": condition.findings,
        "calls": calls, "tokens": {kind: sum(row[f"{kind}_tokens"] for row in every.values())
                                   for kind in ("prompt", "completion")},
        "seconds_a_call": round(spent / calls, 3) if calls else None,
        "seconds_a_trial": round(spent / len(every), 3) if every else None,
        "checks": {name: _share([row["checks"][name] for row in own.values()]) for name in _checks(own)},
        "filled": _filled(list(own.values())),
        "note": NEEDS_A_MODEL if edge and not by_code(suite.options_of(condition)) else "",
    }  # fmt: skip


def _p(pairs: Sequence[tuple[bool, bool]]) -> float:
    return mcnemar(sum(now and not then for now, then in pairs), sum(then and not now for now, then in pairs))


def _of(suite: str, condition: str, rows: Rows) -> dict[str, Row]:
    return {key[2]: row for key, row in rows.items() if key[:2] == (suite, condition)}


def _parsed(rows: dict[str, Row]) -> dict[str, Row]:
    return {case: row for case, row in rows.items() if not row["unparsed"]}


def _checks(rows: dict[str, Row]) -> list[str]:
    return list(next(iter(rows.values()), {}).get("checks", {}))


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4)


def _filled(rows: Sequence[Row]) -> list[list[int]]:
    """Of arguments: for each position, how many were wanted and how many were filled."""
    positions: list[list[int]] = []
    for row in rows:
        for at, filled in enumerate(row["detail"].get("filled", {}).values()):
            positions += [[0, 0]] * (at == len(positions))
            positions[at] = [positions[at][0] + 1, positions[at][1] + filled]
    return positions
