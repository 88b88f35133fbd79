"""What speaks against an order: the gravest first, and what could not be checked on one line at the end. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED = range(5)
RANKS = {"contraindicated": CONTRAINDICATED, "major": MAJOR, "moderate": MODERATE, "minor": NOTE}


class Finding(NamedTuple):
    """One line for a clinician. Of UNCHECKED `text` names the check, the reason in brackets, without a full stop."""

    rank: int
    text: str


def shown(findings: Iterable[Finding]) -> list[str]:
    """The lines of a card, each once: "Could not be checked: allergies (…); the daily dose (…)." is the last."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: finding.rank)
    lines = [finding.text for finding in ordered if finding.rank != UNCHECKED]
    unchecked = [finding.text for finding in ordered if finding.rank == UNCHECKED]
    return [*lines, *([f"Could not be checked: {'; '.join(unchecked)}."] if unchecked else [])]
