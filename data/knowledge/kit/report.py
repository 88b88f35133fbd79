"""Put into words what a build of the snapshot did, and what a snapshot holds."""

from typing import Any

from docgemma.cli.shared import say

SHOWN = 20  # lines of a kind


def print_report(report: dict[str, Any]) -> None:
    """Print what `build_from_files` says, what was left out and what disagrees on stderr."""
    say(f"Built {report['path']} in {report['seconds']} s.")
    for kind, part in report["kinds"].items():
        say(_line(kind, part))
    _print_first("Left out", [_note(item) for item in report["left_out"]])
    _print_first("Problem", [_note(item) for item in report["problems"]])
    _print_first("Disagreement", [_disagreement(item) for item in report["boxed_warnings"]])


def print_info(found: dict[str, Any]) -> None:
    """Print `Snapshot.info`."""
    origin = "the records that come with the package" if found["shipped"] else "built from bulk files"
    say(f"{found['path']}: {origin}, made {found['built'][:10]}.")
    for kind, part in found["kinds"].items():
        age = f", {part['age_days']} days old" if part["age_days"] is not None else ""
        say(_line(kind, part) + age)
        if part.get("demonstration"):
            say(f"    {part['demonstration']} of them are invented demonstration records.")
        if part.get("bulk_labels"):
            say(f"    {part['bulk_labels']:,} with a label from the files, the others as shipped.")
            say(f"    {part['boxed_warnings']:,} boxed warnings disagree with the shipped data.")
            say(f"    {part['conditions']:,} conditions, {part['doses']:,} maxima with the sentence of a label.")
        if part.get("with_basis"):
            say(f"    {part['with_basis']:,} with the sentence of a label that supports them.")
    if found["shipped"]:
        say("To make one from the public bulk files: docgemma snapshot build --help")


def _line(kind: str, part: dict[str, Any]) -> str:
    """One kind of records: how many, from where, as of when."""
    return f"  {kind}: {part['count']:,} from {part['source']}, as of {part['as_of'] or 'unknown'}"


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
