"""A sentence that was cut short in a prompt must not reach a clinician cut short: it is completed from the evidence."""

from collections.abc import Sequence

MARK = "…"
MIN_CHARS = 12  # a shorter beginning may belong to several lines


def complete(answer: str, evidence: Sequence[str]) -> str:
    """The answer with every line that ends in "…" continued from the evidence line that begins the same.

    A line with no such beginning stays as it is.
    """
    lines = [line.strip() for text in evidence for line in text.splitlines()]
    return "\n".join(_completed(line, lines) for line in answer.split("\n"))


def _completed(line: str, lines: Sequence[str]) -> str:
    start = line.rstrip().removesuffix(MARK).rstrip()
    if not line.rstrip().endswith(MARK) or len(start) < MIN_CHARS:
        return line
    return next((whole for whole in lines if whole.startswith(start) and not whole.endswith(MARK)), line)
