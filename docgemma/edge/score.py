"""Right or wrong, and what that says: exact arguments, Wilson intervals, confusion matrices."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mark:
    """One judged decision."""

    item: str
    capability: str
    difficulty: str
    expected: str
    got: str
    right: bool
    seconds: float = 0.0


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share. (0, 1) where nothing was counted."""
    if not total:
        return 0.0, 1.0
    share, spread = right / total, z * z / total
    middle = share + spread / 2
    half = z * (share * (1 - share) / total + spread / (4 * total)) ** 0.5
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


OPTIONAL = frozenset({"notes", "severity", "status"})  # said by code where the question says them


def same_args(expected: dict[str, Any], got: dict[str, Any] | None) -> bool:
    """Whether every argument is one of the accepted ones, up to case, blanks and quotes; none is invented."""
    got = got or {}
    extra = {key for key, value in got.items() if value not in (None, "")} - set(expected) - OPTIONAL
    return not extra and all(_accepted(name, value, got.get(name)) for name, value in expected.items())


def _accepted(name: str, expected: Any, got: Any) -> bool:
    if expected is None:
        return True
    if name == "drug_names":
        return sorted(map(plain, expected)) == sorted(map(plain, got or []))
    values = expected if isinstance(expected, list) else [expected]
    return any(plain(value) == plain(got) for value in values)


def plain(value: Any) -> str:
    return "" if value is None else "".join(str(value).casefold().split()).strip("\"'“”.,;:")


def says(answer: str, critical: Iterable[Iterable[str]]) -> bool:
    """Whether the answer has one string of each list."""
    text = " ".join(answer.casefold().split())
    return all(any(part.casefold() in text for part in parts) for parts in critical)


def table(marks: list[Mark]) -> list[dict[str, Any]]:
    """Rows by capability, and by difficulty in each: n, right, share, interval."""
    groups: dict[tuple[str, str], list[Mark]] = defaultdict(list)
    for mark in marks:
        groups[mark.capability, "all"].append(mark)
        groups[mark.capability, mark.difficulty].append(mark)
    rows = []
    for (capability, difficulty), found in groups.items():
        right = sum(mark.right for mark in found)
        low, high = wilson(right, len(found))
        rows.append({"capability": capability, "difficulty": difficulty, "n": len(found), "right": right,
                     "share": round(right / len(found), 4), "low": round(low, 4), "high": round(high, 4)})  # fmt: skip
    return rows


def confusion(marks: Iterable[Mark], capability: str) -> list[list[Any]]:
    """[expected, got, count] of a capability, the wrong pairs first."""
    pairs = Counter((mark.expected, mark.got) for mark in marks if mark.capability == capability)
    return [
        [*pair, count]
        for pair, count in sorted(pairs.items(), key=lambda entry: (entry[0][0] == entry[0][1], -entry[1]))
    ]


NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def invented(answer: str, evidence: Iterable[str], drugs) -> list[str]:
    """Numbers, ids and drugs of an answer that stand nowhere in the evidence; independent of `rules.grounding`."""
    known = " ".join(evidence).casefold()
    numbers = set(NUMBER.findall(known))
    found = [item for item in NUMBER.findall(answer) if item not in numbers]
    return found + [item.text for item in drugs.find(answer) if item.text.casefold() not in known]
