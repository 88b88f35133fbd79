"""What stands red on a card, how each finding ranks, and how an approval against it is put into words. Pure."""

from collections.abc import Iterable

from docgemma.rules.order_check import MAJOR, Finding

RANK_WORDS = ("contraindicated", "major", "moderate", "minor", "unchecked")  # of a Finding's rank
RED = RANK_WORDS[: MAJOR + 1]
NO_REASON = "no reason given"
REASON_CHARS = 300


def ranked(findings: Iterable[Finding]) -> list[dict[str, str]]:
    """Each finding once with its rank in words and how the fact behind it was obtained, the gravest first."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: finding.rank)
    return [{"rank": RANK_WORDS[item.rank], "text": item.text, "basis": item.basis} for item in ordered]


def red(lines: Iterable[dict[str, str]]) -> list[str]:
    """Of `ranked` the texts that an approval needs a reason for: contraindicated and major."""
    return [line["text"] for line in lines if line["rank"] in RED]


def override(lines: Iterable[dict[str, str]], reason: str = "") -> dict[str, object] | None:
    """What is kept of an approval: {"despite": [...], "reason"}; None where nothing red stood."""
    despite = red(lines)
    return {"despite": despite, "reason": " ".join(reason.split())[:REASON_CHARS] or NO_REASON} if despite else None


def override_text(kept: dict[str, object] | None) -> str:
    """ "Approved despite: …; reason: …", as record and timeline say it; "" where nothing red stood."""
    if not kept:
        return ""
    assert isinstance(kept["despite"], list)
    return f"Approved despite: {' '.join(kept['despite'])} Reason: {kept['reason']}"
