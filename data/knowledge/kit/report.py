"""Put what a build of the snapshot did into words."""

from typing import Any

from docgemma.cli.shared import say
from docgemma.cli.snapshot import kind_line

SHOWN = 20  # lines of a kind


def print_report(report: dict[str, Any]) -> None:
    """Print what `build_from_files` says, what was left out and what disagrees on stderr."""
    say(f"Built {report['path']} in {report['seconds']} s.")
    for kind, part in report["kinds"].items():
        say(kind_line(kind, part))
    _print_first("Left out", [_note(item) for item in report["left_out"]])
    _print_first("Problem", [_note(item) for item in report["problems"]])
    _print_first("Disagreement", [_disagreement(item) for item in report["boxed_warnings"]])


def _print_first(title: str, lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        say(f"{title}: {line}", err=True)
    if len(lines) > SHOWN:
        say(f"{title}: {len(lines) - SHOWN} more; --json lists all.", err=True)


def _note(note: dict[str, Any]) -> str:
    times = f" {note['count']:,} times" if note["count"] > 1 else ""
    where = f" (first: {note['first']})" if note["first"] else ""
    return f"{note['file']}: {note['reason']}{times}{where}"


def _disagreement(item: dict[str, str]) -> str:
    if item["label"]:
        return f"{item['drug']}: no boxed warning in the shipped data, but one on a label: {item['label']}"
    return f"{item['drug']}: a boxed warning in the shipped data, but on none of the labels: {item['shipped']}"
