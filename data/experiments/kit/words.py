"""What suites gave, as `docgemma experiments run` prints it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from docgemma.cli.shared import say
from docgemma.paths import kit

if TYPE_CHECKING:
    from data.experiments.kit.suites import Suite
else:
    Suite = kit("experiments", "suites").Suite


def print_rows(suites: Sequence[Suite], measured: dict[str, list[dict[str, Any]]]) -> None:
    """A line a condition, then what it cost."""
    for item in suites:
        say(f"\n{item.name}: {item.question} (base: {item.base}; right: {' and '.join(item.correct)})")
        for row in measured[item.name]:
            say(_line(row))
    ran = [row for part in measured.values() for row in part]
    prompt, new = (sum(row["tokens"][kind] for row in ran) for kind in ("prompt", "completion"))
    say(f"\n{sum(row['calls'] for row in ran)} calls, {prompt:,} tokens read and {new:,} written.")


def _line(row: dict[str, Any]) -> str:
    reported = f"  reported: {row['reported_text']}" if row["reported_text"] else ""
    if not row["n"] + row["unparsed"]:
        return f"  {row['condition']:32} {row['note'] or 'no case'}{reported}"
    share = f"{row['correct']}/{row['n']}" + (f" = {row['correct'] / row['n']:.0%}" if row["n"] else "")
    test = f"  p {row['p_vs_base']:.3f}" if row["p_vs_base"] is not None else ""
    unparsed = f"  {row['unparsed']} unparsed" if row["unparsed"] else ""
    means = "".join(f"  {name} {value:.2g}" for name, value in row["means"].items())
    pace = f"  {row['seconds_a_call']:.2f} s a call" if row["calls"] else ""
    interval = f"{row['low']:.0%} to {row['high']:.0%}"
    return f"  {row['condition']:32} {share} ({interval}){test}{unparsed}{means}{pace}{reported}"
