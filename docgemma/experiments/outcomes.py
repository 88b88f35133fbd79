"""What came of a golden set: a turn, a case, the whole run. Data and its figures only."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from docgemma.experiments.statistics import percentile, wilson


@dataclass
class TurnResult:
    """What came of one turn. `card` is the write that waited before anything was decided."""

    id: str  # the case's; "nn-c01.2" is the second turn of a conversation
    case: str
    question: str
    status: str = ""
    answer: str = ""
    card: dict[str, Any] | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)  # name, args, ok
    failed: list[str] = field(default_factory=list)  # short reasons; empty where it is right
    decided: str = ""  # the answer after `decide`
    seconds: float = 0.0


@dataclass
class CaseResult:
    """One case. A turn that raised ends it; what follows is not asked."""

    id: str
    turns: list[TurnResult]

    @property
    def passed(self) -> bool:
        return not any(turn.failed for turn in self.turns)

    @property
    def why(self) -> str:
        """All reasons in one line; those of a conversation with the turn's number."""
        several = len(self.turns) > 1 or self.turns[0].id != self.id
        return "; ".join(
            (f"turn {number}: " if several else "") + ", ".join(turn.failed)
            for number, turn in enumerate(self.turns, 1)
            if turn.failed
        )

    @property
    def seconds(self) -> float:
        return sum(turn.seconds for turn in self.turns)


@dataclass
class Report:
    """A whole run."""

    cases: list[CaseResult]

    def as_dict(self) -> dict[str, Any]:
        """The contract's JSON: `passed, total, failed: [{id, why}], metrics`."""
        passed = sum(case.passed for case in self.cases)
        return {
            "passed": passed,
            "total": len(self.cases),
            "failed": [{"id": case.id, "why": case.why} for case in self.cases if not case.passed],
            "metrics": self.metrics,
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """Share of the cases that are right, with its 95 % interval; seconds are those of a turn."""
        passed, total = sum(case.passed for case in self.cases), len(self.cases)
        low, high = wilson(passed, total)
        seconds = [turn.seconds for case in self.cases for turn in case.turns]
        return {
            "share": round(passed / total, 4), "low": round(low, 4), "high": round(high, 4), "turns": len(seconds),
            "median_seconds": round(median(seconds), 3), "p95_seconds": round(percentile(seconds, 95), 3),
        }  # fmt: skip
